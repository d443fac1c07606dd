"""A folded tally is the tally of the simulation that plays every run; where that cannot be shown, nothing is folded."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.model.groups import GroupSettings
from chronex.model.job import Job, Task
from chronex.model.policies import Cadence, OverlapPolicy, SpreadPolicy
from chronex.timing.zones import load_zone
from chronex.views import folded_simulation
from chronex.views.folded_simulation import fold
from chronex.views.simulation import SimulationTally, as_data, simulate_runs, tally

BEGIN = 1_806_100_200_000  # the day before Berlin's clocks go forward
HOUR, MINUTE = 3_600_000, 60_000
GROUPS = (GroupSettings("g", limit=1),)
BERLIN = load_zone("Europe/Berlin")


def job(name: str, schedule: str, zone: str = "Europe/Berlin", **more: object) -> Job:
    return Job(id=name, schedule=schedule, timezone=zone, tasks=(Task(name="t", run=("true",)),), **more)  # type: ignore[arg-type]


def played(jobs: list[Job], takes: dict[str, int], slots: int, hours: int) -> SimulationTally:
    runs = simulate_runs(jobs, BEGIN, BEGIN + hours * HOUR, takes.__getitem__, slots, Random(3), GROUPS)
    return tally(runs, (one.id for one in jobs), BERLIN)


def folded(jobs: list[Job], takes: dict[str, int], slots: int, hours: int) -> SimulationTally | None:
    return fold(jobs, (BEGIN, BEGIN + hours * HOUR), takes.__getitem__, slots, Random(3), GROUPS, BERLIN)


SCHEDULES = (
    "0 * * * *", "17 * * * *", "*/30 * * * *", "30 2 * * *", "15 1,2,3 * * *", "0 9 * * MON-FRI", "@every 45m", "*/20 * * * * *",
    "0 * * * * {window:5m}", "0 12 1 * *",
)  # fmt: skip
WITH_A_SAY: tuple[dict[str, Any], ...] = (
    {"groups": {"g": 1}},
    {"spread": SpreadPolicy(duration_ms=20 * MINUTE)},
    {"cadence": Cadence.FIXED_DELAY},
    {"overlap": OverlapPolicy.ALLOW},
    {"overlap": OverlapPolicy.QUEUE},
    {"enabled": False},
)


def drawn(random: Random) -> tuple[list[Job], dict[str, int]]:
    jobs = []
    for number in range(random.randint(1, 8)):
        more = random.choice((*(dict[str, Any]() for _ in range(6)), *WITH_A_SAY))
        zone = random.choice(("UTC", "Europe/Berlin", "Australia/Lord_Howe"))
        schedule = "@every 45m" if "cadence" in more else random.choice(SCHEDULES)
        jobs.append(job(f"job-{number}", schedule, zone, **more))
    return jobs, {one.id: random.choice((1, 5_000, MINUTE, 7 * MINUTE, 40 * MINUTE, 3 * HOUR)) for one in jobs}


def test_what_is_folded_is_what_is_played() -> None:
    random, met = Random(5), 0
    for _ in range(60):
        jobs, takes = drawn(random)
        slots, hours = random.choice((1, 3, 50)), random.choice((5, 40))
        found = folded(jobs, takes, slots, hours)
        if found is not None:
            met += 1
            whole = played(jobs, takes, slots, hours)
            assert as_data(found) == as_data(whole)
            assert found.minutes == whole.minutes
    assert met > 20


def test_runs_that_are_in_no_ones_way_are_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded_simulation, "simulate_runs", lambda *_: pytest.fail("it was played"))
    jobs = [job(f"job-{number}", f"{number} * * * *", "UTC") for number in range(20)]
    found = folded(jobs, {one.id: MINUTE for one in jobs}, 20, 48)
    assert found is not None
    assert sum(one.completed for one in found.jobs.values()) == 20 * 48


@pytest.mark.parametrize(
    ("case", "jobs", "takes", "slots"),
    [
        ("they fill the pool", [job("a", "0 * * * *"), job("b", "0 * * * *")], {"a": MINUTE, "b": MINUTE}, 1),
        ("its runs overlap", [job("a", "*/30 * * * *")], {"a": HOUR}, 50),
        ("it has a group", [job("a", "0 * * * *", groups={"g": 1})], {"a": MINUTE}, 50),
        ("its starts are drawn", [job("a", "0 * * * * {jitter:5m}")], {"a": MINUTE}, 50),
        ("it has a last run", [job("a", "0 * * * * {max:3}")], {"a": MINUTE}, 50),
    ],
)
def test_what_cannot_be_shown_is_not_folded(case: str, jobs: list[Job], takes: dict[str, int], slots: int) -> None:
    assert folded(jobs, takes, slots, 48) is None


def test_a_pause_is_played() -> None:
    paused = job("a", "0 * * * *").progressed(paused=True, paused_from_ms=BEGIN, paused_until_ms=BEGIN + 5 * HOUR)
    assert folded([paused], {"a": MINUTE}, 50, 48) is None


def test_where_a_cut_is_due_everything_is_played() -> None:
    jobs = [replace(job("a", "* * * * *"))]
    assert fold(jobs, (BEGIN, BEGIN + HOUR), lambda _: 1, 50, Random(1), (), BERLIN, most=10) is None
