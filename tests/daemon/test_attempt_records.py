"""What is run is made from the records, and what is recorded from how it ended."""

from __future__ import annotations

import pytest

from chronex.daemon.attempt_records import end_of, request_from_records
from chronex.model.job import Job, Task
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import AttemptState
from chronex.run.request import AttemptResult
from chronex.run.request import EndReason as EndKind


@pytest.mark.parametrize(
    ("reason", "state", "retryable"),
    [
        (Reason(ReasonCode.EXECUTION_TIMEOUT), AttemptState.TIMEOUT, False),
        (Reason(ReasonCode.STOPPING), AttemptState.CANCELED, False),
        # A person's words are no timeout, whatever they say.
        (Reason(ReasonCode.CANCELED, "the execution timeout passed", "ann"), AttemptState.CANCELED, False),
    ],
)
def test_why_it_was_stopped_says_how_it_ended(reason: Reason, state: AttemptState, retryable: bool) -> None:
    result = AttemptResult(state=AttemptState.CANCELED, reason=EndKind.CANCELED, error=str(reason))
    end = end_of(result, reason)
    assert (end.state, end.reason, end.retryable) == (state, reason, retryable)


def test_what_ended_by_itself_has_the_code_of_how_and_its_own_words() -> None:
    failed = AttemptResult(state=AttemptState.FAILED, reason=EndKind.EXIT_CODE, error="exit code 3", retryable=True)
    assert end_of(failed, NO_REASON).reason == Reason(ReasonCode.EXIT_CODE, "exit code 3")
    done = AttemptResult(state=AttemptState.SUCCESS, reason=EndKind.EXITED)
    assert end_of(done, NO_REASON).reason == NO_REASON


def test_a_request_is_made_from_the_records() -> None:
    task = Task(
        name="dump",
        run=("pg_dump",),
        env={"A": "1"},
        secrets=("S",),
        directory="/d",
        metadata={"k": "task"},
        success_codes=(0, 4),
        retry_codes=(75,),
    )
    job = Job(id="backup", schedule="@daily", tasks=(task,), task_timeout_ms=5000, metadata={"k": "job", "j": "x"})
    occurrence = Occurrence(job="backup", nominal_ms=1000, due_ms=1000, parameters={"p": "v"}, span_start_ms=1)
    attempt = Attempt(job="backup", nominal_ms=1000, task="dump", number=2)
    made = request_from_records(job, task, occurrence, attempt, idempotency_key="k")
    assert (made.attempt_id, made.number, made.occurrence_id) == (attempt.id, 2, occurrence.id)
    assert (made.command, made.env, made.secrets, made.directory) == (("pg_dump",), {"A": "1"}, ("S",), "/d")
    assert (made.metadata, made.parameters) == ({"k": "task", "j": "x"}, {"p": "v"})
    assert (made.timeout_ms, made.grace_ms, made.span_start_ms) == (5000, 30_000, 1)
    assert (made.success_codes, made.retry_codes, made.idempotency_key) == ((0, 4), (75,), "k")


@pytest.mark.parametrize("changes", [{}, {"seen": "2", "old": None}])
def test_an_end_is_made_from_the_result(changes: dict[str, str | None]) -> None:
    result = AttemptResult(
        state=AttemptState.FAILED, reason=EndKind.SIGNAL, retryable=True, signal=9, state_changes=changes
    )
    end = end_of(result, NO_REASON)
    assert (end.state, end.retryable, end.exit_code, end.signal) == (AttemptState.FAILED, True, None, 9)
    assert end.task_state == (changes or None)
