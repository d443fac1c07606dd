"""kill -9 of the real daemon at every fail-point with every workload, alone and one death after another.

A campaign of other passings, orders and moments: `CHRONEX_SEED=1 python -m pytest -m torture tests/torture`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

import pytest

from chronex.failpoints import POINTS
from tests.daemon.machine import Machine
from tests.torture.in_parallel import drawn_for, run_in_parallel
from tests.torture.killed_daemon import (
    ELSEWHERE,
    NOTE_START,
    OF_DATABASE,
    OF_KEEPER,
    OF_KEEPER_S_BEGIN,
    ON_THE_WAY,
    WORKLOADS,
    KilledDaemon,
    kill_at_random,
)

pytestmark = pytest.mark.torture

# How many passings a daemon has in its first seconds: a start has one, a commit comes all the time.
ONCE = ("node registered", "taken over", "stop asked", "node leaving")
OFTEN = ("update begun", "update written", "update committed", "tick decided")
STOPPING = ("stop asked", "node leaving")
MANY, FEW = 18, 3


def kill_at(killed: KilledDaemon, point: str, chance: Random) -> None:
    passing = 1 if point in ONCE else chance.randint(1, MANY if point in OFTEN else FEW)
    life = f"{chance.randint(500, 2500)}ms" if point in STOPPING else "60s"
    assert killed.killed(f"{point}:{passing}", "--for", life), f"the daemon never came to {point}:{passing}"


def one_death(workload: str, point: str, chance: Random, machine: Machine) -> None:
    """Half of them find what another one left; those that come once in a life have no other way to differ."""
    killed = KilledDaemon(machine, workload)
    if point in ONCE or chance.random() < 0.5:
        kill_at(killed, chance.choice(ON_THE_WAY), chance)
    kill_at(killed, point, chance)
    killed.run_to_end()
    killed.check()


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("point", [*ON_THE_WAY, *STOPPING])
def test_every_point_with_every_workload(tmp_path: Path, point: str, workload: str) -> None:
    names = [f"{point}, {workload}, {number}" for number in range(6)]
    run_in_parallel(tmp_path, ((name, partial(one_death, workload, point, drawn_for(name))) for name in names))


def all_deaths(workloads: list[str], chance: Random, machine: Machine) -> None:
    killed = KilledDaemon(machine, *workloads)
    for point in chance.sample([*ON_THE_WAY, *STOPPING], len(ON_THE_WAY) + len(STOPPING)):
        kill_at(killed, point, chance)
    killed.run_to_end()
    killed.check()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_one_death_after_another_in_any_order(tmp_path: Path, workload: str) -> None:
    """Every recovery is cut short by the next death, sixteen deep."""
    names = [f"all deaths, {workload}, {number}" for number in range(4)]
    run_in_parallel(tmp_path, ((name, partial(all_deaths, [workload], drawn_for(name))) for name in names))


@pytest.mark.parametrize("group", range(5))
def test_one_death_after_another_with_all_workloads(tmp_path: Path, group: int) -> None:
    names = [f"all deaths, all workloads, {group}, {number}" for number in range(4)]
    run_in_parallel(tmp_path, ((name, partial(all_deaths, list(WORKLOADS), drawn_for(name))) for name in names))


def deaths_during_adoption(workload: str, chance: Random, machine: Machine) -> None:
    """The command lives until it is let go: through the death of its daemon, and of those that adopt it."""
    killed = KilledDaemon(machine)
    lingering = f"{NOTE_START}; while [ ! -e release ]; do sleep 0.05; done"
    killed.describe(WORKLOADS[workload].replace(NOTE_START, lingering))
    assert killed.killed("opening asked")
    for _ in range(chance.randint(1, 3)):
        assert killed.killed("adopted")
    (machine.directory / "release").touch()
    killed.run_to_end()
    killed.check()


@pytest.mark.parametrize("workload", WORKLOADS)
def test_killed_while_it_adopts_any_workload(tmp_path: Path, workload: str) -> None:
    names = [f"adopted, {workload}, {number}" for number in range(4)]
    run_in_parallel(tmp_path, ((name, partial(deaths_during_adoption, workload, drawn_for(name))) for name in names))


def death_while_trimming(workload: str, passing: int, machine: Machine) -> None:
    """Retention begins a minute after the start; what is kept is less than what has happened by then."""
    killed = KilledDaemon(machine)
    killed.describe(WORKLOADS[workload], "history = { max_count = 5 }\n")
    assert killed.killed(f"history trimmed:{passing}", "--for", "100s")
    killed.run_to_end()
    killed.check(trimmed=True)


@pytest.mark.parametrize("passing", [1, 2])
def test_killed_while_it_trims_the_history_of_any_workload(tmp_path: Path, passing: int) -> None:
    kinds = [name for name in WORKLOADS if name != "retry"]  # its dead letters are kept
    run_in_parallel(tmp_path, ((kind, partial(death_while_trimming, kind, passing)) for kind in kinds), len(kinds))


@pytest.mark.parametrize("seed", range(40))
def test_killed_at_random_times_while_fifty_jobs_run_every_second(machine: Machine, seed: int) -> None:
    kill_at_random(machine, drawn_for(f"fifty jobs, {seed}"), kills=8, jobs=50)


def test_every_point_is_in_the_campaign() -> None:
    of_keeper = OF_KEEPER | OF_KEEPER_S_BEGIN
    assert {*ON_THE_WAY, *of_keeper, *OF_DATABASE, *STOPPING, "adopted", "history trimmed"} == set(POINTS)
    assert ELSEWHERE.isdisjoint(ON_THE_WAY)
