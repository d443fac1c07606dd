"""A keeper, and who asks it, where descriptors, threads or the disk are used up."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

from chronex.keeper.keeper_process import MOST_ERRORS, BoundedErrors
from chronex.run import Hooks
from tests.keeper.schedulers import Schedulers, left_running_behind_gate
from tests.run.conftest import forbid_threads
from tests.run.requests import request


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
