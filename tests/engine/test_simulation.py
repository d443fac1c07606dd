"""Simulated weeks by seed: no run is lost, doubled or overlapping where that is not allowed, and each outcome has a reason.

To repeat one: `python -m pytest tests/engine/test_simulation.py -k "seed and 26"`, or `run(26)` in a debugger.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from chronex.model.policies import FailureStrategy, OverlapPolicy, RecoveryStrategy, TaskMode
from chronex.testing import DAY, WEEK
from tests.engine.simulator.campaign import digest, simulate
from tests.engine.simulator.checker import check
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.workload import NEW_YEAR, YEAR, typical_jobs

SEEDS = Path(__file__).parent / "seeds" / "failed.txt"
AT_ONCE = 5


def run(seed: int, length: int = WEEK) -> FaultyMachine:
    machine = simulate(seed, length)
    findings = check(machine)
    shown = "\n".join(f"  {finding.rule}: {finding.what}" for finding in findings[:10])
    assert not findings, f"seed {seed}, {length // DAY} days, {len(findings)} findings\n{shown}"
    return machine


def past_seeds() -> list[int]:
    """Those of the first weeks are lived below anyway."""
    lines = SEEDS.read_text().splitlines()
    seeds = [int(line.split()[0]) for line in lines if line and not line.startswith("#")]
    return [seed for seed in seeds if seed >= AT_ONCE]


# What they found was wrong in the monitors, not in the engine: `make torture` lives them again.
OF_MONITORS = {1155, 2123}


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.torture) if seed in OF_MONITORS else seed for seed in past_seeds()]
)
def test_a_seed_that_once_failed_passes(seed: int) -> None:
    run(seed)


@pytest.mark.parametrize("first", range(0, 5, AT_ONCE))
def test_a_simulated_week_keeps_every_promise(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        run(seed)


def test_weeks_of_typical_jobs_keep_every_promise() -> None:
    """Torture takes whole years of them."""
    machine = simulate(1, YEAR // 8, typical_jobs(), NEW_YEAR)
    assert check(machine) == []
    assert len(machine.processes) > 500


def test_the_seeds_meet_every_policy_and_every_fault() -> None:
    """Drawn, not run: what the campaign will meet."""
    from random import Random

    from tests.engine.simulator.faults import MachineFault, draw_machine_faults
    from tests.engine.simulator.workload import draw_jobs

    met: Counter[object] = Counter()
    for seed in range(100):
        random = Random(seed)
        for job, expected in draw_jobs(random, NEW_YEAR, 2):
            met.update((job.overlap, job.mode, job.failure, type(expected).__name__))
            met[job.recovery.strategy] += 1
            met.update(
                word for word in ("jitter", "stagger", "window", "from", "until", "max") if word in job.schedule
            )
            met["spread"] += job.spread is not None
            met[job.timezone] += 1
        met.update(planned.fault for planned in draw_machine_faults(random, NEW_YEAR, WEEK, 4))
    wanted: list[object] = [*OverlapPolicy, *TaskMode, *FailureStrategy, *RecoveryStrategy, *MachineFault]
    wanted += ["jitter", "stagger", "window", "from", "until", "max", "spread", "Europe/Berlin", "America/New_York"]
    wanted += ["Cron", "FixedRate", "Chain", "AfterEnd"]
    assert [what for what in wanted if met[what] < 5] == []


@pytest.mark.parametrize("seed", [3, 8])
def test_the_same_seed_writes_the_same_bytes(seed: int) -> None:
    assert digest(simulate(seed, 2 * DAY)) == digest(simulate(seed, 2 * DAY))


def test_the_same_seed_writes_the_same_bytes_in_another_process() -> None:
    code = (
        "from tests.engine.simulator.campaign import digest, simulate\n"
        f"print(digest(simulate(5, {2 * DAY})))"
    )  # fmt: skip
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "PYTHONPATH": f"{root}:{root / 'store'}"}
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == digest(simulate(5, 2 * DAY))


@pytest.mark.torture
@pytest.mark.parametrize("first", [10, 60, 110, *range(1_000, 6_000, 50)])
def test_a_simulated_week_keeps_every_promise_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        run(seed)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10_000, 10_020))
def test_a_simulated_year_keeps_every_promise(seed: int) -> None:
    run(seed, YEAR)
    assert check(simulate(seed, YEAR, typical_jobs(), NEW_YEAR)) == []
