"""A value of the file together with its position: what readers are given, and the problems that they report."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any, NamedTuple, NoReturn

from chronex.errors import ChronexError
from chronex.expr.diagnostics import with_hint
from chronex.jobfile.guessed_keys import ADVICE, ADVICE_FOR_TASKS, OTHER_NAMES
from chronex.jobfile.positions import LineIndex, TextNode, TextSpan
from chronex.model.calendars import CalendarRules, JobCalendar
from chronex.model.channels import Channel
from chronex.model.groups import GroupSettings
from chronex.model.policies import DstSetting, RetryPolicy
from chronex.text.suggestions import nearest
from chronex.text.terminal import escaped, quoted

MAX_PROBLEMS = 1_000


class Problem(NamedTuple):
    """One finding; line and columns count from 1, `end_column` is one past its last character on that line."""

    path: str
    line: int
    column: int
    end_column: int
    message: str
    hint: str
    code: str
    fix: str | None = None  # what to write in place of the marked text, where that is known

    @property
    def text(self) -> str:
        """The message and its hint as one line."""
        return with_hint(self.message, self.hint)

    def __str__(self) -> str:
        return f"{escaped(self.path)}:{self.line}:{self.column}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        names = ("path", "line", "column", "end_column", "message", "hint", "code")
        return {name: getattr(self, name) for name in names}


class JobFileError(ChronexError, ValueError):
    """The job file is not valid; nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class RefusedError(Exception):
    """A value was refused; its problem is already on the sheet."""


class TooManyProblemsError(Exception):
    """The file has more problems than a person reads, so reading stops."""


class PositionsNeededError(Exception):
    """There is something to say about a text whose places were not looked for: it is read again with them."""


class NamedZone(NamedTuple):
    """A zone that the file names, and where."""

    name: str
    span: TextSpan


class WrittenSchedule(NamedTuple):
    """A job's schedule as it stands in the file, with what the cascade defaults → job gives it.

    `zone_source` says where the zone comes from: "job", "scheduler" or "host". `dst` is None where the file does
    not choose a policy for clock changes.
    """

    job: str
    text: str
    node: TextNode
    dialect: str
    zone: str
    zone_source: str
    dst: DstSetting | None
    retry: RetryPolicy
    has_spread: bool
    # Whether a command that hangs is ever stopped; also true where the file says in so many words that it is not.
    has_timeout: bool = True
    calendars: CalendarRules | None = None


# 2027: for a check that does not apply anything, one year is as good as another.
SOME_TIME_MS = 1_798_761_600_000


@dataclass(slots=True)
class Sheet:
    """One reading of one file: its text, the host's zone, and what was found so far.

    `calendars` are those of the file by their names, None where one was refused; they are made as of `now_ms`.
    `blackout` are those during which nothing starts. `groups` are those of the file, None where one was refused; None
    as a whole where jobs may name any, because what is read is no job file. `channels` are the file's in the same way
    as its calendars. `shared` are the tables of the directory that the file is part of; `is_part` that
    it is such a file. `is_placed` says that the places of the values are known; `most_warnings` how many are kept.
    """

    path: str
    text: str
    host_zone: str
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    schedules: list[WrittenSchedule] = field(default_factory=list)
    zones: list[NamedZone] = field(default_factory=list)
    now_ms: int = SOME_TIME_MS
    calendars: dict[str, JobCalendar | None] = field(default_factory=dict)
    blackout: tuple[JobCalendar, ...] = ()
    groups: dict[str, GroupSettings | None] | None = None
    channels: dict[str, Channel | None] = field(default_factory=dict)
    shared: Mapping[str, Entry] = field(default_factory=dict)
    is_part: bool = False
    is_placed: bool = True
    most_warnings: int = MAX_PROBLEMS
    _lines: LineIndex | None = None

    @property
    def lines(self) -> LineIndex:
        if self._lines is None:
            self._lines = LineIndex(self.text)
        return self._lines

    def report(self, span: TextSpan, message: str, hint: str, code: str, fix: str | None = None) -> None:
        self.problems.append(self._problem(span, message, hint, code)._replace(fix=fix))
        if len(self.problems) >= MAX_PROBLEMS:
            raise TooManyProblemsError

    def warn(self, span: TextSpan, message: str, hint: str, code: str) -> None:
        if len(self.warnings) < self.most_warnings:
            self.warnings.append(self._problem(span, message, hint, code))

    def _problem(self, span: TextSpan, message: str, hint: str, code: str) -> Problem:
        if not self.is_placed:
            raise PositionsNeededError
        line, column = self.lines.line_and_column(span.start)
        end = min(span.end, self.lines.end_of_line(line))
        if self.text[end - 1 : end] == "\r":
            end -= 1
        end = max(end, span.start + 1)
        # Names of the file stand in both, and a task may be called by a control character.
        return Problem(self.path, line, column, column + end - span.start, escaped(message), escaped(hint), code)


@dataclass(frozen=True, slots=True)
class Entry:
    """A value with its name and place. `label` is the name as messages show it."""

    value: object
    node: TextNode
    label: str
    sheet: Sheet

    def child(self, key: str | int) -> Entry:
        container: Any = self.value
        label = str(key) if isinstance(key, str) else f"{self.label}[{key}]"
        if not (label.isidentifier() and label.isascii()):  # most are plain, and there are millions of them
            label = quoted(label)[1:-1]
        return Entry(container[key], self.node.children.get(key, self.node), label, self.sheet)

    def children(self) -> Iterator[Entry]:
        """The elements of a list; refuses anything else."""
        for index in range(len(self.expect_list())):
            yield self.child(index)

    @property
    def key_span(self) -> TextSpan:
        return self.node.key or self.node.value

    def span_inside(self, start: int, end: int) -> TextSpan:
        """A part of a string, or the whole of it when escapes hide where the part stands."""
        if self.node.content is None:
            return self.node.value
        return TextSpan(self.node.content + start, self.node.content + end)

    def report(
        self, message: str, hint: str, code: str, span: TextSpan | None = None, *, fix: str | None = None
    ) -> None:
        self.sheet.report(span or self.node.value, message, hint, code, fix)

    def refuse(
        self, message: str, hint: str, code: str, span: TextSpan | None = None, *, fix: str | None = None
    ) -> NoReturn:
        self.report(message, hint, code, span, fix=fix)
        raise RefusedError

    def warn(self, message: str, hint: str, code: str, span: TextSpan | None = None) -> None:
        self.sheet.warn(span or self.node.value, message, hint, code)

    def assignment(self, value: str) -> str:
        """`key = value` as an example of what to write; an element of a list has no key."""
        return value if self.label.endswith("]") else f"{self.label} = {value}"

    def refuse_type(self, expected: str, example: str) -> NoReturn:
        self.refuse(f"{self.label} takes {expected}, not {type_name(self.value)}", f"write {example}", "J011")

    def expect_table(self, example: str = "") -> dict[str, object]:
        if not isinstance(self.value, dict):
            self.refuse_type("a table", example or self.assignment("{ … }"))
        return self.value

    def expect_list(self, example: str = "") -> list[object]:
        if not isinstance(self.value, list):
            self.refuse_type("a list", example or self.assignment("[ … ]"))
        return self.value


Reader = Callable[[Entry], object]


def read_table(
    entry: Entry, keys: Mapping[str, Reader], example: str = "", *, is_open: bool = False, above: Container[str] = ()
) -> dict[str, Any]:
    """The values that could be read, by key; every unknown key and bad value is on the sheet.

    In an open table other programs may keep keys of their own: they are left out and noted. `above` are the keys of
    the job around the table of a task.
    """
    found: dict[str, Any] = {}
    for name in entry.expect_table(example):
        child = entry.child(name)
        reader = keys.get(name)
        if reader is None:
            if is_open:
                _note_unknown(child, name, keys)
            elif name in above:
                _report_above(child, name)
            else:
                _report_unknown(child, name, keys)
            continue
        try:
            found[name] = reader(child)
        except RefusedError:
            continue
    return found


def read_each(entry: Entry, reader: Reader) -> list[Any]:
    """Every element of a list; all bad ones are reported before the list is refused."""
    found: list[Any] = []
    refused = False
    for child in entry.children():
        try:
            found.append(reader(child))
        except RefusedError:
            refused = True
    if refused:
        raise RefusedError
    return found


def _report_unknown(entry: Entry, name: str, keys: Mapping[str, Reader]) -> None:
    plain = name.lower().replace("-", "_")
    advice = ADVICE.get(plain) if "schedule" in keys or "run" in keys or "jobs" in keys else None
    meant = OTHER_NAMES.get(plain) or (None if advice else nearest(name, keys))
    if name == "timeout":
        meant = next((key for key in ("task_timeout", "timeout") if key in keys), None)
    fix = meant if meant in keys else None
    hint = f"did you mean {fix}?" if fix else advice or f"the keys here are {', '.join(sorted(keys))}"
    entry.report(f"unknown key {quoted(name)}", hint, "J010", entry.key_span, fix=fix)


def _report_above(entry: Entry, name: str) -> None:
    plain = f"{name} holds for the whole job: write it in [jobs.NAME], above its tasks"
    hint = ADVICE_FOR_TASKS.get(name) or ADVICE.get(name) or plain
    entry.report(f"unknown key {quoted(name)}", hint, "J010", entry.key_span)


def _note_unknown(entry: Entry, name: str, keys: Mapping[str, Reader]) -> None:
    """`$schema` and its like say something to editors and nothing to Chronex."""
    if name.startswith("$"):
        return
    meant = nearest(name, keys)
    hint = f"did you mean {meant}?" if meant else "what the task should know belongs into metadata"
    entry.warn(f"the key {quoted(name)} is not read", hint, "J102", entry.key_span)


def type_name(value: object) -> str:
    """A type as people call it."""
    if isinstance(value, bool):
        return "true or false"
    for kinds, name in (
        (str, "text"),
        (int, "a whole number"),
        (float, "a number"),
        (dict, "a table"),
        (list, "a list"),
        ((datetime, date, time), "a date or time"),
    ):
        if isinstance(value, kinds):
            return name
    return "nothing" if value is None else "something else"
