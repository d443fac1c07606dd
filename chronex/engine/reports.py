"""The execution report that hooks are given: one occurrence, its tasks and how each of them went."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chronex.model.definition import Job
from chronex.model.occurrence import Occurrence, Run
from chronex.model.reasons import text_of
from chronex.storage.records import Reading
from chronex.text.instants import rfc3339_to_milliseconds

# A task may fail with a long story; the report of fifty of them must still fit a pipe.
_LONGEST_TEXT = 500


class Report(Struct, frozen=True, kw_only=True):
    """Plain values, as they stand in the JSON; times are RFC 3339 in UTC."""

    hook: str
    job: str
    occurrence: str
    nominal: str
    due: str
    started: str | None
    ended: str | None
    state: str
    reason: str
    on_failure: str
    recovery: bool
    manual: bool
    parameters: dict[str, str]
    metadata: dict[str, str]
    tasks: tuple[dict[str, Any], ...]


def report_of(reading: Reading, hook: str, job: Job, occurrence: Occurrence) -> Report:
    runs = (reading.run(occurrence.job, occurrence.nominal_ms, task.name) for task in job.tasks)
    return Report(
        hook=hook,
        job=occurrence.job,
        occurrence=occurrence.id,
        nominal=_stamp(occurrence.nominal_ms) or "",
        due=_stamp(occurrence.due_ms) or "",
        started=_stamp(occurrence.started_ms),
        ended=_stamp(occurrence.finished_ms),
        state=occurrence.state.value,
        reason=text_of(occurrence.reason)[:_LONGEST_TEXT],
        on_failure=job.failure.value,
        recovery=occurrence.recovery,
        manual=occurrence.manual,
        parameters=occurrence.parameters,
        metadata=job.metadata,
        tasks=tuple(_task(run) for run in runs if run is not None),
    )


def _task(run: Run) -> dict[str, Any]:
    return {
        "task": run.task,
        "run": run.id,
        "state": run.state.value,
        "attempts": run.attempts,
        "exit_code": run.exit_code,
        "reason": text_of(run.reason)[:_LONGEST_TEXT],
        "started": _stamp(run.started_ms),
        "ended": _stamp(run.finished_ms),
    }


def _stamp(ms: int | None) -> str | None:
    if ms is None:
        return None
    return rfc3339_to_milliseconds(ms)
