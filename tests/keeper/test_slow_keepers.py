"""A keeper that is slow, stopped or about to end is not a dead one: what it has is its own, and its ends are known."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from chronex.keeper.ends_file import read_ends
from chronex.keeper.keepers import Keepers, is_alive
from chronex.keeper.link import KeeperLink, KeeperLostError, connect
from chronex.keeper.messages import Ended, Open, Trust
from chronex.model import AttemptState
from chronex.run import AttemptResult, Cancellation, Hooks, Started
from chronex.run.process import is_alive as is_process_alive
from chronex.run.request import EndReason, NotStarted
from tests.keeper.schedulers import Schedulers, adopted, die, held, is_opened, left_running_behind_gate
from tests.kit.waits import DEADLINE_S, POLL_S, until_async
from tests.run.requests import request


async def test_a_barrier_that_a_slow_keeper_has_yet_to_open_is_its_own(schedulers: Schedulers) -> None:
    """It was asked to open the barrier, and had not come to it when its scheduler died and the next one looked."""
    asked = request("exit 6")
    link = await schedulers.begin("one").own()
    process = await held(schedulers, link, asked)
    keeper = (await link.welcome).process.pid
    keepers = schedulers.begin("two")
    os.kill(keeper, signal.SIGSTOP)
    try:
        link.send(Open(asked.attempt_id))
        await link.leave(0.01)
        await keepers.discover(lambda _node: True)
        assert keepers.keeps(asked.attempt_id)
        waits = asyncio.ensure_future(schedulers.commands(keepers).adopt(asked, process, 0, "", Hooks()))
        await until_async(lambda: not keepers._discovering.locked(), "its keeper to be looked for")
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert (await waits).exit_code == 6
    schedulers.commands(keepers).recorded(asked.attempt_id)


async def test_new_commands_go_to_another_keeper_where_one_is_silent_for_long(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has is its own all the same; what it was asked for and had not begun never runs there."""
    gate, witness = schedulers.place / "gate", schedulers.place / "witness"
    commands = schedulers.commands(keepers := schedulers.begin("one"))
    running = request(f"while [ ! -e {gate} ]; do sleep 0.01; done; exit 5")
    first = asyncio.ensure_future(commands.run(running, Hooks(), None))
    await until_async(lambda: is_opened(schedulers, running), "it to run")
    stopped = (await (await keepers.own()).welcome).process.pid
    os.kill(stopped, signal.SIGSTOP)
    try:
        monkeypatch.setattr("chronex.keeper.kept_commands.SILENT_S", 0.01)
        asked = request(f"touch {witness}")
        result = await commands.run(asked, Hooks(), None)
        assert (result.reason, result.retryable) == (EndReason.NEVER_STARTED, True)
        monkeypatch.undo()
        commands.recorded(asked.attempt_id)
        assert (await commands.run(request("exit 4"), Hooks(), None)).exit_code == 4
    finally:
        os.kill(stopped, signal.SIGCONT)
    gate.touch()
    assert (await first).exit_code == 5
    assert not witness.exists()


async def test_what_runs_is_not_forgotten_by_who_takes_it_for_recorded(schedulers: Schedulers) -> None:
    """A scheduler that tidies goes by what ran when it asked the store; the command may have begun since then."""
    asked = request("exit 5")
    process = await left_running_behind_gate(schedulers, asked)
    mistaken = schedulers.begin("two")
    await mistaken.discover(lambda _node: True)
    mistaken.tidy(lambda _attempt: False)
    await mistaken.close()
    (place,) = schedulers.directories()
    (schedulers.place / "gate").touch()
    await until_async(lambda: not is_alive(place), "the end of the command, and of its keeper")
    assert (await adopted(schedulers, "three", asked, process)).exit_code == 5


async def test_what_was_held_by_a_keeper_that_was_given_up_is_not_run_there(schedulers: Schedulers) -> None:
    witness = schedulers.place / "witness"
    commands = schedulers.commands(keepers := schedulers.begin("one"))
    link, asked = await keepers.own(), request(f"touch {witness}")
    ahead = commands.hold(asked)
    assert not isinstance(ahead, NotStarted)
    keepers.give_up(link)
    assert (await commands.run(asked, Hooks(), ahead)).reason is EndReason.NEVER_STARTED
    commands.recorded(asked.attempt_id)
    await until_async(lambda: not link.directory.exists(), "the keeper to end, as nothing is left to keep")
    assert not witness.exists()


async def test_a_keeper_that_is_about_to_end_welcomes_nobody(schedulers: Schedulers) -> None:
    """It had been slow: the end of its last command, of its scheduler, and a new scheduler came all at once.

    That one was welcomed, and what it said then was never read: an end that it had recorded stayed in the file.
    """
    asked = request("exit 5")
    process = await left_running_behind_gate(schedulers, asked)
    (place,) = schedulers.directories()
    link = await connect(place)
    keeper = (await link.welcome).process.pid
    os.kill(keeper, signal.SIGSTOP)
    die(link)
    (schedulers.place / "gate").touch()
    await until_async(lambda: not is_process_alive(process), "the end of the command")
    connecting = asyncio.ensure_future(connect(place, DEADLINE_S))
    await asyncio.sleep(0)  # it is in the line of those who want to connect
    os.kill(keeper, signal.SIGCONT)
    try:
        link = await connecting
    except KeeperLostError:
        await until_async(lambda: not is_alive(place), "the end of the keeper")
        assert isinstance(read_ends(place)[asked.attempt_id], Ended)
        return
    link.recorded(asked.attempt_id)
    await link.leave()
    await until_async(lambda: not is_alive(place), "the end of the keeper")
    assert not place.exists(), "what was said after the welcome was read"


async def test_an_end_that_a_keeper_told_with_its_last_words_is_known(schedulers: Schedulers) -> None:
    """It welcomed a scheduler just when it was about to end; the connection was gone before anybody had asked."""
    asked = request("exit 5")
    process = await left_running_behind_gate(schedulers, asked)
    keepers = schedulers.begin("two")
    await keepers.discover(lambda _node: True)
    link = keepers.link_of(asked.attempt_id, process)
    assert link is not None
    (schedulers.place / "gate").touch()
    await link.ended(asked.attempt_id)
    os.kill((await link.welcome).process.pid, signal.SIGKILL)
    await until_async(lambda: link.is_lost, "the connection to break")
    keepers.tidy(lambda _attempt: True)  # as every scheduler does that has looked
    commands = schedulers.commands(keepers)
    assert keepers.keeps(asked.attempt_id)
    assert (await commands.adopt(asked, process, 0, "", Hooks())).exit_code == 5
    commands.recorded(asked.attempt_id)
    assert not keepers.keeps(asked.attempt_id)
    assert not schedulers.directories(), "its directory went with the last end"


async def test_an_end_that_is_written_while_its_keeper_is_looked_at_is_known(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file was read first, and then it was found to be gone."""
    asked = request("exit 5")
    process = await left_running_behind_gate(schedulers, asked)
    (place,) = schedulers.directories()
    keepers = schedulers.begin("two")

    async def no_answer(_directory: Path, _within_s: float = 0.0) -> KeeperLink:
        raise TimeoutError

    def ends_meanwhile(directory: Path) -> bool:
        (schedulers.place / "gate").touch()
        deadline = time.monotonic() + DEADLINE_S
        while is_alive(directory):
            assert time.monotonic() < deadline, "it did not end"
            time.sleep(POLL_S)
        return False

    monkeypatch.setattr("chronex.keeper.keepers.connect", no_answer)
    monkeypatch.setattr("chronex.keeper.keepers.is_alive", ends_meanwhile)
    await keepers.discover(lambda _node: True)
    assert place in keepers.dead
    commands = schedulers.commands(keepers)
    assert (await commands.adopt(asked, process, 0, "", Hooks())).exit_code == 5
    commands.recorded(asked.attempt_id)


# -- a node that may not be trusted any more ----------------------------------------------------------------------

FAR = Trust(1 << 60, 1 << 60)


async def begun(schedulers: Schedulers, keepers: Keepers, started: list[str]) -> AttemptResult:
    async def record(_started: Started) -> None:
        started.append("recorded")

    asked = request("true")
    result = await schedulers.commands(keepers).run(asked, Hooks(record, Cancellation()), None)
    schedulers.commands(keepers).recorded(asked.attempt_id)
    return result


async def test_where_little_trust_is_left_the_next_heartbeat_is_waited_for(schedulers: Schedulers) -> None:
    keepers = schedulers.begin("one")
    boottime_ms = schedulers.run_context.clock.boottime_ms
    now_ms, order = boottime_ms(), list[str]()

    def beat() -> None:
        order.append("heartbeat")
        asyncio.get_running_loop().call_soon(keepers.trust, FAR, now_ms + 600_000, now_ms + 300_000)

    keepers.on_short_trust = beat
    keepers.trust(FAR, now_ms - 1, now_ms - 2)
    result = await begun(schedulers, keepers, order)
    assert result.state is AttemptState.SUCCESS, result.error
    assert order == ["recorded", "heartbeat"]
    assert (await begun(schedulers, keepers, order)).state is AttemptState.SUCCESS
    assert order == ["recorded", "heartbeat", "recorded"], "there is enough left"


async def test_what_no_heartbeat_lets_begin_has_not_run_and_says_why(
    schedulers: Schedulers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chronex.keeper.keepers._HEARTBEAT_WITHIN_S", 0.01)
    keepers = schedulers.begin("one")
    now_ms = schedulers.run_context.clock.boottime_ms()
    keepers.trust(FAR, now_ms - 1, now_ms - 2)
    result = await begun(schedulers, keepers, [])
    assert (result.state, result.reason) == (AttemptState.CRASHED, EndReason.NEVER_STARTED)
    assert "no heartbeat of its node had arrived in time" in result.error
