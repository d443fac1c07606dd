"""`Due_x` as an obligation: the cron layer says which instants are due, and each must be told in the journal."""

from __future__ import annotations

from enum import Enum
from typing import Any

from chronex.errors import ChronexError
from chronex.model.policies import Cadence, DstPolicy, SpreadPolicy
from chronex.model.records import Job
from chronex.timing.job_schedule import CUSTOM, RandomInterval, options_of, schedule_of
from chronex.verify.verdicts import Line

# Beyond this an instant that is waited for is forgotten rather than kept for ever.
MOST_PENDING = 10_000


class Answer(Enum):
    DUE = "due"
    NOT_DUE = "not due"
    PASSED_OVER = "passed over"
    UNKNOWN = "unknown"


class DueInstants:
    """The due instants of one version of a job, in order, and the first that the journal has not told yet.

    Instants are told in order, so one that was left out can never be told any more. Where jitter, stagger or a
    spread moves starts about, a later instant may come first: then an earlier one is only waited for.
    """

    def __init__(self, job: Job, cursor_ms: int | None, since_ms: int) -> None:
        """All that is due after the cursor must be told; without one, what follows the first that is told."""
        self._schedule = schedule_of(job)
        options = options_of(job)
        spread = job.spread.duration_ms if job.spread is not None else 0
        self._moved_ms = (options.jitter or 0) + (options.stagger or 0) + spread
        self._has_max = options.max is not None
        # Earlier ones may be of the version before.
        self._from_ms = since_ms + spread if cursor_ms is None else cursor_ms
        self._has_begun = cursor_ms is not None
        self._expected = None if cursor_ms is None else self._schedule.next(cursor_ms)
        self._pending: dict[int, None] = {}
        self.last_told: Line | None = None

    def told(self, nominal_ms: int, line: Line) -> tuple[Answer, int]:
        """The journal tells what became of this instant. With PASSED_OVER comes the instant that never will be."""
        if nominal_ms == self._expected:
            self._expected = self._schedule.next(nominal_ms)
            answer, instant = Answer.DUE, nominal_ms
        elif nominal_ms <= self._from_ms:
            return Answer.UNKNOWN, nominal_ms
        elif self._schedule.next(nominal_ms - 1) != nominal_ms:
            return Answer.NOT_DUE, nominal_ms
        elif not self._has_begun:
            self._has_begun, self._expected = True, self._schedule.next(nominal_ms)
            answer, instant = Answer.DUE, nominal_ms
        elif self._expected is not None and nominal_ms > self._expected:
            answer, instant = self._leave_behind(nominal_ms)
        else:
            self._pending.pop(nominal_ms, None)  # whether it is told twice is another question
            return Answer.DUE, nominal_ms
        self.last_told = line
        return answer, instant

    def _leave_behind(self, nominal_ms: int) -> tuple[Answer, int]:
        assert self._expected is not None
        left: int | None = self._expected
        self._expected = self._schedule.next(nominal_ms)
        if not self._moved_ms:
            return Answer.PASSED_OVER, left or nominal_ms
        while left is not None and left < nominal_ms and len(self._pending) < MOST_PENDING:
            self._pending[left] = None
            left = self._schedule.next(left)
        return Answer.DUE, nominal_ms

    def told_span(self, first_ms: int, last_ms: int, line: Line) -> None:
        """Instants too many to tell one by one."""
        if self._expected is not None and first_ms <= self._expected <= last_ms:
            self._expected = self._schedule.next(last_ms)
            self.last_told = line

    def waiting_since(self, now_ms: int) -> int | None:
        """The first instant that is due and has not been told; of a job that ends with its `max`, nobody can say."""
        if self._has_max:
            return None
        waiting = [*list(self._pending)[:1], *([] if self._expected is None else [self._expected])]
        first = min(waiting, default=None)
        return first if first is not None and first + self._moved_ms < now_ms else None


def due_instants(job: str, told: dict[str, Any], cursor_ms: int | None, since_ms: int) -> DueInstants | None:
    """What is due by the definition that a job's event carries; None where the journal alone cannot tell.

    Random intervals and those that count from the end of a run depend on more than their text, and a schedule of the
    user's own is not known here.
    """
    if "schedule" not in told or told.get("dialect") == CUSTOM:
        return None
    if told.get("cadence") == Cadence.FIXED_DELAY or told.get("enabled") is False:
        return None
    try:
        definition = _definition(job, told)
        if isinstance(schedule_of(definition), RandomInterval):
            return None
        return DueInstants(definition, cursor_ms, since_ms)
    except (ChronexError, AssertionError, ValueError, TypeError):
        return None


def _definition(job: str, told: dict[str, Any]) -> Job:
    dst, spread = told.get("dst"), told.get("spread_ms")
    return Job(
        id=job,
        schedule=str(told["schedule"]),
        dialect=str(told.get("dialect", "chronex")),
        timezone=str(told.get("timezone", "UTC")),
        dst=None if dst is None else DstPolicy(*dst),
        spread=None if spread is None else SpreadPolicy(duration_ms=int(spread)),
        anchor_ms=told.get("anchor_ms"),
    )
