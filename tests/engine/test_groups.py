"""Groups, rates, priorities and the pace of catch-up, as the engine keeps them on a simulated machine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.commands import Actor, cancel, trigger
from chronex.engine.engine import Engine
from chronex.engine.group_limits import CATCH_UP, POOL
from chronex.engine.orders import Launch
from chronex.model.groups import CatchUpPace, GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import Records
from chronex.testing import HOUR, MINUTE, SECOND, ProcessOutcome, SimulatedMachine

ANN = Actor("ann", "cli", "desk")
DATABASE = GroupSettings("database", limit=1)
S = OccurrenceState


def job(name: str, schedule: str = "0 * * * *", **more: Any) -> Job:
    more.setdefault("tasks", (Task(name="main", run=("true",)),))
    return Job(id=name, schedule=schedule, **more)


def machine_of(
    *jobs: Job, groups: tuple[GroupSettings, ...] = (DATABASE,), takes: Mapping[str, int] | None = None, **more: Any
) -> SimulatedMachine:
    durations = takes or {}

    def outcome(launch: Launch) -> ProcessOutcome:
        return ProcessOutcome(durations.get(launch.job.id, SECOND))

    machine = SimulatedMachine(outcome=outcome, **more)
    machine.apply(jobs, groups=groups)
    return machine


def starts_of(machine: SimulatedMachine, name: str, after: int = 0) -> list[int]:
    """In seconds after the hour at which the machine began."""
    found = [one.started_ms for one in machine.processes if one.job == name and one.started_ms >= after]
    return [(at - machine.start_ms) // SECOND for at in found]


def order_of_starts(machine: SimulatedMachine) -> list[str]:
    return [one.job for one in machine.processes]


def only(machine: SimulatedMachine, name: str) -> Occurrence:
    (found,) = machine.occurrences(name)
    return found


# -- limits --------------------------------------------------------------------------------------------------


def test_two_jobs_of_a_group_of_one_run_one_after_the_other() -> None:
    machine = machine_of(
        job("backup", groups={"database": 1}), job("reindex", groups={"database": 1}), takes={"backup": 10 * MINUTE}
    )
    machine.run_for(HOUR + MINUTE)
    waiting = only(machine, "reindex")
    assert (waiting.state, waiting.lines) == (S.QUEUED, ("database",))
    assert str(waiting.reason) == "group database is full: backup since 2027-01-01T01:00:00Z"
    machine.run_for(20 * MINUTE)
    assert starts_of(machine, "reindex") == [3600 + 600]


def test_a_run_that_waits_for_its_group_takes_no_slot_of_the_pool() -> None:
    machine = machine_of(
        job("a", groups={"database": 1}),
        job("b", groups={"database": 1}),
        job("c"),
        takes={"a": 10 * MINUTE},
        slots=2,
    )
    machine.run_for(HOUR + MINUTE)
    assert order_of_starts(machine) == ["a", "c"]


def test_the_wait_is_not_the_duration_and_the_execution_timeout_counts_from_the_start() -> None:
    machine = machine_of(
        job("a", groups={"database": 1}),
        job("b", groups={"database": 1}, execution_timeout_ms=5 * MINUTE),
        takes={"a": 30 * MINUTE, "b": 4 * MINUTE},
    )
    machine.run_for(2 * HOUR - 1)
    done = only(machine, "b")
    assert done.state is S.COMPLETED
    assert done.started_ms is not None
    assert done.finished_ms is not None
    assert done.finished_ms - done.started_ms == 4 * MINUTE


@pytest.mark.parametrize(
    ("limit", "weights", "at_once"), [(2, (1, 1, 1), 2), (3, (2, 1, 1), 2), (2, (2, 2, 2), 1), (9, (3, 3, 3), 3)]
)
def test_a_job_takes_as_many_places_as_it_weighs(limit: int, weights: tuple[int, ...], at_once: int) -> None:
    jobs = [job(f"job-{index}", groups={"g": weight}) for index, weight in enumerate(weights)]
    takes = dict.fromkeys((one.id for one in jobs), 5 * MINUTE)
    machine = machine_of(*jobs, groups=(GroupSettings("g", limit=limit),), takes=takes)
    machine.run_for(HOUR + MINUTE)
    assert len(machine.live) == at_once
    machine.run_for(30 * MINUTE)
    assert all(only(machine, one.id).state is S.COMPLETED for one in jobs)


def test_what_does_not_name_the_group_does_not_wait_for_it() -> None:
    machine = machine_of(job("a", groups={"database": 1}), job("b"), takes={"a": 10 * MINUTE})
    machine.run_for(HOUR + MINUTE)
    assert order_of_starts(machine) == ["a", "b"]


@pytest.mark.parametrize(
    ("group", "slots"), [({"database": 1}, 50), ({}, 1)], ids=["one place of a group", "one slot of the pool"]
)
def test_of_those_that_are_due_at_one_instant_the_highest_priority_starts_first(
    group: dict[str, int], slots: int
) -> None:
    jobs = [job(name, groups=group, priority=points) for name, points in (("a", 0), ("b", 20), ("c", -5), ("d", 20))]
    machine = machine_of(*jobs, takes=dict.fromkeys("abcd", 10 * MINUTE), slots=slots)
    machine.run_for(HOUR + 35 * MINUTE)
    assert order_of_starts(machine) == ["b", "d", "a", "c"]


def test_who_was_due_earlier_starts_before_a_higher_priority_that_is_due_in_the_same_tick() -> None:
    """Nobody waited yet; the order of instants is older than the tick that came late."""
    jobs = [job("low", "0 1 * * *", groups={"database": 1}), job("high", "1 1 * * *", groups={"database": 1})]
    machine = machine_of(jobs[0], replace(jobs[1], priority=100), takes={"low": 10 * MINUTE})
    machine.run_for(HOUR - MINUTE)
    machine.clock.advance(2 * MINUTE)
    machine.run_for(20 * MINUTE)
    assert order_of_starts(machine) == ["low", "high"]


def test_all_groups_are_taken_together_or_none() -> None:
    """One that waits for two groups holds neither, so no two of them can wait for each other."""
    groups = (GroupSettings("a", limit=1), GroupSettings("b", limit=1))
    machine = machine_of(
        job("first", groups={"a": 1}),
        job("second", groups={"a": 1, "b": 1}),
        job("last", "1 1 * * *", groups={"b": 1}),
        groups=groups,
        takes={"first": 10 * MINUTE},
    )
    machine.run_for(HOUR + 2 * MINUTE)
    assert order_of_starts(machine) == ["first", "last"], "the place in b is free, and the second waits for a alone"
    assert only(machine, "second").lines == ("a",)
    machine.run_for(20 * MINUTE)
    assert starts_of(machine, "second") == [3600 + 600]


def test_one_that_lacks_a_second_group_keeps_its_place_in_both() -> None:
    """`both` waits for a, and when that is free for b: nobody who came later takes a meanwhile, nor b afterwards."""
    groups = (GroupSettings("a", limit=1), GroupSettings("b", limit=1))
    machine = machine_of(
        job("holds-a", groups={"a": 1}),
        job("wants-both", groups={"a": 1, "b": 1}),
        job("holds-b", "1 1 * * *", groups={"b": 1}),
        job("later-a", "2 1 * * *", groups={"a": 1}),
        job("later-b", "3 1 * * *", groups={"b": 1}),
        groups=groups,
        takes={"holds-a": 5 * MINUTE, "holds-b": 20 * MINUTE, "wants-both": 5 * MINUTE},
    )
    machine.run_for(HOUR + 50 * MINUTE)
    assert order_of_starts(machine) == ["holds-a", "holds-b", "wants-both", "later-a", "later-b"]


def test_a_limit_that_is_lowered_ends_nothing_and_holds_from_the_next_start_on() -> None:
    jobs = [job(name, "*/10 * * * *", groups={"g": 1}) for name in ("a", "b")]
    takes = {"a": 3 * MINUTE, "b": 3 * MINUTE}
    machine = machine_of(*jobs, groups=(GroupSettings("g", limit=2),), takes=takes)
    machine.run_for(10 * MINUTE + SECOND)
    assert len(machine.live) == 2
    machine.apply(jobs, groups=[GroupSettings("g", limit=1)])
    machine.run_for(SECOND)
    assert len(machine.live) == 2
    machine.run_for(10 * MINUTE)
    assert len(machine.live) == 1
    stored = machine.read(lambda reading: reading.group("g"))
    assert stored is not None
    assert (stored.limit, stored.version) == (1, 2)


def test_a_limit_that_is_raised_lets_those_start_who_wait() -> None:
    jobs = [job(name, groups={"database": 1}) for name in ("a", "b")]
    machine = machine_of(*jobs, takes={"a": 30 * MINUTE})
    machine.run_for(HOUR + MINUTE)
    machine.apply(jobs, groups=[GroupSettings("database", limit=2)])
    machine.run_for(SECOND)
    assert starts_of(machine, "b") == [3660]


def test_a_job_that_leaves_its_group_waits_for_it_no_longer() -> None:
    jobs = [job(name, groups={"database": 1}) for name in ("a", "b")]
    machine = machine_of(*jobs, takes={"a": 30 * MINUTE})
    machine.run_for(HOUR + MINUTE)
    machine.apply([jobs[0], replace(jobs[1], groups={})])
    machine.run_for(SECOND)
    assert starts_of(machine, "b") == [3660]


def test_a_group_is_removed_with_the_last_job_in_it() -> None:
    machine = machine_of(job("a", groups={"database": 1}))
    machine.apply([job("a", groups={"database": 1})], groups=[])
    assert machine.read(lambda reading: reading.group("database")) is not None
    machine.apply([job("a")], groups=[])
    assert machine.read(lambda reading: reading.group("database")) is None
    assert [event.name for event in machine.events() if event.name.startswith("Group")] == [
        "GroupNew",
        "GroupRemoved",
    ]


def test_one_between_two_attempts_holds_its_places() -> None:
    retry = RetryPolicy(1, 10 * MINUTE, jitter=0)
    machine = machine_of(job("a", groups={"database": 1}, retry=retry), job("b", groups={"database": 1}))
    machine.outcome = lambda launch: ProcessOutcome(SECOND, int(launch.job.id == "a" and launch.attempt.number == 1))
    machine.run_for(HOUR + 20 * MINUTE)
    assert starts_of(machine, "b") == [3600 + 602]


def test_a_canceled_wait_leaves_the_line() -> None:
    machine = machine_of(*(job(name, groups={"database": 1}) for name in "abc"), takes={"a": 10 * MINUTE})
    machine.run_for(HOUR + MINUTE)
    waiting = only(machine, "b")
    machine.store.update(lambda tx: cancel(Records(tx, machine.now), waiting.id, ANN))
    machine.run_for(20 * MINUTE)
    assert order_of_starts(machine) == ["a", "c"]
    assert machine.read(lambda reading: list(reading.lines())) == []


# -- overlap -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "started", "skipped"),
    [
        (OverlapPolicy.SKIP, 1, 2),
        (OverlapPolicy.QUEUE_ONE, 1, 2),
        (OverlapPolicy.QUEUE, 3, 0),
        (OverlapPolicy.ALLOW, 3, 0),
    ],
)
def test_one_that_waits_for_its_group_is_in_the_way_of_its_own_next_one(
    overlap: OverlapPolicy, started: int, skipped: int
) -> None:
    machine = machine_of(
        job("holder", "50 0 * * *", groups={"database": 1}),
        job("polls", "0,10,20 1 * * *", groups={"database": 1}, overlap=overlap),
        takes={"holder": 40 * MINUTE},
    )
    machine.run_for(3 * HOUR)
    states = [one.state for one in machine.occurrences("polls")]
    assert (states.count(S.COMPLETED), states.count(S.SKIPPED)) == (started, skipped)


def test_those_behind_one_of_their_own_job_do_not_stand_in_line() -> None:
    """Only the first of a job stands in the line of its group; else it would hold up others while its own job runs."""
    machine = machine_of(
        job("slow", "*/10 * * * *", groups={"g": 1}, overlap=OverlapPolicy.QUEUE),
        job("other", "45 0 * * *", groups={"g": 1}),
        groups=(GroupSettings("g", limit=2),),
        takes={"slow": 25 * MINUTE},
    )
    machine.run_for(50 * MINUTE)
    assert [one.lines for one in machine.occurrences("slow") if one.state is S.QUEUED] == [(), ()]
    assert starts_of(machine, "other") == [45 * 60]


# -- rates ---------------------------------------------------------------------------------------------------


def test_a_rate_spaces_the_starts_of_its_group() -> None:
    jobs = [job(f"job-{number}", groups={"api": 1}) for number in range(5)]
    machine = machine_of(*jobs, groups=(GroupSettings("api", rate=StartRate(2, MINUTE)),))
    machine.run_for(HOUR + 10 * MINUTE)
    assert sorted(at for one in jobs for at in starts_of(machine, one.id)) == [3600, 3600, 3660, 3660, 3720]


def test_a_rate_is_kept_by_the_next_scheduler_too() -> None:
    jobs = [job(f"job-{number}", groups={"api": 1}) for number in range(3)]
    machine = machine_of(*jobs, groups=(GroupSettings("api", rate=StartRate(1, 10 * MINUTE)),))
    machine.run_for(HOUR + MINUTE)
    machine.go_down(MINUTE)
    machine.run_for(30 * MINUTE)
    assert sorted(at for one in jobs for at in starts_of(machine, one.id)) == [3600, 4200, 4800]


def test_a_clock_that_is_set_moves_the_rate_and_the_line_with_it() -> None:
    jobs = [job(f"job-{number}", groups={"api": 1}) for number in range(3)]
    machine = machine_of(*jobs, groups=(GroupSettings("api", rate=StartRate(1, 10 * MINUTE)),))
    machine.run_for(HOUR + MINUTE)
    machine.set_clock(-5 * HOUR)
    machine.run_for(30 * MINUTE)
    assert sorted(at for one in jobs for at in starts_of(machine, one.id)) == [3600, 4200, 4800]


# -- priority ------------------------------------------------------------------------------------------------


def test_the_higher_priority_goes_first() -> None:
    machine = machine_of(
        job("a", groups={"database": 1}),
        job("low", "1 1 * * *", groups={"database": 1}),
        job("high", "2 1 * * *", groups={"database": 1}, priority=5),
        takes={"a": 10 * MINUTE},
    )
    machine.run_for(HOUR + 30 * MINUTE)
    assert order_of_starts(machine) == ["a", "high", "low"]


def test_who_has_waited_longer_than_the_points_are_worth_goes_first() -> None:
    machine = machine_of(
        job("a", groups={"database": 1}),
        job("low", "1 1 * * *", groups={"database": 1}),
        job("high", "7 1 * * *", groups={"database": 1}, priority=5),
        takes={"a": 10 * MINUTE},
    )
    machine.run_for(HOUR + 30 * MINUTE)
    assert order_of_starts(machine) == ["a", "low", "high"]


def test_priority_holds_for_the_pool_as_well() -> None:
    machine = machine_of(
        job("a"), job("b", "1 1 * * *"), job("c", "2 1 * * *", priority=50), takes={"a": 10 * MINUTE}, slots=1
    )
    machine.run_for(HOUR + 30 * MINUTE)
    assert order_of_starts(machine) == ["a", "c", "b"]
    assert only(machine, "b").state is S.COMPLETED


def test_one_that_waits_for_a_group_holds_up_nobody_in_the_pool() -> None:
    machine = machine_of(
        job("holder", groups={"database": 1}),
        job("waits", "1 1 * * *", groups={"database": 1}, priority=100),
        job("free", "2 1 * * *"),
        takes={"holder": 10 * MINUTE},
        slots=2,
    )
    machine.run_for(HOUR + 3 * MINUTE)
    assert order_of_starts(machine) == ["holder", "free"]


def test_a_triggered_run_waits_for_its_group_too() -> None:
    machine = machine_of(job("a", groups={"database": 1}), job("b", groups={"database": 1}), takes={"a": 10 * MINUTE})
    machine.run_for(HOUR + 2 * SECOND)
    machine.store.update(lambda tx: trigger(Records(tx, machine.now), "b", ANN))
    machine.run_for(MINUTE)
    assert starts_of(machine, "b") == []
    machine.run_for(20 * MINUTE)
    assert len(starts_of(machine, "b")) >= 1


# -- catch-up ------------------------------------------------------------------------------------------------


def test_catch_up_starts_two_a_second() -> None:
    machine = machine_of(*(job(f"job-{number}") for number in range(6)), groups=())
    machine.run_for(MINUTE)
    machine.go_down(HOUR)
    machine.run_for(MINUTE)
    first = machine.processes[0].started_ms
    assert [one.started_ms - first for one in machine.processes] == [0, 500, 1_000, 1_500, 2_000, 2_500]
    assert machine.read(lambda reading: reading.holders(CATCH_UP)) == []


def test_catch_up_takes_at_most_half_of_the_slots() -> None:
    jobs = [job(f"job-{number}") for number in range(8)]
    machine = machine_of(*jobs, groups=(), takes={one.id: 10 * MINUTE for one in jobs}, slots=6)
    machine.run_for(MINUTE)
    machine.go_down(HOUR)
    machine.run_for(MINUTE)
    assert len(machine.live) == 3
    assert {one.lines for name in jobs for one in machine.occurrences(name.id) if one.state is S.QUEUED} == {
        (CATCH_UP,)
    }


def test_another_pace_can_be_asked_for() -> None:
    machine = machine_of(*(job(f"job-{number}") for number in range(4)), groups=())
    machine.run_for(MINUTE)
    machine.crash()
    machine.pass_time(HOUR)
    machine.boot()
    machine.engine.pace = CatchUpPace(spacing_ms=0, share=1.0)
    machine.run_for(MINUTE)
    assert len({one.started_ms for one in machine.processes}) == 1


def test_those_of_now_go_before_those_that_were_missed() -> None:
    live = job("live", "2 1 * * *")
    past = [job(f"past-{number}") for number in range(4)]
    machine = machine_of(live, *past, groups=(), takes={one.id: 40 * SECOND for one in past}, slots=2)
    machine.run_for(MINUTE)
    machine.go_down(HOUR)
    machine.run_for(30 * MINUTE)
    assert order_of_starts(machine).index("live") <= 2
    assert sorted(order_of_starts(machine)) == ["live", *(one.id for one in past)]


@pytest.mark.parametrize("strategy", [RecoveryStrategy.EXECUTE_ALL, RecoveryStrategy.EXECUTE_LAST])
def test_no_instant_of_now_is_dropped_on_account_of_the_past(strategy: RecoveryStrategy) -> None:
    machine = machine_of(
        job("a", "*/10 * * * *", recovery=RecoveryPolicy(strategy), overlap=OverlapPolicy.SKIP),
        groups=(),
        takes={"a": 8 * MINUTE},
    )
    machine.run_for(MINUTE)
    machine.go_down(HOUR + 3 * MINUTE)
    machine.run_for(6 * HOUR)
    live = [one for one in machine.occurrences("a") if not one.recovery]
    assert [one for one in live if one.state is S.SKIPPED] == []
    assert [one.state for one in live[:-3]] == [S.COMPLETED] * (len(live) - 3)


def test_a_job_that_never_keeps_up_skips_again_once_its_past_is_made_up_for() -> None:
    """It takes longer than its interval: without the bound, one missed run would let it queue for ever."""
    machine = machine_of(job("a", "*/10 * * * *", overlap=OverlapPolicy.SKIP), groups=(), takes={"a": 15 * MINUTE})
    machine.run_for(MINUTE)
    machine.go_down(HOUR)
    machine.run_for(6 * HOUR)
    assert len([one for one in machine.occurrences("a") if one.state is S.QUEUED]) <= 1
    assert len([one for one in machine.occurrences("a") if one.state is S.SKIPPED]) > 10


# -- several nodes, old stores, cost ---------------------------------------------------------------------------


def test_a_limit_holds_over_the_nodes_that_share_a_store() -> None:
    """Two engines on one store, each with slots of its own, decide in turn."""
    machine = machine_of(
        *(job(f"job-{number}", groups={"g": 1}) for number in range(6)), groups=(GroupSettings("g", limit=2),)
    )
    first, second = (Engine(machine.store, name, 10) for name in ("node-a", "node-b"))
    first.epoch = second.epoch = None
    machine.clock.advance(HOUR)
    started = [
        order
        for engine in (first, second, first)
        for order in engine.tick(machine.now, machine.start_ms).orders
        if isinstance(order, Launch)
    ]
    assert len(started) == 2
    assert machine.read(lambda reading: len(reading.holders("g"))) == 2


def test_what_a_node_cannot_run_holds_up_nobody_there() -> None:
    machine = machine_of(
        job("a", groups={"database": 1}),
        job("b", groups={"database": 1}),
        job("c", groups={"database": 1}),
        takes={"a": MINUTE},
    )
    machine.run_for(HOUR + SECOND)
    machine.engine.placement = lambda one: one.id != "b"
    machine.run_for(10 * MINUTE)
    assert order_of_starts(machine) == ["a", "c"]
    machine.engine.placement = None
    machine.run_for(MINUTE)
    assert order_of_starts(machine) == ["a", "c", "b"]


def test_an_occurrence_of_an_older_store_that_waits_is_served() -> None:
    """Queued for the pool before there were lines."""
    machine = machine_of(job("a", overlap=OverlapPolicy.QUEUE), groups=())
    machine.run_for(MINUTE)
    at = machine.now - SECOND + 1
    old = Occurrence(job="a", nominal_ms=at, due_ms=at, state=S.QUEUED, created_ms=at)
    machine.store.update(lambda tx: Records(tx, machine.now).put(old))
    machine.run_for(MINUTE)
    assert only(machine, "a").state is S.COMPLETED


def test_the_pool_serves_by_age_and_not_by_name() -> None:
    machine = machine_of(
        *(job(name, f"{minute} 1 * * *") for minute, name in enumerate(("hold", "z", "m", "a"))),
        groups=(),
        takes={"hold": 10 * MINUTE},
        slots=1,
    )
    machine.run_for(HOUR + 10 * MINUTE - SECOND)
    assert {one.lines for name in "zma" for one in machine.occurrences(name)[-1:]} <= {(POOL,), ()}
    machine.run_for(5 * MINUTE)
    assert order_of_starts(machine)[-3:] == ["z", "m", "a"]


def test_a_run_skipped_at_the_head_of_its_line_lets_the_next_one_go() -> None:
    machine = machine_of(
        job("a", groups={"database": 1}),
        job("b", "1 1 * * * {window:2m}", groups={"database": 1}),
        job("c", "2 1 * * *", groups={"database": 1}),
        takes={"a": 10 * MINUTE},
    )
    machine.run_for(HOUR + 30 * MINUTE)
    assert only(machine, "b").reason.code is ReasonCode.WINDOW_EXCEEDED
    assert order_of_starts(machine) == ["a", "c"]


# -- the end of a window ---------------------------------------------------------------------------------------


def with_window(name: str, minutes: int, **more: Any) -> Job:
    return job(name, f"0 1 * * * {{window:{minutes}m}}", **more)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (job("a", "0 1 * * *", groups={"database": 1}), with_window("b", 10, groups={"database": 1})),
        (job("a", "0 1 * * *"), with_window("b", 10)),  # one slot
    ],
    ids=["a group", "the pool"],
)
def test_one_that_waits_is_skipped_when_its_window_is_over_and_not_when_somebody_looks(
    first: Job, second: Job
) -> None:
    machine = machine_of(first, second, takes={"a": 30 * MINUTE}, slots=1 if not first.groups else 50)
    machine.run_for(HOUR + 20 * MINUTE)
    over = only(machine, "b")
    assert (over.state, over.reason.code) == (S.SKIPPED, ReasonCode.WINDOW_EXCEEDED)
    assert over.finished_ms == over.nominal_ms + 10 * MINUTE + 1


def test_one_that_waits_for_its_own_job_is_skipped_when_its_window_is_over() -> None:
    machine = machine_of(
        job("a", "0,5 1 * * * {window:10m}", overlap=OverlapPolicy.QUEUE), takes={"a": 40 * MINUTE}
    )  # fmt: skip
    machine.run_for(HOUR + 20 * MINUTE)
    _, over = sorted(machine.occurrences("a"), key=lambda one: one.nominal_ms)
    assert (over.reason.code, over.finished_ms) == (ReasonCode.WINDOW_EXCEEDED, over.nominal_ms + 10 * MINUTE + 1)


def test_a_triggered_run_waits_beyond_the_window() -> None:
    machine = machine_of(
        job("a", "0 1 * * *", groups={"database": 1}),
        with_window("b", 10, groups={"database": 1}, overlap=OverlapPolicy.QUEUE),
        takes={"a": 30 * MINUTE},
    )
    machine.run_for(HOUR + MINUTE)
    machine.store.update(lambda tx: trigger(Records(tx, machine.now), "b", ANN))
    machine.run_for(HOUR)
    assert sorted(one.state for one in machine.occurrences("b")) == [S.COMPLETED, S.SKIPPED]


@pytest.mark.parametrize(("minutes", "state"), [(5, S.SKIPPED), (40, S.COMPLETED)])
@pytest.mark.parametrize("waits_for", ["group", "parent"])
def test_one_that_waits_has_the_window_of_an_edit(waits_for: str, minutes: int, state: OccurrenceState) -> None:
    more: dict[str, Any] = {"groups": {"database": 1}} if waits_for == "group" else {"after": ("a",)}
    first = job("a", "0 1 * * *", groups={"database": 1})
    machine = machine_of(first, with_window("b", 10, **more), takes={"a": 30 * MINUTE})
    machine.run_for(HOUR + 2 * MINUTE)
    machine.apply([first, with_window("b", minutes, **more)])
    machine.run_for(HOUR)
    decided = only(machine, "b")
    assert decided.state is state
    if state is S.SKIPPED:
        assert decided.finished_ms == decided.nominal_ms + minutes * MINUTE + 1


# -- what was planned before a downtime, and was due in it -------------------------------------------------------


def after_a_downtime(strategy: RecoveryStrategy, **more: Any) -> SimulatedMachine:
    """Twelve hourly jobs with jitter are planned at 01:00; no scheduler runs until 01:41, when all are due."""
    recovery = RecoveryPolicy(strategy)
    jobs = [job(f"job-{number}", "0 * * * * {jitter:30m}", recovery=recovery, **more) for number in range(12)]
    machine = machine_of(*jobs, groups=())
    machine.run_until(machine.start_ms + HOUR + SECOND)
    assert machine.processes == []
    machine.go_down(40 * MINUTE)
    machine.run_for(5 * MINUTE)
    return machine


def test_those_planned_before_a_downtime_start_at_the_pace_of_catch_up() -> None:
    """All of them started in the first millisecond of the next scheduler."""
    machine = after_a_downtime(RecoveryStrategy.EXECUTE_LAST)
    starts = sorted(one.started_ms for one in machine.processes)
    assert [later - one for one, later in pairwise(starts)] == [500] * 11
    assert all(only(machine, f"job-{number}").recovery for number in range(12))


def test_one_planned_before_a_downtime_is_marked_where_the_strategy_makes_up_for_nothing() -> None:
    machine = after_a_downtime(RecoveryStrategy.MARK_MISSED)
    assert machine.processes == []
    found = [only(machine, f"job-{number}") for number in range(12)]
    assert {(one.state, one.reason.code, one.recovery) for one in found} == {(S.MISSED, ReasonCode.DOWN, True)}


def test_a_triggered_run_and_a_child_that_a_killed_scheduler_left_are_not_missed() -> None:
    """They have no time of their own, and were due from when they were made."""
    marks = RecoveryPolicy(RecoveryStrategy.MARK_MISSED)
    machine = machine_of(job("a", recovery=marks), job("b", "", after=("a",), recovery=marks))
    machine.store.update(lambda tx: trigger(Records(tx, machine.now), "a", ANN))
    machine.go_down(MINUTE)
    machine.run_for(SECOND // 2)
    assert only(machine, "a").state is S.RUNNING
    end = machine.end_of(machine.processes[0])
    machine.store.update(machine.engine.ended(machine.processes[0].launch.attempt, end, machine.now))
    machine.go_down(MINUTE)
    machine.run_for(MINUTE)
    assert (only(machine, "a").state, only(machine, "b").state) == (S.COMPLETED, S.COMPLETED)
