"""The dry run: what it says is what then happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from chronex.engine.update import Change, Policy, UpdateOptions, apply_jobs
from chronex.model.calendars import CalendarRules, JobCalendar
from chronex.model.job import Counters, Job, JobProgress
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, SpreadPolicy
from chronex.testing import DAY, HOUR, MINUTE
from chronex.views.apply_preview import Preview, preview
from chronex.views.coming_runs import forecast
from tests.kit.machine import ONE, START, SteppedEngine

NOON = START + 12 * HOUR


def seen(
    machine: SteppedEngine, wanted: list[Job], at: int = NOON, policy: Policy = Policy.IMMEDIATE, days: int = 3
) -> Preview:
    return machine.read(lambda reading: preview(reading, wanted, at, UpdateOptions(policy), days))


def hours(times: Any) -> list[int]:
    return [(one.due_ms - START) // HOUR for one in times]


def test_a_moved_hour_is_told_as_moved_not_as_removed_and_added() -> None:
    machine = SteppedEngine("0 3 * * *")
    machine.tick(NOON)
    (effect,) = seen(machine, [replace(machine.job, schedule="0 5 * * *")]).effects
    assert (effect.added, effect.removed) == ((), ())
    assert [(hours([m.before])[0], hours([m.after])[0]) for m in effect.moved] == [(27, 29), (51, 53), (75, 77)]


def test_new_and_orphaned_jobs_are_all_added_and_all_removed() -> None:
    machine = SteppedEngine("0 3 * * *")
    other = Job(id="other", schedule="0 6 * * *", tasks=(ONE,))
    found = seen(machine, [other])
    assert [change.change for change in found.changes] == [Change.NEW, Change.REMOVED]
    new, gone = found.effects
    assert (hours(new.added), hours(gone.removed)) == ([30, 54, 78], [27, 51, 75])


EVERY_DAY_OFF = CalendarRules(excluded=(JobCalendar(name="off", weekdays=(1, 2, 3, 4, 5, 6, 7)),))


@pytest.mark.parametrize(
    ("job", "days", "never"),
    [
        (Job(id="new", schedule="0 6 20 * *", tasks=(ONE,)), [19], False),
        (Job(id="new", schedule="0 6 * * *", tasks=(ONE,), calendars=EVERY_DAY_OFF), [], True),
        (Job(id="new", schedule="0 6 20 * *", tasks=(ONE,), enabled=False), [], False),
        (Job(id="new", schedule="", tasks=(ONE,), after=("job",)), [], False),
        (Job(id="new", schedule="0 6 * * *", tasks=(ONE,)), [], False),
    ],
    ids=["later", "never", "disabled", "follows", "near"],
)
def test_a_job_of_which_none_starts_in_these_days_has_its_first_run_told(
    job: Job, days: list[int], *, never: bool
) -> None:
    """A new monthly job and one that never runs looked the same."""
    machine = SteppedEngine("0 3 * * *")
    effect = next(one for one in seen(machine, [machine.job, job]).effects if one.job == "new")
    first = [] if effect.first_later is None else [effect.first_later]
    assert [hour // 24 for hour in hours(first)] == days
    assert effect.never is never


def test_graceful_shows_the_day_between() -> None:
    machine = SteppedEngine("0 3 * * *")
    (effect,) = seen(machine, [replace(machine.job, schedule="0 5 * * *")], policy=Policy.GRACEFUL).effects
    assert [(hours([m.before])[0], hours([m.after])[0]) for m in effect.moved] == [(51, 53), (75, 77)]


def test_a_changed_spread_moves_what_has_the_same_nominal_time() -> None:
    machine = SteppedEngine("0 3 * * *")
    (effect,) = seen(machine, [replace(machine.job, spread=SpreadPolicy(duration_ms=HOUR))]).effects
    assert all(m.before.nominal_ms == m.after.nominal_ms for m in effect.moved)
    assert len(effect.moved) == 3


def test_a_change_of_tasks_alone_moves_nothing() -> None:
    machine = SteppedEngine("0 3 * * *")
    (effect,) = seen(machine, [replace(machine.job, description="other")]).effects
    assert (effect.added, effect.removed, effect.moved, effect.fires_now) == ((), (), (), ())


def test_a_recovery_strategy_that_runs_what_was_missed_fires_now() -> None:
    machine = SteppedEngine("0 3 * * *", recovery=RecoveryPolicy(RecoveryStrategy.MARK_MISSED))
    wanted = replace(machine.job, recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_LAST))
    found = seen(machine, [wanted])  # no scheduler ran since START: 03:00 was missed
    assert found.fires_now
    assert hours(found.effects[0].fires_now) == [12]
    apply_jobs(machine.store, [wanted], NOON)
    assert len(machine.tick(NOON, awake_since=NOON)) == 1


def test_what_was_owed_before_the_edit_is_not_the_edits_doing() -> None:
    machine = SteppedEngine("0 3 * * *")
    assert not seen(machine, [replace(machine.job, description="other")]).fires_now


def test_a_per_second_job_is_cut_and_says_how_far_it_reaches() -> None:
    machine = SteppedEngine("* * * * * *")
    (effect,) = seen(machine, [], days=7).effects
    assert len(effect.removed) == 2000
    assert effect.until_ms == NOON + 2000 * 1000


@settings(max_examples=15, deadline=None)
@given(
    old=st.sampled_from(["0 3 * * *", "*/30 * * * *", "@every 47m", "0 0 * * *", "15 9 * * MON-FRI", "0 12 1 1 *"]),
    new=st.sampled_from(["0 5 * * *", "*/20 * * * *", "@every 61m", "0 3,5 * * *", "15 9 * * SAT"]),
    policy=st.sampled_from(Policy),
    spread=st.sampled_from([None, SpreadPolicy(duration_ms=HOUR), SpreadPolicy(mode="before", duration_ms=HOUR)]),
    at=st.integers(0, 24 * 60).map(lambda minutes: START + minutes * MINUTE + 1),
)
def test_the_dry_run_says_exactly_what_then_happens(
    old: str, new: str, policy: Policy, spread: SpreadPolicy | None, at: int
) -> None:
    """Two machines, one edited: the starts that one has and the other has not are those that the dry run named."""
    until = at + 3 * DAY
    plain, changed = (SteppedEngine(old, spread=spread, overlap=OverlapPolicy.ALLOW, places=10_000) for _ in range(2))
    for machine in (plain, changed):
        run(machine, START, at)
    wanted = replace(changed.job, schedule=new)
    (effect,) = seen(changed, [wanted], at, policy).effects
    apply_jobs(changed.store, [wanted], at, policy=policy)
    before, after = run(plain, at, until), run(changed, at, until)
    gone = {one.due_ms for one in effect.removed} | {pair.before.due_ms for pair in effect.moved}
    come = {one.due_ms for one in effect.added} | {pair.after.due_ms for pair in effect.moved}
    # The ends of the three days are judged by nominal times in one case and by due times in the other.
    inside = range(at, until - 2 * HOUR)
    assert {t for t in before - after if t in inside} == {t for t in gone - come if t in inside and t not in after}
    assert {t for t in after - before if t in inside} == {t for t in come - gone if t in inside and t not in before}


def run(machine: SteppedEngine, since: int, until: int) -> set[int]:
    """Every start in [since, until), when it was due."""
    found: set[int] = set()
    now = since
    while now < until:
        tick = machine.engine.tick(now, START)
        for order in tick.orders:
            found.add(order.occurrence.due_ms)  # type: ignore[union-attr]
            machine.end(order, "success", now)  # type: ignore[arg-type]
        now = until if tick.next_ms is None else max(tick.next_ms, now + (0 if tick.has_more else 1))
    return found


# -- the forecast itself ---------------------------------------------------------------------------------


def test_the_forecast_merges_jobs_in_order_and_stops_at_max_and_at_switched_off_jobs() -> None:
    jobs = [
        Job(id="a", schedule="0 * * * *"),
        Job(id="b", schedule="30 * * * * {max:2}", progress=JobProgress(counters=Counters(fired=1))),
        Job(id="c", schedule="* * * * *", enabled=False),
    ]
    found = list(forecast(jobs, START, START + 3 * HOUR))
    assert [(one.job, (one.nominal_ms - START) // MINUTE) for one in found] == [
        ("b", 30),
        ("a", 60),
        ("a", 120),
        ("a", 180),
    ]


def test_the_forecast_begins_behind_the_cursor_and_tells_jitter_as_a_range() -> None:
    job = Job(id="a", schedule="0 * * * * {jitter:10m}", progress=JobProgress(cursor_ms=START + HOUR))
    (only,) = forecast([job], START, START + 2 * HOUR)
    assert (only.due_ms, only.latest_ms) == (START + 2 * HOUR, START + 2 * HOUR + 10 * MINUTE - 1)


@pytest.mark.parametrize(("until", "runs"), [(None, [False, False]), (START + 90 * MINUTE, [False, True])])
def test_the_forecast_knows_of_a_pause(until: int | None, runs: list[bool]) -> None:
    job = Job(
        id="a", schedule="0 * * * *", progress=JobProgress(paused=True, paused_from_ms=START, paused_until_ms=until)
    )
    assert [one.runs for one in forecast([job], START, START + 2 * HOUR)] == runs
