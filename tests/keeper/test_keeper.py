"""A real keeper and its commands, with schedulers that come, go and die."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from chronex.failpoints import VARIABLE
from chronex.keeper.ends_file import read_ends
from chronex.keeper.keeper_process import keep
from chronex.keeper.keepers import KeeperRefusedError, keeper_environment, start_keeper
from chronex.keeper.link import connect
from chronex.keeper.messages import Ended, FrameReader, Held, Message, Open, Opened, Start, Welcome
from chronex.model import AttemptState
from chronex.run import Cancellation, Hooks, Started
from chronex.run.command_start import prepare_command
from chronex.run.request import EndReason, NotStarted
from tests.keeper.schedulers import Schedulers, adopted, die, held, is_opened, left_running, left_running_behind_gate
from tests.kit.waits import is_gone, until_async
from tests.run.requests import request


@pytest.mark.usefixtures("whole_keepers")
async def test_a_command_runs_and_its_end_is_told(schedulers: Schedulers) -> None:
    seen: list[Started] = []

    async def note(started: Started) -> int | None:
        seen.append(started)
        return None

    commands = schedulers.commands(schedulers.begin("one"))
    result = await commands.run(request("echo said; exit 3"), Hooks(started=note), None)
    assert (result.state, result.reason, result.exit_code) == (AttemptState.FAILED, EndReason.EXIT_CODE, 3)
    assert result.log.size == 5
    assert result.process is not None
    assert [started.process for started in seen] == [result.process]
    assert result.usage is not None
    assert result.usage.peak_kib is None, "a shell is smaller than the keeper, as large as which it is counted"


@pytest.mark.usefixtures("whole_keepers")  # a command is counted as large as its keeper at least
async def test_what_a_command_took_is_told(schedulers: Schedulers) -> None:
    commands = schedulers.commands(schedulers.begin("one"))
    result = await commands.run(request((sys.executable, "-c", "x = b'x' * 100_000_000")), Hooks(), None)
    assert result.usage is not None
    assert result.usage.peak_kib is not None
    assert 97_000 < result.usage.peak_kib < 200_000
    assert result.usage.cpu_ms > 0


@pytest.mark.parametrize(
    ("command", "error"),
    [
        pytest.param(
            ("no-such-program",), "no-such-program: no such program in PATH (ENOENT)", id="found out before"
        ),
        pytest.param(("./no-program",), "not a program", id="refused by the system"),
    ],
)
async def test_what_cannot_be_started_says_why(schedulers: Schedulers, command: tuple[str, ...], error: str) -> None:
    (schedulers.place / "no-program").write_bytes(b"\x7fELF of another world")
    (schedulers.place / "no-program").chmod(0o700)
    commands = schedulers.commands(schedulers.begin("one"))
    result = await commands.run(request(command, directory=str(schedulers.place)), Hooks(), None)
    assert (result.state, result.reason) == (AttemptState.FAILED, EndReason.NOT_STARTED)
    assert error in result.error


async def test_a_scheduler_that_dies_leaves_the_command_its_output_and_its_exit_code(schedulers: Schedulers) -> None:
    gate = schedulers.place / "gate"
    asked = request(f"echo before; while [ ! -e {gate} ]; do sleep 0.01; done; echo after; exit 7")
    process = await left_running(schedulers, "one", asked)
    gate.touch()
    result = await adopted(schedulers, "two", asked, process)
    assert (result.state, result.exit_code) == (AttemptState.FAILED, 7)
    log = schedulers.run_context.logs.path / result.log.name
    assert log.read_bytes() == b"before\nafter\n"


async def test_an_end_without_any_scheduler_waits_in_the_file(schedulers: Schedulers) -> None:
    asked = request("exit 9")
    process = await left_running(schedulers, "one", asked)
    (place,) = schedulers.directories()
    await until_async(lambda: not (place / "socket").exists(), "the keeper to end, with nothing left to keep")
    assert isinstance(read_ends(place)[asked.attempt_id], Ended)
    result = await adopted(schedulers, "two", asked, process)
    assert (result.state, result.exit_code) == (AttemptState.FAILED, 9)


async def test_whoever_is_welcome_knows_every_end(schedulers: Schedulers) -> None:
    """An end that came after the welcome was not known yet when the next scheduler decided what had died."""
    link = await schedulers.begin("one").own()
    many = [request("exit 3") for _ in range(3)]
    for asked in many:
        await held(schedulers, link, asked)
        link.send(Open(asked.attempt_id))
        await link.ended(asked.attempt_id)
    place = schedulers.directories()[0]
    reader, writer = await asyncio.open_unix_connection(str(place / "socket"))
    frames = FrameReader()
    messages: list[Message] = []
    while not any(isinstance(message, Welcome) for message in messages):
        messages += frames.feed(await reader.read(65_536))
    before = messages[: next(n for n, message in enumerate(messages) if isinstance(message, Welcome))]
    assert [message.attempt_id for message in before if isinstance(message, Ended)] == [
        one.attempt_id for one in many
    ]
    writer.close()
    die(link)


@pytest.mark.usefixtures("whole_keepers")
async def test_secrets_are_redacted_while_no_scheduler_lives(schedulers: Schedulers) -> None:
    gate = schedulers.place / "gate"
    asked = request(f"while [ ! -e {gate} ]; do sleep 0.01; done; echo $TOKEN", secrets=("TOKEN",))
    process = await left_running(schedulers, "one", asked)
    gate.touch()
    result = await adopted(schedulers, "two", asked, process)
    assert (schedulers.run_context.logs.path / result.log.name).read_bytes() == b"[redacted]\n"


async def test_what_was_not_opened_never_runs_when_its_scheduler_dies(schedulers: Schedulers) -> None:
    """Its start may be on record: so its end says for certain that nothing ran."""
    witness = schedulers.place / "witness"
    asked = request(("touch", str(witness)))
    link = await schedulers.begin("one").own()
    process = await held(schedulers, link, asked)
    die(link)
    await until_async(lambda: is_gone(process.pid), "the held process to end")
    result = await adopted(schedulers, "two", asked, process)
    assert (result.state, result.reason) == (AttemptState.CRASHED, EndReason.NEVER_STARTED)
    assert not witness.exists()


async def test_what_a_scheduler_discards_leaves_nothing(schedulers: Schedulers) -> None:
    keepers = schedulers.begin("one")
    link = await keepers.own()
    commands = schedulers.commands(keepers)
    asked = request(("touch", str(schedulers.place / "witness")))
    kept = commands.hold(asked)
    assert not isinstance(kept, NotStarted), kept
    answer = await link.held(asked.attempt_id)
    assert isinstance(answer, Held)
    kept.discard()
    await until_async(lambda: kept.is_gone, "it to be gone")
    await until_async(
        lambda: is_gone(answer.process.pid), "the end of the process, which was killed behind its barrier"
    )
    assert not (schedulers.place / "witness").exists()
    assert not read_ends(schedulers.directories()[0])


async def test_what_was_held_and_discarded_can_be_run_again_at_once(schedulers: Schedulers) -> None:
    """Its job was edited shortly before its instant: the attempt is the same, and its command is another one."""
    keepers = schedulers.begin("one")
    link = await keepers.own()
    commands = schedulers.commands(keepers)
    before = commands.hold(request(("touch", str(schedulers.place / "witness")), attempt_id="same"))
    assert not isinstance(before, NotStarted), before
    before.discard()
    assert isinstance(commands.hold(request("exit 7", attempt_id="same")), NotStarted)
    result = await commands.run(request("exit 7", attempt_id="same"), Hooks(), None)
    assert result.exit_code == 7
    assert before.is_gone
    assert not before.is_held
    assert not (schedulers.place / "witness").exists()
    commands.recorded("same")
    assert not link.ids


async def test_what_is_discarded_leaves_nothing_in_the_memory_of_the_scheduler(schedulers: Schedulers) -> None:
    keepers = schedulers.begin("one")
    link = await keepers.own()
    commands = schedulers.commands(keepers)
    for _ in range(5):
        kept = commands.hold(request("exit 0"))
        assert not isinstance(kept, NotStarted), kept
        kept.discard()
    await until_async(lambda: not link.ids, "the end of each")
    assert not link._held


async def test_a_cancellation_between_start_and_barrier_runs_nothing(schedulers: Schedulers) -> None:
    witness = schedulers.place / "witness"
    cancellation = Cancellation()

    async def cancel(_started: Started) -> int | None:
        cancellation.request("enough")
        return None

    commands = schedulers.commands(schedulers.begin("one"))
    asked = request(("touch", str(witness)))
    result = await commands.run(asked, Hooks(cancel, cancellation), None)
    assert (result.state, result.error) == (AttemptState.CANCELED, "enough")
    assert not witness.exists()
    commands.recorded(asked.attempt_id)  # before its process is gone: nobody will ask for its end any more
    place = schedulers.directories()[0]
    await schedulers.end()
    await until_async(lambda: not place.exists(), "the keeper, which has nothing to keep")


async def test_a_fault_of_the_keeper_is_told_to_who_waits(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it a scheduler would wait for ever for a command that nobody watches any more."""

    def fault(*_: object) -> NotStarted:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr("chronex.keeper.keeper_process.start_prepared", fault)
    directory = schedulers.place / "in-this-process"
    directory.mkdir()
    ready = asyncio.Event()
    keeper = asyncio.ensure_future(keep(directory, schedulers.run_context.logs.path, ready.set))
    await ready.wait()
    link = await connect(directory)
    asked = request("exit 0")
    command = prepare_command(asked, schedulers.run_context)
    assert not isinstance(command, NotStarted)
    link.send(Start(command))
    result = (await link.ended(asked.attempt_id)).result
    assert (result.state, result.reason) == (AttemptState.CRASHED, EndReason.UNKNOWN_EXIT)
    assert "its keeper had a fault: RuntimeError" in result.error
    assert "not foreseen" in capsys.readouterr().err
    link.close()
    await keeper


async def test_a_keeper_that_does_not_begin_is_not_waited_for(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command then runs as a child of the scheduler, and the next one does not wait for the same again."""
    monkeypatch.setattr("chronex.keeper.keepers.keeper_command", lambda *_: ["sleep", "600"])
    monkeypatch.setattr("chronex.keeper.keepers.READY_WITHIN_S", 0.01)
    monkeypatch.setattr("chronex.keeper.keepers.ANSWER_WITHIN_S", 0.01)
    commands = schedulers.commands(keepers := schedulers.begin("one"))
    assert (await commands.run(request("exit 7"), Hooks(), None)).exit_code == 7
    for _ in range(5):
        with pytest.raises(KeeperRefusedError, match="it did not begin in time"):
            await keepers.own()
    assert not schedulers.directories()
    assert keepers._number == 1


@pytest.mark.parametrize("point", ["keeper begins", "keeper listens"])
async def test_in_the_place_of_a_keeper_that_is_killed_as_it_begins_there_is_another(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """It was taken for a machine that can have none, and its commands ended with their scheduler."""
    environment = keeper_environment
    killed: list[str] = []

    def first_is_killed(environ: Mapping[str, str]) -> dict[str, str]:
        armed = {} if killed else {VARIABLE: point}
        killed.append(point)
        return {**environment(environ), **armed}

    monkeypatch.setattr("chronex.keeper.keepers.keeper_environment", first_is_killed)
    keepers = schedulers.begin("one")
    result = await schedulers.commands(keepers).run(request("echo $PPID; exit 7"), Hooks(), None)
    assert result.exit_code == 7
    assert keepers.ready is not None
    parent = (schedulers.run_context.logs.path / result.log.name).read_text()
    assert int(parent) == (await keepers.ready.welcome).process.pid, "it is a child of its keeper"
    assert len(schedulers.directories()) == 1, "the other one left nothing"


async def test_a_command_without_a_keeper_goes_on_when_its_scheduler_leaves(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ended with it, as canceled. Its exit code is lost, and whoever finds it says so."""
    monkeypatch.setenv("CHRONEX_KEEPER_FAIL_POINT", "keeper begins")
    gate, witness = schedulers.place / "gate", schedulers.place / "witness"
    asked = request(f"echo $$ > {witness}; while [ ! -e {gate} ]; do sleep 0.01; done; echo done >> {witness}")
    seen: list[Started] = []

    async def note(started: Started) -> int | None:
        seen.append(started)
        return None

    first = asyncio.ensure_future(schedulers.commands(schedulers.begin("one")).run(asked, Hooks(note), None))
    await until_async(lambda: witness.exists() and witness.read_text(), "it to run")
    first.cancel()
    await asyncio.wait([first])
    assert seen[0].process is not None
    found = asyncio.ensure_future(adopted(schedulers, "two", asked, seen[0].process))
    gate.touch()
    assert (await found).reason is EndReason.UNKNOWN_EXIT
    assert witness.read_text().split() == [str(seen[0].process.pid), "done"]


async def test_a_keeper_that_is_about_to_begin_is_not_taken_for_a_dead_one(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scheduler looked for what others had left, and cleared the directory of its own keeper away."""
    keepers = schedulers.begin("one")
    start = start_keeper

    def looked_at_first(directory: Path, logs: Path) -> None:
        asyncio.run_coroutine_threadsafe(discover(), loop).result()
        start(directory, logs)

    async def discover() -> None:
        await keepers.discover(lambda _node: True)
        keepers.tidy(lambda _attempt: False)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr("chronex.keeper.keepers.start_keeper", looked_at_first)
    assert (await schedulers.commands(keepers).run(request("exit 3"), Hooks(), None)).exit_code == 3
    assert keepers.ready is not None


async def test_a_scheduler_that_comes_while_another_looks_keeps_its_directory(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node was not on record when the other one asked who lives, and its keeper was about to begin."""
    start, first, second = start_keeper, schedulers.begin("one"), schedulers.begin("two")
    known, found = {"one"}, first.found()

    def looked_at_first(directory: Path, logs: Path) -> None:
        asyncio.run_coroutine_threadsafe(discover(), loop).result()
        start(directory, logs)

    async def discover() -> None:
        await first.discover(lambda node: node not in known, found)
        first.tidy(lambda _attempt: False)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr("chronex.keeper.keepers.start_keeper", looked_at_first)
    link = await second.own()
    assert link.directory.name == "two.1", "it was started once"


async def test_timeout_and_deadline_hold_while_no_scheduler_lives(schedulers: Schedulers) -> None:
    by_timeout = request(("sleep", "600"), timeout_ms=50)
    by_deadline = request(("sleep", "600"))
    link = await schedulers.begin("one").own()
    processes = [await held(schedulers, link, asked) for asked in (by_timeout, by_deadline)]
    link.send(Open(by_timeout.attempt_id))
    link.send(Open(by_deadline.attempt_id, deadline_in_ms=50))
    await until_async(lambda: is_opened(schedulers, by_deadline), "both to run")
    die(link)
    first = await adopted(schedulers, "two", by_timeout, processes[0])
    assert (first.state, first.reason) == (AttemptState.TIMEOUT, EndReason.TIMEOUT)


async def test_the_deadline_of_an_occurrence_is_told_by_its_code(schedulers: Schedulers) -> None:
    asked = request(("sleep", "600"))
    link = await schedulers.begin("one").own()
    process = await held(schedulers, link, asked)
    link.send(Open(asked.attempt_id, deadline_in_ms=20))
    await until_async(lambda: is_opened(schedulers, asked), "it to run")
    die(link)
    result = await adopted(schedulers, "two", asked, process)
    assert (result.state, result.stop_code) == (AttemptState.CANCELED, "execution_timeout")


async def test_a_cancellation_reaches_a_command_of_another_scheduler(schedulers: Schedulers) -> None:
    asked = request(("sleep", "600"))
    process = await left_running(schedulers, "one", asked)
    keepers = schedulers.begin("two")
    await keepers.discover(lambda node: True)
    cancellation = Cancellation()
    cancellation.code = "canceled"
    cancellation.request("enough")
    commands = schedulers.commands(keepers)
    result = await commands.adopt(asked, process, 0, "", Hooks(cancellation=cancellation))
    assert (result.state, result.error, result.stop_code) == (AttemptState.CANCELED, "enough", "canceled")
    commands.recorded(asked.attempt_id)
    keepers.tidy(lambda _attempt: False)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda one: one.name)
async def test_what_stops_a_service_does_not_stop_it(schedulers: Schedulers, number: signal.Signals) -> None:
    commands = schedulers.commands(keepers := schedulers.begin("one"))
    os.kill((await (await keepers.own()).welcome).process.pid, number)
    assert (await commands.run(request("exit 3"), Hooks(), None)).exit_code == 3


async def test_a_keeper_that_is_stopped_keeps_what_it_has(schedulers: Schedulers) -> None:
    """The next scheduler leaves its commands to it until it goes on."""
    asked = request("exit 6")
    process = await left_running_behind_gate(schedulers, asked)
    place = schedulers.directories()[0]
    link = await connect(place)
    keeper = (await link.welcome).process.pid
    link.close()
    os.kill(keeper, signal.SIGSTOP)
    keepers = schedulers.begin("two")
    try:
        await keepers.discover(lambda node: True)
        assert keepers.keeps(asked.attempt_id)
        assert isinstance(read_ends(place)[asked.attempt_id], Opened)
    finally:
        os.kill(keeper, signal.SIGCONT)
    (schedulers.place / "gate").touch()
    result = await adopted(schedulers, "three", asked, process)
    assert result.exit_code == 6
