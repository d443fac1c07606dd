"""The schedule of a job: the instants of its expressions as its calendars leave them, or those of a custom schedule
that a program registers.

A program registers a custom schedule by name in the process that plans. A job refers to it by that name (dialect
`custom`), so the store holds no code. The planner calls the schedule inside its transaction and does not trust it:
an exception, and an answer that would make the planner loop without end, become a CustomScheduleError. Only the job
of that schedule is affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from random import Random
from typing import Protocol, TypeVar

from msgspec.structs import replace

from chronex.errors import ChronexError, CustomScheduleError
from chronex.expr.meaning import AtStart, Every, Meaning
from chronex.expr.option_block import Options
from chronex.model.calendars import OnExcluded
from chronex.model.job import SCHEDULES_APART, Job, check_name
from chronex.model.policies import Cadence
from chronex.timing import read
from chronex.timing.calendar_schedule import (
    ExcludedInstant,
    MovedFrom,
    United,
    WithMoved,
    WithoutExcluded,
    with_calendars,
)
from chronex.timing.dst import DstPolicy
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import load_zone

T = TypeVar("T")
CUSTOM = "custom"
# A job whose schedule failed is planned again after this time: the cause may have passed.
FAULTY_SCHEDULE_PAUSE_MS = 60_000


class Schedule(Protocol):
    """Nominal instants in epoch milliseconds. A call with the same argument must always return the same instant."""

    def next(self, after_ms: int) -> int | None:
        """The first instant later than `after_ms`; None when there is none."""
        ...

    def previous(self, before_ms: int) -> int | None:
        """The last instant earlier than `before_ms`; None also where it is not known."""
        ...

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        """The instants in (after, until], in order."""
        ...


class _Checked:
    """A registered schedule; each result is checked against what the protocol promises."""

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name = name
        self.schedule = schedule

    def next(self, after_ms: int) -> int | None:
        found = self._checked_instant(lambda: self.schedule.next(after_ms))
        if found is not None and found <= after_ms:
            raise self._fault(f"next({after_ms}) gave {found}, which is not later")
        return found

    def previous(self, before_ms: int) -> int | None:
        found = self._checked_instant(lambda: self.schedule.previous(before_ms))
        if found is not None and found >= before_ms:
            raise self._fault(f"previous({before_ms}) gave {found}, which is not earlier")
        return found

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        rest = self._guarded(lambda: iter(self.schedule.between(after_ms, until_ms)))
        last = after_ms
        while (found := self._checked_instant(lambda: next(rest, None))) is not None:
            if not last < found <= until_ms:
                raise self._fault(f"between({after_ms}, {until_ms}) gave {found} after {last}")
            yield found
            last = found

    def _checked_instant(self, call: Callable[[], object]) -> int | None:
        found = self._guarded(call)
        if found is not None and type(found) is not int:
            raise self._fault(f"it gave {type(found).__name__} where an instant is a whole number of milliseconds")
        return found

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except Exception as problem:
            raise self._fault(f"it raised {type(problem).__name__}: {problem}") from problem

    def _fault(self, what: str) -> CustomScheduleError:
        return CustomScheduleError(f"the schedule {self.name!r} does not keep its promises: {what}"[:500])


class _Unknown:
    """A schedule that another program has registered, so that this process does not know when it fires; or none at
    all, of a job that only follows others."""

    def next(self, after_ms: int) -> int | None:
        return None

    def previous(self, before_ms: int) -> int | None:
        return None

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return iter(())


_registered: dict[str, _Checked] = {}
_UNKNOWN = _Unknown()


def register_schedule(name: str, schedule: Schedule) -> None:
    """Let jobs of this process refer to `schedule` by `name`. One name means one schedule."""
    check_name(name, "schedule")
    known = _registered.get(name)
    if known is not None and known.schedule is not schedule:
        raise ChronexError(f"another schedule is registered as {name!r}; choose another name")
    _registered[name] = _Checked(name, schedule)


def forget_schedule(name: str) -> None:
    _registered.pop(name, None)


def is_known(dialect: str, schedule: str) -> bool:
    """Does this process know when a job with this schedule fires?"""
    return dialect != CUSTOM or schedule in _registered


def custom_schedule(name: str) -> Schedule:
    return _registered.get(name, _UNKNOWN)


_NO_OPTIONS = Options()


class ExpressionSchedule:
    """Cron, repeating intervals, one-shots, and from the job's anchor `@every` at a fixed rate and `R/P3W`."""

    __slots__ = ("_anchor", "_timing")

    def __init__(self, timing: Occurrences, anchor_ms: int | None) -> None:
        self._timing = timing
        self._anchor = anchor_ms

    def next(self, after_ms: int) -> int | None:
        return self._timing.nearest(after_ms + 1, 1, self._anchor)

    def previous(self, before_ms: int) -> int | None:
        return self._timing.nearest(before_ms - 1, -1, self._anchor)

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return self._timing.between(after_ms + 1, until_ms, self._anchor)


class RandomInterval:
    """`@every a-b`: the job's id and the last instant seed each random distance, so a restart draws the same one."""

    __slots__ = ("_body", "_identity", "_timing")

    def __init__(self, timing: Occurrences, identity: str) -> None:
        assert isinstance(timing.meaning.body, Every)
        self._timing = timing
        self._body = timing.meaning.body
        self._identity = identity

    def next(self, after_ms: int) -> int | None:
        start = self._timing.interval_start(after_ms)
        draw = Random(f"{self._identity}:{start}")  # noqa: S311  spreading load, not guarding a secret
        found = start + draw.randint(self._body.low, self._body.high or self._body.low)
        return found if found <= self._timing.high else None

    def previous(self, before_ms: int) -> int | None:
        """Not known: the distances before an instant depend on the first instant of the chain."""
        return None

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        found = self.next(after_ms)
        while found is not None and found <= until_ms:
            yield found
            found = self.next(found)


class AfterEnd:
    """An interval with a fixed delay: one instant, counted from the anchor, which is the end of the last run."""

    __slots__ = ("_at",)

    def __init__(self, interval: Schedule, anchor_ms: int) -> None:
        self._at = interval.next(anchor_ms)

    def next(self, after_ms: int) -> int | None:
        return self._at if self._at is not None and self._at > after_ms else None

    def previous(self, before_ms: int) -> int | None:
        return self._at if self._at is not None and self._at < before_ms else None

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return iter([self._at] if self._at is not None and after_ms < self._at <= until_ms else [])


def schedule_of(job: Job) -> Schedule:
    if not job.schedule:
        return _UNKNOWN
    if job.dialect == CUSTOM:
        return with_calendars(custom_schedule(job.schedule), job.calendars, load_zone(job.timezone))
    interval = _schedule_of(job)
    if job.cadence is Cadence.FIXED_DELAY and job.progress.anchor_ms is not None and is_interval(job):
        return AfterEnd(interval, job.progress.anchor_ms)
    return interval


def _schedule_of(job: Job) -> Schedule:
    if SCHEDULES_APART not in job.schedule:
        return _schedule_of_part(job, _occurrences(job.schedule, job.dialect, job.timezone, job.dst))
    return United(_schedule_of_part(job, timing) for timing in timings_of(job))


def _schedule_of_part(job: Job, timing: Occurrences) -> Schedule:
    """A calendar counts the days of the zone in which its expression is read."""
    body = timing.meaning.body
    is_drawn = isinstance(body, Every) and body.high is not None
    plain = RandomInterval(timing, job.id) if is_drawn else ExpressionSchedule(timing, job.progress.anchor_ms)
    return plain if job.calendars is None else with_calendars(plain, job.calendars, timing.zone)


def moved_from(job: Job, instant_ms: int) -> MovedFrom | None:
    """The excluded instant that this instant of the job stands for; None where the job's expression names it."""
    if job.calendars is None or job.calendars.on_excluded is OnExcluded.SKIP:
        return None
    schedule = schedule_of(job)
    return schedule.moved_from(instant_ms) if isinstance(schedule, WithMoved | United) else None


def excluded_instants(job: Job, after_ms: int, until_ms: int) -> Iterator[ExcludedInstant]:
    """What the job's expressions name in (after, until] and its calendars leave out or move, lazily."""
    schedule = schedule_of(job)
    if job.calendars is None or not isinstance(schedule, WithoutExcluded | WithMoved | United):
        return iter(())
    return schedule.excluded(after_ms, until_ms)


def timings_of(job: Job) -> tuple[Occurrences, ...]:
    """The occurrences of each of its expressions, before any calendar; none for a custom schedule, or without any."""
    if job.dialect == CUSTOM or not job.schedule:
        return ()
    return tuple(_occurrences(text, job.dialect, job.timezone, job.dst) for text in job.schedules)


def timing_of(job: Job) -> Occurrences | None:
    """The same of its first expression, with zone, pattern and clock changes; None where there is none of these."""
    if job.dialect == CUSTOM or not job.schedule:
        return None
    first, _, _ = job.schedule.partition(SCHEDULES_APART)
    return _occurrences(first, job.dialect, job.timezone, job.dst)


def runs_at_start(job: Job) -> bool:
    """Does one of its expressions say @start, once for each boot of the machine?"""
    if "@start" not in job.schedule.lower() or job.dialect != "chronex":
        return False
    meanings = (read(text).meaning for text in job.schedules)
    return any(meaning is not None and isinstance(meaning.body, AtStart) for meaning in meanings)


def options_of(job: Job) -> Options:
    """What holds for every start; several expressions have the same, except for their bounds and tags."""
    return _NO_OPTIONS if job.dialect == CUSTOM or not job.schedule else _options(job.schedule, job.dialect)


@lru_cache(maxsize=4096)
def _options(schedule: str, dialect: str) -> Options:
    first, _, _ = schedule.partition(SCHEDULES_APART)
    return _meaning(first, dialect).options


def is_interval(job: Job) -> bool:
    if SCHEDULES_APART not in job.schedule:  # asked several times for every decision
        timing = timing_of(job)
        return timing is not None and isinstance(timing.meaning.body, Every)
    return any(isinstance(timing.meaning.body, Every) for timing in timings_of(job))


def is_random(job: Job) -> bool:
    """Are its distances drawn, each from the instant before? Then only what came before tells the next one."""
    bodies = [timing.meaning.body for timing in timings_of(job)]
    return any(isinstance(body, Every) and body.high is not None for body in bodies)


def is_anchored(job: Job) -> bool:
    """Does its schedule count from the anchor that the store keeps?"""
    return any(timing.meaning.is_anchored for timing in timings_of(job))


def absolute_schedule(job: Job, now_ms: int) -> Job:
    """`@once +20m` counts from the moment it is applied, also where a first reading made another moment of it: on a
    busy machine a second may pass between the two, and `@once +1s` would never come."""
    text = job.written or job.schedule
    if not text or "+" not in text or job.dialect == CUSTOM:
        return job
    parts = text.split(SCHEDULES_APART)
    absolute = [_absolute(part, job.dialect, now_ms) for part in parts]
    return job if absolute == parts else replace(job, schedule=SCHEDULES_APART.join(absolute), written=text)


def _absolute(text: str, dialect: str, now_ms: int) -> str:
    meaning = read(text, dialect).meaning
    return text if meaning is None or not meaning.is_relative else str(meaning.resolved(now_ms))


@lru_cache(maxsize=4096)
def _occurrences(text: str, dialect: str, zone: str, dst: object) -> Occurrences:
    meaning = _meaning(text, dialect)
    policy = DstPolicy(gap=dst.gap, overlap=dst.overlap) if dst is not None else None  # type: ignore[attr-defined]
    return Occurrences(meaning, load_zone(meaning.zone or zone), policy)


def _meaning(text: str, dialect: str) -> Meaning:
    meaning = read(text, dialect).meaning
    assert meaning is not None, f"a stored schedule was checked when it was applied: {text!r}"
    return meaning
