"""What becomes of an occurrence whose turn it may be, by overlap, conditions, groups, the pace and the pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from chronex.engine.admit import (
    DROPPING,
    MOST_QUEUED,
    Admission,
    Verdict,
    admit,
    is_met,
    overlap_on_time,
    patient,
    until_met,
    wait_in_line,
)
from chronex.engine.lines import Lines, LineWait
from chronex.model.conditions import Found
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.storage.records import Records
from chronex.timing.job_schedule import options_of


class TurnAnswer(NamedTuple):
    """`wait` says in which lines it stands where it is queued there; `is_behind` that it waits for its job's past."""

    admission: Admission
    wait: LineWait | None = None
    is_behind: bool = False


class Turns:
    """Asks the pure functions, with what the records say of the job and of the lines."""

    def __init__(
        self, records: Records, lines: Lines, found: Mapping[str, Found], free_slots: Callable[[], int]
    ) -> None:
        self.records, self.lines, self.found, self.free_slots = records, lines, found, free_slots

    def answer(
        self, job: Job, occurrence: Occurrence, running: list[Occurrence], waiting: int, retry_ms: int | None,
        lacking: str,
    ) -> TurnAnswer:  # fmt: skip
        """`lacking` is what no node has that lives; then it waits for a node."""
        now_ms, window_ms, free = self.records.now_ms, options_of(job).window, 0 if lacking else 1
        answer = admit(job, occurrence, running, waiting, free, now_ms, window_ms, retry_ms)
        is_behind = occurrence.behind
        if answer.verdict is Verdict.SKIP and job.overlap in DROPPING and not occurrence.manual:
            is_behind = self._is_past_in_the_way(job, running)
            if is_behind:
                answer = admit(patient(job), occurrence, running, waiting, free, now_ms, window_ms, retry_ms)
        if lacking and answer.reason.code is ReasonCode.POOL_FULL:
            answer = answer._replace(reason=Reason(ReasonCode.NO_NODE, lacking))
        if answer.verdict is Verdict.START and occurrence.behind and job.overlap is OverlapPolicy.SKIP:
            answer = overlap_on_time(occurrence, self._ran_before(occurrence))
        if answer.verdict is not Verdict.START:
            return TurnAnswer(answer, None, is_behind)
        return self._in_line(job, occurrence, answer, waiting)._replace(is_behind=is_behind)

    def _in_line(self, job: Job, occurrence: Occurrence, answer: Admission, waiting: int) -> TurnAnswer:
        """It could start but for its conditions, its groups, the pace of catch-up, or the pool."""
        now_ms, found = self.records.now_ms, self.found.get(job.id)
        if is_met(job, occurrence, found, now_ms):
            wait = self.lines.wait(job, occurrence, self.free_slots())
        else:
            answer = until_met(job, occurrence, found, now_ms)
            if answer.verdict is Verdict.SKIP:
                return TurnAnswer(answer)
            wait = self.lines.conditions(job, occurrence, answer.reason)
        return (
            TurnAnswer(answer)
            if wait is None
            else TurnAnswer(wait_in_line(job, occurrence, wait.reason, waiting), wait)
        )

    def _is_past_in_the_way(self, job: Job, running: list[Occurrence]) -> bool:
        """Whether the one in the way is there because the job makes up for what it missed.

        Where the newest wins (the declarative scheduler), an instant that was due meanwhile is not kept for later.
        """
        if job.retry is not None and job.retry.newest_wins:
            return False
        first = running[:1] or self.records.queued(job.id, limit=1)
        return any(one.recovery or (one.behind and job.overlap is OverlapPolicy.SKIP) for one in first)

    def _ran_before(self, occurrence: Occurrence) -> Occurrence | None:
        """The one of its job that ran last before it."""
        earlier = self.records.occurrences(occurrence.job, occurrence.nominal_ms, MOST_QUEUED)
        return next((one for one in earlier if one.started_ms is not None and not one.manual), None)
