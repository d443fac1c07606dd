"""What `why` answers for a simulated week, against what its machine saw: processes, outages, records and the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.states import OccurrenceState as S
from chronex.storage.records import Reading
from chronex.timing.job_schedule import options_of
from chronex.views.why import WhyAnswer, why
from chronex.views.why.answer import Cause
from tests.engine.simulator.expected_schedule import Cron, Expected

if TYPE_CHECKING:
    from tests.engine.simulator.checker import History

MISSED = {Cause.DOWN, Cause.SUPERSEDED, Cause.FOLDED, Cause.TOO_OLD, Cause.TOO_MANY}
TURNED_AWAY = {
    Cause.OVERLAP, Cause.EARLIER_WAITS, Cause.RETRY_WAITS, Cause.QUEUE_FULL, Cause.POOL_FULL, Cause.WINDOW_EXCEEDED,
    Cause.PAUSED, Cause.MAX_REACHED, Cause.UNSCHEDULABLE, Cause.GAVE_WAY, Cause.DOWN, Cause.NOT_YET_APPLIED, Cause.OVERLAP_ON_TIME,
}  # fmt: skip
STOPPED = {Cause.CANCELED, Cause.MADE_ROOM, Cause.TIMEOUT, Cause.STOPPED, Cause.GAVE_WAY, Cause.MAX_REACHED}
ALLOWED = {
    S.COMPLETED: {Cause.COMPLETED},
    S.RUNNING: {Cause.RUNNING},
    S.PENDING: {Cause.PENDING},
    S.QUEUED: {Cause.QUEUED},
    S.FAILED: {Cause.FAILED, Cause.TIMEOUT},
    S.FAILED_STALE: {Cause.STALE},
    S.CANCELED: STOPPED,
    S.SKIPPED: TURNED_AWAY,
    S.MISSED: MISSED,
}
RAN = {Cause.COMPLETED}
OF_NO_RECORD = {Cause.NOT_MATCHED, Cause.BEFORE_FROM, Cause.AFTER_UNTIL, Cause.NOT_YET_APPLIED, Cause.FORGOTTEN}
ASKED_OF_A_JOB = 30  # evenly over the week; and every one whose outcome is rarer than that


def wrong_answers(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Each in a sentence."""
    occurrences, now_ms = history.occurrences[job.id], history.machine.now
    week = _WeekOfJob(history, job)

    def ask(reading: Reading) -> list[str]:
        found = []
        for one in _some_of(occurrences):
            answer = why(reading, job.id, one.nominal_ms, now_ms)
            wrong = "no answer" if answer is None else week.wrong(answer, one)
            found += [f"why {one.nominal_ms} ({one.state}): {wrong}"] if wrong else []
        for instant in _beside(expected, occurrences):
            answer = why(reading, job.id, instant, now_ms)
            if answer is None or answer.occurrence or answer.cause not in OF_NO_RECORD:
                found.append(f"why {instant}, which no schedule names: {answer and answer.cause}")
        return found

    yield from history.machine.rows.view(lambda tx: ask(Reading(tx)))


def _some_of(occurrences: list[Occurrence]) -> list[Occurrence]:
    step = max(1, len(occurrences) // ASKED_OF_A_JOB)
    usual = occurrences[::step]
    kinds = {(one.state, one.reason.code): one for one in occurrences}
    return [*usual, *kinds.values()]


def _beside(expected: Expected, occurrences: list[Occurrence]) -> list[int]:
    """Half a second after an instant that was drawn from a schedule of whole seconds."""
    if not isinstance(expected, Cron):
        return []
    return [one.nominal_ms + 500 for one in occurrences[:: max(1, len(occurrences) // 5)]]


class _WeekOfJob:
    """What the machine saw of one job."""

    def __init__(self, history: History, job: Job) -> None:
        self.job = job
        self.is_clock_set = history.is_clock_set
        self.ran = {process.nominal_ms for process in history.processes[job.id]}
        self.by_id = {one.id: one for one in history.occurrences[job.id]}

    def wrong(self, answer: WhyAnswer, one: Occurrence) -> str:
        """What is not true of it; empty where nothing is."""
        cause, has_run = answer.cause, one.nominal_ms in self.ran
        if answer.occurrence != occurrence_id(self.job.id, one.nominal_ms):
            return f"it is told of {answer.occurrence!r}"
        if cause not in ALLOWED[one.state]:
            return f"{cause} is no cause of that state"
        if cause in RAN and not has_run and one.state is not S.RUNNING:
            return f"{cause}, and no process of it was ever seen"
        if cause in MISSED | TURNED_AWAY and has_run:
            return f"{cause}, and a process of it ran"
        if cause in MISSED and not one.recovery:
            return f"{cause}, and not by a recovery"
        if "None" in answer.summary:
            return answer.summary
        return self._wrong_order(answer) or self._wrong_other(answer, one) or self._wrong_window(answer, one)

    def _wrong_order(self, answer: WhyAnswer) -> str:
        timed = [link.at_ms for link in answer.links if link.at_ms is not None]
        return "" if timed == sorted(timed) else "its links are out of order"

    def _wrong_other(self, answer: WhyAnswer, one: Occurrence) -> str:
        """Who stood in the way was under way then."""
        if answer.cause not in (Cause.OVERLAP, Cause.RETRY_WAITS):
            return ""
        other = self.by_id.get(answer.names.get("other", ""))
        if other is None or other.started_ms is None or other is one:
            return f"{answer.cause} of {answer.names.get('other')}, which never ran"
        at, end = one.finished_ms or 0, other.finished_ms
        if not self.is_clock_set and (other.started_ms > at or (end is not None and end < at)):
            return f"{answer.cause} at {at} of one that ran from {other.started_ms} to {end}"
        return ""

    def _wrong_window(self, answer: WhyAnswer, one: Occurrence) -> str:
        window = options_of(self.job).window
        if answer.cause is not Cause.WINDOW_EXCEEDED or window is None or self.is_clock_set:
            return ""
        last = one.nominal_ms + window
        return f"its window was open until {last}" if (one.finished_ms or 0) <= last else ""
