"""What is in flight: the occurrences of a job and their runs, as far as the trace tells them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from chronex.verify.due import DueInstants
from chronex.verify.verdicts import Line

# Instants whose fate is remembered per job, to see when one is told twice.
MOST_ANSWERED = 2_000
UNSTARTED = frozenset({"OccurrenceSkipped", "OccurrenceMissed", "OccurrenceCanceled"})


class RunTrace:
    """One task of one occurrence. `interrupted` is the crash after which it has not been started again."""

    __slots__ = ("attempt", "end", "interrupted", "is_open", "node", "retry", "start")

    def __init__(self, start: Line | None) -> None:
        self.start = start
        self.attempt = 0
        self.is_open = False
        self.end: Line | None = None
        self.retry: Line | None = None
        self.interrupted: Line | None = None
        self.node = ""


class OccurrenceTrace:
    """A running occurrence. `interrupted` is the crash of the scheduler that ran it."""

    __slots__ = ("interrupted", "runs", "start")

    def __init__(self, start: Line | None) -> None:
        self.start = start  # None: it began before the trace
        self.runs: dict[str, RunTrace] = {}
        self.interrupted: Line | None = None

    def open_runs(self) -> list[RunTrace]:
        return [run for run in self.runs.values() if run.is_open]


class JobTrace:
    """A job: is it registered, by which policies, what runs, what was answered."""

    __slots__ = (
        "_answered", "due", "is_known", "last_start", "no_bursts", "open", "queued", "removed", "retry_ms", "told",
    )  # fmt: skip

    def __init__(self) -> None:
        self.is_known = False  # the trace has the event that brought it here
        self.removed: Line | None = None
        self.told: dict[str, Any] = {}
        self.no_bursts = False
        self.retry_ms: int | None = None
        self.due: DueInstants | None = None
        self.open: dict[int, OccurrenceTrace] = {}
        self.queued: dict[int, Line] = {}
        self.last_start: Line | None = None
        self._answered: OrderedDict[int, Line] = OrderedDict()

    def answer(self, nominal_ms: int, line: Line) -> None:
        self._answered[nominal_ms] = line
        self.queued.pop(nominal_ms, None)
        if len(self._answered) > MOST_ANSWERED:
            self._answered.popitem(last=False)

    def forget_unstarted(self) -> None:
        """An update may want again what an earlier one withdrew."""
        started = {nominal: line for nominal, line in self._answered.items() if line[1].name not in UNSTARTED}
        self._answered = OrderedDict(started)

    def answered(self, nominal_ms: int) -> Line | None:
        return self._answered.get(nominal_ms)
