"""Keys under which a task executes at most once while they live. A run keeps its key over all its attempts.

A key is taken in the transaction that starts the run, so of two runs with the same key one starts. A run that fails
keeps its key, because it may have done the work. A replay is meant to do the work again, so it has a key of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronex.model.job import KEY_FIELD, Job, Task
from chronex.model.occurrence import Occurrence, run_id
from chronex.model.records import Idempotency
from chronex.storage.records import Reading, Records
from chronex.text.instants import utc_datetime
from chronex.timing.zones import load_zone

DEFAULT_TTL_MS = 86_400_000


def key_of(job: Job, task: Task, occurrence: Occurrence) -> str:
    """The key of a run, from the template of its task; empty where the task has none."""
    if not task.idempotency_key:
        return ""
    moment = utc_datetime(occurrence.scheduled_ms)
    values = {
        "job": job.id,
        "task": task.name,
        "scheduled": moment.isoformat(timespec="seconds" if occurrence.scheduled_ms % 1000 == 0 else "milliseconds"),
        "date": moment.astimezone(load_zone(job.timezone).tzinfo).date().isoformat(),
        "occurrence": occurrence.id,
    }
    values["scheduled"] = values["scheduled"].replace("+00:00", "Z")
    key = KEY_FIELD.sub(lambda field: values.get(field[1], field[0]), task.idempotency_key)
    return f"{key}#{occurrence.id}" if occurrence.replay_of else key


def holder_of(reading: Reading, key: str, run: str, now_ms: int) -> str:
    """The other run that holds the key; empty where the key is free or held by this run."""
    held = reading.idempotency(key, now_ms) if key else None
    return "" if held is None or held.holder == run else held.holder or "another run"


def held_by_others(reading: Reading, job: Job, tasks: Iterable[Task], occurrence: Occurrence, now_ms: int) -> str:
    """A holder, where other runs hold the keys of all these tasks, so that no work is left; else empty."""
    holder = ""
    for task in tasks:
        key = key_of(job, task, occurrence)
        holder = holder_of(reading, key, run_id(occurrence.id, task.name), now_ms) if key else ""
        if not holder:
            return ""
    return holder


def take(records: Records, key: str, task: Task, occurrence: Occurrence) -> str:
    """Take the key for a run that starts. The run that holds it already, or empty where the key was taken now."""
    if not key:
        return ""
    run = run_id(occurrence.id, task.name)
    holder = holder_of(records, key, run, records.now_ms)
    if not holder:
        ttl = DEFAULT_TTL_MS if task.idempotency_ttl_ms is None else task.idempotency_ttl_ms
        expires = records.now_ms + ttl
        records.put(Idempotency(key=key, expires_ms=expires, holder=run, created_ms=records.now_ms))
    return holder
