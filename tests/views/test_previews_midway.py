"""Previews never lie in the middle of a life: with runs on record that wait for their time, pauses that begin, end and
go on, retries that wait, an outage behind them, clocks that change, and instants that no tick has decided yet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from chronex.engine.commands import Actor
from chronex.engine.commands.control import pause, resume
from chronex.engine.orders import Launch
from chronex.engine.update.diff import UpdateOptions
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy, SpreadPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import Reading, Records
from chronex.testing import DAY, HOUR, MINUTE, ProcessOutcome, SimulatedMachine
from chronex.text.instants import epoch_ms
from chronex.views.apply_preview import preview
from chronex.views.coming_runs import ForecastRun, forecast_job
from chronex.views.jobs import NextRun, Row, Situation, rows_of, upcoming_runs
from chronex.views.why import why
from chronex.views.why.answer import Cause, cause_of
from chronex_tui.model.lanes import Window, lanes_in

LENGTH = 9 * DAY
LAST = RecoveryStrategy.EXECUTE_LAST
SHOWN = 12
BARS = (ReasonCode.BLACKOUT, ReasonCode.WINDOW_EXCEEDED, ReasonCode.PAUSED, ReasonCode.UNSCHEDULABLE)
ANN = Actor("ann", "cli", "desk")
# The night in which clocks change is some days later.
BEGINNINGS = {
    "Europe/Berlin": (datetime(2027, 3, 25, 5, 30, tzinfo=UTC), datetime(2027, 10, 28, 5, 30, tzinfo=UTC)),
    "America/New_York": (datetime(2027, 3, 11, 5, 30, tzinfo=UTC), datetime(2027, 11, 4, 5, 30, tzinfo=UTC)),
    "Australia/Lord_Howe": (datetime(2027, 4, 1, 5, 30, tzinfo=UTC), datetime(2027, 9, 30, 5, 30, tzinfo=UTC)),
    "Asia/Tokyo": (datetime(2028, 2, 26, 5, 30, tzinfo=UTC),),
}
SCHEDULES = (
    "0 9 * * *", "30 */4 * * *", "0 2,3 * * *", "*/30 1-3 * * *", "15 12 * * MON-FRI | 0 6 * * *", "@every 5h", "@every 7h30m",
    "0 */6 * * * {max:9}", "0 */6 * * * {stagger:2h}", "0 */6 * * * {stagger:2h, window:50m}", "0 */8 * * * {max:4, window:50m}",
    "*/30 0-3 * * * {max:7, stagger:20m}", "0 */3 * * * {jitter:40m}", "0 */3 * * * {jitter:5h}", "0 0 L * * | 0 5 * * SUN",
)  # fmt: skip


class Life(NamedTuple):
    jobs: list[Job]
    begin_ms: int
    now_ms: int  # when the previews are asked for

    @property
    def end_ms(self) -> int:
        return self.now_ms + LENGTH


def drawn_calendar(random: Random, name: str, today: int) -> JobCalendar:
    if random.random() < 0.3:
        return JobCalendar(name=name, weekdays=tuple(sorted(random.sample(range(1, 8), 2))))
    if random.random() < 0.4:
        hours = sorted(random.sample(range(0, 18 * 24, 7), 8))
        edges = (today * 86_400 + hour * 3_600 + more for hour in hours for more in (0, 5 * 3_600))
        return JobCalendar(name=name, times=tuple(edges))
    first = today + random.randrange(12)
    return JobCalendar(name=name, days=(first, first + random.randrange(4), first + 6, first + 6))


def drawn_job(random: Random, number: int, zone: str, today: int) -> Job:
    text = random.choice(SCHEDULES)
    policy: dict[str, Any] = {}
    if random.random() < 0.4 and "@every" not in text:
        mode = random.choice(["after", "around", "before"])
        clause = random.choice(["", "dow=MON-FRI", "between=08:00-20:00"])
        policy["spread"] = SpreadPolicy(mode=mode, duration_ms=random.choice([1, 2, 26]) * HOUR, only=clause)
    if random.random() < 0.6:
        moves = OnExcluded.SKIP if "@every" in text else random.choice(list(OnExcluded))
        excluded = (drawn_calendar(random, "off", today),) if random.random() < 0.7 else ()
        workday = random.choice(((), (), (1, -1), (2, 5, -3)))
        policy["calendars"] = CalendarRules(
            excluded=excluded,
            on_excluded=moves if excluded and not workday else OnExcluded.SKIP,
            workday=workday,
            blackout=(drawn_calendar(random, "dark", today),) if random.random() < 0.6 else (),
        )
    overlap = OverlapPolicy.ALLOW
    if random.random() < 0.25 and "jitter" not in text:
        overlap = OverlapPolicy.SKIP
        policy["retry"] = RetryPolicy(max=1, interval_ms=random.choice([40 * MINUTE, 7 * HOUR]))
    tasks = (Task(name="t", run=("true",)),)
    strategies = list(RecoveryStrategy)
    policy["recovery"] = RecoveryPolicy(strategies[(today + len(text)) % len(strategies)] if number < 2 else LAST)
    return Job(id=f"job-{number}", schedule=text, timezone=zone, overlap=overlap, tasks=tasks, **policy)


def draw(random: Random) -> Life:
    zone = random.choice(list(BEGINNINGS))
    begin_ms = round(random.choice(BEGINNINGS[zone]).timestamp() * 1000)
    jobs = [drawn_job(random, number, zone, begin_ms // DAY) for number in range(4)]
    whole = random.choice([1, MINUTE, HOUR // 2])  # at an instant, or somewhere between two
    return Life(jobs, begin_ms, begin_ms + random.randrange(HOUR, 6 * DAY) // whole * whole)


def lived(life: Life, random: Random, unwatched_ms: int = 0) -> SimulatedMachine:
    """The machine at the time of the previews: pauses behind it, one that has just begun, or an outage; and the last
    tick so long ago, or no scheduler."""

    def outcome(launch: Launch) -> ProcessOutcome:
        fails = launch.attempt.number == 1 and launch.attempt.created_ms < life.now_ms and random.random() < 0.4
        return ProcessOutcome(1_000, exit_code=1 if fails else 0)

    machine = SimulatedMachine(life.jobs, start=datetime.fromtimestamp(life.begin_ms / 1000, UTC), slots=500,
                               seed=random.randrange(99), outcome=outcome)  # fmt: skip
    for at_ms in sorted(random.randrange(life.begin_ms, life.now_ms) for _ in range(random.randrange(3))):
        machine.run_until(at_ms)
        if random.random() < 0.3:
            machine.go_down(random.randrange(MINUTE, 3 * HOUR))
        else:
            hold(machine, random, life)
    if machine.now < life.now_ms:
        machine.run_until(life.now_ms)
    if unwatched_ms > MINUTE:
        machine.crash()
    machine.pass_time(unwatched_ms)
    if random.random() < 0.6:
        hold(machine, random, life)
    return machine


def hold(machine: SimulatedMachine, random: Random, life: Life) -> None:
    job = random.choice(life.jobs).id
    until = random.choice([None, random.randrange(1, 2 * DAY), random.randrange(1, 5 * HOUR)])
    until_ms = None if until is None else machine.now + until
    machine.store.update(lambda tx: pause(Records(tx, machine.now), job, ANN, until_ms=until_ms))
    if random.random() < 0.3:
        machine.store.update(lambda tx: resume(Records(tx, machine.now), job, ANN))


class Said(NamedTuple):
    upcoming: list[NextRun]
    row: Row
    forecast: list[ForecastRun]
    timeline: list[int]
    asked: dict[int, Cause]

    @property
    def listed(self) -> NextRun | None:
        return self.row.next


def said_of(machine: SimulatedMachine, job_id: str, life: Life) -> Said:
    def read(reading: Reading) -> Said:
        job, now_ms = reading.job(job_id), life.now_ms
        assert job is not None
        (row,) = (row for row in rows_of(reading, now_ms) if row.job.id == job_id)
        window = Window((now_ms + life.end_ms) // 2, LENGTH // 2)
        marks = [mark for lane in lanes_in(window, [row], [], now_ms).lanes for mark in lane.marks]
        coming = list(forecast_job(row.ahead or job, now_ms, life.end_ms, row.drawn))
        answers = {one.nominal_ms: why(reading, job_id, one.nominal_ms, now_ms) for one in coming}
        return Said(
            upcoming_runs(reading, job, now_ms, SHOWN),
            row,
            coming,
            sorted({mark.start_ms for mark in marks if mark.state == "planned"}),
            {nominal: answer.cause for nominal, answer in answers.items() if answer is not None},
        )

    return machine.read(read)


def check(seed: object, *, is_undecided: bool = False) -> None:
    random = Random(f"midway {seed}")
    life = draw(random)
    unwatched_ms = random.choice([1, 500, 5_000, random.randrange(2 * MINUTE, 20 * HOUR)]) if is_undecided else 0
    machine = lived(life, random, unwatched_ms)
    check_life(machine, life._replace(now_ms=machine.now), is_watched=unwatched_ms <= MINUTE)


def check_life(machine: SimulatedMachine, life: Life, *, is_watched: bool) -> None:
    """What is said now, and what then happens; where nobody watches, the next scheduler is started."""
    before = {job.id: {one.nominal_ms: one for one in machine.occurrences(job.id)} for job in life.jobs}
    said = {job.id: said_of(machine, job.id, life) for job in life.jobs}
    if not is_watched:
        machine.boot()
    machine.run_until(machine.clock.boot + life.end_ms - life.now_ms + 4 * DAY)
    for job in life.jobs:
        after = {one.nominal_ms: one for one in machine.occurrences(job.id)}
        begun = [one for one in after.values() if one.started_ms is not None and one.started_ms >= life.now_ms]
        new = [one for one in begun if is_to_come(before[job.id].get(one.nominal_ms))]
        check_job(job, said[job.id], life, new, after)


def is_to_come(before: Occurrence | None) -> bool:
    """What began, or waits for its turn, is listed as that, and not as a run to come."""
    if before is None:
        return True
    return before.started_ms is None and before.state is not OccurrenceState.QUEUED


def check_job(job: Job, said: Said, life: Life, began: list[Occurrence], real: dict[int, Occurrence]) -> None:
    check_forecast(job, said, life, real)
    check_without_next(said.row, began)
    if "jitter" in job.schedule:
        drawn = [run for run in (said.listed, *said.upcoming) if run is not None and run.is_drawn]
        for run in drawn:
            one, at_ms = real[run.nominal_ms], max(run.due_ms, life.now_ms)
            # What was missed starts one after another.
            assert at_ms <= (one.started_ms or 0) <= at_ms + MINUTE * one.recovery, f"{job}: {run}"
        return
    if any(one.recovery and one.reason.code is ReasonCode.MAX_REACHED for one in real.values()):
        return  # of the last that `max` leaves those of now go before a missed one, whose place lists do not know
    ran = sorted((one.due_ms, one.nominal_ms) for one in began)
    shown = [(run.due_ms, run.nominal_ms) for run in said.upcoming]
    known = [run for run in shown if run[0] <= life.end_ms]
    assert known == ran[: len(known)], f"{job}\n{life.now_ms}"
    if job.cadence is Cadence.FIXED_DELAY:
        ran = ran[: max(len(known), 1)]  # what follows counts from the end of that
        if not known and (end_ms := end_of_open_runs(real, life.now_ms)) is not None:
            ran = [run for run in ran if run[0] <= end_ms]  # and behind a run that goes on, or is tried again, of its
    assert len(known) == SHOWN or len(shown) > len(known) or all(due > life.end_ms for due, _ in ran[len(known) :])
    assert said.listed == (said.upcoming[0] if said.upcoming else None), f"{job}"
    in_sight = sorted({due for due, _ in ran if life.now_ms <= due <= life.end_ms})
    assert [due for due in said.timeline if due >= life.now_ms] == in_sight, f"{job}"


def check_without_next(row: Row, began: list[Occurrence]) -> None:
    """What is done begins no more, and where no run was found none begins as far as was looked."""
    if row.situation is Situation.DONE:
        assert began == [], f"{row.job}"
    if row.not_before_ms is not None:
        assert row.next is None
        assert all((one.started_ms or 0) >= row.not_before_ms for one in began), f"{row.job}: {row.not_before_ms}"


def end_of_open_runs(real: dict[int, Occurrence], now_ms: int) -> int | None:
    begun = [one for one in real.values() if one.started_ms is not None and one.started_ms <= now_ms]
    return max((end for one in begun if (end := one.finished_ms or 0) > now_ms), default=None)


def check_forecast(job: Job, said: Said, life: Life, real: dict[int, Occurrence]) -> None:
    for one in said.forecast:
        outcome = real[one.nominal_ms]
        expected = Cause.WILL_RUN if one.runs else cause_of(one.reason.code)
        causes = {expected, Cause.RETRY_WAITS} if job.retry is not None else {expected}
        assert said.asked[one.nominal_ms] in causes, f"{job} {one}"
        if not one.runs and "jitter" in job.schedule:  # which of two bars it is drawn into nobody knows
            assert outcome.started_ms is None, f"{job} {one}: {outcome}"
            assert outcome.reason.code in BARS, f"{job} {one}: {outcome}"
        elif not one.runs:
            assert (outcome.started_ms, outcome.reason) == (None, one.reason), f"{job} {one}: {outcome}"
        elif outcome.started_ms is not None:
            assert one.due_ms <= outcome.due_ms <= one.latest_ms, f"{job} {one}: {outcome}"
        elif said.asked[one.nominal_ms] is not Cause.RETRY_WAITS:  # jitter was drawn into a blackout, and the like
            assert one.latest_ms > one.due_ms, f"{job} {one}: {outcome}"
            assert outcome.reason.code in BARS


@pytest.mark.parametrize("seed", [*range(5), 1085])
def test_what_is_said_in_the_middle_of_a_life_is_what_happens(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [3, 13, 32, 35, 6173, 8731])
def test_what_is_said_before_the_next_tick_or_scheduler_is_what_happens(seed: int) -> None:
    check(seed, is_undecided=True)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_what_is_said_before_the_next_tick_is_what_happens_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed, is_undecided=True)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 3_000, 50))
def test_what_is_said_in_the_middle_of_a_life_is_what_happens_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        check(seed)


# -- an edit in the middle of a life ------------------------------------------------------------------------------


Twin = Callable[[object], tuple[Life, SimulatedMachine, Random]]
Drawn = Callable[[Random, int, str, int], Job]


def twin(seed: object) -> tuple[Life, SimulatedMachine, Random]:
    """The same life each time. What `apply --dry-run` compares are schedules: no retry is in their way."""
    random = Random(f"edited {seed}")
    life = draw(random)
    plain = [replace(job, retry=RetryPolicy(), overlap=OverlapPolicy.ALLOW) for job in life.jobs]
    life = life._replace(jobs=plain)
    machine = lived(life, random)
    return life._replace(now_ms=machine.now), machine, random


def starts_of(machine: SimulatedMachine, job: str, life: Life) -> dict[int, Occurrence]:
    machine.run_until(machine.clock.boot + life.end_ms - life.now_ms + 4 * DAY)
    found = (one for one in machine.occurrences(job) if one.started_ms is not None and one.due_ms > life.now_ms)
    return {one.nominal_ms: one for one in found}


def check_edit(seed: object, twin: Twin = twin, drawn: Drawn = drawn_job) -> None:
    """What a dry run adds, removes and moves is the difference between a life with the edit and one without."""
    life, machine, random = twin(seed)
    old = random.choice(life.jobs)
    new = drawn(random, life.jobs.index(old), old.timezone, life.now_ms // DAY)
    new = replace(new, retry=RetryPolicy(), overlap=OverlapPolicy.ALLOW)
    if Cadence.FIXED_DELAY in (old.cadence, new.cadence):
        return  # of its instants only the next is known
    wanted = [new if job is old else job for job in life.jobs]
    seen = machine.read(lambda reading: preview(reading, wanted, life.now_ms, UpdateOptions(), LENGTH // DAY))
    effect = next((one for one in seen.effects if one.job == old.id), None)
    machine.apply(wanted)
    after, before = starts_of(machine, old.id, life), starts_of(twin(seed)[1], old.id, life)
    if effect is None:
        assert after.keys() == before.keys()
        return
    gone = {one.nominal_ms for one in (*effect.removed, *(pair.before for pair in effect.moved))}
    come = {one.nominal_ms: one for one in (*effect.added, *(pair.after for pair in effect.moved))}
    has_jitter = "jitter" in old.schedule + new.schedule
    until_ms = min(effect.until_ms, life.end_ms)
    fires_now = {one.nominal_ms for one in effect.fires_now}
    expected = {nominal for nominal in before.keys() - gone | come.keys() if nominal <= until_ms} - fires_now
    real = {nominal for nominal in after if nominal <= until_ms} - fires_now
    if not has_jitter:  # else it may be drawn into a blackout
        assert real == expected, f"{old}\n{new}\n{life.now_ms}"
    for nominal in come.keys() & after.keys():
        assert come[nominal].due_ms <= after[nominal].due_ms <= come[nominal].latest_ms


@pytest.mark.parametrize("seed", [*range(4), 2044, 3005])
def test_what_a_dry_run_says_in_the_middle_of_a_life_is_what_the_edit_does(seed: int) -> None:
    check_edit(seed)


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_what_a_dry_run_says_is_what_the_edit_does_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        check_edit(seed)


# -- each of these was told otherwise once ------------------------------------------------------------------------

NINE = datetime(2027, 3, 1, 9, tzinfo=UTC)


def test_what_was_due_before_a_pause_and_is_not_decided_yet_is_skipped() -> None:
    """A spread starts it before its instant; the job was paused between that time and the next tick."""
    early = SpreadPolicy(mode="before", duration_ms=HOUR)
    machine = SimulatedMachine([a_job("30 9 * * *", spread=early)], start=NINE - timedelta(hours=3))
    (first,) = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 1))
    machine.run_until(first.nominal_ms - HOUR - MINUTE)  # it is not on record yet
    machine.pass_time(first.due_ms - machine.now + 1)
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "j", ANN))
    (said, *_) = machine.read(lambda reading: list(forecast_job(job_of(reading), machine.now, machine.now + DAY)))
    answer = machine.read(lambda reading: why(reading, "j", first.nominal_ms, machine.now))
    machine.run_for(HOUR)
    (skipped,) = machine.occurrences("j")
    assert skipped.reason.code is said.reason.code is ReasonCode.PAUSED
    assert answer is not None
    assert answer.cause is Cause.PAUSED


def a_job(schedule: str, **more: Any) -> Job:
    return Job(id="j", schedule=schedule, tasks=(Task(name="t", run=("true",)),), **more)


def job_of(reading: Reading) -> Job:
    found = reading.job("j")
    assert found is not None
    return found


def test_the_next_run_is_the_one_that_starts_next() -> None:
    """`list` named the run of the next instant, where a spread lets that of a later one start before it."""
    wide = SpreadPolicy(mode="after", duration_ms=8 * HOUR)
    machine = SimulatedMachine([a_job("0 * * * *", spread=wide, overlap=OverlapPolicy.ALLOW)], start=NINE, slots=50)
    for _ in range(12):
        (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
        assert row.next is not None
        begun = len(machine.starts("j"))
        machine.run_until(row.next.due_ms - 1)
        assert len(machine.starts("j")) == begun
        machine.run_for(2_000)
        assert len(machine.starts("j")) > begun


def test_the_timeline_of_a_later_day_has_no_run_that_max_does_not_leave() -> None:
    machine = SimulatedMachine([a_job("0 * * * * {max:3}")], start=NINE)
    (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
    tomorrow = Window(machine.now + DAY, 6 * HOUR)
    assert [mark for lane in lanes_in(tomorrow, [row], [], machine.now).lanes for mark in lane.marks] == []


def test_behind_an_outage_only_what_is_made_up_for_is_to_come() -> None:
    """`show` listed every missed instant as a run to come, where the strategy makes up for the latest."""
    machine = SimulatedMachine([a_job("0 * * * *")], start=NINE - timedelta(minutes=30))
    machine.pass_time(3 * HOUR)
    said = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 3))
    machine.boot()
    machine.run_for(3 * HOUR)
    ran = [one.nominal_ms for one in machine.occurrences("j") if one.started_ms is not None]
    assert [run.nominal_ms for run in said] == sorted(ran)[:3]


def test_a_run_on_record_behind_the_end_of_a_pause_is_to_come() -> None:
    machine = SimulatedMachine([a_job("0 9 * * * {jitter:5h}")], start=NINE - timedelta(minutes=30))
    machine.run_until(NINE + timedelta(seconds=1))
    (waiting,) = machine.occurrences("j")
    machine.store.update(lambda tx: pause(Records(tx, machine.now), "j", ANN, until_ms=waiting.due_ms))
    (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
    (first,) = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 1))
    assert row.next == first
    assert (first.nominal_ms, first.due_ms, first.is_drawn) == (waiting.nominal_ms, waiting.due_ms, True)


def test_what_a_spread_has_started_before_its_time_is_not_to_come_again_after_an_edit() -> None:
    """`show`, `list` and the timeline named the run of 09:00, which had run before, and the one that waits twice."""
    early = SpreadPolicy(mode="before", duration_ms=20 * HOUR)
    every = {"overlap": OverlapPolicy.ALLOW}
    machine = SimulatedMachine(
        [a_job("0 */6 * * *", spread=early, **every)], start=NINE - timedelta(hours=30), slots=50
    )
    machine.run_until(NINE)
    before = {one.nominal_ms: one.state for one in machine.occurrences("j") if one.nominal_ms > machine.now}
    assert len(set(before.values())) == 2, "some have run, some wait"
    machine.apply([a_job("0 */6 * * *", **every)])
    (row,) = machine.read(lambda reading: rows_of(reading, machine.now))
    said = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 6))
    window = Window(machine.now + 18 * HOUR, 18 * HOUR)
    marks = [mark for lane in lanes_in(window, [row], [], machine.now).lanes for mark in lane.marks]
    now_ms = machine.now
    machine.run_for(60 * HOUR)
    began = sorted(one.nominal_ms for one in machine.occurrences("j") if (one.started_ms or 0) >= now_ms)
    assert [run.nominal_ms for run in said] == began[:6]
    assert row.next == said[0]
    planned = [mark.start_ms for mark in marks if mark.state == "planned"]
    assert sorted(planned) == [run.due_ms for run in said if run.due_ms <= window.end_ms]


def fails_at_first(launch: Launch) -> ProcessOutcome:
    is_first = launch.attempt.number == 1 and launch.occurrence.nominal_ms == epoch_ms(NINE)
    return ProcessOutcome(1_000, exit_code=int(is_first))


def waiting_for_a_retry(interval_ms: int) -> SimulatedMachine:
    retry = RetryPolicy(max=1, interval_ms=interval_ms, jitter=0)
    job = a_job("0 * * * *", retry=retry)
    return SimulatedMachine([job], start=NINE - timedelta(minutes=30), outcome=fails_at_first)


def listed_and_begun(machine: SimulatedMachine) -> tuple[list[int], list[int]]:
    """What `show` names as the next three, and what then starts; no scheduler runs before that."""
    said = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 3))
    begin_ms = machine.now
    machine.boot()
    machine.run_for(6 * HOUR)
    ran = [one for one in machine.occurrences("j") if (one.started_ms or 0) >= begin_ms]
    return [run.nominal_ms for run in said], sorted(one.nominal_ms for one in ran)[:3]


def test_what_was_missed_while_a_retry_was_awaited_is_skipped_for_it() -> None:
    """`show` named the missed run of 11:00, which finds the retry of 09:00 running when the scheduler is back."""
    machine = waiting_for_a_retry(90 * MINUTE)
    machine.run_until(NINE + timedelta(minutes=10))
    machine.crash()
    machine.pass_time(2 * HOUR)
    said, ran = listed_and_begun(machine)
    assert said == ran


def test_behind_a_missed_run_that_awaits_its_retry_only_what_would_have_run_on_time_is_to_come() -> None:
    machine = waiting_for_a_retry(90 * MINUTE)
    machine.go_down(35 * MINUTE)  # from 08:30 on: that of 09:00 is made up for at 09:05
    machine.run_for(10 * MINUTE)
    said = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 3))
    answer = machine.read(lambda reading: why(reading, "j", epoch_ms(NINE) + HOUR, machine.now))
    machine.run_for(6 * HOUR)
    ran = [one.nominal_ms for one in machine.occurrences("j") if one.nominal_ms > epoch_ms(NINE) and one.started_ms]
    assert [run.nominal_ms for run in said] == sorted(ran)[:3]
    assert answer is not None
    assert answer.cause is Cause.RETRY_WAITS


def test_a_missed_run_with_jitter_is_shown_as_not_drawn_yet() -> None:
    """`show` gave its instant as the certain start; jitter is drawn when it is made up for, and may put it later."""
    machine = SimulatedMachine([a_job("0 9 * * * {jitter:5h}")], start=NINE - timedelta(minutes=30))
    machine.crash()
    machine.pass_time(HOUR)
    (first,) = machine.read(lambda reading: upcoming_runs(reading, job_of(reading), machine.now, 1))
    assert (first.nominal_ms, first.is_drawn) == (epoch_ms(NINE), False)
