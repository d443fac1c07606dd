"""The versions of a job and their schedules: which was in force at an instant, and whether it names it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from chronex.errors import CustomScheduleError
from chronex.expr.fields import MONTHS, WEEKDAYS, FieldSet
from chronex.expr.meaning import AtStart, Cron, Every, Once, Repeating
from chronex.model.job import Job, JobVersion
from chronex.model.policies import Cadence
from chronex.storage import journal, keys
from chronex.storage.journal import Line
from chronex.storage.records import Reading
from chronex.text.durations import format_duration
from chronex.text.instants import local_datetime
from chronex.timing.calendar_days import WORKDAY
from chronex.timing.calendar_schedule import ExcludedInstant
from chronex.timing.clock_changes import effect_of, note_of
from chronex.timing.job_schedule import excluded_instants, is_random, schedule_of, timing_of, timings_of
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import Zone, load_zone
from chronex.views.why.answer import Cause, Link, Source, stamp

# This many events are read to find one fact; an older one is reported without its time.
MOST_EVENTS = 5_000
_DAY = 86_400


class VersionHistory(NamedTuple):
    """Every kept version of a job, the oldest first; `removed_ms` when the job is gone.

    Numbers tell which is older, and times do not: a clock that was set back gives a newer version an earlier time.
    """

    versions: tuple[Job, ...]
    is_gone: bool
    removed_ms: int | None = None

    def in_force(self, at_ms: int) -> Job | None:
        """The version that held at `at_ms`; None before the first and after the removal."""
        if self.removed_ms is not None and at_ms >= self.removed_ms:
            return None
        held = [job for job in self.versions if job.updated_ms <= at_ms]
        return held[-1] if held else None

    @property
    def first_ms(self) -> int:
        return self.versions[0].progress.created_ms or self.versions[0].updated_ms

    @property
    def last(self) -> Job:
        return self.versions[-1]


def version_history(reading: Reading, job: str) -> VersionHistory | None:
    """None for a job that the store has never known, or has forgotten."""
    current = reading.job(job)
    earlier = [found.job for found in reading.scan(keys.within_job(keys.JOB_VERSION, job), JobVersion)]
    versions = sorted([*earlier, *([current] if current else [])], key=lambda one: one.version)
    if not versions:
        return None
    removed = None if current else _removed(reading, job)
    return VersionHistory(tuple(versions), current is None, removed)


def _removed(reading: Reading, job: str) -> int | None:
    found = last_event(reading, None, job, {"JobOrphaned", "JobRemoved"})
    return found[1].at_ms if found else None


def last_event(reading: Reading, before: int | None, job: str, names: set[str]) -> Line | None:
    """The newest event of the job with one of these names, below number `before`."""
    for number, event in journal.backward(reading.tx, before, MOST_EVENTS):
        if event.job == job and event.name in names:
            return number, event
    return None


def zone_of(job: Job) -> Zone:
    timing = timing_of(job)
    return load_zone(job.timezone) if timing is None else timing.zone


def clock_note(job: Job, instant_ms: int) -> str:
    """What a clock change did to this instant; empty where nothing."""
    return next((note for timing in timings_of(job) if (note := note_of(timing, instant_ms))), "")


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
    """Its instants depend on earlier runs or on a custom schedule, so that only records show them."""
    if timing_of(job) is None or job.cadence is Cadence.FIXED_DELAY:
        return True
    return is_random(job)


def unmatched(job: Job, instant_ms: int) -> tuple[Cause, list[Link]]:
    """The links that say why this version of the job does not fire at `instant_ms`."""
    excluded = next(excluded_instants(job, instant_ms - 1, instant_ms), None)
    if excluded is not None:
        return _excluded(excluded, zone_of(job))
    found = [_unmatched_by(job, timing, instant_ms) for timing in timings_of(job)]
    assert found, "the instants of a custom schedule are known from records only"
    return found[0][0], [link for _, links in found for link in links]


def _excluded(excluded: ExcludedInstant, zone: Zone) -> tuple[Cause, list[Link]]:
    by = "it is not one of the working days that workday counts"
    if excluded.calendar != WORKDAY:
        by = f"the calendar {excluded.calendar} excludes it"
    if excluded.moved_to_ms is None:
        return Cause.EXCLUDED, [_link(by)]
    return Cause.MOVED, [_link(f"{by}, and on_excluded moves it to {stamp(excluded.moved_to_ms, zone)}")]


def _unmatched_by(job: Job, timing: Occurrences, instant_ms: int) -> tuple[Cause, list[Link]]:
    if instant_ms < timing.low:
        return Cause.BEFORE_FROM, [_link(f"the schedule begins only at {stamp(timing.low, timing.zone)} (from)")]
    if instant_ms > timing.high:
        return Cause.AFTER_UNTIL, [_link(f"the schedule ended at {stamp(timing.high, timing.zone)} (until)")]
    return Cause.NOT_MATCHED, [_link(fact) for fact in _facts(job, timing, instant_ms)]


def _link(fact: str) -> Link:
    return Link(fact, None, Source.SCHEDULE)


def _facts(job: Job, timing: Occurrences, instant_ms: int) -> list[str]:
    match timing.meaning.body:
        case Cron() as cron:
            return _cron_facts(cron, timing, instant_ms)
        case Every() as every if every.high is not None:
            return [f"{every} draws each distance when the run before it is decided; no record says it fell here"]
        case Every() as every:
            return [_interval_fact(job, every, timing, instant_ms)]
        case Once():
            at = timing.nearest(timing.low, 1)
            return [
                f"it runs once, at {stamp(at, timing.zone)}" if at is not None else "its only run is out of reach"
            ]
        case Repeating() as body:
            return [_repeating_fact(job, body, timing)]
        case AtStart():
            return ["it runs once each time the machine has started, when the first daemon begins, and else never"]


def _repeating_fact(job: Job, body: Repeating, timing: Occurrences) -> str:
    where = f"from {body.start}" if body.start is not None else f"before {body.end}"
    if body.is_anchored:
        where = f"from {stamp(timing.interval_start(job.progress.anchor_ms or 0), timing.zone)}"
    return f"it repeats every {body.period} {where}, and this is not one of its steps"


def _interval_fact(job: Job, every: Every, timing: Occurrences, instant_ms: int) -> str:
    start = timing.interval_start(job.progress.anchor_ms or 0)
    if instant_ms < start:
        return f"{every} counts from {stamp(start, timing.zone)}, which is later"
    rest = (instant_ms - start) % every.low
    return f"{every} counts from {stamp(start, timing.zone)}; this is {format_duration(rest)} after one of its steps"


def _cron_facts(cron: Cron, timing: Occurrences, instant_ms: int) -> list[str]:
    when = local_datetime(instant_ms, timing.zone.tzinfo)
    facts = [] if _day_matches(timing, instant_ms) else [_day_fact(cron, when.day, when.month, _weekday(when))]
    for name, value, field in (
        ("hour", when.hour, cron.hour), ("minute", when.minute, cron.minute), ("second", when.second, cron.second),
    ):  # fmt: skip
        if not field.values >> value & 1:
            facts.append(f"{name} {value} is not in {_shown(field)}")
    if not facts and instant_ms % 1000:
        facts.append("it fires on whole seconds")
    return facts + _clock_facts(timing, instant_ms, fits=not facts)


def _weekday(when: datetime) -> int:
    """As cron counts: Sunday is 0."""
    return (when.weekday() + 1) % 7


def _shown(field: FieldSet) -> str:
    return f"'{field.text}'"


def _day_matches(timing: Occurrences, instant_ms: int) -> bool:
    pattern = timing.pattern
    assert pattern is not None, "cron fields have their search"
    second = instant_ms // 1000
    midnight = (second + timing.zone.offset_at(second)) // _DAY * _DAY
    return any(True for _ in pattern.walls_between(midnight, midnight + _DAY - 1))


def _day_fact(cron: Cron, day: int, month: int, weekday: int) -> str:
    if not cron.month.values >> month & 1:
        return f"month {month} ({MONTHS[month - 1]}) is not in {_shown(cron.month)}"
    by_day = f"day {day} of the month is not in {_shown(cron.day_of_month)}"
    by_weekday = f"weekday {WEEKDAYS[weekday]} is not in {_shown(cron.day_of_week)}"
    if cron.day_of_month.is_star:
        return by_weekday
    return by_day if cron.day_of_week.is_star else f"{by_day}, and {by_weekday}"


def _clock_facts(timing: Occurrences, instant_ms: int, *, fits: bool) -> list[str]:
    """A clock change on that local day, where it touches the schedule."""
    second = instant_ms // 1000
    offset = timing.zone.offset_at(second)
    midnight = (second + offset) // _DAY * _DAY - offset
    facts = []
    for change in timing.zone.changes(midnight - 7_200, midnight + _DAY + 7_200):
        effect = effect_of(timing, change)
        if effect.touches:
            turn = "forward" if change.is_gap else "back"
            facts.append(f"the clock goes {turn} at {stamp(change.at * 1000, timing.zone)}: {effect.text}")
    if fits and not facts and not instant_ms % 1000:
        facts.append("the fields fit, yet the clock change of that day leaves no run here")
    return facts
