"""Schedulers that come, go and die, each with a real keeper."""

from __future__ import annotations

import os
from pathlib import Path

from chronex.keeper.ends_file import read_ends
from chronex.keeper.keepers import Keepers
from chronex.keeper.kept_commands import KeptCommands
from chronex.keeper.link import KeeperLink
from chronex.keeper.messages import Held, Open, Start
from chronex.model import ProcessIdentity
from chronex.run import AttemptRequest, AttemptResult, Hooks, LogDirectory, RunContext
from chronex.run.command_start import prepare_command
from chronex.run.request import NotStarted
from tests.kit.waits import until_async
from tests.run.requests import request


class Schedulers:
    """Schedulers on one store, each with a keeper of its own."""

    def __init__(self, place: Path, logs: LogDirectory) -> None:
        self.place = place
        self.run_context = RunContext.of_this_process(
            logs, environ={"PATH": os.environ["PATH"], "TOKEN": "s3cret-value"}
        )
        self._living: list[Keepers] = []

    def begin(self, name: str) -> Keepers:
        made = Keepers(self.place / "store", self.run_context.logs.path, name)
        self._living.append(made)
        return made

    def commands(self, keepers: Keepers) -> KeptCommands:
        return KeptCommands(keepers, self.run_context)

    async def end(self) -> None:
        for keepers in self._living:
            await keepers.close()

    def directories(self) -> list[Path]:
        return sorted((self.place / "store" / "keepers").glob("*"))


def die(link: KeeperLink) -> None:
    """As the death of its process: the connection is gone at once."""
    assert link._transport is not None
    link._transport.abort()


async def held(schedulers: Schedulers, link: KeeperLink, asked: AttemptRequest) -> ProcessIdentity:
    command = prepare_command(asked, schedulers.run_context)
    assert not isinstance(command, NotStarted), command
    link.send(Start(command))
    answer = await link.held(asked.attempt_id)
    assert isinstance(answer, Held), answer
    return answer.process


async def left_running(schedulers: Schedulers, name: str, asked: AttemptRequest) -> ProcessIdentity:
    """A scheduler that starts the command and dies."""
    link = await schedulers.begin(name).own()
    process = await held(schedulers, link, asked)
    link.send(Open(asked.attempt_id))
    await until_async(lambda: is_opened(schedulers, asked), "the barrier to be open")
    die(link)
    return process


def is_opened(schedulers: Schedulers, asked: AttemptRequest) -> bool:
    return any(asked.attempt_id in read_ends(place) for place in schedulers.directories())


async def adopted(
    schedulers: Schedulers, name: str, asked: AttemptRequest, process: ProcessIdentity
) -> AttemptResult:
    """The next scheduler sees it through to its end, and records that."""
    keepers = schedulers.begin(name)
    await keepers.discover(lambda node: True)
    commands = schedulers.commands(keepers)
    log_name = f"{asked.attempt_id}.log"
    result = await commands.adopt(asked, process, schedulers.run_context.clock.wall_ms(), log_name, Hooks())
    commands.recorded(asked.attempt_id)
    keepers.tidy(lambda _attempt: False)
    return result


async def left_running_behind_gate(schedulers: Schedulers, asked: AttemptRequest) -> ProcessIdentity:
    gate = schedulers.place / "gate"
    behind = f"while [ ! -e {gate} ]; do sleep 0.01; done; {asked.command}"
    waiting = request(behind, attempt_id=asked.attempt_id)
    return await left_running(schedulers, "one", waiting)
