"""Rows, verdicts and stop-watches shared by all topics."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from time import perf_counter, process_time
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. A value without a limit is shown for what it is worth."""

    topic: str
    what: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    remark: str = ""

    @property
    def holds(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"≥ {self.at_least:g}{self.unit}"
        return "" if self.at_most is None else f"≤ {self.at_most:g}{self.unit}"

    @property
    def verdict(self) -> str:
        return {True: "met", False: "MISSED", None: ""}[self.holds]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Size:
    """How much to measure: enough to trust the figures, or just enough to see that the harness runs."""

    instants: int = 200
    repeats: int = 5
    starts: int = 5
    per_start: int = 100
    schedules: int = 100
    processes: int = 9


FULL = Size()
TINY = Size(instants=3, repeats=1, starts=1, per_start=3, schedules=1, processes=1)


def seconds(work: Callable[[], object], repeats: int, clock: Callable[[], float] = process_time) -> float:
    """The shortest of several runs, in time of this process, so that a busy machine flatters nobody."""
    best = math.inf
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def wall_seconds(work: Callable[[], object], repeats: int) -> float:
    """The same on the wall, for work that other processes do."""
    return seconds(work, repeats, perf_counter)


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def show(rows: Iterable[Row]) -> str:
    """The table as text."""
    lines = [f"{'':46}{'measured':>12}   {'target':10} {'':7}"]
    for row in rows:
        measured = f"{row.value:.3g}{row.unit}" if row.value < 1000 else f"{row.value:.0f}{row.unit}"
        lines.append(f"{row.what:46}{measured:>12}   {row.target:10} {row.verdict:7} {row.remark}".rstrip())
    return "\n".join(lines)
