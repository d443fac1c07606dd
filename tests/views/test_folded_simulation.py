"""A folded tally is the tally of the simulation that plays every run; where that cannot be shown, nothing is folded."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy, SpreadPolicy
from chronex.timing.zones import load_zone
from chronex.views import folded_simulation
from chronex.views.folded_simulation import fold
from chronex.views.simulation import RunSimulation, SimulationTally, as_data, simulate_runs, tally

BEGIN = 1_806_100_200_000  # the day before Berlin's clocks go forward
HOUR, MINUTE = 3_600_000, 60_000
GROUPS = (
    GroupSettings("g", limit=1),
    GroupSettings("wide", limit=3),
    GroupSettings("slow", rate=StartRate(3, 25 * MINUTE)),
)
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
    {"overlap": OverlapPolicy.QUEUE_ONE},
    {"overlap": OverlapPolicy.CANCEL_RUNNING},
    {"priority": 20},
    {"enabled": False},
)
IN_GROUPS: tuple[dict[str, Any], ...] = (
    {"groups": {"g": 1}, "priority": 5},
    {"groups": {"wide": 2}},
    {"groups": {"wide": 1, "slow": 1}, "overlap": OverlapPolicy.QUEUE},
    {"groups": {"g": 1, "wide": 1}, "overlap": OverlapPolicy.CANCEL_RUNNING},
    {"groups": {"slow": 1}, "overlap": OverlapPolicy.ALLOW, "priority": -3},
)


def drawn(random: Random, wishes: tuple[dict[str, Any], ...]) -> tuple[list[Job], dict[str, int]]:
    jobs = []
    for number in range(random.randint(1, 8)):
        more = random.choice((*(dict[str, Any]() for _ in range(6)), *wishes))
        zone = random.choice(("UTC", "Europe/Berlin", "Australia/Lord_Howe"))
        schedule = "@every 45m" if "cadence" in more else random.choice(SCHEDULES)
        jobs.append(job(f"job-{number}", schedule, zone, **more))
    return jobs, {one.id: random.choice((1, 5_000, MINUTE, 7 * MINUTE, 40 * MINUTE, 3 * HOUR)) for one in jobs}


@pytest.mark.parametrize("wishes", [WITH_A_SAY, IN_GROUPS], ids=["single jobs", "groups"])
def test_what_is_folded_is_what_is_played(wishes: tuple[dict[str, Any], ...]) -> None:
    random, met = Random(5), 0
    for _ in range(25):
        jobs, takes = drawn(random, wishes)
        slots, hours = random.choice((1, 3, 50)), random.choice((3, 15))
        found = folded(jobs, takes, slots, hours)
        if found is not None:
            met += 1
            whole = played(jobs, takes, slots, hours)
            assert as_data(found) == as_data(whole)
            assert found.minutes == whole.minutes
    assert met > 15


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(20))
def test_what_is_folded_is_what_is_played_for_many_seeds(seed: int) -> None:
    random = Random(f"folded {seed}")
    for _ in range(100):
        jobs, takes = drawn(random, (*WITH_A_SAY, *IN_GROUPS))
        slots, hours = random.choice((1, 2, 3, 50)), random.choice((5, 40, 100))
        found = folded(jobs, takes, slots, hours)
        assert found is None or as_data(found) == as_data(played(jobs, takes, slots, hours))


CROWDED = [
    ("a pool that is full every hour", {}, 4, 5),
    ("a group that is full every hour", {"groups": {"wide": 1}}, 50, 5),
    ("a rate that holds up every hour", {"groups": {"slow": 1}}, 50, 2),
]


@pytest.mark.parametrize(("case", "more", "slots", "most"), CROWDED, ids=[case[0] for case in CROWDED])
def test_an_hour_that_repeats_is_played_once(
    case: str, more: dict[str, Any], slots: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty jobs of which one in four must wait: a fortnight of them is a few hours of work, and as it would be."""
    jobs = [job(f"job-{number}", "5 */2 * * *", "UTC", overlap=OverlapPolicy.QUEUE, **more) for number in range(6)]
    takes = {one.id: 3 * MINUTE for one in jobs}
    whole = played(jobs, takes, slots, 336)
    starts: list[int] = []
    begin = RunSimulation._start

    def counted(self: RunSimulation, job: Job, occurrence: Occurrence, at: int) -> None:
        starts.append(at)
        begin(self, job, occurrence, at)

    monkeypatch.setattr(RunSimulation, "_start", counted)
    found = folded(jobs, takes, slots, 336)
    assert found is not None
    assert as_data(found) == as_data(whole)
    assert sum(one.queued for one in found.jobs.values()) >= 168
    assert len(starts) <= most * len(jobs)


def test_runs_that_are_in_no_ones_way_are_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded_simulation, "simulate_runs", lambda *_: pytest.fail("it was played"))
    jobs = [job(f"job-{number}", f"{number} * * * *", "UTC") for number in range(20)]
    found = folded(jobs, {one.id: MINUTE for one in jobs}, 20, 48)
    assert found is not None
    assert sum(one.completed for one in found.jobs.values()) == 20 * 48


@pytest.mark.parametrize(
    ("case", "jobs", "takes", "slots"),
    [
        ("its starts are drawn", [job("a", "0 * * * * {jitter:5m}")], {"a": MINUTE}, 50),
        ("it has a last run", [job("a", "0 * * * * {max:3}")], {"a": MINUTE}, 50),
        (
            "it shares a group with one whose starts are drawn",
            [job("a", "0 * * * *", groups={"g": 1}), job("b", "0 * * * * {jitter:5m}", groups={"g": 1})],
            {"a": MINUTE, "b": MINUTE},
            50,
        ),
        (
            "it fills the pool with one whose starts are drawn",
            [job("a", "0 * * * *"), job("b", "0 * * * *"), job("c", "0 * * * * {jitter:1m}")],
            {"a": HOUR, "b": HOUR, "c": HOUR},
            2,
        ),
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
