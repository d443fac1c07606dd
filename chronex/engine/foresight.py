"""What will most likely be ordered at an instant that has not come yet, told by a look at the store.

Nothing is decided here. Who prepares what is foreseen must be ready to throw it away: until the instant comes a job
may be paused, changed or taken by another scheduler, and only the tick's own orders count.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from chronex.engine import idempotency
from chronex.engine.custom import is_known
from chronex.engine.ledger import Reading
from chronex.engine.orders import Launch
from chronex.engine.placement import Chance
from chronex.engine.planning import plan_job
from chronex.engine.schedule import schedule_of
from chronex.errors import CustomScheduleError
from chronex.model.policies import OverlapPolicy, TaskMode
from chronex.model.records import Attempt, Call, Job, Occurrence
from chronex.model.states import OccurrenceState


def foresee(reading: Reading, at_ms: int, places: int, chance: Chance, most: int) -> list[Launch]:
    """The commands that begin at `at_ms` if nothing changes, as many as the pool has room for."""
    room = min(most, places - reading.count_active(places))
    found: list[Launch] = []
    for record in reading.due(at_ms, most):
        job, occurrence = _planned(reading, record, at_ms, chance)
        if job is None or occurrence is None or not _is_free(reading, job, occurrence, at_ms):
            continue
        found += _launches(job, occurrence)
        if len(found) >= room:
            break
    return found[: max(room, 0)]


def _planned(reading: Reading, record: object, at_ms: int, chance: Chance) -> tuple[Job | None, Occurrence | None]:
    if isinstance(record, Occurrence) and record.state is OccurrenceState.PENDING:
        return reading.job(record.job), record
    if not isinstance(record, Job) or not is_known(record.dialect, record.schedule):
        return None, None
    try:
        plan = plan_job(record, schedule_of(record), at_ms, awake_since_ms=0, chance=chance)
    except CustomScheduleError:
        return None, None
    due = [one.occurrence for one in plan.planned if one.fate.runs and one.occurrence.due_ms <= at_ms]
    return record, due[0] if len(due) == 1 else None


def _is_free(reading: Reading, job: Job, occurrence: Occurrence, at_ms: int) -> bool:
    """Nothing that stands in its way now, and nothing that must be done before its command begins."""
    if not job.enabled or job.is_paused_at(at_ms) or job.on_start is not None:
        return False
    if occurrence.version != job.version:
        return False
    return job.overlap is OverlapPolicy.ALLOW or not reading.is_active(job.id)


def _launches(job: Job, occurrence: Occurrence) -> Iterator[Launch]:
    tasks = [task for task in job.tasks if not occurrence.only or task.name in occurrence.only]
    claimed = replace(occurrence, last_run_ms=job.last_run_ms)
    for task in tasks if job.mode is TaskMode.PARALLEL else tasks[:1]:
        if not isinstance(task.run, Call):
            attempt = Attempt(job=job.id, nominal_ms=occurrence.nominal_ms, task=task.name, number=1)
            yield Launch(job, claimed, task, attempt, idempotency.key_of(job, task, claimed))
