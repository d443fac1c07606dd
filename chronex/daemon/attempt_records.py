"""From the records of an attempt to what is run, and from how it ended to what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chronex.engine.orders import AttemptEnd
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import Attempt, Occurrence, occurrence_id, run_id
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, free_text
from chronex.model.states import AttemptState
from chronex.run import AttemptRequest, AttemptResult
from chronex.run.attempt_log import DEFAULT_LIMIT
from chronex.run.request import DEFAULT_GRACE_MS


def log_fields(attempt: Attempt) -> dict[str, Any]:
    """The same fields in every line of the log, so that the lines of one attempt can be found."""
    return {
        "job": attempt.job,
        "task": attempt.task,
        "nominal_ms": attempt.nominal_ms,
        "occurrence": occurrence_id(attempt.job, attempt.nominal_ms),
        "attempt": attempt.number,
    }


def request_from_records(
    job: Job,
    task: Task,
    occurrence: Occurrence,
    attempt: Attempt,
    *,
    idempotency_key: str = "",
    grace_ms: int = DEFAULT_GRACE_MS,
    log_limit: int = DEFAULT_LIMIT,
    extra_environment: Mapping[str, str] | None = None,
) -> AttemptRequest:
    """The attempt as the records have it, with a grace and a log limit where its job has none of its own."""
    return AttemptRequest(
        attempt_id=attempt.id,
        number=attempt.number,
        job=job.id,
        task=task.name,
        occurrence_id=occurrence.id,
        nominal_ms=occurrence.scheduled_ms,
        run_id=run_id(occurrence.id, task.name),
        version=job.version,
        recovery=occurrence.recovery,
        fire_count=occurrence.fire_count,
        epoch=attempt.epoch,
        fence=attempt.fence,
        command=() if isinstance(task.run, Call) else task.run,
        directory=task.directory,
        env=task.env,
        secrets=task.secrets,
        secret_sources=task.secret_sources,
        env_file=task.env_file,
        settings=task.process_settings,
        metadata={**job.metadata, **task.metadata},
        parameters=occurrence.parameters,
        matrix=task.combination,
        span_start_ms=occurrence.span_start_ms,
        span_end_ms=occurrence.span_end_ms,
        last_run_ms=occurrence.last_run_ms,
        idempotency_key=idempotency_key,
        timeout_ms=job.timeout_for(task),
        grace_ms=grace_ms if job.grace_ms is None else job.grace_ms,
        success_codes=task.success_codes,
        retry_codes=task.retry_codes,
        leftovers=job.leftovers,
        log_limit=job.log_limit or log_limit,
        extra_environment=extra_environment or {},
        args=task.run.args if isinstance(task.run, Call) else (),
        kwargs=task.run.kwargs if isinstance(task.run, Call) else {},
    )


def stopped_before(result: AttemptResult) -> Reason:
    """Why an earlier scheduler, or the keeper itself, had stopped it."""
    return Reason(ReasonCode(result.stop_code)) if result.stop_code else NO_REASON


# What it had done when it was stopped so is not known: on_crash says what follows.
_UNKNOWN_OUTCOMES = (ReasonCode.INTERRUPTED, ReasonCode.CUT_OFF)


def end_of(result: AttemptResult, cancel_reason: Reason) -> AttemptEnd:
    """What the engine records. An attempt that was stopped because its occurrence ran out of time has timed out."""
    end = AttemptEnd(
        state=result.state,
        exit_code=result.exit_code,
        signal=result.signal,
        error=result.error,
        log_bytes=result.log.size,
        log_dropped=result.log.dropped,
        usage=result.usage,
        finished_ms=result.finished_ms or None,
        leftovers=len(result.leftovers) - result.leftovers_killed,
        errno=result.errno,
        retryable=result.retryable,
        task_state=dict(result.state_changes) or None,
        values=dict(result.values) or None,
        values_problem=result.values_problem,
    )
    if result.state is not AttemptState.CANCELED:
        own = Reason(ReasonCode(result.reason.value), result.error) if result.error else NO_REASON
        return end._replace(reason=own)
    if cancel_reason.code in _UNKNOWN_OUTCOMES:
        return end._replace(state=AttemptState.CRASHED, reason=cancel_reason, retryable=True)
    if cancel_reason.code is ReasonCode.EXECUTION_TIMEOUT:
        return end._replace(state=AttemptState.TIMEOUT, reason=cancel_reason, retryable=False)
    return end._replace(reason=cancel_reason or free_text(result.error))
