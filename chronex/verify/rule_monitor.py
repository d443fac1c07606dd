"""A property of the user's own (`[[verify.property]]`), as a monitor like the others."""

from __future__ import annotations

from chronex.jobfile import Property
from chronex.jobfile.properties import What
from chronex.model.records import Event
from chronex.verify.verdicts import Docket, Finding, Line, PropertyResult, stamp


class RuleMonitor:
    """Remembers the last (`never`) or the first (`expect`) event that the rule speaks of, for each job that matters.

    One is enough: what is forbidden after several of them is forbidden longest after the last, and what answers the
    first of them in time answers those after it.
    """

    def __init__(self, own: Property, since_ms: int | None = None) -> None:
        self._rule = own.rule
        self._docket = Docket(own.name, own.text, since_ms=since_ms)
        self._begun: dict[str, Line] = {}

    def feed(self, line: Line) -> None:
        if self._rule.must_come:
            self._expect(line)
        elif self._rule.after:
            self._forbid_after(line)
        elif self._is(self._rule.what, line[1]):
            self._docket.checked += 1
            self._docket.violate("this must never happen", line)

    def forget(self) -> None:
        self._begun.clear()

    def result(self) -> PropertyResult:
        awaited = self._begun.values() if self._rule.must_come else ()
        return self._docket.result([self._waiting(line) for line in awaited])

    # -- never … after … until … within … -------------------------------------------------------------------

    def _forbid_after(self, line: Line) -> None:
        event = line[1]
        for key, begun in list(self._begun.items()):
            if self._is(self._rule.until, event, key) or self._is_too_late(begun, event):
                del self._begun[key]
            elif self._is(self._rule.what, event, key):
                self._docket.violate("this must not happen after that", begun, line)
        if self._is(self._rule.after, event):
            self._docket.checked += 1
            self._begun[self._key(event)] = line

    # -- expect … after … within … unless … -----------------------------------------------------------------

    def _expect(self, line: Line) -> None:
        event = line[1]
        for key, begun in list(self._begun.items()):
            if self._is_too_late(begun, event):
                message = f"{self._deadline(begun)} has passed, and what must follow has not come"
                self._docket.violate(message, begun, line)
                del self._begun[key]
            elif self._is(self._rule.what, event, key) or self._is(self._rule.until, event, key):
                del self._begun[key]
        if self._is(self._rule.after, event):
            self._docket.checked += 1
            self._begun.setdefault(self._key(event), line)

    def _waiting(self, begun: Line) -> Finding:
        return Finding(f"what must follow is awaited until {self._deadline(begun)}", (begun,))

    # -- both ------------------------------------------------------------------------------------------------

    def _deadline(self, begun: Line) -> str:
        return stamp(begun[1].at_ms + (self._rule.within_ms or 0))

    def _is_too_late(self, begun: Line, event: Event) -> bool:
        return self._rule.within_ms is not None and event.at_ms > begun[1].at_ms + self._rule.within_ms

    def _key(self, event: Event) -> str:
        return event.job if self._rule.is_per_job else ""

    @staticmethod
    def _is(patterns: What, event: Event, job: str = "") -> bool:
        return any(pattern.matches(event, job) for pattern in patterns)
