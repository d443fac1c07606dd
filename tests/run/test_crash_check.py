"""The check of `on_crash`: what it is given, and what its end says."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.run import Cancellation, RunContext
from chronex.run.check_commands import CheckAnswer, ask_check
from tests.run.requests import request


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        pytest.param("exit 0", CheckAnswer(0), id="done"),
        pytest.param("echo looked; exit 0", CheckAnswer(0, "looked"), id="done, with a word"),
        pytest.param("exit 3", CheckAnswer(3, "exit code 3"), id="not done"),
        pytest.param("echo no file; exit 1", CheckAnswer(1, "exit code 1: no file"), id="not done, with a word"),
        pytest.param("kill -9 $$", CheckAnswer(None, "ended by SIGKILL"), id="killed"),
        pytest.param(
            ("no-such-program",), CheckAnswer(None, "no-such-program: no such program in PATH (ENOENT)"), id="none"
        ),
    ],
)
async def test_the_end_of_the_check_is_its_answer(
    run_context: RunContext, check: str | tuple[str, ...], answer: CheckAnswer
) -> None:
    assert await ask_check(check, request("never run"), Cancellation(), run_context) == answer
    assert list(run_context.logs.path.iterdir()) == [], "its log is not kept"


async def test_a_check_that_takes_too_long_gives_no_answer(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronex.run.check_commands.CHECK_TIMEOUT_MS", 20)
    answer = await ask_check(("sleep", "600"), request("never run"), Cancellation(), run_context)
    assert answer == CheckAnswer(None, "still running after 0.02 s")


async def test_it_runs_where_its_task_runs(run_context: RunContext, tmp_path: Path) -> None:
    asked = request("never run", directory=str(tmp_path), env={"WORD": "hello"}, success_codes=(3,))
    check = "pwd > seen; echo $WORD $CHRONEX_TASK >> seen; exit 3"
    assert (await ask_check(check, asked, Cancellation(), run_context)).exit_code == 3
    assert (tmp_path / "seen").read_text() == f"{tmp_path}\nhello {asked.task}\n"


async def test_a_cancellation_of_the_attempt_ends_its_check(run_context: RunContext) -> None:
    cancellation = Cancellation()
    cancellation.request("enough")
    answer = await ask_check("exit 0", request("never run"), cancellation, run_context)
    assert answer.canceled is not None
    assert answer.canceled.error == "enough"
