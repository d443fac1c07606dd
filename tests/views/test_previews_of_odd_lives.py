"""Previews never lie of what is rarer: several schedules, `from` and `until`, `only`, a policy for clock changes, every
overlap policy, a pause after failures; and lives with runs that people asked for, jobs that are taken away and come
back, edits, a machine that sleeps, and a clock that is set.

What is drawn by `test_previews_midway` is drawn here too, and then made odd.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.commands.backfill import BackfillScope, fill, plan_backfill
from chronex.engine.commands.control import resume
from chronex.engine.commands.trigger import trigger
from chronex.engine.orders import Launch
from chronex.model.calendars import CalendarRules
from chronex.model.job import SCHEDULES_APART, Job
from chronex.model.policies import Cadence, DstSetting, OverlapPolicy, RetryPolicy
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, SECOND, ProcessOutcome, SimulatedMachine
from tests.views.test_previews_midway import ANN, Life, check_edit, check_life, draw, drawn_calendar, drawn_job, hold

OTHERS = ("0 4 * * *", "10 */7 * * *", "30 2 * * *", "59 23 * * SUN")


def made_odd(job: Job, random: Random, today: int) -> Job:
    first = today + random.randrange(8)
    changes: dict[str, Any] = {"schedule": _schedule(job, random, first)}
    if random.random() < 0.3:
        rules = job.calendars or CalendarRules()
        changes["calendars"] = replace(rules, only=(drawn_calendar(random, "only", today),))
    if random.random() < 0.3:
        changes["dst"] = DstSetting(random.choice(("end", "skip")), random.choice(("first", "both", "by-kind")))
    if random.random() < 0.4 and "jitter" not in job.schedule:
        changes |= {"overlap": random.choice(list(OverlapPolicy)), "retry": RetryPolicy()}
    if "@every" in job.schedule and random.random() < 0.4:
        changes["cadence"] = Cadence.FIXED_DELAY
    if random.random() < 0.3:
        changes["pause_after_failures"] = random.choice((1, 2))
    return replace(job, **changes)


def _schedule(job: Job, random: Random, first: int) -> str:
    schedule, bracket, options = job.schedule.partition(" {")
    if schedule == "@every 5h" and random.random() < 0.5:
        schedule = "@every 5h-6h"  # each distance is drawn
    if random.random() < 0.3:
        name = random.choice(("from", "until"))
        day = datetime.fromtimestamp(first * DAY / 1000, UTC)
        bound = f"{name}:{day:%Y-%m-%d}" + random.choice(("", "T09:00", "T02:30"))
        bracket, options = " {", f"{bound}, {options}" if options else f"{bound}}}"
    is_plain = "@every" not in schedule and (job.calendars is None or not job.calendars.workday)
    more = f"{SCHEDULES_APART}{random.choice(OTHERS)}" if is_plain and random.random() < 0.4 else ""
    return f"{schedule}{bracket}{options}{more}"


def lived_oddly(life: Life, random: Random, unwatched_ms: int) -> SimulatedMachine:
    end_ms = life.now_ms  # by true time, as all that is drawn here

    def outcome(launch: Launch) -> ProcessOutcome:
        fails = launch.attempt.number == 1 and machine.clock.boot < end_ms and random.random() < 0.4
        return ProcessOutcome(1_000, exit_code=1 if fails else 0)

    begin = datetime.fromtimestamp(life.begin_ms / 1000, UTC)
    machine = SimulatedMachine(life.jobs, start=begin, slots=500, seed=random.randrange(99), outcome=outcome)
    for at_ms in sorted(random.randrange(life.begin_ms, end_ms) for _ in range(random.randrange(1, 6))):
        machine.run_until(at_ms)
        random.choice(EVENTS)(machine, random, life)
    if machine.clock.boot < end_ms:
        machine.run_until(end_ms)
    machine.run_for(2 * MINUTE)
    if unwatched_ms > MINUTE:
        machine.crash()
    machine.pass_time(unwatched_ms)
    if random.random() < 0.6:
        hold(machine, random, life)
    return machine


def _outage(machine: SimulatedMachine, random: Random, life: Life) -> None:
    machine.go_down(random.randrange(MINUTE, 9 * HOUR))


def _sleep(machine: SimulatedMachine, random: Random, life: Life) -> None:
    machine.sleep(random.randrange(MINUTE, 9 * HOUR))


def _clock(machine: SimulatedMachine, random: Random, life: Life) -> None:
    """It is noticed by the next tick, before anybody asks."""
    machine.set_clock(random.choice((-1, -1, 1)) * random.choice((40 * SECOND, HOUR, 5 * HOUR, 26 * HOUR)))
    machine.run_for(2 * MINUTE)


def _trigger(machine: SimulatedMachine, random: Random, life: Life) -> None:
    job = random.choice(life.jobs).id
    machine.store.update(lambda tx: trigger(Records(tx, machine.now), job, ANN))


def _backfill(machine: SimulatedMachine, random: Random, life: Life) -> None:
    job, scope = random.choice(life.jobs).id, random.choice(list(BackfillScope))
    begin, end = machine.now - random.randrange(9 * DAY), machine.now + random.randrange(2 * DAY)

    def filled(records: Records) -> None:
        plan = plan_backfill(Reading(records.tx), job, begin, end, scope, records.now_ms)
        for instant in plan.instants[:20]:
            fill(records, job, instant, ANN, "backfill")

    machine.store.update(lambda tx: filled(Records(tx, machine.now)))


def _taken_away(machine: SimulatedMachine, random: Random, life: Life) -> None:
    gone = random.choice(life.jobs)
    machine.apply([job for job in life.jobs if job is not gone])
    machine.run_for(random.randrange(1, 12 * HOUR))
    machine.apply(life.jobs)


def _edit(machine: SimulatedMachine, random: Random, life: Life) -> None:
    old = random.choice(life.jobs)
    number = life.jobs.index(old)
    life.jobs[number] = odd_job(random, number, old.timezone, machine.now // DAY)
    machine.apply(life.jobs)


def odd_job(random: Random, number: int, zone: str, today: int) -> Job:
    return made_odd(drawn_job(random, number, zone, today), random, today)


def _resume(machine: SimulatedMachine, random: Random, life: Life) -> None:
    job = random.choice(life.jobs).id
    machine.store.update(lambda tx: resume(Records(tx, machine.now), job, ANN))


def _disable(machine: SimulatedMachine, random: Random, life: Life) -> None:
    number = random.randrange(len(life.jobs))
    life.jobs[number] = replace(life.jobs[number], enabled=not life.jobs[number].enabled)
    machine.apply(life.jobs)


EVENTS = (hold, _outage, _sleep, _clock, _clock, _trigger, _backfill, _taken_away, _edit, _edit, _resume, _disable)


def check(seed: object) -> None:
    random = Random(f"odd {seed}")
    life = draw(random)
    today = life.begin_ms // DAY
    life = life._replace(jobs=[made_odd(job, random, today) for job in life.jobs])
    unwatched_ms = random.choice([0, 0, 1, 500, 5_000, random.randrange(2 * MINUTE, 20 * HOUR)])
    machine = lived_oddly(life, random, unwatched_ms)
    check_life(machine, life._replace(now_ms=machine.now), is_watched=unwatched_ms <= MINUTE)


@pytest.mark.parametrize("seed", [*range(4), 9, 11, 64, 119, 1033, 2598, 2616, 2825])
def test_what_is_said_of_an_odd_life_is_what_happens(seed: int) -> None:
    check(seed)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 3_000, 50))
def test_what_is_said_of_odd_lives_is_what_happens_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)


# -- an edit behind such a life -----------------------------------------------------------------------------------


def twin(seed: object) -> tuple[Life, SimulatedMachine, Random]:
    """The same life each time; no retry and no run is in the way of an instant."""
    random = Random(f"odd edit {seed}")
    life = draw(random)
    odd = [made_odd(job, random, life.begin_ms // DAY) for job in life.jobs]
    life = life._replace(jobs=[replace(job, retry=RetryPolicy(), overlap=OverlapPolicy.ALLOW) for job in odd])
    machine = lived_oddly(life, random, unwatched_ms=0)
    return life._replace(now_ms=machine.now), machine, random


@pytest.mark.parametrize("seed", range(3))
def test_what_a_dry_run_says_behind_an_odd_life_is_what_the_edit_does(seed: int) -> None:
    check_edit(seed, twin, odd_job)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_what_a_dry_run_says_behind_odd_lives_is_what_the_edit_does_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        check_edit(seed, twin, odd_job)
