"""What a row and a detail say of a job, case by case; and that looking never writes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.update import apply_jobs
from chronex.model.job import Job
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import OverlapPolicy, SpreadPolicy
from chronex.model.reasons import free_text
from chronex.model.records import Node
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.testing import MINUTE
from chronex.views.jobs import GLYPHS, MEANING, Detail, NextRun, Row, Situation, detail_of, rows_of, summary_of
from chronex_store import MemoryStore
from tests.kit.machine import FIRST, ONE, START, TWO, SteppedEngine, steady


def row(machine: SteppedEngine, now: int) -> Row:
    (found,) = machine.store.view(lambda tx: rows_of(Reading(tx), now))
    return found


def detail(machine: SteppedEngine, now: int) -> Detail:
    found = machine.store.view(lambda tx: Reading(tx).job("job"))
    assert found is not None
    return machine.store.view(lambda tx: detail_of(Reading(tx), found, now))


def change(machine: SteppedEngine, **changes: object) -> None:
    def write(tx):  # type: ignore[no-untyped-def]
        records = Records(tx, START)
        job = records.job("job")
        assert job is not None
        far = {name: value for name, value in changes.items() if hasattr(job.progress, name)}
        rest = {name: value for name, value in changes.items() if name not in far}
        records.put(replace(job, **rest).progressed(**far))

    machine.store.update(write)


def test_every_situation_has_a_meaning_and_a_glyph_of_its_own() -> None:
    assert set(MEANING) == set(GLYPHS) == set(Situation)
    assert len(set(GLYPHS.values())) == len(Situation)


def test_a_new_job_waits_for_its_first_instant() -> None:
    found = row(SteppedEngine(), START)
    assert (found.situation, found.next, found.last) == (Situation.WAITING, NextRun(FIRST, FIRST, True), None)
    assert (found.is_active, found.is_enabled, found.is_paused, found.is_running) == (True, True, False, False)
    assert found.without_last == "never ran"


def test_a_running_job_says_since_when_and_what_runs() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO))
    machine.tick(FIRST + 7)
    found = row(machine, FIRST + 9)
    assert (found.situation, found.is_running, found.running_since_ms) == (Situation.RUNNING, True, FIRST + 7)
    assert (found.last, found.without_last) == (None, "none over yet")
    (running,) = detail(machine, FIRST + 9).running
    assert [(a.task, a.number) for a in running.attempts] == [("one", 1)]


def test_a_failed_task_that_waits_is_retrying_with_attempt_and_time() -> None:
    machine = SteppedEngine("0 * * * *", retry=steady(3, 5_000))
    hour = START + 60 * MINUTE
    (launch,) = machine.tick(hour)
    machine.end(launch, AttemptState.FAILED, hour + 100, reason=free_text("exit code 3"), exit_code=3)
    found = row(machine, hour + 200)
    assert found.situation is Situation.RETRYING
    assert (found.last, found.without_last) == (None, "none over yet")
    assert found.retry is not None
    assert (found.retry.task, found.retry.attempt, found.retry.most) == ("one", 2, 4)
    assert (found.retry.at_ms, str(found.retry.reason)) == (hour + 5_100, "exit code 3")
    assert detail(machine, hour + 200).retries == (found.retry,)


def test_what_is_due_while_a_retry_waits_is_no_next_run_and_the_engine_skips_it() -> None:
    machine = SteppedEngine(retry=steady(3, 2 * MINUTE + 30_000))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 100)
    third = FIRST + 3 * MINUTE
    assert row(machine, FIRST + 200).next == NextRun(third, third, True)
    assert [run.nominal_ms for run in detail(machine, FIRST + 200).upcoming][:2] == [third, third + MINUTE]
    for minute in (1, 2):
        assert machine.tick(FIRST + minute * MINUTE) == []
        assert machine.occurrence(FIRST + minute * MINUTE).state is OccurrenceState.SKIPPED


@pytest.mark.parametrize(
    "changes", [{"overlap": OverlapPolicy.QUEUE}, {"retry": replace(steady(3, 150_000), newest_wins=True)}]
)
def test_where_a_retry_gives_way_or_the_next_one_waits_the_next_instant_stays(changes: dict[str, Any]) -> None:
    machine = SteppedEngine(**{"retry": steady(3, 150_000), **changes})
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 100)
    assert row(machine, FIRST + 200).next == NextRun(FIRST + MINUTE, FIRST + MINUTE, True)


def test_outcomes_are_told_newest_first_with_durations_and_the_last_problem() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.FAILED, FIRST + 400, reason=free_text("exit code 1"))
    assert row(machine, FIRST + 500).situation is Situation.FAILED
    (launch,) = machine.tick(FIRST + MINUTE)
    machine.end(launch, AttemptState.SUCCESS, FIRST + MINUTE + 900)
    found = detail(machine, FIRST + MINUTE + 1_000)
    assert found.row.situation is Situation.OK
    assert [(o.state, o.duration_ms) for o in found.outcomes] == [
        (OccurrenceState.COMPLETED, 900),
        (OccurrenceState.FAILED, 400),
    ]
    assert found.last_problem is not None
    assert str(found.last_problem.reason) == "one: exit code 1"
    assert found.row.last == found.outcomes[0]


@pytest.mark.parametrize("count", [2, 6, 7, 8, 9, 40])
def test_a_queue_is_counted_and_the_last_outcome_is_found_behind_what_is_open(count: int) -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.QUEUE)
    (launch,) = machine.tick(FIRST)
    machine.end(launch, AttemptState.SUCCESS, FIRST + 1)
    for number in range(1, count + 2):
        machine.tick(FIRST + number * MINUTE)
    found = row(machine, FIRST + (count + 1) * MINUTE)
    assert (found.situation, found.queued) == (Situation.RUNNING, count)
    assert found.last is not None
    assert found.last.nominal_ms == FIRST


PAUSES = [
    ("without an end", {"paused": True}, START, Situation.PAUSED, None),
    ("with an end", {"paused": True, "paused_until_ms": FIRST + 90_000}, START, Situation.PAUSED, FIRST + 120_000),
    ("ends on the instant", {"paused": True, "paused_until_ms": FIRST + 60_000}, START, Situation.PAUSED, FIRST + 60_000),
    ("that is over", {"paused": True, "paused_until_ms": START + 5}, START + 5, Situation.WAITING, FIRST),
    ("and disabled", {"paused": True, "enabled": False}, START, Situation.DISABLED, None),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "now", "situation", "nominal"), [case[1:] for case in PAUSES], ids=[c[0] for c in PAUSES])  # fmt: skip
def test_a_pause(changes: dict[str, object], now: int, situation: Situation, nominal: int | None) -> None:
    machine = SteppedEngine()
    change(machine, **changes)
    found = row(machine, now)
    assert found.situation is situation
    assert (None if found.next is None else found.next.nominal_ms) == nominal


def test_what_the_row_says_of_a_pause_with_an_end_is_what_the_engine_does() -> None:
    machine = SteppedEngine()
    change(machine, paused=True, paused_until_ms=FIRST + 90_000)
    expected = row(machine, START).next
    launched = [machine.tick(FIRST + n * MINUTE) for n in range(3)]
    assert [len(launches) for launches in launched] == [0, 0, 1]
    assert expected is not None
    assert launched[2][0].occurrence.nominal_ms == expected.nominal_ms
    assert str(machine.occurrence(FIRST).reason) == "paused"


def test_a_drawn_jitter_is_shown_and_one_not_drawn_yet_is_not_invented() -> None:
    machine = SteppedEngine("0 * * * * {jitter:10m}")
    hour = START + 60 * MINUTE
    assert row(machine, START).next == NextRun(hour, hour, is_drawn=False)
    machine.tick(hour)
    stored = machine.occurrence(hour)
    assert stored.jitter_ms > 0
    assert row(machine, hour).next == NextRun(hour, hour + stored.jitter_ms, is_drawn=True)
    assert [run.nominal_ms for run in detail(machine, hour).upcoming] == [hour + n * 60 * MINUTE for n in range(5)]


def test_a_spread_before_the_nominal_time_is_told_as_it_will_be_decided() -> None:
    machine = SteppedEngine("0 * * * *", spread=SpreadPolicy(mode="before", duration_ms=10 * MINUTE))
    expected = row(machine, START).next
    assert expected is not None
    assert expected.nominal_ms == START + 60 * MINUTE
    assert expected.nominal_ms - 10 * MINUTE <= expected.due_ms <= expected.nominal_ms
    machine.tick(expected.nominal_ms - 10 * MINUTE)
    assert row(machine, expected.nominal_ms - 10 * MINUTE).next == expected._replace(is_drawn=True)


def test_a_job_that_has_fired_as_often_as_it_may_is_done() -> None:
    machine = SteppedEngine("* * * * * {max:2}")
    assert [run.nominal_ms for run in detail(machine, START).upcoming] == [FIRST, FIRST + MINUTE]
    for nominal in (FIRST, FIRST + MINUTE):
        (launch,) = machine.tick(nominal)
        machine.end(launch, AttemptState.SUCCESS, nominal + 1)
    machine.tick(FIRST + 2 * MINUTE)
    found = row(machine, FIRST + 3 * MINUTE)
    assert (found.situation, found.next, found.is_active) == (Situation.DONE, None, False)


def test_the_summary_counts_jobs_nodes_queue_and_dead_letters() -> None:
    machine = SteppedEngine(places=1)
    apply_jobs(machine.store, [machine.job, Job(id="other", schedule="* * * * *", tasks=(ONE,))], START)
    for name, slots in (("dead", 3), ("alive", 7)):
        node = Node(id=name, process=ProcessIdentity(len(name), "boot", 1), places=slots, started_ms=START)
        machine.store.update(lambda tx, node=node: Records(tx, START).put(node))  # type: ignore[misc]
    (launch,) = machine.tick(FIRST)
    rows = machine.store.view(lambda tx: rows_of(Reading(tx), FIRST))
    found = machine.store.view(
        lambda tx: summary_of(Reading(tx), rows, lambda process: process.pid == len("alive"), FIRST)
    )
    assert (found.jobs, found.running, found.queued, found.dead_letters, found.slots) == (2, 1, 1, 0, 7)
    assert found.counts[Situation.RUNNING] == found.counts[Situation.QUEUED] == 1
    assert found.daemon is not None
    assert found.daemon.id == "alive"
    machine.end(launch, AttemptState.FAILED, FIRST + 1)
    assert machine.store.view(lambda tx: summary_of(Reading(tx), rows, lambda _: False, FIRST)).dead_letters == 1


def test_looking_never_writes() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.QUEUE)
    machine.tick(FIRST)
    before = machine.store.wait(-1, 0)
    detail(machine, FIRST)
    rows = machine.store.view(lambda tx: rows_of(Reading(tx), FIRST))
    machine.store.view(lambda tx: summary_of(Reading(tx), rows, lambda _: True, FIRST))
    assert machine.store.wait(-1, 0) == before


def test_an_empty_store_has_no_rows() -> None:
    assert MemoryStore().view(lambda tx: rows_of(Reading(tx), START)) == []
