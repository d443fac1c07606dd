"""What a version of a job says of instants, also where its schedule is known to another program only."""

from __future__ import annotations

from chronex.engine.schedule import RandomInterval, schedule_of, timing_of
from chronex.errors import CustomScheduleError
from chronex.model.policies import Cadence
from chronex.model.records import Job
from chronex.timing.clock_effects import note_of
from chronex.timing.zones import Zone, load_zone


def zone_of(job: Job) -> Zone:
    timing = timing_of(job)
    return load_zone(job.timezone) if timing is None else timing.zone


def clock_note(job: Job, instant_ms: int) -> str:
    """What a clock change did to this instant; empty where nothing."""
    timing = timing_of(job)
    return "" if timing is None else note_of(timing, instant_ms)


def next_of(job: Job, after_ms: int) -> int | None:
    try:
        return schedule_of(job).next(after_ms)
    except CustomScheduleError:
        return None


def previous_of(job: Job, before_ms: int) -> int | None:
    try:
        return schedule_of(job).previous(before_ms)
    except CustomScheduleError:
        return None


def names_instant(job: Job, instant_ms: int) -> bool:
    """Does this version of the schedule fire at exactly this instant?"""
    return next_of(job, instant_ms - 1) == instant_ms


def is_untraceable(job: Job) -> bool:
    """Its instants follow from what happened, or from a program: only records tell them."""
    if timing_of(job) is None or job.cadence is Cadence.FIXED_DELAY:
        return True
    return isinstance(schedule_of(job), RandomInterval)
