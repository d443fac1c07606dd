"""The runs to come beside those that wait for their turn, and those that a person asked for; each row is compared with
what the simulated machine does next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from chronex.engine.commands.trigger import trigger
from chronex.engine.orders import Launch
from chronex.engine.update.diff import UpdateOptions
from chronex.model.job import Job
from chronex.model.policies import OverlapPolicy, SpreadPolicy
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, ProcessOutcome, SimulatedMachine
from chronex.views.apply_preview import preview
from chronex.views.coming_runs import forecast_job
from chronex.views.jobs import rows_of, upcoming_runs
from chronex.views.why import why
from chronex.views.why.answer import Cause
from chronex_tui.model.lanes import Window, lanes_in
from tests.views.test_previews_midway import ANN, NINE, a_job, job_of

QUEUE = OverlapPolicy.QUEUE


class Seen(NamedTuple):
    """The instants that each view names as runs to come."""

    shown: list[int]
    listed: list[int]
    timeline: list[int]
    explained: list[int]
    compared: list[int]  # by a dry run that changes something else


def seen_of(machine: SimulatedMachine, days: int = 2) -> Seen:
    now_ms = machine.now

    def read(reading: Reading) -> Seen:
        job = job_of(reading)
        (row,) = rows_of(reading, now_ms)
        window = Window(now_ms + days * DAY // 2, days * DAY // 2)
        marks = [mark for lane in lanes_in(window, [row], [], now_ms).lanes for mark in lane.marks]
        instants = [one.nominal_ms for one in forecast_job(job, now_ms, now_ms + days * DAY)]
        answers = {at: why(reading, "j", at, now_ms) for at in instants}
        gone = preview(reading, [], now_ms, UpdateOptions(), days).effects
        return Seen(
            shown=[run.nominal_ms for run in upcoming_runs(reading, job, now_ms, 9)],
            listed=[] if row.next is None else [row.next.nominal_ms],
            timeline=sorted(mark.start_ms for mark in marks if mark.state == "planned"),
            explained=[at for at, answer in answers.items() if answer and answer.cause is Cause.WILL_RUN],
            compared=[run.nominal_ms for effect in gone for run in effect.removed],
        )

    return machine.read(read)


def ask(machine: SimulatedMachine) -> int:
    """Its instant."""
    return machine.store.update(lambda tx: trigger(Records(tx, machine.now), "j", ANN)).occurrence.nominal_ms


def takes(duration_ms: int, schedule: str, **more: Any) -> SimulatedMachine:
    def outcome(launch: Launch) -> ProcessOutcome:
        is_first = launch.occurrence.nominal_ms == round(NINE.timestamp() * 1000)
        return ProcessOutcome(duration_ms if is_first else 1_000)

    return SimulatedMachine([a_job(schedule, **more)], start=NINE - timedelta(minutes=30), outcome=outcome)


@pytest.mark.parametrize(("asked", "left"), [(0, 3), (1, 2), (2, 1), (3, 0), (5, 0)])
def test_max_counts_those_of_a_person_that_wait_for_their_turn(asked: int, left: int) -> None:
    """All views named runs behind a queue of them that `max` did not leave."""
    machine = takes(40 * MINUTE, "0 * * * * {max:4}", overlap=QUEUE)
    machine.run_until(NINE + timedelta(minutes=10))
    for _ in range(asked):
        ask(machine)
    now_ms, seen = machine.now, seen_of(machine)
    machine.run_for(2 * DAY)
    began = sorted(one.nominal_ms for one in machine.occurrences("j") if one.started_ms and not one.manual)[1:]
    assert began == [now_ms + 50 * MINUTE + number * HOUR for number in range(left)]
    assert seen == Seen(began, began[:1], began, began, began)


def test_max_counts_those_of_the_schedule_that_wait_for_their_turn() -> None:
    machine = takes(150 * MINUTE, "0 * * * * {max:4}", overlap=QUEUE)
    machine.run_until(NINE + timedelta(minutes=130))
    seen = seen_of(machine)
    noon = round((NINE + timedelta(hours=3)).timestamp() * 1000)
    machine.run_for(2 * DAY)
    began = sorted(one.nominal_ms for one in machine.occurrences("j") if one.started_ms)
    assert began == [noon - 3 * HOUR, noon - 2 * HOUR, noon - HOUR, noon]
    assert seen == Seen(*(5 * [[noon]]))


def test_what_waits_in_vain_takes_nothing_of_max() -> None:
    """Its window is over when its turn comes."""
    machine = takes(100 * MINUTE, "0 * * * * {max:3, window:20m}", overlap=QUEUE)
    machine.run_until(NINE + timedelta(minutes=65))
    machine.pass_time(20 * MINUTE)  # it waits since 10:00, and nobody has looked at it since its window is over
    seen = seen_of(machine)
    machine.run_for(2 * DAY)
    began = sorted(one.nominal_ms for one in machine.occurrences("j") if one.started_ms)[1:]
    assert len(began) == 2
    assert seen.shown == began


def test_what_may_wait_in_vain_takes_nothing_of_max_yet() -> None:
    """Its window is over before its turn, and the next run is that of 11:00."""
    machine = takes(100 * MINUTE, "0 * * * * {max:2, window:20m}", overlap=QUEUE)
    machine.run_until(NINE + timedelta(minutes=65))
    seen = seen_of(machine)
    machine.run_for(2 * DAY)
    (_, began) = sorted(one.nominal_ms for one in machine.occurrences("j") if one.started_ms)
    assert seen.shown == seen.listed == [began]


def test_why_says_how_many_wait_for_their_turn() -> None:
    machine = takes(40 * MINUTE, "0 * * * * {max:4}", overlap=QUEUE)
    machine.run_until(NINE + timedelta(minutes=10))
    for _ in range(3):
        ask(machine)
    answer = machine.read(lambda reading: why(reading, "j", machine.now + 50 * MINUTE, machine.now))
    assert answer is not None
    assert answer.cause is Cause.MAX_REACHED
    assert answer.links[-1].fact == "1 of at most 4 executions (max) have begun, and 3 wait for their turn"


@pytest.mark.parametrize("changes", [{}, {"enabled": False}], ids=["all used up", "disabled"])
def test_what_a_person_asked_for_is_to_come_whatever_else_holds(changes: dict[str, Any]) -> None:
    """`list` and `show` said that nothing follows, while the next scheduler started it."""
    machine = takes(MINUTE, "0 * * * * {max:1}")
    machine.run_until(NINE + timedelta(minutes=10))
    machine.apply([a_job("0 * * * * {max:1}", **changes)])
    machine.crash()
    asked_ms, seen = ask(machine), seen_of(machine)
    machine.boot()
    machine.run_for(2 * DAY)
    assert max(one.nominal_ms for one in machine.occurrences("j") if one.started_ms) == asked_ms
    assert (seen.shown, seen.listed) == ([asked_ms], [asked_ms])


@pytest.mark.parametrize("schedule", ["0 * * * * {max:1}", "0 * * * * {max:2}"])
def test_of_several_that_a_person_asked_for_the_first_is_in_the_way_of_the_others(schedule: str) -> None:
    """A list that waited for the second one would go on for ever."""
    machine = takes(MINUTE, schedule)
    machine.run_until(NINE + timedelta(minutes=10))
    machine.crash()
    asked = [ask(machine) for _ in range(3)]
    seen = seen_of(machine)
    machine.boot()
    machine.run_for(2 * DAY)
    began = [one.nominal_ms for one in machine.occurrences("j") if one.started_ms and one.nominal_ms >= asked[0]]
    assert (seen.shown, seen.listed, began) == (asked[:1], asked[:1], asked[:1])


def test_a_run_on_record_is_to_come_however_many_were_made_since() -> None:
    """`show` looked at the newest records alone, and named later runs than the next ones."""
    spread = SpreadPolicy(mode="after", duration_ms=6 * HOUR)
    start = datetime(2027, 3, 1, tzinfo=UTC)
    jobs: list[Job] = [a_job("*/5 * * * *", spread=spread, overlap=OverlapPolicy.ALLOW)]
    machine = SimulatedMachine(jobs, start=start, slots=500)
    machine.run_for(10 * HOUR + MINUTE)
    now_ms, said = machine.now, seen_of(machine, 1).shown
    machine.run_for(2 * HOUR)
    began = [one for one in machine.occurrences("j") if (one.started_ms or 0) > now_ms]
    assert said == [one.nominal_ms for one in sorted(began, key=lambda one: one.due_ms)][:9]
