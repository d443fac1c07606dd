"""Previews never lie: what each view of the future says is what the simulated engine then does."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from chronex.engine.commands import Actor
from chronex.engine.commands.control import pause
from chronex.engine.update.diff import UpdateOptions
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy, SpreadPolicy
from chronex.model.reasons import ReasonCode, text_of
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, SimulatedMachine
from chronex.views.apply_preview import JobPreview, preview
from chronex.views.coming_runs import ForecastRun, coming_starts_of, forecast_job, startable
from chronex.views.jobs import rows_of, upcoming_runs
from chronex.views.simulation import simulate_runs
from chronex.views.why import why
from chronex.views.why.answer import Cause, cause_of

START = datetime(2027, 3, 20, 5, 30, tzinfo=UTC)  # the week before Berlin's clocks go forward
BEGIN = round(START.timestamp() * 1000)
END = BEGIN + 16 * DAY
TODAY = BEGIN // DAY


def calendar(random: Random, name: str) -> JobCalendar:
    if random.random() < 0.3:
        return JobCalendar(name=name, weekdays=tuple(sorted(random.sample(range(1, 8), 2))))
    if random.random() < 0.4:
        begins = sorted(random.sample(range(0, 15 * 24, 7), 6))
        times = [(TODAY * 86_400 + begin * 3_600) for begin in begins]
        return JobCalendar(name=name, times=tuple(edge for begin in times for edge in (begin, begin + 5 * 3_600)))
    first = TODAY + random.randrange(10)
    return JobCalendar(name=name, days=(first, first + random.randrange(4), first + 6, first + 6))


def random_job(random: Random, number: int) -> Job:
    text = random.choice(["0 9 * * *", "30 */4 * * *", "0 2,3 * * *", "15 12 * * MON-FRI | 0 6 * * *", "@every 5h", "0 */6 * * * {max:9}",
                          "0 */6 * * * {stagger:2h}", "0 */6 * * * {stagger:2h, window:50m}", "0 */8 * * * {max:4, window:50m}", "*/30 0-3 * * * {max:7, stagger:20m}",
                          "0 */3 * * * {jitter:40m}"])  # fmt: skip
    policy: dict[str, Any] = {}
    if random.random() < 0.4 and "@every" not in text:
        mode = random.choice(["after", "around", "before"])
        clause = random.choice(["", "dow=MON-FRI", "between=08:00-20:00"])
        policy["spread"] = SpreadPolicy(mode=mode, duration_ms=random.choice([1, 2, 26]) * HOUR, only=clause)
    if random.random() < 0.7:
        moves = OnExcluded.SKIP if "@every" in text else random.choice(list(OnExcluded))
        excluded = (calendar(random, "off"),) if random.random() < 0.7 else ()
        blackout = (calendar(random, "dark"),) if random.random() < 0.6 else ()
        workday = random.choice(((), (), (1, -1), (2, 5, -3)))
        rules = CalendarRules(
            excluded=excluded,
            on_excluded=moves if excluded and not workday else OnExcluded.SKIP,
            workday=workday,
            blackout=blackout,
        )
        policy["calendars"] = rules
    return Job(id=f"job-{number}", schedule=text, timezone="Europe/Berlin", overlap=OverlapPolicy.ALLOW,
               tasks=(Task(name="t", run=("true",)),), **policy)  # fmt: skip


class Previews(NamedTuple):
    forecast: list[ForecastRun]
    starts: list[int]
    shown: list[tuple[int, int]]
    listed: tuple[int, int] | None
    asked: dict[int, Cause]  # what `why` says of each instant of the forecast


def previews_of(machine: SimulatedMachine, job_id: str) -> Previews:
    def read(reading: Reading) -> Previews:
        job = reading.job(job_id)
        assert job is not None
        upcoming = upcoming_runs(reading, job, BEGIN, 12)
        (row,) = (row for row in rows_of(reading, BEGIN) if row.job.id == job_id)
        first = row.next
        coming = list(forecast_job(job, BEGIN, END))
        answers = {one.nominal_ms: why(reading, job_id, one.nominal_ms, BEGIN) for one in coming}
        return Previews(
            coming,
            list(coming_starts_of(job, BEGIN, END)),
            [(one.nominal_ms, one.due_ms) for one in upcoming],
            None if first is None else (first.nominal_ms, first.due_ms),
            {nominal: answer.cause for nominal, answer in answers.items() if answer is not None},
        )

    return machine.store.view(lambda tx: read(Reading(tx)))


def dry_run_of(jobs: list[Job]) -> dict[str, JobPreview]:
    """What `apply --dry-run` says of the same days."""
    empty = SimulatedMachine([], start=START)
    days = (END - BEGIN) // DAY
    seen = empty.store.view(lambda tx: preview(Reading(tx), jobs, BEGIN, UpdateOptions(), days))
    return {effect.job: effect for effect in seen.effects}


def happened(machine: SimulatedMachine, job_id: str) -> dict[int, Occurrence]:
    found = machine.store.view(lambda tx: Reading(tx).occurrences(job_id, limit=10_000))
    return {one.nominal_ms: one for one in found if BEGIN < one.nominal_ms <= END}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_shown_is_what_happens(seed: int) -> None:
    random = Random(seed)
    jobs = [random_job(random, number) for number in range(4)]
    dry_run = dry_run_of(jobs)
    machine = SimulatedMachine(jobs, start=START, seed=seed, slots=500)
    if random.random() < 0.4:
        until = BEGIN + random.randrange(1, 6 * DAY) if random.random() < 0.7 else None
        machine.store.update(
            lambda tx: pause(Records(tx, BEGIN), "job-0", Actor("ann", "cli", "desk"), until_ms=until)
        )
    shown = {job.id: previews_of(machine, job.id) for job in jobs}
    stored = machine.store.view(lambda tx: [Reading(tx).job(job.id) for job in jobs])
    simulated = {
        (one.occurrence.job, one.occurrence.nominal_ms): (one.state, one.reason)
        for one in simulate_runs(
            [job for job in stored if job is not None], BEGIN, END, lambda _: 1_000, 500, Random(1)
        )
        if BEGIN < one.occurrence.nominal_ms <= END
    }
    machine.run_until(END + 3 * DAY)
    for job, stored_job in zip(jobs, stored, strict=True):
        assert stored_job is not None
        real, said = happened(machine, job.id), shown[job.id]
        ran = {nominal: one for nominal, one in real.items() if one.state is OccurrenceState.COMPLETED}
        _check_forecast(said, real, ran)
        _check_lists(said, ran, has_jitter="jitter" in job.schedule)
        if "jitter" not in job.schedule and stored_job.progress.paused_from_ms is None:
            assert [(one.nominal_ms, one.due_ms) for one in dry_run[job.id].added] == [
                (nominal, one.due_ms) for nominal, one in sorted(ran.items())
            ]
            assert {one.nominal_ms for one in dry_run[job.id].barred} == set(real) - set(ran)
        if "jitter" not in job.schedule:
            ours = {
                nominal: (state, text_of(reason))
                for (name, nominal), (state, reason) in simulated.items()
                if name == job.id
            }
            assert ours == {nominal: (one.state, text_of(one.reason)) for nominal, one in real.items()}


def _check_forecast(said: Previews, real: dict[int, Occurrence], ran: dict[int, Occurrence]) -> None:
    may_be_barred = {one.nominal_ms for one in said.forecast if one.runs and one.latest_ms > one.due_ms}
    for one in said.forecast:
        outcome = real[one.nominal_ms]
        assert said.asked[one.nominal_ms] is (Cause.WILL_RUN if one.runs else cause_of(one.reason.code))
        if one.runs and one.nominal_ms in ran:
            assert one.due_ms <= outcome.due_ms <= one.latest_ms
            assert outcome.started_ms == max(outcome.due_ms, BEGIN)
            assert (one.moved.nominal_ms if one.moved else one.nominal_ms) == outcome.scheduled_ms
        elif one.runs:  # jitter was drawn into a blackout, or beyond the window
            assert one.nominal_ms in may_be_barred
            assert outcome.reason.code in (ReasonCode.BLACKOUT, ReasonCode.WINDOW_EXCEEDED)
        else:
            assert outcome.state is OccurrenceState.SKIPPED
            assert text_of(outcome.reason) == text_of(one.reason)
    assert {one.nominal_ms for one in said.forecast} == set(real)


def _check_lists(said: Previews, ran: dict[int, Occurrence], *, has_jitter: bool) -> None:
    if has_jitter:
        return  # when is not known before; the forecast has the bounds
    assert said.starts == [one.due_ms for _, one in sorted(ran.items())]
    begun = sorted((one.due_ms, nominal) for nominal, one in ran.items())
    inside = [(due, nominal) for nominal, due in said.shown if nominal <= END]
    assert inside == begun[: len(inside)], "in the order in which they start"
    assert len(inside) == min(len(said.shown), len(ran))
    assert said.listed == (said.shown[0] if said.shown else None)


def test_a_blackout_of_a_job_that_starts_every_second_is_one_step() -> None:
    dark = JobCalendar(name="dark", days=(TODAY, TODAY + 400))
    job = Job(id="j", schedule="* * * * * *", calendars=CalendarRules(blackout=(dark,)))
    first = next(startable(job, BEGIN, BEGIN))
    assert first.nominal_ms == (TODAY + 401) * DAY
    assert list(coming_starts_of(job, BEGIN, BEGIN + 300 * DAY)) == []


def test_a_spread_that_never_fits_has_no_coming_run() -> None:
    """It was listed by `show` and by the dry run, although the engine skips every one of them."""
    job = Job(id="j", schedule="0 9 * * *", spread=SpreadPolicy(duration_ms=HOUR, only="between=22:00-23:00"))
    machine = SimulatedMachine([job], start=START)
    said = previews_of(machine, "j")
    assert (said.shown, said.starts, said.listed) == ([], [], None)
    assert {one.reason.code for one in said.forecast} == {ReasonCode.UNSCHEDULABLE}


def test_a_spread_may_put_a_later_instant_before_the_blackout_that_bars_an_earlier_one() -> None:
    spread = SpreadPolicy(mode="before", duration_ms=DAY)
    jobs = [Job(id=f"j{n}", schedule="0 */2 * * *", spread=spread) for n in range(8)]
    dark = JobCalendar(name="dark", days=(TODAY + 3, TODAY + 4))
    for job in jobs:
        dimmed = replace(job, calendars=CalendarRules(blackout=(dark,)))
        free = [one for one in forecast_job(job, BEGIN, END) if one.due_ms // DAY not in (TODAY + 3, TODAY + 4)]
        assert list(coming_starts_of(dimmed, BEGIN, END)) == [one.due_ms for one in free]


DARK = CalendarRules(blackout=(JobCalendar(name="dark", times=(BEGIN // 1000 + 3_600, BEGIN // 1000 + 4 * 86_400)),))


@pytest.mark.parametrize(("every", "rules"), [("2h", None), ("2h", DARK), ("1m", None), ("7m", DARK)])
def test_an_interval_that_counts_from_ends_goes_on_behind_what_is_skipped(
    every: str, rules: CalendarRules | None
) -> None:
    """It was told as done: its one instant lies in the pause, or in the blackout, and what follows was not looked for."""
    job = Job(id="j", schedule=f"@every {every}", cadence=Cadence.FIXED_DELAY, tasks=(Task(name="t", run=("true",)),),
              calendars=rules)  # fmt: skip
    machine = SimulatedMachine([job], start=START)
    if rules is None:
        until_ms = BEGIN + 9 * HOUR
        machine.store.update(
            lambda tx: pause(Records(tx, BEGIN), "j", Actor("ann", "cli", "desk"), until_ms=until_ms)
        )
    else:
        machine.run_for(HOUR)
    (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
    assert row.next is not None
    said = row.next.nominal_ms
    answer = machine.read(lambda reading: why(reading, "j", said, machine.now))
    assert answer is not None
    assert answer.cause is Cause.WILL_RUN
    now = machine.now
    machine.run_until(said + HOUR // 60)
    assert min(one.nominal_ms for one in machine.occurrences("j") if (one.started_ms or 0) > now) == said


def test_distances_that_are_drawn_are_those_of_the_engine_in_every_view() -> None:
    """Each follows from the instant before: the timeline and dry runs drew them from now on, and named other times."""
    job = Job(id="j", schedule="@every 2h-3h", tasks=(Task(name="t", run=("true",)),))
    machine = SimulatedMachine([job], start=START)
    machine.run_for(5 * HOUR)
    (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
    now, until_ms = machine.now, machine.now + 2 * DAY
    said = [run.nominal_ms for run in forecast_job(row.job, now, until_ms)]
    later = list(coming_starts_of(row.job, now + DAY, until_ms, now))
    answer = machine.read(lambda reading: why(reading, "j", said[2], now))
    machine.run_until(until_ms)
    real = [one.nominal_ms for one in machine.occurrences("j") if one.nominal_ms > now]
    assert (said, later) == (real, [at for at in real if at > now + DAY])
    assert answer is not None
    assert answer.cause is Cause.WILL_RUN


def test_a_clock_that_is_set_back_behind_the_beginning_of_a_pause_has_not_ended_it() -> None:
    machine = SimulatedMachine(
        [Job(id="j", schedule="0 * * * *", tasks=(Task(name="t", run=("true",)),))], start=START
    )
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "j", Actor("ann", "cli", "desk")))
    machine.set_clock(-3 * HOUR)
    machine.run_for(60_000)
    (said, *_) = machine.read(
        lambda reading: list(forecast_job(rows_of(reading, machine.now)[0].job, machine.now, END))
    )
    assert said.reason.code is ReasonCode.PAUSED
    machine.run_until(machine.clock.boot + 2 * HOUR)
    assert [one.reason.code for one in machine.occurrences("j")][:1] == [ReasonCode.PAUSED]
