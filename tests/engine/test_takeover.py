"""What a dead node had decided and not carried out: its successor finds it on record, and does it."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from chronex.engine.clock_steps import follow_clock
from chronex.engine.engine import Engine
from chronex.engine.orders import Cancel, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.model.job import Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import FailureStrategy, OverlapPolicy, RetryPolicy, TaskMode
from chronex.model.reasons import ReasonCode
from chronex.model.records import Node
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage.ports import SCAN_LIMIT
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, MINUTE
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine


def begin(machine: SteppedEngine, launches: list[Launch]) -> None:
    """Each runs as a process with the number of its turn."""
    for number, launch in enumerate(launches, start=1):
        machine.store.update(machine.engine.started(launch.attempt, ProcessIdentity(number, "boot", 5), "", FIRST))


def die(machine: SteppedEngine) -> Engine:
    """The node is gone, and this is its successor."""
    dead = Node(id="node-1", process=ProcessIdentity(99, "boot", 1))
    machine.store.update(lambda tx: Records(tx, FIRST).put(dead))
    machine.engine = Engine(machine.store, "node-2", 10, Random(1))
    return machine.engine


def test_a_peer_that_was_to_be_canceled_is_canceled_by_the_successor() -> None:
    """One fails, its end is recorded, and the daemon dies before it has stopped the other."""
    machine = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL, failure=FailureStrategy.FAIL_FAST)
    launches = machine.tick(FIRST)
    begin(machine, launches)
    (lost,) = machine.end(launches[0], AttemptState.FAILED, FIRST + 100)
    assert isinstance(lost, Cancel)
    orders, (orphan,) = die(machine).take_over(lambda process: process.pid == 2, FIRST + 1000)
    (cancel,) = orders
    assert isinstance(cancel, Cancel)
    assert (cancel.attempt, cancel.reason) == (orphan, lost.reason)


def test_a_peer_that_goes_on_whatever_others_do_runs_on_under_the_successor() -> None:
    two = Task(name="two", run=("true",), on_failure=FailureStrategy.CONTINUE)
    machine = SteppedEngine(tasks=(ONE, two), mode=TaskMode.PARALLEL, failure=FailureStrategy.FAIL_FAST)
    launches = machine.tick(FIRST)
    begin(machine, launches)
    assert machine.end(launches[0], AttemptState.FAILED, FIRST + 100) == ()
    orders, adopted = die(machine).take_over(lambda process: process.pid == 2, FIRST + 1000)
    assert (orders, len(adopted)) == ((), 1)


@pytest.mark.parametrize("process_lives", [True, False])
def test_one_that_was_to_be_canceled_for_the_next_is_canceled_by_the_successor(process_lives: bool) -> None:
    """It was canceled for the next one, and the daemon died. The next instant, which would say so again, is far away."""
    machine = SteppedEngine(overlap=OverlapPolicy.CANCEL_RUNNING)
    begin(machine, machine.tick(FIRST))
    (lost,) = machine.engine.tick(FIRST + MINUTE, START).orders
    assert isinstance(lost, Cancel)
    successor = die(machine)
    now = FIRST + MINUTE + 1000
    first_orders, adopted = successor.take_over(lambda process: process_lives and process.pid == 1, now)
    orders = (*first_orders, *successor.tick(now + 1, START).orders)
    if process_lives:
        (cancel,) = orders
        assert isinstance(cancel, Cancel)
        assert (cancel.attempt.id, cancel.reason) == (adopted[0].id, lost.reason)
    else:
        (launch,) = orders
        assert isinstance(launch, Launch)
        assert launch.occurrence.nominal_ms == FIRST + MINUTE
        assert machine.occurrence(FIRST).state is OccurrenceState.CANCELED


def test_one_that_another_node_runs_is_stopped_by_that_node() -> None:
    """Two engines on one store: the tick that finds the overlap is not always the owner's."""
    machine = SteppedEngine(overlap=OverlapPolicy.CANCEL_RUNNING)
    (launch,) = machine.tick(FIRST)
    other = Engine(machine.store, "node-2", 10, Random(1))
    assert other.tick(FIRST + MINUTE, START).orders == ()
    (cancel,) = machine.engine.tick(FIRST + MINUTE + 1, START).orders
    assert isinstance(cancel, Cancel)
    assert cancel.attempt.id == launch.attempt.id


def test_one_that_only_waits_to_be_tried_again_after_a_crash_gives_way_at_once() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.CANCEL_RUNNING)
    begin(machine, machine.tick(FIRST))
    successor = die(machine)
    successor.take_over(lambda process: False, FIRST + MINUTE + 5)
    (launch,) = successor.tick(FIRST + MINUTE + 5, START).orders
    assert isinstance(launch, Launch)
    assert launch.occurrence.nominal_ms == FIRST + MINUTE


def test_all_of_the_work_of_a_dead_node_is_taken_up_however_much_it_is() -> None:
    count = SCAN_LIMIT + 50
    machine = SteppedEngine(places=count)
    apply_jobs(machine.store, [replace(machine.job, id=f"job-{number}") for number in range(count)], START)
    while machine.tick(FIRST):
        pass  # at most five hundred at once
    assert len(machine.read(lambda reading: reading.active_attempts(limit=2 * count))) == count
    die(machine).take_over(lambda process: False, FIRST)
    assert machine.read(Reading.active_attempts) == []


@pytest.mark.parametrize(
    ("most", "ends", "begun"),
    [
        # c: it began, and died with its scheduler; n: its scheduler died before it began; f: it failed
        (0, "cccccccc", 1 + 3),
        (2, "cccccccc", 1 + 3 + 2),
        (0, "nnnnnnnnnncnncncnnnccc", 1 + 3),
        (2, "ncnfncccnfcncffnf", 1 + 3 + 2),
        (2, "ffffff", 1 + 2),
        (2, "fcffff", 1 + 1 + 2),
        (0, "ncf", 1 + 1),
    ],
)
def test_three_crashes_are_repeated_beside_the_retries_and_what_never_began_counts_for_nothing(
    most: int, ends: str, begun: int
) -> None:
    machine = SteppedEngine("0 0 1 1 *", retry=RetryPolicy(max=most, interval_ms=1000))
    now = START + 365 * DAY
    (launch,) = machine.tick(now)
    seen = 0
    for number, end in enumerate(ends, start=1):
        if end != "n":
            seen += 1
            machine.store.update(machine.engine.started(launch.attempt, ProcessIdentity(77, "boot", number), "", now))
        if end == "f":
            machine.end(launch, AttemptState.FAILED, now)
        else:
            machine.boot(f"node-{number + 1}")
            machine.engine.take_over(lambda process: False, now)
        now += MINUTE
        following = machine.tick(now)
        if not following:
            break
        (launch,) = following
    assert seen == begun
    assert machine.run(START + 365 * DAY).state is RunState.DLQ
    assert machine.read(Reading.active_attempts) == []


@pytest.mark.parametrize("is_adopted", [False, True])
def test_a_start_is_refused_when_its_claim_was_taken_away(is_adopted: bool) -> None:
    """The node stood still between claim and start, was declared dead, and goes on."""
    machine = SteppedEngine(tasks=(ONE,))
    (launch,) = machine.tick(FIRST)
    before = machine.engine
    if is_adopted:
        begin(machine, [launch])
    die(machine).take_over(lambda process: is_adopted and process.pid == 1, FIRST + 1000)
    refused = machine.store.update(before.started(launch.attempt, ProcessIdentity(7, "boot", 5), "", FIRST + 2000))
    assert refused == {launch.attempt.id}
    (attempt, *_) = machine.store.view(lambda tx: Reading(tx).attempts("job", FIRST))
    assert attempt.process is None or attempt.process.pid == 1


def test_the_fence_grows_with_every_attempt_of_the_job_whoever_orders_it() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL, overlap=OverlapPolicy.ALLOW)
    first = machine.tick(FIRST)
    begin(machine, first)
    later = machine.tick(FIRST + MINUTE)
    die(machine).take_over(lambda _process: False, FIRST + MINUTE + 1000)
    again = machine.tick(FIRST + MINUTE + 1000)
    numbers = [launch.attempt.fence for launch in (*first, *later, *again)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert again


# -- a clock that was set forward while nobody watched ------------------------------------------------------------------

TIMEOUT = 10 * MINUTE
SET_BY = 60 * MINUTE


def adopted_at(machine: SteppedEngine, age: int) -> tuple[Engine, tuple[Order, ...]]:
    """A successor that comes when the command has run for `age`; the clock shows an hour more."""
    successor = die(machine)
    successor.age_of = lambda _process: age
    orders, _ = successor.take_over(lambda process: process.pid == 1, FIRST + age + SET_BY)
    return successor, orders


def test_a_clock_that_was_set_forward_while_no_daemon_ran_ends_no_command() -> None:
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT)
    begin(machine, machine.tick(FIRST))
    _, orders = adopted_at(machine, MINUTE)
    assert orders == ()
    assert machine.occurrence(FIRST).deadline_ms == FIRST + TIMEOUT + SET_BY


def test_each_successor_allows_for_the_same_step_once() -> None:
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT)
    begin(machine, machine.tick(FIRST))
    adopted_at(machine, MINUTE)
    dead = Node(id="node-2", process=ProcessIdentity(98, "boot", 1))
    machine.store.update(lambda tx: Records(tx, FIRST).put(dead))
    last = Engine(machine.store, "node-3", 10, Random(1))
    last.age_of = lambda _process: 9 * MINUTE
    assert last.take_over(lambda process: process.pid == 1, FIRST + 9 * MINUTE + SET_BY)[0] == ()
    assert machine.occurrence(FIRST).deadline_ms == FIRST + TIMEOUT + SET_BY
    (cancel,) = last.take_over(lambda process: process.pid == 1, FIRST + 11 * MINUTE + SET_BY)[0]
    assert isinstance(cancel, Cancel)
    assert cancel.reason.code is ReasonCode.EXECUTION_TIMEOUT


def test_a_step_that_a_daemon_has_followed_is_not_allowed_for_again() -> None:
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT)
    begin(machine, machine.tick(FIRST))
    follow_clock(machine.store, SET_BY, FIRST + SET_BY, "node-1")
    _, orders = adopted_at(machine, MINUTE)
    assert orders == ()
    assert machine.occurrence(FIRST).deadline_ms == FIRST + TIMEOUT + SET_BY


@pytest.mark.parametrize(
    "age", [None, 11 * MINUTE, 12 * MINUTE], ids=["unknown", "as the clock says", "was held first"]
)
def test_what_has_really_run_too_long_is_ended(age: int | None) -> None:
    machine = SteppedEngine(execution_timeout_ms=TIMEOUT)
    begin(machine, machine.tick(FIRST))
    successor = die(machine)
    successor.age_of = lambda _process: age
    (cancel,) = successor.take_over(lambda process: process.pid == 1, FIRST + 11 * MINUTE)[0]
    assert isinstance(cancel, Cancel)
    assert cancel.reason.code is ReasonCode.EXECUTION_TIMEOUT


@pytest.mark.parametrize("state", [AttemptState.SUCCESS, AttemptState.FAILED, AttemptState.CANCELED])
def test_what_ended_while_no_daemon_ran_took_as_long_as_it_ran(state: AttemptState) -> None:
    """Whoever asks how long it took, or judges by what is usual, must not be told of a night without a scheduler."""
    machine = SteppedEngine(tasks=(ONE,))
    (launch,) = machine.tick(FIRST)
    begin(machine, [launch])
    machine.end(launch, state, FIRST + DAY, finished_ms=FIRST + MINUTE)
    run = machine.read(lambda reading: reading.run("job", FIRST, "one"))
    assert run is not None
    assert (run.finished_ms, machine.occurrence(FIRST).finished_ms) == (FIRST + MINUTE, FIRST + MINUTE)


def test_tasks_that_never_began_do_not_count_for_how_long_it_took() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO))
    (launch,) = machine.tick(FIRST)
    begin(machine, [launch])
    machine.end(launch, AttemptState.FAILED, FIRST + DAY, finished_ms=FIRST + MINUTE)
    assert machine.occurrence(FIRST).finished_ms == FIRST + MINUTE


def test_an_end_that_a_clock_set_back_puts_before_the_start_is_that_of_its_record() -> None:
    machine = SteppedEngine(tasks=(ONE,))
    (launch,) = machine.tick(FIRST)
    begin(machine, [launch])
    machine.end(launch, AttemptState.SUCCESS, FIRST + DAY, finished_ms=FIRST - MINUTE)
    assert machine.occurrence(FIRST).finished_ms == FIRST + DAY


def test_no_run_has_ended_at_a_time_that_is_still_to_come() -> None:
    """One task ended before the clock was set back by an hour, the other one after that."""
    machine = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL)
    launches = machine.tick(FIRST)
    begin(machine, launches)
    machine.end(launches[0], AttemptState.SUCCESS, FIRST + MINUTE)
    machine.end(launches[1], AttemptState.SUCCESS, FIRST - 58 * MINUTE)
    assert machine.occurrence(FIRST).finished_ms == FIRST - 58 * MINUTE


@pytest.mark.parametrize("down", [0, 30_000, MINUTE + 1, 2 * MINUTE + 1, DAY])
def test_what_never_began_has_all_of_its_time_whenever_a_successor_comes(down: int) -> None:
    """Its scheduler was killed between the claim and the start: it was given up, where it had come too late."""
    machine = SteppedEngine("0 0 1 1 *", execution_timeout_ms=MINUTE)
    first = START + 365 * DAY
    machine.tick(first)
    for times, now in enumerate((first + down, first + 2 * down)):
        machine.boot(f"node-{times + 2}")
        machine.engine.take_over(lambda process: False, now)
        (launch,) = machine.tick(now)
    began = first + 2 * down + 5_000
    machine.store.update(machine.engine.started(launch.attempt, ProcessIdentity(7, "boot", 5), "", began))
    found = machine.occurrence(first)
    assert (found.state, found.deadline_ms) == (OccurrenceState.RUNNING, began + MINUTE)
