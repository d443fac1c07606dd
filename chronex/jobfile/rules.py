"""The language of `[[verify.property]]`: what must never happen, and what must follow.

    rule    = "never" what [ "after" what [ "until" what ] [ "within" duration ] ]
            | "expect" what "after" what "within" duration [ "unless" what ]
    what    = event { "or" event }
    event   = Name [ "(" job [ "/" task ] ")" ]

`*` in a job or task stands for any text; `$job` is the job of the event after `after`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple, NoReturn

from chronex.expr.durations import parse_duration, suggest_duration
from chronex.expr.faults import quote
from chronex.expr.suggest import nearest
from chronex.model.events import EVENTS
from chronex.model.records import Event

SAME_JOB = "$job"
_WORD = re.compile(r"\s*([A-Za-z0-9_*$-]+|[()/]|\S)", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_*-]+", re.ASCII)
_KEYWORDS = ("never", "expect", "after", "until", "within", "unless", "or")
_LONGEST = 1_000


class RuleError(ValueError):
    """A rule that cannot be read: what is wrong, where in its text, and what to write."""

    def __init__(self, message: str, start: int, end: int, hint: str) -> None:
        self.message, self.start, self.end, self.hint = message, start, end, hint
        super().__init__(f"{message}; {hint}")


class EventPattern(NamedTuple):
    """One kind of event, of one job and task, of several, or of all."""

    name: str
    job: str = "*"
    task: str = "*"

    def matches(self, event: Event, same_job: str = "") -> bool:
        if event.name != self.name:
            return False
        if self.job == SAME_JOB:
            return event.job == same_job and fnmatchcase(event.task, self.task)
        return fnmatchcase(event.job, self.job) and fnmatchcase(event.task, self.task)


What = tuple[EventPattern, ...]


class Rule(NamedTuple):
    """`never what after … until … within …`, or (`must_come`) `expect what after … within … unless …`."""

    what: What
    after: What = ()
    until: What = ()
    within_ms: int | None = None
    must_come: bool = False

    @property
    def is_per_job(self) -> bool:
        return any(pattern.job == SAME_JOB for pattern in (*self.what, *self.until))


def parse_rule(text: str) -> Rule:
    """Raises RuleError at the first word that does not fit."""
    if len(text) > _LONGEST:
        raise RuleError(f"a rule has at most {_LONGEST} characters", _LONGEST, len(text), "split it into several")
    return _Reader(text).rule()


class _Word(NamedTuple):
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Reader:
    def __init__(self, text: str) -> None:
        self._words = [_Word(match[1], match.start(1)) for match in _WORD.finditer(text)]
        self._end = _Word("", len(text))
        self._at = 0

    @property
    def _next(self) -> _Word:
        return self._words[self._at] if self._at < len(self._words) else self._end

    def _take(self) -> _Word:
        word = self._next
        self._at += 1
        return word

    def _accept(self, *texts: str) -> bool:
        if self._next.text in texts:
            self._at += 1
            return True
        return False

    def _refuse(self, expected: str, hint: str) -> NoReturn:
        word = self._next
        found = quote(word.text) if word.text else "the end"
        raise RuleError(f"expected {expected}, not {found}", word.start, max(word.end, word.start + 1), hint)

    def rule(self) -> Rule:
        if self._accept("never"):
            found = self._never()
        elif self._accept("expect"):
            found = self._expect()
        else:
            self._refuse("never or expect", "write for example: never OccurrenceStarted(a) after JobPaused(a)")
        if self._next.text:
            known = ("after", "until", "within") if not found.must_come else ("unless",)
            meant = nearest(self._next.text, known)
            self._refuse("the end of the rule", f"did you mean {meant}?" if meant else "remove what follows")
        return found

    def _never(self) -> Rule:
        what = self._what()
        if not self._accept("after"):
            self._no_job_before_after(what)
            return Rule(what)
        after = self._what()
        until = self._what() if self._accept("until") else ()
        within = self._duration() if self._accept("within") else None
        return Rule(what, after, until, within)

    def _no_job_before_after(self, what: What) -> None:
        if any(pattern.job == SAME_JOB for pattern in what):
            self._refuse("after", "$job is the job of the event after `after`")

    def _expect(self) -> Rule:
        what = self._what()
        if not self._accept("after"):
            self._refuse("after", "say what it follows: expect A after B within 10m")
        after = self._what()
        if not self._accept("within"):
            self._refuse("within", "say how soon: expect A after B within 10m")
        within = self._duration()
        unless = self._what() if self._accept("unless") else ()
        return Rule(what, after, unless, within, must_come=True)

    def _what(self) -> What:
        found = [self._event()]
        while self._accept("or"):
            found.append(self._event())
        return tuple(found)

    def _event(self) -> EventPattern:
        word = self._next
        if word.text not in EVENTS:
            meant = None if word.text in _KEYWORDS else nearest(word.text, EVENTS)
            self._refuse("an event", f"did you mean {meant}?" if meant else "specs/formal-model.md lists the events")
        self._take()
        if not self._accept("("):
            return EventPattern(word.text)
        job = self._name("a job, * or $job", may_be_same=True)
        task = self._name("a task or *") if self._accept("/") else "*"
        if not self._accept(")"):
            self._refuse(")", "close the parenthesis")
        return EventPattern(word.text, job, task)

    def _name(self, expected: str, *, may_be_same: bool = False) -> str:
        word = self._next
        if not (_NAME.fullmatch(word.text) or (may_be_same and word.text == SAME_JOB)):
            self._refuse(expected, "write for example OccurrenceStarted(backup) or TaskRunFailed(*/dump)")
        return self._take().text

    def _duration(self) -> int:
        ms = parse_duration(self._next.text)
        if ms is None:
            meant = suggest_duration(self._next.text)
            self._refuse("a duration", f"did you mean {meant}?" if meant else "write 90s, 10m or 1h30m")
        self._take()
        return ms
