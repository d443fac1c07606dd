"""One attempt that two keepers held, one after the other: what the first never let begin says nothing of the second.

An attempt is held ahead of its instant. Where its scheduler dies before that, the next one starts the same attempt
with a keeper of its own, and the first keeper's word that it never began is still there to be read.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from chronex.keeper.ends_file import read_ends
from chronex.keeper.keepers import Keepers, is_alive
from chronex.keeper.messages import Ended, Open
from chronex.model import ProcessIdentity
from chronex.run import AttemptRequest, Hooks
from chronex.run.request import EndReason
from tests.keeper.schedulers import Schedulers, adopted, die, held, is_opened
from tests.kit.waits import is_gone, until_async
from tests.run.requests import request


class HeldTwice:
    """The attempt runs with the second keeper; the first says, or will say, that it never began."""

    def __init__(self, schedulers: Schedulers) -> None:
        self.schedulers = schedulers
        self.gate = schedulers.place / "gate"
        self.asked: AttemptRequest = request(f"while [ ! -e {self.gate} ]; do sleep 0.01; done; exit 5")

    async def begin(self) -> ProcessIdentity:
        first = await self.schedulers.begin("one").own()
        await held(self.schedulers, first, self.asked)
        slow = (await first.welcome).process.pid
        os.kill(slow, signal.SIGSTOP)  # the next scheduler begins before the first keeper says what became of it
        try:
            die(first)
            second = await self.schedulers.begin("two").own()
            process = await held(self.schedulers, second, self.asked)
            self.keeper = (await second.welcome).process.pid
            second.send(Open(self.asked.attempt_id))
            await until_async(lambda: is_opened(self.schedulers, self.asked), "the barrier to be open")
            die(second)
        finally:
            os.kill(slow, signal.SIGCONT)
        place = self._place("one")
        await until_async(lambda: not is_alive(place), "the first keeper to end")
        assert self._said_of_first() is EndReason.NEVER_STARTED
        return process

    def _said_of_first(self) -> EndReason | None:
        word = read_ends(self._place("one")).get(self.asked.attempt_id)
        return word.result.reason if isinstance(word, Ended) else None

    def _place(self, name: str) -> Path:
        return next(place for place in self.schedulers.directories() if place.name.startswith(f"{name}."))


@pytest.fixture
def twice(schedulers: Schedulers) -> HeldTwice:
    return HeldTwice(schedulers)


async def test_a_command_whose_keeper_is_slow_is_not_taken_for_one_that_never_began(twice: HeldTwice) -> None:
    process = await twice.begin()
    os.kill(twice.keeper, signal.SIGSTOP)
    try:
        keepers = twice.schedulers.begin("three")
        await keepers.discover(lambda _node: True)
        commands = twice.schedulers.commands(keepers)
        waits = asyncio.ensure_future(commands.adopt(twice.asked, process, 0, "", Hooks()))
        await until_async(lambda: not keepers._discovering.locked(), "the keepers to be looked at")
    finally:
        os.kill(twice.keeper, signal.SIGCONT)
    twice.gate.touch()
    assert (await waits).exit_code == 5
    commands.recorded(twice.asked.attempt_id)


async def test_a_command_whose_keeper_was_killed_is_watched_to_its_end(twice: HeldTwice) -> None:
    process = await twice.begin()
    os.kill(twice.keeper, signal.SIGKILL)
    await until_async(lambda: is_gone(twice.keeper), "the keeper to be gone")
    waits = asyncio.ensure_future(adopted(twice.schedulers, "three", twice.asked, process))
    done, _ = await asyncio.wait([waits], timeout=0.2)
    assert not done, "it still runs"
    twice.gate.touch()
    assert (await waits).reason is EndReason.UNKNOWN_EXIT


async def test_of_two_that_are_gone_the_one_that_ran_it_is_believed(twice: HeldTwice) -> None:
    process = await twice.begin()
    twice.gate.touch()
    await until_async(lambda: is_gone(twice.keeper), "the keeper to have written the end")
    keepers = twice.schedulers.begin("three")
    await keepers.discover(lambda _node: True)
    in_both_orders(keepers, twice.asked.attempt_id, process)
    keepers.tidy(lambda _attempt: False)


def in_both_orders(keepers: Keepers, attempt_id: str, process: ProcessIdentity) -> None:
    for places in (sorted(keepers.dead), sorted(keepers.dead, reverse=True)):
        keepers.dead = {place: keepers.dead[place] for place in places}
        ended = keepers.end_from_file(attempt_id, process)
        assert ended is not None
        assert ended.result.exit_code == 5


async def test_a_keeper_that_has_yet_to_discard_it_is_not_waited_for_alone(twice: HeldTwice) -> None:
    """It still holds the attempt when it is asked, so nobody can say yet that this is another process."""
    first = twice.schedulers.begin("one")
    link = await first.own()
    await held(twice.schedulers, link, twice.asked)
    process = await held_by_another(twice)
    keepers = twice.schedulers.begin("three")
    await keepers.discover(lambda _node: True)
    keepers.others = dict(sorted(keepers.others.items()))  # the one that holds it is asked first
    waits = asyncio.ensure_future(twice.schedulers.commands(keepers).adopt(twice.asked, process, 0, "", Hooks()))
    await asyncio.sleep(0)
    die(link)
    twice.gate.touch()
    assert (await waits).exit_code == 5
    twice.schedulers.commands(keepers).recorded(twice.asked.attempt_id)


async def held_by_another(twice: HeldTwice) -> ProcessIdentity:
    second = await twice.schedulers.begin("two").own()
    process = await held(twice.schedulers, second, twice.asked)
    second.send(Open(twice.asked.attempt_id))
    await until_async(lambda: is_opened(twice.schedulers, twice.asked), "the barrier to be open")
    die(second)
    return process
