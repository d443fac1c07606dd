"""What a check can say, and the evidence it gives: a verdict per property, and the few events that matter."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from chronex.model.reasons import text_of
from chronex.model.records import Event

Line = tuple[int, Event]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Whoever reads the fifth counterexample of one property would read the fiftieth no better.
MOST_FINDINGS = 20
MOST_OPEN = 5

TITLES: dict[str, str] = {
    "S1": "no two runs of a task at once",
    "S2": "every end has its start",
    "S3": "nothing starts unless the scheduler is active and it is registered, due and past its retry delay",
    "S4a": "no start after a stop has ended",
    "S4b": "no end after a stop has ended, and nothing in flight when it ends",
    "S5a": "no start by a scheduler that crashed",
    "S5b": "no completion is made up for a run that a crash interrupted",
    "S6": "one start for each due instant, and no burst to make up for missed ones",
    "S7": "a stop completes",
    "S8": "an initialization completes",
    "L1": "a stop terminates",
    "L2": "what is due again and again is answered again and again: no due instant is passed over",
    "L3": "a run that a crash interrupted is started again",
}


class Verdict(StrEnum):
    """On a finite trace: no counterexample, one that no continuation can repair, or a promise not yet kept."""

    HOLDS = "holds"
    VIOLATED = "violated"
    OPEN = "open"


class Finding(NamedTuple):
    """A sentence and the events that show it, oldest first; the last one is where the property broke."""

    message: str
    evidence: tuple[Line, ...]

    @property
    def number(self) -> int:
        return self.evidence[-1][0]

    def to_dict(self) -> dict[str, Any]:
        return {"event": self.number, "message": self.message, "evidence": [shown(line) for line in self.evidence]}


@dataclass(slots=True)
class Docket:
    """One property's record: how often it was put to the test, and what was found."""

    property: str
    title: str
    checked: int = 0
    violations: int = 0
    findings: list[Finding] = field(default_factory=list)
    since_ms: int | None = None  # what happened before is not reported

    def violate(self, message: str, *evidence: Line | None) -> None:
        lines = tuple(sorted((line for line in evidence if line is not None), key=lambda line: line[0]))
        if self.since_ms is not None and lines[-1][1].at_ms < self.since_ms:
            return
        self.violations += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(Finding(message, lines))

    def result(self, still_open: list[Finding]) -> PropertyResult:
        verdict = Verdict.VIOLATED if self.violations else Verdict.OPEN if still_open else Verdict.HOLDS
        first = sorted(still_open, key=lambda finding: finding.number)[:MOST_OPEN]
        return PropertyResult(
            self.property, self.title, verdict, self.checked, self.violations, tuple(self.findings),
            len(still_open), tuple(first),
        )  # fmt: skip


class PropertyResult(NamedTuple):
    """`findings` and `open` show the first few; `violations` and `open_count` count them all."""

    property: str
    title: str
    verdict: Verdict
    checked: int
    violations: int
    findings: tuple[Finding, ...]
    open_count: int
    open: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "property": self.property,
            "title": self.title,
            "verdict": self.verdict.value,
            "checked": self.checked,
            "violations": self.violations,
            "findings": [finding.to_dict() for finding in self.findings],
            "open_count": self.open_count,
            "open": [finding.to_dict() for finding in self.open],
        }


def stamp(at_ms: int) -> str:
    """An instant as people read it, in UTC."""
    moment = _EPOCH + timedelta(milliseconds=at_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{at_ms % 1000:03}Z" if at_ms % 1000 else "Z")


def shown(line: Line) -> dict[str, Any]:
    """An event for programs; what it does not have is left out."""
    number, event = line
    rest = {
        "job": event.job,
        "nominal_ms": event.nominal_ms,
        "task": event.task,
        "attempt": event.attempt,
        "reason": text_of(event.reason),
        "actor": event.actor,
        "data": event.data,
    }
    told = {name: value for name, value in rest.items() if value not in ("", None, {})}
    return {"number": number, "at_ms": event.at_ms, "name": event.name, **told}
