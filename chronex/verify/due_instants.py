"""`Due_x` as an obligation: the timing library says which instants are due, and the journal must answer each."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from chronex.errors import ChronexError
from chronex.model.calendars import CalendarRules
from chronex.model.job import Job, JobProgress
from chronex.model.policies import Cadence, DstSetting, RunOn, SpreadPolicy
from chronex.timing.job_schedule import CUSTOM, is_random, options_of, schedule_of
from chronex.verify.results import JournalLine

# Instants beyond this number that still wait for an answer are forgotten, so that memory stays bounded.
MAX_PENDING = 10_000


class InstantKind(Enum):
    """What an instant is that the journal answers."""

    DUE = "due"
    NOT_DUE = "not due"
    PASSED_OVER = "passed over"  # an earlier due instant has no answer, and never will have one
    UNKNOWN = "unknown"  # it may belong to an earlier version of the job


class DueInstants:
    """The due instants of one version of a job, in order, and the first that the journal has not answered yet.

    Instants are answered in order, so one that was left out can never be answered any more. Where jitter, stagger or
    a spread moves starts, a later instant may be answered first: then the earlier one is still pending.
    """

    def __init__(self, job: Job, cursor_ms: int | None, since_ms: int) -> None:
        """All instants after the cursor must be answered; without a cursor, those after the first answered one."""
        self._schedule = schedule_of(job)
        options = options_of(job)
        spread = job.spread.duration_ms if job.spread is not None else 0
        self._moved_ms = (options.jitter or 0) + (options.stagger or 0) + spread
        self._has_max = options.max is not None
        # Instants before this may belong to the version before.
        self._from_ms = since_ms + spread if cursor_ms is None else cursor_ms
        self._has_begun = cursor_ms is not None
        self._expected = None if cursor_ms is None else self._schedule.next(cursor_ms)
        self._pending: dict[int, None] = {}
        self.last_answer: JournalLine | None = None

    def answer(self, nominal_ms: int, line: JournalLine) -> tuple[InstantKind, int]:
        """The journal answers this instant. With PASSED_OVER comes the earlier instant that was left out."""
        if nominal_ms == self._expected:
            self._expected = self._schedule.next(nominal_ms)
            kind, instant = InstantKind.DUE, nominal_ms
        elif nominal_ms <= self._from_ms:
            return InstantKind.UNKNOWN, nominal_ms
        elif self._schedule.next(nominal_ms - 1) != nominal_ms:
            return InstantKind.NOT_DUE, nominal_ms
        elif not self._has_begun:
            self._has_begun = True
            self._expected = self._schedule.next(nominal_ms)
            kind, instant = InstantKind.DUE, nominal_ms
        elif self._expected is not None and nominal_ms > self._expected:
            kind, instant = self._skip_to(nominal_ms)
        else:
            self._pending.pop(nominal_ms, None)  # whether it is answered twice is checked by S6
            return InstantKind.DUE, nominal_ms
        self.last_answer = line
        return kind, instant

    def _skip_to(self, nominal_ms: int) -> tuple[InstantKind, int]:
        assert self._expected is not None
        skipped: int | None = self._expected
        self._expected = self._schedule.next(nominal_ms)
        if not self._moved_ms:
            return InstantKind.PASSED_OVER, skipped or nominal_ms
        while skipped is not None and skipped < nominal_ms and len(self._pending) < MAX_PENDING:
            self._pending[skipped] = None
            skipped = self._schedule.next(skipped)
        return InstantKind.DUE, nominal_ms

    def answer_span(self, first_ms: int, last_ms: int, line: JournalLine) -> None:
        """The journal answers a span of instants that are too many to list."""
        if self._expected is not None and first_ms <= self._expected <= last_ms:
            self._expected = self._schedule.next(last_ms)
            self.last_answer = line

    def waiting_since(self, now_ms: int) -> int | None:
        """The first instant that is due and not answered; None for a job with `max`, which may have ended."""
        if self._has_max:
            return None
        waiting = [*list(self._pending)[:1], *([] if self._expected is None else [self._expected])]
        first = min(waiting, default=None)
        return first if first is not None and first + self._moved_ms < now_ms else None


def due_instants(job: str, definition: dict[str, Any], cursor_ms: int | None, since_ms: int) -> DueInstants | None:
    """The due instants by the definition that a job's event carries; None where the journal alone cannot say.

    Random intervals and those that count from the end of a run depend on more than their text, and a custom schedule
    is not known here. A job without a schedule is due when those have ended that it follows.
    """
    if not definition.get("schedule") or definition.get("dialect") == CUSTOM:
        return None
    if definition.get("run_on") == RunOn.EACH:
        return None  # on a shared store the jobs of its nodes answer, each for itself
    if definition.get("cadence") == Cadence.FIXED_DELAY or definition.get("enabled") is False:
        return None
    try:
        record = _job_record(job, definition)
        if is_random(record):
            return None
        return DueInstants(record, cursor_ms, since_ms)
    except (ChronexError, AssertionError, ValueError, TypeError):
        return None


def _job_record(job: str, definition: dict[str, Any]) -> Job:
    dst = definition.get("dst")
    spread = definition.get("spread_ms")
    calendars = definition.get("calendars")
    return Job(
        id=job,
        schedule=str(definition["schedule"]),
        dialect=str(definition.get("dialect", "chronex")),
        timezone=str(definition.get("timezone", "UTC")),
        dst=None if dst is None else DstSetting(*dst),
        spread=None if spread is None else SpreadPolicy(duration_ms=int(spread)),
        calendars=None if calendars is None else msgspec.convert(calendars, CalendarRules),
        progress=JobProgress(anchor_ms=definition.get("anchor_ms")),
    )
