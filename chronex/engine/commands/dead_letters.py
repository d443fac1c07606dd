"""The dead letters: runs that failed for good, until somebody replays or drops them, or their bound does."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.commands.actor import Actor, record_command
from chronex.engine.commands.names import find
from chronex.engine.commands.trigger import AsOf, Replayed, repeat
from chronex.errors import NotPossibleError, UnknownIdError
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.reasons import Reason, ReasonCode, text_of
from chronex.model.states import RunState
from chronex.storage import keys
from chronex.storage.records import Reading, Records

MOST_KEPT = 1_000
OLDEST_KEPT_MS = 30 * 86_400_000
_MOST_DROPPED = 25
# What its failure kept from running, or stopped.
_BEHIND = (RunState.CANCELED, RunState.SKIPPED)


class DeadLetter(NamedTuple):
    """A run that failed for good with all there is to know of it."""

    run: Run
    occurrence: Occurrence | None
    attempts: tuple[Attempt, ...]
    job: Job | None  # as it was then


def dead_letters(reading: Reading, job: str = "", limit: int = MOST_KEPT) -> list[Run]:
    """Newest first, of one job or of all."""
    found = [run for run in reading.dead_letters(limit=MOST_KEPT * 10) if not job or run.job == job]
    return found[::-1][:limit]


def dead_letter(reading: Reading, run_id: str) -> DeadLetter:
    """The dead letter of that id; a beginning of the id will do."""
    named = find_dead_letter(reading, run_id)
    occurrence = reading.occurrence(named.job, named.nominal_ms)
    version = occurrence.version if occurrence is not None else 0
    job = reading.job(named.job)
    if job is None or job.version != version:
        job = reading.job_version(named.job, version) or job
    return DeadLetter(named, occurrence, tuple(reading.attempts(named.job, named.nominal_ms, named.task)), job)


def find_dead_letter(reading: Reading, text: str) -> Run:
    found = [run for run in reading.dead_letters(limit=MOST_KEPT * 10) if run.id.startswith(text)]
    if len(found) == 1 and len(text) >= len("run_") + 4:
        return found[0]
    if len(found) > 1:
        raise UnknownIdError(text, f"{len(found)} dead letters begin like that; write more of the id")
    named = find(reading, text)  # raises where there is no such run at all
    run = reading.run(named.job, named.nominal_ms, named.task) if named.task else None
    state = (
        f"{run.id} is {run.state}" + (f" ({text_of(run.reason)})" if run.reason else "")
        if run
        else f"{text} is no run"
    )
    raise NotPossibleError(f"{state}, not a dead letter; `chronex dlq list` shows them")


def replay_dead_letter(
    records: Records, run_id: str | Run, actor: Actor, reason: str = "", *, as_of: str = AsOf.THEN
) -> Replayed:
    """Run the task again, and those that its failure kept from running; it is a dead letter no longer."""
    run = _still_dead(records, run_id)
    original = records.occurrence(run.job, run.nominal_ms)
    if original is None:
        raise NotPossibleError(f"the occurrence of {run.id} is gone; `chronex dlq drop` removes it")
    behind = [one.task for one in records.runs(run.job, run.nominal_ms) if one.state in _BEHIND]
    replayed = repeat(records, original, actor, reason, as_of=as_of, only=(run.task, *behind))
    _take_off_list(records, run, Reason(ReasonCode.REPLAYED, replayed.occurrence.id))
    return replayed


def drop_dead_letter(records: Records, run_id: str | Run, actor: Actor, reason: str = "") -> Run:
    """Take it off the list for good; its history stays."""
    run = _still_dead(records, run_id)
    record_command(records, "TaskDropped", actor, run.job, run.nominal_ms, reason, task=run.task)
    return _take_off_list(records, run, Reason(ReasonCode.DROPPED, reason, str(actor)))


def bound_dead_letters(
    records: Records, most: int = MOST_KEPT, oldest_ms: int = OLDEST_KEPT_MS, *, age_ms: int | None = None
) -> int:
    """Drop what is over the count or the age, a few at a time; how many were dropped. Ages count up to `age_ms`."""
    rows = records.tx.scan(keys.DEAD_LETTER, None, most + _MOST_DROPPED)
    over = max(len(rows) - most, 0)
    limit = (records.now_ms if age_ms is None else age_ms) - oldest_ms
    doomed = [key for n, (key, _) in enumerate(rows) if n < over or keys.instant_of(key) < limit][:_MOST_DROPPED]
    for key in doomed:
        run = records.get(keys.record_of(key), Run)
        if run is not None:
            _take_off_list(records, run, Reason(ReasonCode.DROPPED_BY_LIMIT))
    return len(doomed)


def _still_dead(records: Records, named: str | Run) -> Run:
    if isinstance(named, str):
        return find_dead_letter(records, named)
    run = records.run(named.job, named.nominal_ms, named.task)
    if run is None or run.state is not RunState.DLQ:
        raise NotPossibleError(f"{named.id} is no dead letter any more")
    return run


def _take_off_list(records: Records, run: Run, reason: Reason) -> Run:
    """By the transition table a dead letter is canceled from `scheduled`; a replay has a run of its own."""
    scheduled = records.advance(run, RunState.SCHEDULED, next_attempt_ms=None)
    return records.advance(scheduled, RunState.CANCELED, reason=reason)
