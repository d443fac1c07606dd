"""An attempt has begun: its process goes on record, and its execution timeout counts from here if that came late."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from chronex.model.occurrence import Attempt, ProcessIdentity
from chronex.model.states import AttemptState
from chronex.storage.records import Records

# A claim is followed by its start within milliseconds, unless the disk is full or an `on_start` hook takes its time.
SLOW_START_MS = 1_000


class AttemptStart(NamedTuple):
    """An attempt has begun: the process that runs it (None for a Python function), and where its output goes."""

    attempt: Attempt
    process: ProcessIdentity | None
    log_path: str
    at_ms: int
    log_limit: int = 0


def record_start(records: Records, start: AttemptStart) -> bool:
    """False where the attempt has ended, or is another node's by now."""
    claimed = start.attempt
    found = records.attempt(claimed.job, claimed.nominal_ms, claimed.task, claimed.number)
    if found is None or found.state is not AttemptState.RUNNING:
        return False
    if (found.owner, found.epoch) != (claimed.owner, claimed.epoch):
        return False
    if start.at_ms - found.created_ms > SLOW_START_MS:
        _count_from_start(records, found, start.at_ms)
    kept = {"log_path": start.log_path, "log_limit": start.log_limit}
    records.put(replace(found, process=start.process, started_ms=start.at_ms, **kept))
    return True


def _count_from_start(records: Records, attempt: Attempt, at_ms: int) -> None:
    """The first start of an occurrence came long after its claim, so its execution timeout counts from here."""
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if occurrence is None or occurrence.deadline_ms is None or occurrence.started_ms is None:
        return
    if all(one.started_ms is None for one in records.attempts(attempt.job, attempt.nominal_ms)):
        records.put(replace(occurrence, deadline_ms=occurrence.deadline_ms + at_ms - occurrence.started_ms))
