"""Timelines as text: what a simulated machine did, one lane for each occurrence, task or job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState, RunState
from chronex.testing import DAY, HOUR, SimulatedMachine, SimulatedProcess

RUNS, WAITS, NOT_RUN, DOWN = "█", "·", "○", "░"
LEGEND = f"`{RUNS}` runs, `{WAITS}` waits, `{NOT_RUN}` was due and does not run, `{DOWN}` no scheduler runs"
_LABEL = 12


class Bar(NamedTuple):
    """What stands in the columns from `start_ms` to `end_ms`, in one column at least."""

    start_ms: int
    end_ms: int
    sign: str


class Lane(NamedTuple):
    label: str
    bars: tuple[Bar, ...] = ()
    words: str = ""


class Ruler(NamedTuple):
    """`columns` columns of `column_ms` each; every so many of them there is a time."""

    start_ms: int
    column_ms: int
    columns: int
    every: int
    zone: tzinfo = ZoneInfo("UTC")

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.columns * self.column_ms

    def head(self) -> str:
        apart = self.every * self.column_ms
        form = ":%M" if apart < HOUR else "%H:%M" if apart < DAY else "%a"
        marks = range(0, self.columns, self.every)
        return " " * _LABEL + "".join(
            self.time(self.start_ms + n * self.column_ms, form).ljust(self.every) for n in marks
        )

    def time(self, at_ms: int, form: str = "%H:%M") -> str:
        return datetime.fromtimestamp(at_ms / 1000, self.zone).strftime(form)

    def line(self, lane: Lane) -> str:
        cells = [" "] * self.columns
        for bar in lane.bars:
            first = (bar.start_ms - self.start_ms) // self.column_ms
            last = max(first, -(-(bar.end_ms - self.start_ms) // self.column_ms) - 1)
            for column in range(max(first, 0), min(last, self.columns - 1) + 1):
                cells[column] = bar.sign
        return f"{lane.label:{_LABEL}}{''.join(cells)}  {lane.words}".rstrip()


def draw(ruler: Ruler, groups: Iterable[tuple[str, list[Lane]]]) -> str:
    """The ruler, then each group below its title."""
    lines = [ruler.head()]
    for title, lanes in groups:
        lines += ([title] if title else []) + [ruler.line(lane) for lane in lanes]
    return "\n".join(line.rstrip() for line in lines)


def occurrence_lanes(machine: SimulatedMachine, job: str, ruler: Ruler) -> list[Lane]:
    return [
        Lane(f"  {ruler.time(one.nominal_ms)}", bars_of(machine, one), told(one.state.value, str(one.reason)))
        for one in machine.occurrences(job)
        if one.nominal_ms < ruler.end_ms
    ]


def task_lanes(machine: SimulatedMachine, job: str) -> list[Lane]:
    """The tasks of the first occurrence, and how it ended."""
    first = machine.occurrences(job)[0]
    lanes = []
    for run in machine.read(lambda reading: reading.runs(job, first.nominal_ms)):
        mine = [p for p in machine.processes if (p.nominal_ms, p.task) == (first.nominal_ms, run.task)]
        state = "failed" if run.state is RunState.DLQ else run.state.value
        lanes.append(Lane(f"  {run.task}", _bars(mine, machine.now), told(state, str(run.reason))))
    return [*lanes, Lane("  the job", (), told(first.state.value, str(first.reason)))]


def bars_of(machine: SimulatedMachine, occurrence: Occurrence) -> tuple[Bar, ...]:
    mine = [p for p in machine.processes if (p.job, p.nominal_ms) == (occurrence.job, occurrence.nominal_ms)]
    if occurrence.state in (OccurrenceState.PENDING, OccurrenceState.QUEUED):
        return (Bar(occurrence.nominal_ms, machine.now, WAITS),)
    if not mine:
        return (Bar(occurrence.due_ms, occurrence.due_ms, NOT_RUN),)
    return (Bar(occurrence.nominal_ms, mine[0].started_ms, WAITS), *_bars(mine, machine.now))


def _bars(processes: list[SimulatedProcess], now: int) -> tuple[Bar, ...]:
    """Each attempt, and the pauses between them."""
    if not processes:
        return ()
    whole = Bar(processes[0].started_ms, processes[-1].started_ms, WAITS)
    return (whole, *(Bar(p.started_ms, now if p.ended_ms is None else p.ended_ms, RUNS) for p in processes))


def told(state: str, reason: str) -> str:
    """The id of an occurrence is left out: in a picture one sees which."""
    words = reason.partition(": occ_")[0]
    return f"{state}: {words}" if words else state
