"""Calendars in the engine: blackouts on record, moved runs under their nominal time, calendars that survive an apply."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from chronex.engine.commands import Actor
from chronex.engine.commands.trigger import trigger
from chronex.engine.update import apply_jobs
from chronex.engine.update.diff import UpdateOptions, plan_changes
from chronex.model.calendars import CalendarRules, CalendarSource, JobCalendar, OnExcluded
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, SpreadPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, ProcessOutcome, SimulatedMachine
from chronex.verify import verify_store
from chronex.views.why import WhyAnswer, why

START = datetime(2027, 1, 1, tzinfo=UTC)  # a Friday
BEGIN = round(START.timestamp() * 1000)
EPOCH = date(1970, 1, 1)
TODAY = (START.date() - EPOCH).days


def days(name: str, first: int, last: int | None = None, **more: Any) -> JobCalendar:
    """Days from the first of January on: `days("freeze", 1, 2)` are the second and the third."""
    return JobCalendar(name=name, days=(TODAY + first, TODAY + (first if last is None else last)), **more)


def job(schedule: str = "0 * * * *", **more: Any) -> Job:
    rules = {key: more.pop(key) for key in ("excluded", "only", "on_excluded", "workday", "blackout") if key in more}
    calendars = CalendarRules(**rules) if rules else None
    return Job(id="job", schedule=schedule, tasks=(Task(name="t", run=("true",)),), calendars=calendars, **more)


def occurrences(machine: SimulatedMachine) -> dict[int, Occurrence]:
    found = machine.store.view(lambda tx: Reading(tx).occurrences("job", limit=10_000))
    return {one.nominal_ms: one for one in reversed(found)}


def answer_at(machine: SimulatedMachine, at: int) -> WhyAnswer:
    found = machine.store.view(lambda tx: why(Reading(tx), "job", at, machine.now))
    assert found is not None
    return found


def test_each_instant_of_a_blackout_is_recorded_with_its_reason_and_nothing_starts() -> None:
    machine = SimulatedMachine([job(blackout=(days("freeze", 1),))], start=START)
    machine.advance(days=3)
    assert verify_store(machine.store).violated() == []
    found = occurrences(machine)
    dark = [one for at, one in found.items() if BEGIN + DAY <= at < BEGIN + 2 * DAY]
    assert len(dark) == 24
    assert {(one.state, one.reason.code, one.reason.detail) for one in dark} == {
        (OccurrenceState.SKIPPED, ReasonCode.BLACKOUT, "freeze")
    }
    assert {one.state for one in found.values() if one not in dark} == {OccurrenceState.COMPLETED}
    assert not [process for process in machine.processes if BEGIN + DAY <= process.started_ms < BEGIN + 2 * DAY]


def test_in_a_blackout_a_person_may_start_and_what_waits_may_not() -> None:
    slow = SimulatedMachine(
        [job("0 */6 * * *", overlap=OverlapPolicy.QUEUE, blackout=(days("freeze", 1),))],
        start=START, outcome=lambda _: ProcessOutcome(10 * HOUR),
    )  # fmt: skip
    slow.advance(hours=25)
    slow.store.update(lambda tx: trigger(Records(tx, slow.now), "job", Actor("ann", "cli", "desk")))
    slow.advance(hours=30)
    found = occurrences(slow)
    by_hand = [one for one in found.values() if one.manual]
    assert [one.state for one in by_hand] == [OccurrenceState.COMPLETED]
    assert all(
        one.started_ms is None
        for one in found.values()
        if BEGIN + DAY <= one.due_ms < BEGIN + 2 * DAY and not one.manual
    )
    queued = found[BEGIN + 18 * HOUR]  # due before the blackout, and its turn came in it
    assert (queued.state, queued.reason.code) == (OccurrenceState.SKIPPED, ReasonCode.BLACKOUT)


@pytest.mark.parametrize(
    ("strategy", "run"),
    [
        (RecoveryStrategy.EXECUTE_LAST, [23]),
        (RecoveryStrategy.EXECUTE_ALL, [21, 22, 23]),
        (RecoveryStrategy.MARK_MISSED, []),
        (RecoveryStrategy.COMPRESSED, [23]),
    ],
)
def test_a_recovery_strategy_chooses_among_what_no_blackout_bars(strategy: RecoveryStrategy, run: list[int]) -> None:
    """The newest missed instants lie in the blackout: the strategy used to be spent on them."""
    times = JobCalendar(name="night", times=(BEGIN // 1000 + 86_400, BEGIN // 1000 + 86_400 + 13 * 1_800))
    machine = SimulatedMachine([job(blackout=(times,), recovery=RecoveryPolicy(strategy))], start=START)
    machine.run_until(BEGIN + 20 * HOUR + MINUTE)
    machine.go_down(10 * HOUR + 40 * MINUTE)  # until 06:41 of the next day
    machine.run_for(MINUTE)
    found = occurrences(machine)
    missed = {(at - BEGIN) // HOUR: one for at, one in found.items() if one.recovery}
    assert [hour for hour, one in missed.items() if one.state is OccurrenceState.COMPLETED and hour < 24] == run
    assert {one.reason.code for hour, one in missed.items() if 24 <= hour <= 30} == {ReasonCode.BLACKOUT}


def test_a_moved_run_starts_on_the_next_working_day_and_stands_for_its_nominal_time() -> None:
    machine = SimulatedMachine(
        [job("0 6 1 * *", excluded=(days("new-year", 0),), on_excluded=OnExcluded.NEXT_WORKDAY)], start=START
    )
    machine.advance(days=5)
    assert verify_store(machine.store).violated() == []
    (found,) = occurrences(machine).values()
    assert found.nominal_ms == found.started_ms == BEGIN + 3 * DAY + 6 * HOUR  # Monday
    assert found.scheduled_ms == BEGIN + 6 * HOUR
    assert found.moved_by == "new-year"
    (process,) = machine.processes
    assert process.launch.occurrence.scheduled_ms == BEGIN + 6 * HOUR
    here, there = (answer_at(machine, at) for at in (found.nominal_ms, found.scheduled_ms))
    assert "moved here from" in str(here.links)
    assert "matches this time" not in str(here.links)
    assert there.cause == "moved"
    assert "new-year" in there.summary


def test_what_a_calendar_excludes_is_no_occurrence_and_why_names_the_calendar() -> None:
    machine = SimulatedMachine([job("0 9 * * * | 0 12 2 * *", excluded=(days("off", 1, 2),))], start=START)
    machine.advance(days=4)
    assert [(at - BEGIN) // HOUR for at in occurrences(machine)] == [9, 3 * 24 + 9]
    for hour, cause in (
        (24 + 9, "excluded"),
        (24 + 12, "excluded"),
        (24 + 10, "not_matched"),
        (10 * 24 + 9, "will_run"),
    ):
        answer = answer_at(machine, BEGIN + hour * HOUR)
        assert answer.cause == cause, answer
    assert verify_store(machine.store).violated() == []


# -- applied again ------------------------------------------------------------------------------------------------


def made(last_year: int, extra: int | None = None, version: str = "1") -> JobCalendar:
    """A calendar of holidays as one reading makes it: every 1 and 5 January up to a year, and one day more."""
    dates = [date(year, 1, number) for year in range(2026, last_year + 1) for number in (1, 5)]
    numbers = sorted({*((one - EPOCH).days for one in dates), *([] if extra is None else [TODAY + extra])})
    return JobCalendar(
        name="public", source=CalendarSource.HOLIDAYS, origin="XX", data=f"holidays {version}",
        days=tuple(edge for number in numbers for edge in (number, number)), until_day=(date(last_year, 12, 31) - EPOCH).days,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("new", "later", "change", "keeps_cursor"),
    [
        (made(2032), 0, "preserved", True),
        (made(2033, version="2"), 365, "preserved", True),
        (made(2036), 4 * 365, "overridden", True),
        (made(2032, extra=40, version="2"), 0, "overridden", False),
        (made(2033, extra=200, version="2"), 365, "preserved", True),
    ],
    ids=["the same", "a new year and a new package", "soon at its end", "a new holiday", "a new holiday of the past"],
)
def test_a_new_reading_is_an_edit_only_where_days_to_come_differ(
    new: JobCalendar, later: int, change: str, keeps_cursor: bool
) -> None:
    machine = SimulatedMachine([job(excluded=(made(2032),))], start=START)
    machine.run_for(HOUR)
    before = machine.store.view(lambda tx: Reading(tx).job("job"))
    now = machine.now + later * DAY
    (step,) = machine.store.view(lambda tx: plan_changes(Reading(tx), [job(excluded=(new,))], now, UpdateOptions()))
    assert step.kind == change
    assert before is not None
    assert step.job is not None
    assert (step.job.progress.cursor_ms == before.progress.cursor_ms) is keeps_cursor


def test_a_new_blackout_moves_nothing_and_what_waits_is_recorded_when_it_is_due() -> None:
    spread = SpreadPolicy(duration_ms=2 * HOUR)
    machine = SimulatedMachine([job("0 6 * * *", spread=spread)], start=START)
    machine.run_until(BEGIN + 6 * HOUR)
    (waiting,) = occurrences(machine).values()
    assert waiting.state is OccurrenceState.PENDING
    apply_jobs(machine.store, [job("0 6 * * *", spread=spread, blackout=(days("freeze", 0),))], machine.now)
    machine.run_for(3 * HOUR)
    (found,) = occurrences(machine).values()
    assert (found.state, found.reason.code) == (OccurrenceState.SKIPPED, ReasonCode.BLACKOUT)
