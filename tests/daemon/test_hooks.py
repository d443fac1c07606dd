"""Hooks as commands and as functions, in a running engine: what they are given, and that they change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chronex.daemon.embedded import EmbeddedEngine
from chronex.engine.execution_report import Report
from chronex.model.job import Call, Job, Task, Work
from chronex.model.states import OccurrenceState
from chronex.run import LogDirectory, RunContext
from chronex.run.functions import Calls
from chronex.run.hooks import run_hook
from chronex.storage import journal
from tests.daemon.machine import Machine
from tests.daemon.test_embedded import SOON, ended
from tests.kit.waits import DEADLINE_S, until, until_async

REPORT = Report(
    hook="on_complete", job="backup", occurrence="occ_1", nominal="2027-01-01T03:00:00.000Z",
    due="2027-01-01T03:00:00.000Z", started=None, ended=None, state="failed", reason="dump: exit code 3",
    on_failure="fail_fast", recovery=False, manual=False, parameters={}, metadata={}, tasks=(),
)  # fmt: skip


@pytest.fixture
def run_context(tmp_path: Path) -> RunContext:
    return RunContext.of_this_process(LogDirectory(tmp_path / "logs"), environment={"CHRONEX_STORE": "/store"})


async def test_a_command_reads_the_report_and_is_told_who_calls(run_context: RunContext, tmp_path: Path) -> None:
    report, named = tmp_path / "report", tmp_path / "named"
    command = f'cat > {report}; echo "$CHRONEX_HOOK $CHRONEX_JOB $CHRONEX_STATE $CHRONEX_STORE" > {named}'
    assert await run_hook(command, REPORT, run_context, Calls()) == ""
    assert json.loads(report.read_text())["reason"] == "dump: exit code 3"
    assert named.read_text() == "on_complete backup failed /store\n"


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        ("echo first; echo no disk; exit 4", "exit code 4: no disk"),
        (("false",), "exit code 1"),
        ("kill -9 $$", "ended by SIGKILL"),
        (("no-such-program",), "no-such-program"),
        ("exec sleep 60", "still running after 0.3 s"),
        ("head -c 3000000 /dev/zero; exit 1", "exit code 1"),
        (Call("nobody"), "this scheduler has no function 'nobody'"),
        (Call("fails"), "ZeroDivisionError: division by zero"),
        (Call("hangs"), "still running after 0.3 s"),
        (Call("fine"), ""),
        ("exit 0", ""),
    ],
)
async def test_what_goes_wrong_is_a_sentence(run_context: RunContext, work: Work, problem: str) -> None:
    async def hangs(_report: dict[str, Any]) -> None:
        import asyncio

        await asyncio.sleep(60)

    functions: dict[str, Any] = {"fails": lambda _report: 1 / 0, "hangs": hangs, "fine": lambda report: report["job"]}
    found = await run_hook(
        work, REPORT, run_context, Calls(functions), timeout_s=0.3 if "still" in problem else DEADLINE_S
    )
    assert found.startswith(problem) if problem else found == ""


async def test_hooks_surround_the_tasks_and_their_failure_is_recorded_and_changes_nothing(tmp_path: Path) -> None:
    order: list[str] = []

    async def begin(report: dict[str, Any]) -> None:
        order.append(f"on_start {report['state']}")

    def finish(report: dict[str, Any]) -> None:
        order.append(f"on_complete {report['state']}")
        raise OSError("the mail server is down")

    calls: dict[str, Any] = {"begin": begin, "finish": finish, "work": lambda _context: order.append("task")}
    async with EmbeddedEngine(tmp_path / "store", calls=calls) as engine:
        tasks = (Task(name="main", run=Call("work")),)
        engine.apply([Job(id="job", schedule=SOON, tasks=tasks, on_start=Call("begin"), on_complete=Call("finish"))])
        (occurrence,) = await ended(engine)
        assert occurrence.state is OccurrenceState.COMPLETED
        events = await until_async(
            lambda: [event for _, event in engine.store.view(journal.tail) if event.name == "HookFailed"],
            "the failure of the hook in the journal",
        )
    assert order == ["on_start running", "task", "on_complete completed"]
    assert [(event.job, str(event.reason), event.data["hook"]) for event in events] == [
        ("job", "OSError: the mail server is down", "on_complete")
    ]


def test_a_daemon_killed_between_an_end_and_its_hook_or_before_the_hook_is_on_record_repeats_it_with_its_id(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.write(
        '[jobs.job]\nschedule = "@every 100ms {max:1}"\nrun = "echo x >> runs"\non_complete = "cat >> reports"\n'
    )
    machine.start(quiet=True, fail_at="end recorded").ended()
    assert not (tmp_path / "reports").exists()
    machine.start(quiet=True, fail_at="hook ended").ended()
    with machine.start() as daemon:
        found = until(
            lambda: [json.loads(line) for line in (tmp_path / "reports").read_text().splitlines()][1:] or None,
            "the second report",
        )
        assert daemon.stopped() == 0
    first = json.loads((tmp_path / "reports").read_text().splitlines()[0])
    assert found == [first], "the same report with the same id, and no third"
    assert first["delivery"] == f"{first['occurrence']}/on_complete"
    assert (first["status"], first["totals"]["attempts"]) == ("completed", 1)
    assert (tmp_path / "runs").read_text() == "x\n", "the task itself is not repeated"
