"""Counts over a simulation: by job, by hour of the week, by minute, and how many runs overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chronex.model.reasons import words_of
from chronex.model.states import OccurrenceState
from chronex.timing.zones import Zone
from chronex.views.simulation import Played

_HOURS_OF_WEEK = 168
_THURSDAY = 3  # 1 January 1970; weeks here begin on Monday
MOST_COLLISIONS = 10


@dataclass(slots=True)
class JobTally:
    """`queued` counts the runs that waited for a slot or an earlier run; `longest_wait_ms` is from due to start."""

    completed: int = 0
    skipped: int = 0
    canceled: int = 0
    queued: int = 0
    busy_ms: int = 0
    longest_wait_ms: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class SimulationTally:
    """`hours` are the starts by hour of the week, from Monday; `minutes` the starts by minute since the epoch."""

    jobs: dict[str, JobTally]
    hours: list[int]
    minutes: Counter[int]
    most_at_once: int = 0

    def collisions(self) -> list[tuple[int, int]]:
        """The minutes (since the epoch) with the most starts, more than one each: (minute, starts)."""
        most = sorted(self.minutes.items(), key=lambda item: (-item[1], item[0]))[:MOST_COLLISIONS]
        return [item for item in most if item[1] > 1]


def tally(played: Iterable[Played], names: Iterable[str], zone: Zone) -> SimulationTally:
    found = SimulationTally({name: JobTally() for name in names}, [0] * _HOURS_OF_WEEK, Counter())
    edges: Counter[int] = Counter()
    for each in played:
        _count(found, each)
        if each.started_ms is not None and each.ended_ms is not None:
            second = each.started_ms // 1000
            wall = second + zone.offset_at(second)
            found.hours[(wall // 3600 + _THURSDAY * 24) % _HOURS_OF_WEEK] += 1
            found.minutes[each.started_ms // 60_000] += 1
            edges[each.started_ms] += 1
            edges[each.ended_ms] -= 1
    now = 0
    for at in sorted(edges):
        now += edges[at]
        found.most_at_once = max(found.most_at_once, now)
    return found


def _count(found: SimulationTally, each: Played) -> None:
    job = found.jobs[each.occurrence.job]
    match each.state:
        case OccurrenceState.COMPLETED:
            job.completed += 1
        case OccurrenceState.CANCELED:
            job.canceled += 1
        case _:
            job.skipped += 1
            job.reasons[words_of(each.reason)] += 1
    if each.started_ms is not None and each.ended_ms is not None:
        wait = each.started_ms - each.occurrence.due_ms
        job.queued += wait > 0
        job.longest_wait_ms = max(job.longest_wait_ms, wait)
        job.busy_ms += each.ended_ms - each.started_ms


def as_data(found: SimulationTally) -> dict[str, Any]:
    """The documented shape of `simulate --format json`, without its frame."""
    return {
        "most_at_once": found.most_at_once,
        "jobs": {
            name: {
                "completed": job.completed,
                "skipped": job.skipped,
                "canceled": job.canceled,
                "queued": job.queued,
                "busy_ms": job.busy_ms,
                "longest_wait_ms": job.longest_wait_ms,
                "reasons": dict(job.reasons),
            }
            for name, job in found.jobs.items()
        },
        "density": [found.hours[day * 24 : day * 24 + 24] for day in range(7)],
        "collisions": [{"at_ms": minute * 60_000, "starts": starts} for minute, starts in found.collisions()],
    }
