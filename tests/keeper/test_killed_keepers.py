"""A keeper that is killed: its commands go on, and what it had written is known."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from chronex.keeper.link import KeeperLink, connect
from chronex.keeper.messages import Open
from chronex.model import AttemptState
from chronex.run import Hooks, Started
from chronex.run.request import EndReason
from tests.keeper.schedulers import Schedulers, adopted, die, held, is_opened, left_running_behind_gate
from tests.kit.waits import is_gone, until_async
from tests.run.requests import request


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
