"""A task's own setting wins over its job's, and the names that jobs and tasks may have."""

from __future__ import annotations

import msgspec
import pytest

from chronex.errors import ChronexError
from chronex.model import Call, FailureStrategy, Job, RetryPolicy, Task
from chronex.model.job import check_name


def test_what_a_task_leaves_out_comes_from_its_job() -> None:
    own = RetryPolicy(max=9)
    plain, special = (
        Task(name="a"),
        Task(name="b", retry=own, on_failure=FailureStrategy.CONTINUE, timeout_ms=0),
    )
    job = Job(id="j", schedule="@daily", tasks=(plain, special), retry=RetryPolicy(max=1), task_timeout_ms=7)
    assert (job.retry_for(plain).max, job.retry_for(special).max) == (1, 9)
    assert job.failure_for(plain) is FailureStrategy.FAIL_FAST
    assert job.failure_for(special) is FailureStrategy.CONTINUE
    assert (job.timeout_for(plain), job.timeout_for(special)) == (7, 0)
    assert job.task("b") is special
    assert job.task("c") is None


@pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 128])
def test_names_that_can_be_keys(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "a/b", "a\0", "é", "a\n", "../x", "a.b"])
def test_names_that_cannot(name: str) -> None:
    with pytest.raises(ChronexError, match="cannot name a task"):
        check_name(name, "task")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (Call("tidy"), "tidy()"),
        (Call("mail", ("ann", 1), {"copies": 2, "to": ["b\x1b"]}), r"mail('ann', 1, copies=2, to=['b\x1b'])"),
    ],
)
def test_a_call_is_shown_as_it_would_be_written(call: Call, text: str) -> None:
    assert call.text == text


def test_a_call_without_arguments_is_stored_as_ever() -> None:
    task = Task(name="main", run=Call("tidy"))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(task)) == {"name": "main", "run": {"target": "tidy"}}
    given = Task(name="main", run=Call("mail", ("ann", [1, None]), {"deep": {"a": 1.5}}))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(given), type=Task) == given
