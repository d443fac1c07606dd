"""The tally of a simulation without playing what no other run can touch: a year of a hundred jobs in a second.

A run starts at its instant and ends after its time if nothing is in its way: no earlier run of its job, no group, no
job that it follows, no full pool, no pause, and its instant is where it starts. Whether that holds for every run of a
job is found out from its instants alone; such a job is counted as a whole. All others are played, with a pool that is
never full. Together they are what a simulation of all of them gives, if together they never take more slots than
there are: the first run that had to wait for the pool would need one more. Where they do, everything is played.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, islice, repeat
from operator import add, and_, floordiv, sub
from typing import NamedTuple

from chronex.engine.plan import Chance
from chronex.errors import CustomScheduleError
from chronex.model.groups import GroupSettings
from chronex.model.job import Job
from chronex.model.policies import Cadence, OverlapPolicy
from chronex.timing.job_schedule import is_interval, is_random, options_of, schedule_of
from chronex.timing.zones import Zone
from chronex.views.coming_runs import starts_at_nominal_times
from chronex.views.simulated_chains import Played
from chronex.views.simulation import (
    HOURS_OF_WEEK,
    THURSDAY,
    DurationOf,
    JobTally,
    SimulationTally,
    simulate_runs,
    tally,
)

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_WITHOUT_END = 1 << 60
# An end comes before a start of the same millisecond, so what ends makes room for it.
_CHANGES = (-1, 1)


class FoldedJob(NamedTuple):
    """A job whose runs touch no others: when they start, and how long each takes."""

    name: str
    starts: list[int]
    takes_ms: int


def fold(
    jobs: Sequence[Job], span: tuple[int, int], duration_of: DurationOf, slots: int, chance: Chance,
    groups: Iterable[GroupSettings], zone: Zone, most: int | None = None,
) -> SimulationTally | None:  # fmt: skip
    """The tally of all runs in (from, to]; None where everything must be played, or there are more than `most`."""
    from_ms, to_ms = span
    enabled = [job for job in jobs if job.enabled]
    chained = {name for job in enabled for name in ((job.id, *job.after) if job.after else ())}
    alone = (job for job in enabled if job.id not in chained)
    candidates = ((job.id, _folded(job, from_ms, to_ms, duration_of(job.id))) for job in alone)
    folded = {name: one for name, one in candidates if one is not None}
    if not folded or (most is not None and sum(len(one.starts) for one in folded.values()) > most):
        return None
    others = [job for job in enabled if job.id not in folded]
    played = list(simulate_runs(others, from_ms, to_ms, duration_of, _WITHOUT_END, chance, groups)) if others else []
    if most is not None and len(played) + sum(len(one.starts) for one in folded.values()) > most:
        return None
    found = tally(played, (job.id for job in jobs), zone)
    starts = sorted(chain.from_iterable(one.starts for one in folded.values()))
    found.most_at_once = _most_at_once(folded.values(), played)
    if found.most_at_once > slots:
        return None
    for one in folded.values():
        found.jobs[one.name] = JobTally(completed=len(one.starts), busy_ms=len(one.starts) * one.takes_ms)
    found.minutes.update(map(floordiv, starts, repeat(_MINUTE_MS)))
    _count_hours(found.hours, starts, zone)
    return found


def _folded(job: Job, from_ms: int, to_ms: int, takes_ms: int) -> FoldedJob | None:
    """None where a run of it may be in the way of another, or start elsewhere than at its instant."""
    is_elastic = is_interval(job) and (job.cadence is Cadence.FIXED_DELAY or is_random(job))
    if job.groups or job.progress.paused or is_elastic or takes_ms <= 0 or options_of(job).max is not None:
        return None
    if not starts_at_nominal_times(job):
        return None
    begun = job.progressed(cursor_ms=from_ms, anchor_ms=job.progress.anchor_ms or from_ms)
    try:
        starts = list(schedule_of(begun).between(from_ms, to_ms))
    except CustomScheduleError:
        return None
    if job.overlap is not OverlapPolicy.ALLOW and len(starts) > 1:
        shortest = min(map(sub, islice(starts, 1, None), starts))
        if shortest < takes_ms:
            return None
    return FoldedJob(job.id, starts, takes_ms)


def _most_at_once(folded: Iterable[FoldedJob], played: Iterable[Played]) -> int:
    """Every start and every end in order, as one number each: twice its time, and one more for a start."""
    moments: list[int] = []
    for one in folded:
        begun = list(map(add, map(add, one.starts, one.starts), repeat(1)))
        moments += begun
        moments += map(add, begun, repeat(2 * one.takes_ms - 1))
    for each in played:
        if each.started_ms is not None and each.ended_ms is not None:
            moments += (2 * each.started_ms + 1, 2 * each.ended_ms)
    moments.sort()
    return max(accumulate(map(_CHANGES.__getitem__, map(and_, moments, repeat(1)))), default=0)


def _count_hours(hours: list[int], starts: Sequence[int], zone: Zone) -> None:
    """By hour of the week on the zone's clock, which is the same from one clock change to the next."""
    if not starts:
        return
    changes = [change.at * 1000 for change in zone.changes(starts[0] // 1000, starts[-1] // 1000 + 1)]
    begin = 0
    for until_ms in (*changes, None):
        end = len(starts) if until_ms is None else bisect_left(starts, until_ms)
        if end > begin:
            offset_ms = zone.offset_at(starts[begin] // 1000) * 1000
            part = map(add, islice(starts, begin, end), repeat(offset_ms))
            for hour, count in Counter(map(floordiv, part, repeat(_HOUR_MS))).items():
                hours[(hour + THURSDAY * 24) % HOURS_OF_WEEK] += count
        begin = max(begin, end)
