"""A real keeper and its commands, with schedulers that come, go and die."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

from chronex.failpoints import VARIABLE
from chronex.keeper.ends_file import read_ends
from chronex.keeper.keeper_process import MOST_ERRORS, BoundedErrors, keep
from chronex.keeper.keepers import KeeperRefusedError, keeper_environment, start_keeper
from chronex.keeper.link import KeeperLink, connect
from chronex.keeper.messages import Ended, FrameReader, Held, Message, Open, Opened, Start, Welcome
from chronex.model import AttemptState
from chronex.run import Cancellation, Hooks, Started
from chronex.run.command_start import prepare_command
from chronex.run.request import EndReason, NotStarted
from tests.keeper.schedulers import Schedulers, adopted, die, held, is_opened, left_running, left_running_behind_gate
from tests.kit.waits import is_gone, until_async
from tests.run.conftest import forbid_threads
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


@pytest.mark.usefixtures("whole_keepers")
async def test_a_keeper_that_is_killed_ends_no_command_and_its_end_is_unknown(schedulers: Schedulers) -> None:
    gate, witness = schedulers.place / "gate", schedulers.place / "witness"
    asked = request(f"while [ ! -e {gate} ]; do sleep 0.01; done; echo x >> {witness}")
    keepers = schedulers.begin("one")
    commands = schedulers.commands(keepers)
    link = await keepers.own()
    run = asyncio.ensure_future(commands.run(asked, Hooks(), None))
    await until_async(lambda: is_opened(schedulers, asked), "it to run")
    os.kill((await link.welcome).process.pid, signal.SIGKILL)
    await until_async(lambda: link.is_lost, "the connection to break")
    gate.touch()
    result = await run
    assert (result.state, result.reason) == (AttemptState.CRASHED, EndReason.UNKNOWN_EXIT)
    assert witness.read_text() == "x\n"
    again = await commands.run(request("exit 4"), Hooks(), None)
    assert again.exit_code == 4  # by a new keeper


async def test_a_keeper_that_is_killed_before_the_barrier_is_open_runs_nothing(schedulers: Schedulers) -> None:
    witness = schedulers.place / "witness"
    keepers = schedulers.begin("one")
    link = await keepers.own()
    keeper = (await link.welcome).process.pid

    async def kill(_started: Started) -> int | None:
        os.kill(keeper, signal.SIGKILL)
        await until_async(lambda: link.is_lost, "the connection to break")
        return None

    result = await schedulers.commands(keepers).run(request(("touch", str(witness))), Hooks(started=kill), None)
    assert result.state is AttemptState.CRASHED
    assert not witness.exists()


async def test_an_end_that_a_killed_keeper_had_written_is_known(schedulers: Schedulers) -> None:
    asked = request("exit 5")
    link = await schedulers.begin("one").own()
    process = await held(schedulers, link, asked)
    keeper = (await link.welcome).process.pid
    link.send(Open(asked.attempt_id))
    await link.ended(asked.attempt_id)
    os.kill(keeper, signal.SIGKILL)
    await until_async(lambda: is_gone(keeper), "the keeper to be gone")
    result = await adopted(schedulers, "two", asked, process)
    assert (result.state, result.exit_code) == (AttemptState.FAILED, 5)


async def test_an_end_that_another_s_keeper_wrote_before_it_was_killed_is_known(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies between writing the end and telling it, while its adopter is connected."""
    monkeypatch.setenv("CHRONEX_KEEPER_FAIL_POINT", "end kept")
    asked = request("exit 5")
    process = await left_running_behind_gate(schedulers, asked)
    monkeypatch.delenv("CHRONEX_KEEPER_FAIL_POINT")
    waiting = asyncio.ensure_future(adopted(schedulers, "two", asked, process))
    await until_async(lambda: schedulers._living[-1].link_of(asked.attempt_id, process) is not None, "the adopter")
    (schedulers.place / "gate").touch()
    result = await waiting
    assert (result.state, result.exit_code) == (AttemptState.FAILED, 5)


async def test_each_of_several_waits_for_a_keeper_that_is_stopped(schedulers: Schedulers) -> None:
    """The second that looked found the first one in the middle of looking, and took its own end for unknown."""
    gate = schedulers.place / "gate"
    several = [request(f"while [ ! -e {gate} ]; do sleep 0.01; done; exit {code}") for code in (1, 2, 3)]
    link = await schedulers.begin("one").own()
    processes = [await held(schedulers, link, asked) for asked in several]
    keeper = (await link.welcome).process.pid
    for asked in several:
        link.send(Open(asked.attempt_id))
    await until_async(lambda: all(is_opened(schedulers, asked) for asked in several), "all to run")
    die(link)
    os.kill(keeper, signal.SIGSTOP)
    keepers = schedulers.begin("two")
    commands = schedulers.commands(keepers)
    try:
        await keepers.discover(lambda _node: True)
        pairs = zip(several, processes, strict=True)
        waits = [asyncio.ensure_future(commands.adopt(asked, one, 0, "", Hooks())) for asked, one in pairs]
        looks = 0

        async def looked(directory: Path, within_s: float = 1.0) -> KeeperLink:
            nonlocal looks
            looks += 1
            return await connect(directory, 0.01)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("chronex.keeper.keepers.connect", looked)
            await until_async(lambda: looks > 5, "it to be asked again and again")
    finally:
        os.kill(keeper, signal.SIGCONT)
    gate.touch()
    assert [result.exit_code for result in await asyncio.gather(*waits)] == [1, 2, 3]
    keepers.tidy(lambda _attempt: False)


async def test_what_a_killed_keeper_wrote_is_found_while_the_next_one_begins(schedulers: Schedulers) -> None:
    """The directory of the killed one was taken for that of the one that was about to begin."""
    asked = request("exit 5")
    keepers = schedulers.begin("one")
    link = await keepers.own()
    process = await held(schedulers, link, asked)
    link.send(Open(asked.attempt_id))
    await link.ended(asked.attempt_id)
    os.kill((await link.welcome).process.pid, signal.SIGKILL)
    await until_async(lambda: link.is_lost, "the connection to break")
    link.forget(asked.attempt_id)  # as if its end had not been told
    keepers.begin()
    commands = schedulers.commands(keepers)
    assert (await commands.adopt(asked, process, 0, "", Hooks())).exit_code == 5
    commands.recorded(asked.attempt_id)
    await keepers.own()


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


@contextmanager
def no_low_descriptors() -> Iterator[None]:
    """As in a program that has a thousand connections: whatever is opened now has a number beyond 1,023."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 2048), max(limits[1], 2048)))
    taken: list[int] = []
    try:
        while not taken or taken[-1] < 1100:
            taken.append(os.dup(0))
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_program_with_a_thousand_open_files_has_a_keeper(schedulers: Schedulers) -> None:
    commands = schedulers.commands(schedulers.begin("one"))
    with no_low_descriptors():
        result = await commands.run(request("exit 3"), Hooks(), None)
    assert result.exit_code == 3


async def test_without_a_thread_for_the_start_of_a_keeper_commands_run_as_children(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = schedulers.commands(schedulers.begin("one"))
    forbid_threads(monkeypatch)
    assert (await commands.run(request("exit 3"), Hooks(), None)).exit_code == 3


async def test_a_keeper_that_cannot_be_looked_at_now_is_not_taken_for_dead(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is out of descriptors knows nothing of it: its ends are not lost, and its directory is not removed."""
    asked = request("exit 5")
    process = await left_running_behind_gate(schedulers, asked)
    (place,) = schedulers.directories()
    keepers = schedulers.begin("two")

    def refuse(*_arguments: object, **_more: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as full:
        full.setattr(os, "open", refuse)
        await keepers.discover(lambda _node: True, [place])
        keepers.tidy(lambda _attempt: False)
    assert keepers.keeps(asked.attempt_id)
    (schedulers.place / "gate").touch()
    commands = schedulers.commands(keepers)
    result = await commands.adopt(asked, process, 0, f"{asked.attempt_id}.log", Hooks())
    assert result.exit_code == 5


def test_what_a_keeper_says_of_itself_is_bounded(tmp_path: Path) -> None:
    """Out of descriptors it has a traceback for each second in which somebody waits to be let in."""
    with (tmp_path / "errors").open("w") as file, redirect_stderr(BoundedErrors(file)):
        for number in range(MOST_ERRORS):
            print("socket.accept() out of system resource", number, file=sys.stderr)
    assert (tmp_path / "errors").stat().st_size == MOST_ERRORS


def test_a_full_disk_keeps_no_keeper_from_its_commands() -> None:
    program = (
        "import contextlib, sys\n"
        "from chronex.keeper.keeper_process import BoundedErrors\n"
        "with contextlib.redirect_stderr(BoundedErrors(sys.stderr)):\n"
        "    print('a fault', file=sys.stderr)\n"
        "print('it goes on')\n"
    )
    with open("/dev/full", "wb") as full:
        ran = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=full, check=False)
    assert ran.stdout == b"it goes on\n"
