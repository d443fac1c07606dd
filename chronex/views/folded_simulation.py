"""The tally of a simulation without playing every run: a year of a hundred jobs in a second.

A job whose runs are due at the instants of its schedule, and that neither follows nor is held, has the same part in
every hour that looks the same. Such jobs are folded in blocks. The others are played, with a pool that is never full,
and so are those that share a group with them. Together they are what a simulation of all of them gives, if together
they never take more slots than there are: the first run that had to wait for the pool would need one more. Where they
do, everything is played.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from operator import add, floordiv

from chronex.engine.plan import Chance
from chronex.errors import CustomScheduleError
from chronex.model.groups import GroupSettings
from chronex.model.job import Job
from chronex.model.policies import Cadence
from chronex.timing.job_schedule import is_interval, is_random, options_of, schedule_of
from chronex.timing.zones import Zone
from chronex.views.coming_runs import starts_at_nominal_times
from chronex.views.repeated_blocks import FoldedBlocks, RunOfJob, fold_blocks, most_at_once
from chronex.views.simulated_chains import Played
from chronex.views.simulation import (
    HOURS_OF_WEEK,
    THURSDAY,
    DurationOf,
    JobTally,
    RunSimulation,
    SimulationTally,
    simulate_runs,
    tally,
)

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_WITHOUT_END = 1 << 60


def fold(
    jobs: Sequence[Job], span: tuple[int, int], duration_of: DurationOf, slots: int, chance: Chance,
    groups: Iterable[GroupSettings], zone: Zone, most: int | None = None,
) -> SimulationTally | None:  # fmt: skip
    """The tally of all runs in (from, to]; None where everything must be played, or there are more than `most`."""
    from_ms, to_ms = span
    enabled = [job for job in jobs if job.enabled]
    runs, others = _parted(enabled, from_ms, to_ms, duration_of)
    count = sum(len(one.starts) for one in runs)
    if not count or (most is not None and count > most):
        return None
    played = list(simulate_runs(others, from_ms, to_ms, duration_of, _WITHOUT_END, chance, groups)) if others else []
    if most is not None and len(played) + count > most:
        return None
    pool = _WITHOUT_END if others else slots
    simulation = RunSimulation([one.job for one in runs], from_ms, to_ms, duration_of, pool, chance, groups)
    folded = fold_blocks(runs, simulation, pool)
    if folded is None:
        return None
    found = tally(played, (job.id for job in jobs), zone)
    found.most_at_once = _most_at_once(folded, played)
    return None if found.most_at_once > slots else _with_blocks(found, folded, zone)


def _parted(
    jobs: Sequence[Job], from_ms: int, to_ms: int, duration_of: DurationOf
) -> tuple[list[RunOfJob], list[Job]]:
    """Those that can be folded, and the others; who shares a group with one of the others is one of them."""
    chained = {name for job in jobs for name in ((job.id, *job.after) if job.after else ())}
    alone = (job for job in jobs if job.id not in chained)
    candidates = ((job.id, _regular(job, from_ms, to_ms, duration_of(job.id))) for job in alone)
    regular = {name: one for name, one in candidates if one is not None}
    shared: set[str] = set()
    while new := {name for job in jobs if job.id not in regular for name in job.groups} - shared:
        shared |= new
        regular = {name: one for name, one in regular.items() if not shared & one.job.groups.keys()}
    return list(regular.values()), [job for job in jobs if job.id not in regular]


def _regular(job: Job, from_ms: int, to_ms: int, takes_ms: int) -> RunOfJob | None:
    """None where its runs may be due elsewhere than at the instants of its schedule, or not at all."""
    is_elastic = is_interval(job) and (job.cadence is Cadence.FIXED_DELAY or is_random(job))
    if job.progress.paused or is_elastic or takes_ms <= 0 or options_of(job).max is not None:
        return None
    if not starts_at_nominal_times(job):
        return None
    begun = job.progressed(cursor_ms=from_ms, anchor_ms=job.progress.anchor_ms or from_ms)
    try:
        return RunOfJob(job, list(schedule_of(begun).between(from_ms, to_ms)), takes_ms)
    except CustomScheduleError:
        return None


def _most_at_once(folded: FoldedBlocks, played: Sequence[Played]) -> int:
    """No run of a block reaches into another one; those that were played may lie anywhere."""
    if not played:
        return max((block.most_at_once for block, _ in folded.blocks), default=0)
    ran = [(one.started_ms, one.ended_ms) for one in played if one.started_ms is not None]
    starts = chain(folded.starts, (started for started, _ in ran))
    return most_at_once(starts, chain(folded.ends, (ended for _, ended in ran if ended is not None)))


def _with_blocks(found: SimulationTally, folded: FoldedBlocks, zone: Zone) -> SimulationTally:
    for block, times in folded.blocks:
        for name, one in block.jobs.items():
            found.jobs[name] = _plus(found.jobs[name], one, times)
    folded.starts.sort()
    found.minutes.update(map(floordiv, folded.starts, repeat(_MINUTE_MS)))
    _count_hours(found.hours, folded.starts, zone)
    return found


def _plus(all_: JobTally, one: JobTally, times: int) -> JobTally:
    reasons = Counter({words: count * times for words, count in one.reasons.items()})
    return JobTally(
        completed=all_.completed + one.completed * times,
        skipped=all_.skipped + one.skipped * times,
        canceled=all_.canceled + one.canceled * times,
        queued=all_.queued + one.queued * times,
        busy_ms=all_.busy_ms + one.busy_ms * times,
        longest_wait_ms=max(all_.longest_wait_ms, one.longest_wait_ms),
        reasons=all_.reasons + reasons,
    )


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
