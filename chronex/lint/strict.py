"""What a host of plain cron does not take although Chronex does: told before it is refused at run time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import ERROR, Diagnostic
from chronex.expr.fields import DAY_OF_WEEK, ELEMENT, FIVE_FIELDS, SIX_FIELDS, FieldSpec, read_field, value_of
from chronex.lint.hosts import GITHUB, Host
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

REFUSED = "W130"
_WORD = re.compile(r"[^ \t]+")
_PLAINEST = re.compile(r"[*0-9,/]+(?: [*0-9,/]+){4}")
_LONE_SEVEN = re.compile(r"(?<![0-9/#-])7(?![0-9/#-])")


def refused(text: str, host: Host) -> list[Diagnostic]:
    """Every part of the text that this host will not take. Empty also for text that is wrong everywhere."""
    if _PLAINEST.fullmatch(text) and (host.takes_seven or "7" not in text):
        return []  # most lines of most files: nothing that hosts disagree on
    stripped = text.strip(" \t")
    if stripped.startswith("@"):
        return list(_nickname(text, stripped, host))
    if stripped.startswith(("TZ=", "CRON_TZ=")):
        return [_refuse(text, 0, len(stripped.split(" ")[0]), "expression", f"{host.title} takes no zone here")]
    for bracket in "{<":
        if (at := text.find(bracket)) >= 0:
            message = f"options in brackets are Chronex's own; {host.title} does not take them"
            return [_refuse(text, at, len(text.rstrip()), "expression", message)]
    words = list(_WORD.finditer(text))
    if len(words) == 6 and _reads(SIX_FIELDS, words):
        return [_sixth_field(text, words, host)]
    if len(words) != 5:
        return []
    return [d for spec, word in zip(FIVE_FIELDS, words, strict=True) for d in _field(text, spec, word, host)]


def _reads(specs: tuple[FieldSpec, ...], words: list[re.Match[str]]) -> bool:
    return all(read_field(spec, word[0]) is not None for spec, word in zip(specs, words, strict=True))


def _refuse(text: str, start: int, end: int, field: str, message: str, fix: str | None = None) -> Diagnostic:
    return Diagnostic(REFUSED, field, message, text[start:end], start, end, fix, ERROR)


def _nickname(text: str, stripped: str, host: Host) -> Iterator[Diagnostic]:
    word = stripped.split(maxsplit=1)[0]
    start = text.index(word)
    if word.lower() in host.nicknames or (not host.nicknames and host is not GITHUB):
        return
    meant = nearest(word, host.nicknames)
    hint = f"; did you mean {meant}?" if meant else f"; it takes {', '.join(sorted(host.nicknames))}"
    if host is GITHUB:
        hint = "; write five fields such as 17 4 * * *"
    yield _refuse(
        text, start, start + len(word), "expression", f"{host.title} does not know {quoted(word)}{hint}", meant
    )


def _sixth_field(text: str, words: list[re.Match[str]], host: Host) -> Diagnostic:
    """Six fields where five are read. A zero in front can only have meant the seconds."""
    first, second = words[0], words[1]
    message = f"6 fields, but {host.title} reads 5: it has no seconds"
    if first[0].strip("0") == "":
        fix = text[second.start() : words[-1].end()]
        return _refuse(text, first.start(), words[-1].end(), "expression", message, fix)
    return _refuse(text, first.start(), words[-1].end(), "expression", message)


def _field(text: str, spec: FieldSpec, word: re.Match[str], host: Host) -> Iterator[Diagnostic]:
    read = read_field(spec, word[0])
    if read is None:
        return  # the parser says what is wrong with it
    start, end = word.span()
    if read.rule is not None:
        message = f"{quoted(word[0])}: {host.title} does not know L, W and #"
        yield _refuse(text, start, end, spec.name, message)
    elif word[0] == "?" and not host.takes_question_mark:
        yield _refuse(text, start, end, spec.name, f"{host.title} does not know '?'; use *", "*")
    elif word[0] != "?":
        yield from _elements(text, spec, word, host)


def _elements(text: str, spec: FieldSpec, word: re.Match[str], host: Host) -> Iterator[Diagnostic]:
    at = word.start()
    for element in word[0].split(","):
        match = ELEMENT.fullmatch(element.upper())
        if match is not None:
            first, last, _ = match.groups()
            low, high = value_of(spec, first), value_of(spec, last or first)
            if low is not None and high is not None and low > high and not host.takes_wrapped_ranges:
                message = f"{quoted(element)} runs backwards, which {host.title} refuses"
                yield _refuse(text, at, at + len(element), spec.name, message + _unwrapped(spec, low, high))
            elif spec is DAY_OF_WEEK and 7 in (low, high) and not host.takes_seven:
                fix = "0" if _LONE_SEVEN.fullmatch(element) else None
                message = f"{host.title} counts weekdays from 0 (Sunday) to 6; 7 is refused"
                yield _refuse(text, at, at + len(element), spec.name, message, fix)
        at += len(element) + 1


def _unwrapped(spec: FieldSpec, low: int, high: int) -> str:
    top = spec.wrap_high
    return f"; write {low}-{top},{spec.low}-{high}" if low <= top else ""
