"""A program's functions on a fake clock: when they are called, with what, and what becomes of what they do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chronex import Call, Engine, Job, Task, TaskContext
from chronex.model import OverlapPolicy
from chronex.testing import MemoryStore, SimulatedMachine, SimulatedProgram

START = datetime(2027, 3, 27, tzinfo=UTC)


def program(engine: Engine, *jobs: Job) -> SimulatedProgram:
    return SimulatedProgram(engine, jobs, start=START)


def test_functions_are_called_at_their_instants() -> None:
    engine, seen = Engine(MemoryStore()), list[datetime]()

    @engine.job("30 2 * * *", timezone="Europe/Berlin")
    async def backup(context: TaskContext) -> None:
        seen.append(context.actual)
        context.log("done")

    found = program(engine)
    found.advance(days=2, hours=3)
    assert [f"{at:%d %H:%M}" for at in seen] == ["27 01:30", "28 01:00", "29 00:30"], (
        "02:30 did not exist on the 28th"
    )
    assert [(one.job, one.attempt, one.log) for one in found.called] == [("backup", 1, "done\n")] * 3
    assert [run.state.value for run in found.history("backup")] == ["completed"] * 3
    assert found.now == START + timedelta(days=2, hours=3)


def test_what_is_raised_is_tried_again_and_state_counts_with_success() -> None:
    engine, seen = Engine(MemoryStore()), list[str | None]()

    @engine.job("@hourly", retry={"max": 1, "interval": "1m", "backoff": 1, "jitter": 0})
    def count(context: TaskContext) -> None:
        seen.append(context.state.get("n"))
        context.state.set("n", f"{context.scheduled:%H} {context.attempt}")
        if context.attempt == 1:
            raise ValueError("not yet")

    found = program(engine)
    found.advance(hours=2, minutes=5)
    assert seen == [None, None, "01 2", "01 2"]
    assert [one.error for one in found.called] == ["ValueError: not yet", ""] * 2


def test_arguments_durations_commands_and_orders() -> None:
    engine, seen = Engine(MemoryStore(), name="billing"), list[tuple[str, str]]()
    engine.add_call("mail", lambda context, to: seen.append((context.job, to)))
    mail = Job(id="mail", schedule="@every 1h", tasks=(Task(name="main", run=Call("mail", ("ann",))),))
    command = Job(id="command", schedule="@every 1h", tasks=(Task(name="main", run=("true",)),))
    found = SimulatedProgram(engine, [mail, command], start=START, takes={"mail": timedelta(minutes=90)})
    found.advance(hours=4)
    assert seen == [("mail", "ann")] * 2
    assert [run.state.value for run in found.history("mail")] == ["running", "skipped", "completed"]
    assert len(found.history("command", state="completed")) == 3
    found.update("mail", overlap="queue")
    assert found.row("mail").job.overlap is OverlapPolicy.QUEUE
    found.pause("mail")
    found.trigger("command")
    found.sleep(minutes=1)
    found.advance(minutes=1)
    assert found.history("command")[0].manual


def test_a_function_that_the_engine_does_not_have_is_told() -> None:
    lacking = Job(id="x", schedule="@hourly", tasks=(Task(name="main", run=Call("gone")),))
    found = program(Engine(MemoryStore()), lacking)
    found.advance(hours=1, minutes=1)
    assert found.called[0].error == "LookupError: the engine has no function 'gone'; add_call it"


@pytest.mark.parametrize("units", [{"hours": 3}, {"days": 0.125}])
def test_a_machine_advances_by_words(units: dict[str, float]) -> None:
    machine = SimulatedMachine(start=START)
    machine.advance(**units)
    assert machine.now == round((START + timedelta(hours=3)).timestamp() * 1000)
