"""What a verification says: a verdict for each property with the events that show it, and the latencies.

A `PropertyCheck` collects what a monitor finds while it is fed; `PropertyResult` and `LatencySummary` are what is
reported.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from chronex.model.event import Event
from chronex.model.reasons import text_of

# An event of the journal with its number.
JournalLine = tuple[int, Event]


# The twentieth counterexample of one property tells a reader no more than the fifth.
MAX_FINDINGS = 20
MAX_OPEN = 5

# The bound of P1 and P2.
LATENCY_BOUND_MS = 60_000
# A latency is kept to this many binary digits, so that a watch of years needs a few thousand counters.
_LATENCY_DIGITS = 7

TITLES: dict[str, str] = {
    "S1": "no two runs of a task at once",
    "S2": "every end has its start",
    "S3": "nothing starts unless the scheduler is active and it is registered, due and past its retry delay",
    "S4a": "no start after a stop has ended",
    "S4b": "no end after a stop has ended, and nothing in flight when it ends but what it left running",
    "S5a": "no start by a scheduler that crashed",
    "S5b": "no completion is made up for a run that a crash interrupted",
    "S6": "one start for each due instant, and no burst to make up for missed ones",
    "S7": "a stop completes",
    "S8": "an initialization completes",
    "L1": "a stop terminates",
    "L2": "what is due again and again is answered again and again: no due instant is passed over",
    "L3": "a run that a crash interrupted is started again",
}


class PropertyVerdict(StrEnum):
    """On a finite trace: no counterexample, one that no continuation can repair, or a promise not yet kept."""

    HOLDS = "holds"
    VIOLATED = "violated"
    OPEN = "open"


class PropertyFinding(NamedTuple):
    """A sentence and the events that show it, oldest first; the last one is where the property broke."""

    message: str
    evidence: tuple[JournalLine, ...]

    @property
    def number(self) -> int:
        return self.evidence[-1][0]

    def to_dict(self) -> dict[str, Any]:
        evidence = [event_to_dict(line) for line in self.evidence]
        return {"event": self.number, "message": self.message, "evidence": evidence}


@dataclass(slots=True)
class PropertyCheck:
    """The check of one property: how often it was put to the test, and what was found."""

    property: str
    title: str
    checked: int = 0
    violations: int = 0
    findings: list[PropertyFinding] = field(default_factory=list)
    since_ms: int | None = None  # what happened before is not reported

    def violate(self, message: str, *evidence: JournalLine | None) -> None:
        lines = tuple(sorted((line for line in evidence if line is not None), key=lambda line: line[0]))
        if self.since_ms is not None and lines[-1][1].at_ms < self.since_ms:
            return
        self.violations += 1
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(PropertyFinding(message, lines))

    def result(self, still_open: list[PropertyFinding]) -> PropertyResult:
        verdict = PropertyVerdict.OPEN if still_open else PropertyVerdict.HOLDS
        return PropertyResult(
            property=self.property,
            title=self.title,
            verdict=PropertyVerdict.VIOLATED if self.violations else verdict,
            checked=self.checked,
            violations=self.violations,
            findings=tuple(self.findings),
            open_count=len(still_open),
            open=tuple(sorted(still_open, key=lambda finding: finding.number)[:MAX_OPEN]),
        )


class PropertyResult(NamedTuple):
    """`findings` and `open` show the first few; `violations` and `open_count` count them all."""

    property: str
    title: str
    verdict: PropertyVerdict
    checked: int
    violations: int
    findings: tuple[PropertyFinding, ...]
    open_count: int
    open: tuple[PropertyFinding, ...]

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


# -- latencies: P1 (from due to start) and P2 (from initialization to restart after a crash) ----------------------


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Figures without a verdict: a loaded machine makes them larger. `left_out` counts starts that had to queue."""

    name: str
    title: str
    count: int
    within_bound: int
    median_ms: int
    p95_ms: int
    max_ms: int
    worst: JournalLine | None
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "bound_ms": LATENCY_BOUND_MS,
            "count": self.count,
            "within_bound": self.within_bound,
            "median_ms": self.median_ms,
            "p95_ms": self.p95_ms,
            "max_ms": self.max_ms,
            "worst": None if self.worst is None else event_to_dict(self.worst),
            "left_out": self.left_out,
        }


class LatencyHistogram:
    """A histogram with bounded relative error (below one percent) and an exact maximum."""

    def __init__(self, name: str, title: str) -> None:
        self.name = name
        self.title = title
        self.left_out = 0  # starts that had to queue, for overlap or for the pool
        self._counts: dict[int, int] = {}
        self._count = 0
        self._within = 0
        self._max = 0
        self._worst: JournalLine | None = None

    def add(self, latency_ms: int, line: JournalLine) -> None:
        latency_ms = max(latency_ms, 0)
        self._count += 1
        self._within += latency_ms <= LATENCY_BOUND_MS
        if self._worst is None or latency_ms > self._max:
            self._max = latency_ms
            self._worst = line
        shift = max(latency_ms.bit_length() - _LATENCY_DIGITS, 0)
        rounded = (latency_ms >> shift) << shift
        self._counts[rounded] = self._counts.get(rounded, 0) + 1

    def summary(self) -> LatencySummary:
        return LatencySummary(
            name=self.name,
            title=self.title,
            count=self._count,
            within_bound=self._within,
            median_ms=self._percentile(0.5),
            p95_ms=self._percentile(0.95),
            max_ms=self._max,
            worst=self._worst,
            left_out=self.left_out,
        )

    def _percentile(self, share: float) -> int:
        left = self._count * share
        for latency in sorted(self._counts):
            left -= self._counts[latency]
            if left <= 0:
                return latency
        return 0


def event_to_dict(line: JournalLine) -> dict[str, Any]:
    """An event for programs; fields without a value are left out."""
    number, event = line
    fields = {
        "job": event.job,
        "nominal_ms": event.nominal_ms,
        "task": event.task,
        "attempt": event.attempt,
        "reason": text_of(event.reason),
        "actor": event.actor,
        "data": event.data,
    }
    given = {name: value for name, value in fields.items() if value not in ("", None, {})}
    return {"number": number, "at_ms": event.at_ms, "name": event.name, **given}
