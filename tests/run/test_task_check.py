"""The check of a task: a file that the run must have written, or a command that must end well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.engine.checked_ends import after_check, check_of
from chronex.engine.orders import AttemptEnd
from chronex.model.job import Job, Task, TaskCheck
from chronex.model.reasons import ReasonCode
from chronex.run import Cancellation, RunContext
from chronex.run.check_commands import ask_task_check, check_file
from chronex.run.side_threads import SideThreads
from tests.run.requests import request

STARTED = 1_800_000_000_000


def written(path: Path, size: int, at_ms: int) -> None:
    path.write_bytes(b"x" * size)
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


@pytest.mark.parametrize(
    ("check", "size", "at_ms", "problem"),
    [
        (TaskCheck(file="dump"), 0, STARTED - 10_000, ""),
        (TaskCheck(file="dump", min_size=10), 10, STARTED, ""),
        (TaskCheck(file="dump", min_size=10), 9, STARTED, "dump has 9B, and at least 10B were expected"),
        (TaskCheck(file="dump", newer=True), 1, STARTED, ""),
        (TaskCheck(file="dump", newer=True), 1, STARTED - 2_000, ""),
        (TaskCheck(file="dump", newer=True), 1, STARTED - 2_001, "dump was last written at 2027-01-15T07:59:57.999Z, before the command began"),
        (TaskCheck(file="other"), 1, STARTED, "other: no such file or directory"),
        (TaskCheck(file="."), 1, STARTED, ". is a directory"),
    ],
)  # fmt: skip
def test_a_file_is_as_it_should_be_or_the_problem_says_why_not(
    tmp_path: Path, check: TaskCheck, size: int, at_ms: int, problem: str
) -> None:
    written(tmp_path / "dump", size, at_ms)
    assert check_file(tmp_path / check.file, check, STARTED) == problem


async def test_a_command_is_asked_where_its_task_runs(run_context: RunContext, tmp_path: Path) -> None:
    asked = request("never run", directory=str(tmp_path))
    (tmp_path / "done").touch()
    threads, cancellation = SideThreads(), Cancellation()
    for line, code in (("test -e done", 0), ("test -e undone", 1)):
        answer = await ask_task_check(TaskCheck(run=line), asked, wall_ms(), cancellation, run_context, threads)
        assert answer.exit_code == code
    found = await ask_task_check(TaskCheck(file="done"), asked, wall_ms(), cancellation, run_context, threads)
    assert found.exit_code == 0


def test_only_an_end_that_is_well_is_checked() -> None:
    check = TaskCheck(file="x")
    job = Job(id="a", schedule="@daily", tasks=(Task(name="one", check=check), Task(name="two")))
    assert check_of(job, "one", AttemptEnd("success")) is check
    assert check_of(job, "two", AttemptEnd("success")) is None
    assert check_of(job, "one", AttemptEnd("failed")) is None
    assert check_of(None, "one", AttemptEnd("success")) is None


def test_a_check_that_is_not_content_makes_a_failure_that_may_be_tried_again() -> None:
    good = AttemptEnd("success", exit_code=0, retryable=False, task_state={"a": "1"})
    assert after_check(good, 0, "") == good
    bad = after_check(good, 1, "dump: no such file")
    assert (bad.state, bad.exit_code, bad.retryable, bad.task_state) == ("failed", 0, True, None)
    assert bad.reason.code is ReasonCode.NOTHING_DONE
    assert bad.error == "the command ended well, and its check failed: dump: no such file"
    assert after_check(good, None, "").error.endswith("it gave no answer")
