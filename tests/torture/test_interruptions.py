"""The real daemon is interrupted at random: no command is ended, doubled or forgotten by it, and no line of it is lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.daemon.machine import Machine
from tests.torture.in_parallel import drawn_for, run_in_parallel
from tests.torture.interruptions import Interrupted, another_version, interrupt_often

ON_A_BUSY_MACHINE_MS = 120_000
AT_ONCE = 4
EACH = 100


def interrupted(name: str, other: Path | None, count: int, machine: Machine) -> None:
    interrupt_often(Interrupted(machine, drawn_for(name), other), count, ON_A_BUSY_MACHINE_MS)


def without_keepers(name: str, count: int, machine: Machine) -> None:
    interrupt_often(Interrupted(machine, drawn_for(name), kills_keepers=True), count, ON_A_BUSY_MACHINE_MS)


def test_a_hundred_interruptions_end_double_and_forget_nothing(tmp_path: Path) -> None:
    other = another_version(tmp_path)
    names = ["first", "second"]
    run_in_parallel(tmp_path, ((name, partial(interrupted, name, other, 50)) for name in names))


def test_keepers_that_are_killed_end_and_double_nothing(tmp_path: Path) -> None:
    run_in_parallel(tmp_path, [("keepers", partial(without_keepers, "keepers", 12))])


@pytest.mark.torture
@pytest.mark.parametrize("part", range(25))
def test_ten_thousand_interruptions(tmp_path: Path, part: int) -> None:
    other = another_version(tmp_path)
    names = [f"{part}-{number}" for number in range(AT_ONCE)]
    run_in_parallel(tmp_path, ((name, partial(interrupted, name, other, EACH)) for name in names))


@pytest.mark.torture
@pytest.mark.parametrize("part", range(10))
def test_two_thousand_killed_keepers(tmp_path: Path, part: int) -> None:
    names = [f"keepers {part}-{number}" for number in range(AT_ONCE)]
    run_in_parallel(tmp_path, ((name, partial(without_keepers, name, EACH)) for name in names))
