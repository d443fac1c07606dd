"""Which jobs a person means: `state:failed tag:etl -nightly next<1h`. Shared by `list --filter` and the dashboard.

Words are joined by "and"; a word with `-` before it must not hold. A word without a colon is searched in the name
and the tags, letters in order, so that `bkdb` finds `backup-db`. Text that is still being typed is no error: what
cannot be understood is listed in `problems` and lets every job through.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from chronex.model.job import Call, Work
from chronex.text.durations import parse_duration
from chronex.text.suggestions import nearest
from chronex.views.jobs import Row, Situation

_COMPARED = re.compile(r"(next|last)([<>])(.*)")
_KEYED = re.compile(r"([a-z]+):(.*)")
_KEYS = ("state", "tag", "tz", "cmd")

Test = Callable[[Row, int], bool]


class FilterWord(NamedTuple):
    """One word of a filter, taken apart. `test` is None where the word could not be understood."""

    text: str
    key: str  # state, tag, tz or cmd; empty for a word without a colon
    value: str
    is_negated: bool
    test: Test | None


class Filter(NamedTuple):
    """`problems` are sentences on words that could not be understood."""

    text: str
    tests: tuple[Test, ...]
    problems: tuple[str, ...]
    words: tuple[FilterWord, ...] = ()

    def matches(self, row: Row, now_ms: int) -> bool:
        return all(test(row, now_ms) for test in self.tests)


def parse_filter(text: str) -> Filter:
    words: list[FilterWord] = []
    problems: list[str] = []
    for word in text.split():
        bare = word[1:] if word.startswith("-") and len(word) > 1 else word
        is_negated = bare is not word
        keyed = _KEYED.fullmatch(bare)
        key, value = keyed.groups() if keyed is not None else ("", bare)
        found = _test(bare)
        if isinstance(found, str):
            problems.append(found)
            words.append(FilterWord(word, key, value, is_negated, None))
        else:
            words.append(FilterWord(word, key, value, is_negated, _negated(found) if is_negated else found))
    tests = tuple(word.test for word in words if word.test is not None)
    return Filter(text, tests, tuple(problems), tuple(words))


def _test(word: str) -> Test | str:
    """What the word asks of a row, or what is wrong with it."""
    if compared := _COMPARED.fullmatch(word):
        return _time(*compared.groups())
    keyed = _KEYED.fullmatch(word)
    if keyed is None:
        return lambda row, _now: is_near(word, row.job.shown_name) or any(is_near(word, tag) for tag in row.job.tags)
    key, value = keyed.groups()
    if not value:
        return f"{key}: is followed by what to look for"
    match key:
        case "state":
            return _state(value)
        case "tag":
            return lambda row, _now: any(fnmatchcase(tag.lower(), value.lower()) for tag in row.job.tags)
        case "tz":
            return lambda row, _now: fnmatchcase(row.job.timezone.lower(), value.lower())
        case "cmd":
            return lambda row, _now: any(value.lower() in command_text(task.run).lower() for task in row.job.tasks)
    meant = nearest(key, _KEYS)
    known = "there are state:, tag:, tz:, cmd:, next<1h and last>1d"
    return f"no filter {key}:; " + (f"did you mean {meant}:?" if meant else known)


def _state(value: str) -> Test | str:
    known = tuple(situation.value for situation in Situation)
    if value == "active":
        return lambda row, _now: row.is_active
    if value not in known:
        meant = nearest(value, known)
        hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)} and active"
        return f"no state {value!r}; {hint}"
    if value == Situation.RUNNING:
        return lambda row, _now: row.is_running
    return lambda row, _now: row.situation == value


def _time(what: str, sign: str, value: str) -> Test | str:
    """`next<1h`: due within the hour. `last>1d`: ended more than a day ago, or never ran."""
    span = parse_duration(value)
    if span is None:
        return f"{what}{sign} is followed by a duration such as 90s, 10m or 1d"

    def test(row: Row, now_ms: int) -> bool:
        if what == "next":
            away = None if row.next is None else row.next.due_ms - now_ms
        else:
            away = None if row.last is None or row.last.finished_ms is None else now_ms - row.last.finished_ms
        if away is None:
            return sign == ">"
        return away < span if sign == "<" else away > span

    return test


def _negated(test: Test) -> Test:
    return lambda row, now_ms: not test(row, now_ms)


def is_near(wanted: str, text: str) -> bool:
    """Every letter of `wanted` is in `text`, in this order, with any letters between them."""
    return _in_order(wanted)(text) is not None


@lru_cache(maxsize=64)
def _in_order(wanted: str) -> Callable[[str], re.Match[str] | None]:
    """Compiled once: ten thousand jobs are searched for every letter that is typed. It never backtracks."""
    letters = [re.escape(letter) for letter in wanted]
    return re.compile("".join(f"[^{letter}]*{letter}" for letter in letters), re.IGNORECASE).match


def command_text(work: Work) -> str:
    """What a task does, on one line."""
    if isinstance(work, Call):
        return work.text
    return work if isinstance(work, str) else " ".join(work)
