"""A job's schedule as the small protocol the planner needs; a library user may bring another one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Protocol

from chronex.expr.meaning import Every, Meaning
from chronex.expr.options import Options
from chronex.model.records import Job
from chronex.timing import read
from chronex.timing.occurrences import Occurrences
from chronex.timing.timeline import DstPolicy
from chronex.timing.zones import load_zone


class Schedule(Protocol):
    """Nominal instants in epoch milliseconds."""

    def next(self, after_ms: int) -> int | None:
        """The first one later than `after_ms`."""
        ...

    def previous(self, before_ms: int) -> int | None:
        """The last one earlier than `before_ms`."""
        ...

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        """Those in (after, until], in order."""
        ...


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


def timing_of(job: Job) -> Occurrences:
    """The job's expression with its zone and its DST policy."""
    return _occurrences(job.schedule, job.dialect, job.timezone, job.dst)


def schedule_of(job: Job) -> Schedule:
    timing = timing_of(job)
    body = timing.meaning.body
    if isinstance(body, Every) and body.high is not None:
        return RandomInterval(timing, job.id)
    return ExpressionSchedule(timing, job.anchor_ms)


def options_of(job: Job) -> Options:
    return timing_of(job).meaning.options


def is_interval(job: Job) -> bool:
    return isinstance(timing_of(job).meaning.body, Every)


@lru_cache(maxsize=4096)
def _occurrences(text: str, dialect: str, zone: str, dst: object) -> Occurrences:
    meaning = _meaning(text, dialect)
    policy = DstPolicy(gap=dst.gap, overlap=dst.overlap) if dst is not None else None  # type: ignore[attr-defined]
    return Occurrences(meaning, load_zone(meaning.zone or zone), policy)


def _meaning(text: str, dialect: str) -> Meaning:
    meaning = read(text, dialect).meaning
    assert meaning is not None, f"a stored schedule was checked when it was applied: {text!r}"
    return meaning
