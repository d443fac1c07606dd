"""The `[[verify.property]]` tables: promises of the user's own, which `chronex verify` holds the journal to.

A rule says what must never happen, or what must follow:

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

from chronex.jobfile.entries import Entry, Reader, RefusedError, read_table
from chronex.jobfile.values import filled_text, name
from chronex.model.event import EVENTS, Event
from chronex.text.durations import parse_duration, suggest_duration
from chronex.text.suggestions import nearest
from chronex.text.terminal import quoted

SAME_JOB = "$job"
_WORD = re.compile(r"\s*([A-Za-z0-9_*$-]+|[()/]|\S)", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_*-]+", re.ASCII)
_KEYWORDS = ("never", "expect", "after", "until", "within", "unless", "or")
_LONGEST = 1_000


class PropertyRuleError(ValueError):
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


class PropertyRule(NamedTuple):
    """`never what after … until … within …`, or (`must_come`) `expect what after … within … unless …`."""

    what: What
    after: What = ()
    until: What = ()
    within_ms: int | None = None
    must_come: bool = False

    @property
    def is_per_job(self) -> bool:
        return any(pattern.job == SAME_JOB for pattern in (*self.what, *self.until))


def parse_rule(text: str) -> PropertyRule:
    """Raises PropertyRuleError at the first word that does not fit."""
    if len(text) > _LONGEST:
        raise PropertyRuleError(
            f"a rule has at most {_LONGEST} characters", _LONGEST, len(text), "split it into several"
        )
    return _RuleParser(text).rule()


class _RuleWord(NamedTuple):
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _RuleParser:
    def __init__(self, text: str) -> None:
        self._words = [_RuleWord(match[1], match.start(1)) for match in _WORD.finditer(text)]
        self._end = _RuleWord("", len(text))
        self._at = 0

    @property
    def _next(self) -> _RuleWord:
        return self._words[self._at] if self._at < len(self._words) else self._end

    def _take(self) -> _RuleWord:
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
        found = quoted(word.text) if word.text else "the end"
        raise PropertyRuleError(f"expected {expected}, not {found}", word.start, max(word.end, word.start + 1), hint)

    def rule(self) -> PropertyRule:
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

    def _never(self) -> PropertyRule:
        what = self._what()
        if not self._accept("after"):
            self._no_job_before_after(what)
            return PropertyRule(what)
        after = self._what()
        until = self._what() if self._accept("until") else ()
        within = self._duration() if self._accept("within") else None
        return PropertyRule(what, after, until, within)

    def _no_job_before_after(self, what: What) -> None:
        if any(pattern.job == SAME_JOB for pattern in what):
            self._refuse("after", "$job is the job of the event after `after`")

    def _expect(self) -> PropertyRule:
        what = self._what()
        if not self._accept("after"):
            self._refuse("after", "say what it follows: expect A after B within 10m")
        after = self._what()
        if not self._accept("within"):
            self._refuse("within", "say how soon: expect A after B within 10m")
        within = self._duration()
        unless = self._what() if self._accept("unless") else ()
        return PropertyRule(what, after, unless, within, must_come=True)

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


MOST_PROPERTIES = 100
_EXAMPLE = 'name = "…" and rule = "never … after …"'


class Property(NamedTuple):
    """A name, the rule as written, and what it means."""

    name: str
    text: str
    rule: PropertyRule


def _rule(entry: Entry) -> tuple[str, PropertyRule]:
    text = filled_text(entry)
    try:
        return text, parse_rule(text)
    except PropertyRuleError as error:
        entry.refuse(error.message, error.hint, "J025", entry.span_inside(error.start, error.end))


PROPERTY: dict[str, Reader] = {"name": name, "rule": _rule}
VERIFY: dict[str, Reader] = {"property": lambda entry: entry}


def read_properties(entry: Entry) -> tuple[Property, ...]:
    tables = read_table(entry, VERIFY, "[[verify.property]] and its keys below it")
    listed: Entry | None = tables.get("property")
    if listed is None:
        return ()
    found: dict[str, Property] = {}
    for number, one in enumerate(listed.children()):
        if number == MOST_PROPERTIES:
            one.refuse(f"more than {MOST_PROPERTIES} properties", "keep those that matter", "J014")
        try:
            _add(one, found)
        except RefusedError:
            continue
    return tuple(found.values())


def _add(entry: Entry, found: dict[str, Property]) -> None:
    given = read_table(entry, PROPERTY, _EXAMPLE)
    for key in PROPERTY:
        if key not in entry.expect_table():
            entry.report(f"a property has no {key}", f"write {_EXAMPLE}", "J012")
    if "name" not in given or "rule" not in given:
        raise RefusedError
    if given["name"] in found:
        entry.child("name").refuse(f"the property {quoted(given['name'])} is given twice", "rename one", "J018")
    text, rule = given["rule"]
    found[given["name"]] = Property(given["name"], text, rule)
