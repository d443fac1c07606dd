"""R1: what the records of history say is what the journal said when it happened.

The other properties judge the journal alone. This one holds the records against it, because `history` and `why`
answer from the records: a failure that was edited into a success, and a record that is gone, are seen only here.
"""

from __future__ import annotations

from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState, RunState
from chronex.storage import keys
from chronex.storage.records import Reading
from chronex.verify.results import JournalLine, PropertyCheck, PropertyResult

_ENDS = {
    "OccurrenceCompleted": OccurrenceState.COMPLETED,
    "OccurrenceFailed": OccurrenceState.FAILED,
    "OccurrenceCanceled": OccurrenceState.CANCELED,
    "OccurrenceFailedStale": OccurrenceState.FAILED_STALE,
    "OccurrenceSkipped": OccurrenceState.SKIPPED,
    "OccurrenceMissed": OccurrenceState.MISSED,
}
_ENDS_OF_ATTEMPTS = ("TaskRunCompleted", "TaskRunFailed")
# What an edit has withdrawn may be wanted again: then its record is removed, and it is decided anew.
_WITHDRAWN = (ReasonCode.REPLACED, ReasonCode.JOB_REMOVED)
# Retention leaves a dead letter alone; one that was taken off the list is canceled for one of these.
_OF_DEAD_LETTERS = (ReasonCode.DROPPED, ReasonCode.DROPPED_BY_LIMIT, ReasonCode.REPLAYED)


class RecordCheck:
    """Fed the lines of the journal in order, each page with a snapshot that holds it.

    Retention removes the oldest records of a job first. So a record is missing, and not only old, where an older one
    of its job is kept that had ended before it and that retention could have removed. The oldest such is remembered.
    """

    def __init__(self, *, job: str | None = None, since_ms: int | None = None) -> None:
        self._check = PropertyCheck("R1", "the records say what the journal says", since_ms=since_ms)
        self._job = job
        self._oldest: dict[str, int] = {}

    def feed(self, reading: Reading, lines: list[JournalLine]) -> None:
        for line in lines:
            event = line[1]
            if not event.job or event.nominal_ms is None or self._job not in (None, event.job):
                continue
            if event.name in _ENDS:
                self._check_occurrence(reading, line, event.nominal_ms)
            elif event.name in _ENDS_OF_ATTEMPTS:
                self._check_attempt(reading, line, event.nominal_ms)

    def result(self) -> PropertyResult:
        return self._check.result([])

    def _check_occurrence(self, reading: Reading, line: JournalLine, nominal_ms: int) -> None:
        event = line[1]
        if event.reason.code in _WITHDRAWN:
            return
        self._check.checked += 1
        if not _is_there(reading, keys.occurrence_key(event.job, nominal_ms)):
            self._check_gone(reading, line, nominal_ms)
            return
        found = reading.occurrence(event.job, nominal_ms)
        if found is None:
            return  # it is damaged, and `doctor` tells
        if found.state is not _ENDS[event.name]:
            self._check.violate(
                f"the journal says {_ENDS[event.name].value}, and its record {found.state.value}", line
            )
        elif nominal_ms < self._oldest.get(event.job, nominal_ms + 1) and _is_removable(
            reading, event.job, nominal_ms
        ):
            self._oldest[event.job] = nominal_ms

    def _check_gone(self, reading: Reading, line: JournalLine, nominal_ms: int) -> None:
        job = line[1].job
        oldest = self._oldest.get(job)
        if oldest is None or oldest > nominal_ms:
            return
        if _is_there(reading, keys.occurrence_key(job, oldest)):
            self._check.violate(
                "its record is gone, and an older one of its job, which had ended before, is kept", line
            )
        else:
            del self._oldest[job]  # retention has come so far since

    def _check_attempt(self, reading: Reading, line: JournalLine, nominal_ms: int) -> None:
        event = line[1]
        said = event.data.get("state")
        if (
            said is None
            or event.attempt is None
            or not _is_there(reading, keys.occurrence_key(event.job, nominal_ms))
        ):
            return
        self._check.checked += 1
        if not _is_there(reading, keys.attempt_key(event.job, nominal_ms, event.task, event.attempt)):
            self._check.violate("the record of this attempt is gone, and that of its occurrence is kept", line)
            return
        found = reading.attempt(event.job, nominal_ms, event.task, event.attempt)
        if found is not None and found.state.value != said:
            self._check.violate(f"the journal says {said}, and the record of this attempt {found.state.value}", line)


def _is_there(reading: Reading, key: bytes) -> bool:
    """Readable, damaged, or put aside as damaged: that is for `doctor` to say."""
    return reading.tx.get(key) is not None or reading.tx.get(keys.quarantine_key(key)) is not None


def _is_removable(reading: Reading, job: str, nominal_ms: int) -> bool:
    """Retention could have removed it at any time since its end: none of its runs was ever a dead letter."""
    left = (RunState.SUCCESS, RunState.SKIPPED)
    return all(
        run.state in left or (run.state is RunState.CANCELED and run.reason.code not in _OF_DEAD_LETTERS)
        for run in reading.runs(job, nominal_ms)
    )
