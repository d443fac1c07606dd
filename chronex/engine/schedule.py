"""A job's schedule as the small protocol the planner needs; a library user may bring another one (custom.py)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random

from chronex.engine.custom import CUSTOM, Schedule, custom_schedule
from chronex.expr.meaning import Every, Meaning
from chronex.expr.options import Options
from chronex.model.policies import Cadence
from chronex.model.records import Job
from chronex.timing import read
from chronex.timing.occurrences import Occurrences
from chronex.timing.timeline import DstPolicy
from chronex.timing.zones import load_zone

_NO_OPTIONS = Options()


class ExpressionSchedule:
    """Cron, repeating intervals, one-shots, and `@every` at a fixed rate from the job's anchor."""

    __slots__ = ("_anchor", "_timing")

    def __init__(self, timing: Occurrences, anchor_ms: int | None) -> None:
        self._timing, self._anchor = timing, anchor_ms

    def next(self, after_ms: int) -> int | None:
        return self._timing.nearest(after_ms + 1, 1, self._anchor)

    def previous(self, before_ms: int) -> int | None:
        return self._timing.nearest(before_ms - 1, -1, self._anchor)

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return self._timing.between(after_ms + 1, until_ms, self._anchor)


class RandomInterval:
    """`@every a-b`: each distance is drawn from the job's id and the instant before, so a restart draws the same."""

    __slots__ = ("_body", "_identity", "_timing")

    def __init__(self, timing: Occurrences, identity: str) -> None:
        assert isinstance(timing.meaning.body, Every)
        self._timing, self._body, self._identity = timing, timing.meaning.body, identity

    def next(self, after_ms: int) -> int | None:
        start = self._timing.interval_start(after_ms)
        draw = Random(f"{self._identity}:{start}")  # noqa: S311  spreading load, not guarding a secret
        found = start + draw.randint(self._body.low, self._body.high or self._body.low)
        return found if found <= self._timing.high else None

    def previous(self, before_ms: int) -> int | None:
        """Not known: the distances behind an instant depend on where the chain began."""
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
    if job.dialect == CUSTOM:
        return custom_schedule(job.schedule)
    interval = _schedule_of(job)
    if job.cadence is Cadence.FIXED_DELAY and job.anchor_ms is not None and is_interval(job):
        return AfterEnd(interval, job.anchor_ms)
    return interval


def _schedule_of(job: Job) -> Schedule:
    timing = _occurrences(job.schedule, job.dialect, job.timezone, job.dst)
    body = timing.meaning.body
    if isinstance(body, Every) and body.high is not None:
        return RandomInterval(timing, job.id)
    return ExpressionSchedule(timing, job.anchor_ms)


def timing_of(job: Job) -> Occurrences | None:
    """The job's instants as the timing layer knows them: zone, pattern, clock changes; None for a custom schedule."""
    return None if job.dialect == CUSTOM else _occurrences(job.schedule, job.dialect, job.timezone, job.dst)


def options_of(job: Job) -> Options:
    if job.dialect == CUSTOM:
        return _NO_OPTIONS
    return _occurrences(job.schedule, job.dialect, job.timezone, job.dst).meaning.options


def is_interval(job: Job) -> bool:
    if job.dialect == CUSTOM:
        return False
    return isinstance(_occurrences(job.schedule, job.dialect, job.timezone, job.dst).meaning.body, Every)


@lru_cache(maxsize=4096)
def _occurrences(text: str, dialect: str, zone: str, dst: object) -> Occurrences:
    meaning = _meaning(text, dialect)
    policy = DstPolicy(gap=dst.gap, overlap=dst.overlap) if dst is not None else None  # type: ignore[attr-defined]
    return Occurrences(meaning, load_zone(meaning.zone or zone), policy)


def _meaning(text: str, dialect: str) -> Meaning:
    meaning = read(text, dialect).meaning
    assert meaning is not None, f"a stored schedule was checked when it was applied: {text!r}"
    return meaning
