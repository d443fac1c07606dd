"""Previews never lie about those who wait: groups, rates, priorities, `after`, calendars and overlap, together.

When others give back a place no list of coming runs can know, so such a list names what a run may wait for, and
`simulate` says when it starts, for the durations that it is given. Both are held to what the simulated engine does.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from chronex.engine.orders import Launch
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import NO_PROGRESS, SCHEDULES_APART, Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy, SpreadPolicy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState as S
from chronex.model.states import is_final
from chronex.storage.records import Reading
from chronex.testing import DAY, HOUR, MINUTE, SECOND, ProcessOutcome, SimulatedMachine
from chronex.views.coming_runs import forecast_job, may_wait_for
from chronex.views.simulation import simulate_runs
from tests.kit.machine import START

SCHEDULES = ("*/30 * * * *", "0 * * * *", "*/20 * * * *", "15 */2 * * * | 0 */3 * * *", "45 * * * *", "@every 50m")
GROUPS = (
    GroupSettings("one", limit=1),
    GroupSettings("three", limit=3),
    GroupSettings("slow", rate=StartRate(2, 40 * MINUTE)),
)
IN_GROUPS: tuple[dict[str, int], ...] = ({}, {}, {"one": 1}, {"three": 2}, {"three": 1, "one": 1}, {"slow": 1})
LENGTH = DAY


class Week(NamedTuple):
    jobs: list[Job]
    takes: dict[str, int]
    slots: int


def drawn(random: Random) -> Week:
    jobs = [
        _job(random, f"job-{number}", schedule=random.choice(SCHEDULES)) for number in range(random.randint(2, 5))
    ]
    names = [job.id for job in jobs]
    if random.random() < 0.6:
        jobs.append(_job(random, "follows", schedule="", after=tuple(random.sample(names, random.choice((1, 1, 2))))))
    if random.random() < 0.5:
        window = random.choice(("", " {window:25m}"))
        minutes = random.choice(("5", "5", "*/10"))
        jobs.append(_job(random, "waits", schedule=f"{minutes} 3-23 * * *{window}", after=(random.choice(names),)))
    takes = {job.id: random.choice((5 * SECOND, 3 * MINUTE, 11 * MINUTE, 34 * MINUTE)) for job in jobs}
    return Week(jobs, takes, random.choice((1, 2, 50)))


def _job(random: Random, name: str, schedule: str, after: tuple[str, ...] = ()) -> Job:
    today = START // DAY
    off = JobCalendar(name="off", times=tuple(today * 86_400 + hour * 3_600 for hour in (5, 7, 11, 12)))
    darkens = today * 86_400 + random.choice((3, 9, 14)) * 3_600 + random.choice((0, 240))
    dark = JobCalendar(name="dark", times=(darkens, darkens + random.choice((600, 3_600, 14_400))))
    overlap = random.choice(list(OverlapPolicy))
    rules = CalendarRules(excluded=(off,), blackout=() if random.random() < 0.5 else (dark,))
    return Job(
        id=name,
        schedule=schedule,
        after=after,
        tasks=(Task(name="t", run=("true",)),),
        overlap=overlap,
        groups=random.choice(IN_GROUPS),
        priority=random.choice((0, 0, 7, -30)),
        calendars=rules if random.random() < 0.4 and schedule else None,
    )


def played_by_the_engine(week: Week) -> tuple[SimulatedMachine, dict[tuple[str, int], Occurrence]]:
    def outcome(launch: Launch) -> ProcessOutcome:
        return ProcessOutcome(week.takes[launch.job.id])

    machine = SimulatedMachine(start=START, slots=week.slots, outcome=outcome)
    machine.stop_time = lambda _launch: 0
    machine.apply(week.jobs, groups=GROUPS)
    machine.run_until(START + LENGTH)
    found = [one for job in week.jobs for one in machine.occurrences(job.id)]
    return machine, {(one.job, one.nominal_ms): one for one in found if is_final(one.state)}


def check_simulated(week: Week) -> None:
    """Each run ends in the same way, and starts at the same time."""
    machine, real = played_by_the_engine(week)
    stored = machine.read(lambda reading: [reading.job(job.id) for job in week.jobs])
    begun = [replace(job, progress=NO_PROGRESS) for job in stored if job is not None]  # as it was applied
    runs = simulate_runs(begun, START, START + LENGTH, week.takes.__getitem__, week.slots, Random(1), GROUPS)
    said = {(one.occurrence.job, one.occurrence.nominal_ms): one for one in runs}
    for key, one in sorted(real.items(), key=lambda item: (item[1].finished_ms or 0, item[0])):
        assert key in said, f"{key} is {one.state} ({one.reason}), and was not simulated"
        simulated = said[key]
        told = (simulated.state, simulated.reason.code, simulated.started_ms)
        assert told == (one.state, one.reason.code, one.started_ms), f"{key}: {simulated.reason}; {one.reason}"
    early = [
        key
        for key, one in said.items()
        if key not in real and (one.ended_ms or 0) and (one.ended_ms or 0) < START + LENGTH - HOUR
    ]
    assert early == [], "simulated, and the engine knows nothing of them"


WAITS_OF_ITS_OWN = {ReasonCode.OVERLAP, ReasonCode.EARLIER_WAITS, ReasonCode.GAVE_WAY, ReasonCode.QUEUE_FULL}
PARENTS = {
    ReasonCode.PARENT_SKIPPED,
    ReasonCode.PARENT_CANCELED,
    ReasonCode.PARENT_TOO_LATE,
    ReasonCode.PARENT_MISSED,
}


def check_forecast(week: Week) -> None:
    """Every instant is told; what does not start on time has a group, a parent, its own job or the pool in its way."""
    empty = SimulatedMachine(start=START)
    empty.apply(week.jobs, groups=GROUPS)
    told = empty.read(lambda reading: [_told(reading, job) for job in week.jobs])
    _, real = played_by_the_engine(week)
    for job, (forecast, waits) in zip(week.jobs, told, strict=True):
        ours = {nominal: one for (name, nominal), one in real.items() if name == job.id}
        if job.schedule:
            assert set(ours) <= set(forecast)
        for nominal, one in ours.items():
            due_ms, reason = forecast.get(nominal, (one.due_ms, ""))
            is_on_time = one.started_ms == due_ms
            excuses = bool(waits or job.after or week.slots < 50 or job.overlap is not OverlapPolicy.ALLOW)
            assert is_on_time or reason or excuses, f"{one.id} of {job.id}: {one.state} {one.reason}"
            if reason:
                assert one.state is S.SKIPPED
            if one.state is S.SKIPPED and not reason:
                allowed = (
                    WAITS_OF_ITS_OWN
                    | {ReasonCode.WINDOW_EXCEEDED, ReasonCode.BLACKOUT}
                    | (PARENTS if job.after else set())
                )
                assert one.reason.code in allowed, f"{one.reason} was not to be expected"


def _told(reading: Reading, job: Job) -> tuple[dict[int, tuple[int, str]], tuple[str, ...]]:
    stored = reading.job(job.id)
    assert stored is not None
    forecast = forecast_job(stored, START, START + LENGTH) if job.schedule else ()
    return {one.nominal_ms: (one.due_ms, str(one.reason)) for one in forecast}, may_wait_for(stored)


@pytest.mark.parametrize("seed", ["waiting 3", "many 30", "many 61", "many 2049", "many 2420", "many 3461"])
def test_what_is_simulated_of_those_who_wait_is_what_the_engine_does(seed: str) -> None:
    check_simulated(drawn(Random(seed)))


@pytest.mark.parametrize("seed", range(2))
def test_what_lists_say_of_those_who_wait_is_what_the_engine_does(seed: int) -> None:
    check_forecast(drawn(Random(f"told {seed}")))


@pytest.mark.torture
@pytest.mark.parametrize("first", range(0, 1_000, 50))
def test_previews_of_those_who_wait_hold_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        check_simulated(drawn(Random(f"many {seed}")))
        check_forecast(drawn(Random(f"many {seed}")))


# -- the same with what those days do not have: options, spreads, several schedules, days that are moved -----------

OPTIONS = (
    "max:5",
    "stagger:25m",
    "window:20m",
    "from:2027-01-01T06:10",
    "until:2027-01-01T17:00",
    "max:9, window:1h",
)


def made_odd(week: Week, random: Random) -> Week:
    """Of a parent that is waited for what came before the day is taken to have completed, so it has instants early."""
    awaited = {parent for job in week.jobs if job.schedule for parent in job.after}
    return week._replace(
        jobs=[_odd(job, random, is_awaited=job.id in awaited) if job.schedule else job for job in week.jobs]
    )


def _odd(job: Job, random: Random, *, is_awaited: bool) -> Job:
    changes: dict[str, Any] = {}
    schedule = job.schedule.partition(" {")[0]
    is_interval = "@every" in schedule
    if random.random() < 0.5:
        changes["schedule"] = f"{schedule} {{{random.choice(OPTIONS)}}}"
    if random.random() < 0.3 and not is_interval and not job.after and not is_awaited:
        more = random.choice(("7 */3 * * *", "30,31 5-7 * * *", "0 12 * * *"))
        changes["schedule"] = f"{changes.get('schedule', schedule)}{SCHEDULES_APART}{more}"
    if random.random() < 0.3 and not is_interval and not job.after:
        duration = random.choice((10 * MINUTE, 90 * MINUTE))
        changes["spread"] = SpreadPolicy(mode=random.choice(("before", "around", "after")), duration_ms=duration)
        changes["schedule"] = f"{schedule} {{{random.choice(('', 'max:5, ', 'stagger:25m, '))}from:2027-01-01T02:00}}"
    if random.random() < 0.3 and not is_awaited:
        changes["calendars"] = _odd_rules(random, can_move=not is_interval)
    if random.random() < 0.3 and not job.after:
        changes["timezone"] = random.choice(("Asia/Tokyo", "America/New_York", "Australia/Lord_Howe"))
    if is_interval and not is_awaited and random.random() < 0.3:
        changes["cadence"] = Cadence.FIXED_DELAY
    return replace(job, **changes)


def _odd_rules(random: Random, *, can_move: bool) -> CalendarRules:
    today = START // DAY
    first = today + random.choice((-1, 0, 1))
    off = JobCalendar(name="off", days=(first, first), weekend=())
    edges = sorted(random.sample(range(0, 24 * 60, 10), 6))
    hours = JobCalendar(name="hours", times=tuple(today * 86_400 + edge * 60 for edge in edges))
    if random.random() < 0.4:
        return CalendarRules(only=(hours,), blackout=(off,) if random.random() < 0.2 else ())
    moves = random.choice(list(OnExcluded)) if can_move else OnExcluded.SKIP
    return CalendarRules(excluded=(off,), on_excluded=moves, blackout=(hours,) if random.random() < 0.5 else ())


@pytest.mark.parametrize("seed", [*range(4), 1547, 1964])
def test_what_is_simulated_of_odd_jobs_that_wait_is_what_the_engine_does(seed: int) -> None:
    random = Random(f"odd {seed}")
    check_simulated(made_odd(drawn(random), random))


@pytest.mark.torture
@pytest.mark.parametrize("first", range(1_000, 2_000, 50))
def test_what_is_simulated_of_odd_jobs_holds_for_many_seeds(first: int) -> None:
    for seed in range(first, first + 50):
        random = Random(f"odd {seed}")
        check_simulated(made_odd(drawn(random), random))


# -- each of these was told otherwise once, or depended on how often the engine looked ---------------------------


def a_job(name: str, schedule: str, **more: Any) -> Job:
    return Job(id=name, schedule=schedule, tasks=(Task(name="t", run=("true",)),), **more)


def minutes(week: Week, job: str) -> list[str]:
    """What the engine makes of a job's first instants: how each ended, and the minutes at which it began and ended."""
    _, real = played_by_the_engine(week)
    ours = sorted((nominal, one) for (name, nominal), one in real.items() if name == job)
    begun = [(one, "-" if one.started_ms is None else (one.started_ms - START) // MINUTE) for _, one in ours]
    return [f"{one.state} {at} {((one.finished_ms or 0) - START) / MINUTE:g}" for one, at in begun][:4]


DARK = CalendarRules(blackout=(JobCalendar(name="dark", times=(START // 1000 + 2_460, START // 1000 + 6_000)),))
TEN = "*/10 0 * * *"
CASES = {
    "a run ends in a blackout: all that wait for it are skipped then": (
        Week([a_job("a", TEN, overlap=OverlapPolicy.QUEUE, calendars=DARK)], {"a": 35 * MINUTE}, 50),
        "a",
        ["completed 10 45", "skipped - 45", "skipped - 45", "skipped - 45"],
    ),
    "a window is over for the first in line: the one behind it has its turn": (
        Week(
            [
                a_job("a", "*/10 0 * * * {window:12m}", overlap=OverlapPolicy.QUEUE, groups={"one": 1}),
                a_job("b", "5 0 * * *", groups={"one": 1}),
            ],
            {"a": MINUTE, "b": 28 * MINUTE},
            50,
        ),
        "a",
        ["skipped - 22", "skipped - 32", "completed 33 34", "completed 40 41"],
    ),
    "a window is over for the one that waits: the next one may wait from then on": (
        Week(
            [
                a_job("a", "*/10 0 * * * {window:15m}", overlap=OverlapPolicy.QUEUE_ONE, groups={"one": 1}),
                a_job("b", "5 0 * * *", groups={"one": 1}),
            ],
            {"a": MINUTE, "b": 31 * MINUTE},
            50,
        ),
        "a",
        ["skipped - 25", "skipped - 20", "completed 36 37", "completed 40 41"],
    ),
    "those that their parent lets go are newcomers: of several the newest wins": (
        Week(
            [
                a_job("etl", "8 0 * * *"),
                a_job("a", TEN, after=("etl",), overlap=OverlapPolicy.CANCEL_RUNNING),
            ],
            {"etl": 25 * MINUTE, "a": 2 * MINUTE},
            50,
        ),
        "a",
        ["canceled 33 33", "skipped - 33", "completed 33 35", "completed 40 42"],
    ),
    "one that is let go when the next is due comes behind it": (
        Week(
            [
                a_job("etl", "10 0 * * *"),
                a_job("a", "15,20 0 * * *", after=("etl",), overlap=OverlapPolicy.SKIP, groups={"one": 1}),
                a_job("b", "16 0 * * *", groups={"one": 1}),
            ],
            {"etl": 10 * MINUTE, "a": MINUTE, "b": 8 * MINUTE},
            50,
        ),
        "a",
        ["skipped - 20", "completed 24 25"],
    ),
    "of those that are let go and those that are due the highest priority is first": (
        Week(
            [
                a_job("etl", "0,20 0 * * *"),
                a_job("first", "25 0 * * *", after=("etl",), priority=5),
                a_job("a", "30 0 * * *"),
            ],
            {"etl": 10 * MINUTE, "first": 5 * MINUTE, "a": MINUTE},
            1,
        ),
        "a",
        ["completed 35 36"],
    ),
    "what is skipped does not count against `max`": (
        Week([a_job("a", "*/10 0 * * * {max:2}", overlap=OverlapPolicy.SKIP)], {"a": 25 * MINUTE}, 50),
        "a",
        ["completed 10 35", "skipped - 20", "skipped - 30", "completed 40 65"],
    ),
    "what still waits when `max` is reached is skipped at its turn": (
        Week([a_job("a", "*/10 0 * * * {max:2}", overlap=OverlapPolicy.QUEUE)], {"a": 25 * MINUTE}, 50),
        "a",
        ["completed 10 35", "completed 35 60", "skipped - 60"],
    ),
    "an interval that counts from its end starts as often as `max` says": (
        Week([a_job("a", "@every 7m {max:2}", cadence=Cadence.FIXED_DELAY)], {"a": 5 * MINUTE}, 50),
        "a",
        ["completed 7 12", "completed 19 24"],
    ),
    "an interval that counts from its end counts from what was skipped too": (
        Week([a_job("a", "@every 20m", cadence=Cadence.FIXED_DELAY, calendars=DARK)], {"a": 5 * MINUTE}, 50),
        "a",
        ["completed 20 25", "skipped - 45", "skipped - 65", "skipped - 85"],
    ),
    "a parent whose `max` is used up has no newer occurrence to wait for": (
        Week(
            [a_job("etl", "*/10 0 * * * {max:1}"), a_job("a", "25,45 0 * * *", after=("etl",))],
            {"etl": 3 * MINUTE, "a": MINUTE},
            50,
        ),
        "a",
        ["completed 25 26", "completed 45 46"],
    ),
    "one of higher priority is decided before its parent, which has none for that instant: it waits no longer": (
        Week(
            [
                a_job("etl", "0 * * * * {max:2}"),
                a_job("a", "0,20 3 * * *", after=("etl",), overlap=OverlapPolicy.SKIP, priority=7),
            ],
            {"etl": 5 * MINUTE, "a": 3 * MINUTE},
            1,
        ),
        "a",
        ["completed 180 183", "completed 200 203"],
    ),
    "a parent that begins later has not run yet": (
        Week(
            [
                a_job("etl", "*/10 * * * * {from:2027-01-01T00:30}"),
                a_job("a", "15,25,35,45 0 * * *", after=("etl",)),
            ],
            {"etl": 3 * MINUTE, "a": MINUTE},
            50,
        ),
        "a",
        ["skipped - 15", "skipped - 25", "completed 35 36", "completed 45 46"],
    ),
    "what a spread puts before the beginning starts at once": (
        Week(
            [a_job("a", "20 0 1 1 *", spread=SpreadPolicy(mode="before", duration_ms=40 * MINUTE, only="hours=23"))],
            {"a": 5 * MINUTE},
            50,
        ),
        "a",
        ["completed 0 5"],
    ),
    "a rate lets a line go on at an instant that `max` does not leave": (
        Week(
            [
                a_job("b", "10,20,30 0 * * *", groups={"slow": 1}),
                a_job("a", "30,50 0 * * * {max:1}"),
            ],
            {"a": MINUTE, "b": 3 * MINUTE},
            50,
        ),
        "b",
        ["completed 10 13", "completed 20 23", "completed 50 53"],
    ),
    "a rate lets a line go on when a canceled run would have ended": (
        Week(
            [
                a_job("a", "0,6,12 1 * * *", overlap=OverlapPolicy.CANCEL_RUNNING, groups={"slow": 1}),
                a_job("b", "13 1 * * *", groups={"slow": 1}, priority=50),
            ],
            {"a": 40 * MINUTE, "b": MINUTE},
            50,
        ),
        "b",
        ["completed 100 101"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_happens_as_worked_out_by_hand_and_is_simulated_so(case: str) -> None:
    week, job, expected = CASES[case]
    assert minutes(week, job) == expected
    check_simulated(week)
