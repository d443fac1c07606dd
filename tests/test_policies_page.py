"""docs/policies.md shows what each policy does, drawn from the engine on a simulated machine.

CHRONEX_UPDATE_DOCS=1 draws the pictures anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from chronex.engine.commands import Actor, pause
from chronex.engine.commands.backfill import BackfillScope, fill, plan_backfill
from chronex.engine.orders import Launch
from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import (
    Cadence,
    DstSetting,
    FailureStrategy,
    Found,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    SpreadPolicy,
    When,
)
from chronex.model.reasons import text_of
from chronex.model.states import OccurrenceState
from chronex.storage.records import Records
from chronex.testing import DAY, HOUR, MINUTE, SECOND, ProcessOutcome, SimulatedMachine
from tests.kit.machine import START
from tests.kit.timeline import (
    DOWN,
    LEGEND,
    NOT_RUN,
    RUNS,
    WAITS,
    Bar,
    Lane,
    Ruler,
    bars_of,
    draw,
    occurrence_lanes,
    task_lanes,
)

PAGE = Path(__file__).parent.parent / "docs" / "policies.md"
PICTURE = re.compile(r"(<!-- picture: (\S+) -->\n```text\n)(.*?)(\n```\n)", re.DOTALL)
MAIN = (Task(name="main", run=("true",)),)
STEPS = tuple(Task(name=name, run=("true",)) for name in ("a", "b", "c"))
TEN_MINUTES = Ruler(START, 15 * SECOND, 40, 4)
HALF_AN_HOUR = Ruler(START, MINUTE, 30, 5)
AN_HOUR = Ruler(START, 2 * MINUTE, 40, 5)


def machine_of(*jobs: Job, takes: int = 4 * MINUTE, fails: str = "", **more: Any) -> SimulatedMachine:
    """Every run takes as long; a task whose name is in `fails` ends with exit code 1."""

    def outcome(launch: Launch) -> ProcessOutcome:
        return ProcessOutcome(takes, int(launch.task.name in fails.split()))

    return SimulatedMachine(jobs, outcome=outcome, **more)


def job_of(schedule: str, name: str = "job", tasks: tuple[Task, ...] = MAIN, **policy: Any) -> Job:
    return Job(id=name, schedule=schedule, tasks=tasks, **policy)


def overlap() -> str:
    def lanes(policy: OverlapPolicy) -> list[Lane]:
        machine = machine_of(job_of("10-50/10 0 * * *", overlap=policy), takes=24 * MINUTE)
        machine.run_until(AN_HOUR.end_ms)
        return occurrence_lanes(machine, "job", AN_HOUR)

    return draw(AN_HOUR, [(f'overlap = "{policy}"', lanes(policy)) for policy in OverlapPolicy])


def recovery() -> str:
    policies = [
        RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=2) if strategy is RecoveryStrategy.BOUNDED else RecoveryPolicy(strategy)
        for strategy in RecoveryStrategy
    ]  # fmt: skip

    def lanes(policy: RecoveryPolicy) -> list[Lane]:
        machine = machine_of(job_of("10-50/10 0 * * *", recovery=policy), takes=3 * MINUTE)
        machine.run_until(START + 16 * MINUTE)
        machine.go_down(36 * MINUTE)
        machine.run_until(AN_HOUR.end_ms)
        down = Lane("  down", (Bar(START + 16 * MINUTE, START + 52 * MINUTE, DOWN),))
        return [down, *occurrence_lanes(machine, "job", AN_HOUR)]

    return draw(AN_HOUR, [(f'recovery = "{policy.strategy}"', lanes(policy)) for policy in policies])


def failure() -> str:
    def lanes(policy: FailureStrategy) -> list[Lane]:
        job = job_of("@once 2027-01-01T00:01:00Z", tasks=STEPS, failure=policy)
        machine = machine_of(job, takes=MINUTE, fails="b")
        machine.run_until(TEN_MINUTES.end_ms)
        return task_lanes(machine, "job")

    return draw(TEN_MINUTES, [(f'on_failure = "{policy}"', lanes(policy)) for policy in FailureStrategy])


def graph() -> str:
    def step(name: str, *needs: str, when: When = When.SUCCESS) -> Task:
        return Task(name=name, run=("true",), needs=needs, when=when)

    tasks = (
        step("extract"),
        step("check", "extract"),  # before load, which ends with it and may fail: what has ended is not canceled
        step("load", "extract"),
        step("publish", "load", "check"),
        step("undo", "load", "check", when=When.FAILURE),
        step("tidy", "publish", "undo", when=When.DONE),
    )

    def lanes(fails: str) -> list[Lane]:
        machine = machine_of(job_of("@once 2027-01-01T00:01:00Z", tasks=tasks), takes=MINUTE, fails=fails)
        machine.run_until(TEN_MINUTES.end_ms)
        return task_lanes(machine, "job")

    return draw(TEN_MINUTES, [("all goes well", lanes("")), ("load fails", lanes("load"))])


def chain() -> str:
    def lanes(fails: str) -> list[Lane]:
        jobs = (
            job_of("2,22 0 * * *", "etl", tasks=(Task(name="etl", run=("true",)),)),
            job_of("", "report", after=("etl",)),
            job_of("5 0 * * *", "weekly", after=("etl",)),
        )
        machine = machine_of(*jobs, takes=6 * MINUTE, fails=fails)
        machine.run_until(AN_HOUR.end_ms)
        found = [(job.id, machine.occurrences(job.id)) for job in jobs]
        return [
            Lane(f"  {name:6} {one.nominal_ms // MINUTE % 60:02}", bars_of(machine, one), _ended(one))
            for name, ones in found
            for one in ones
        ]

    return draw(
        AN_HOUR,
        [("report follows etl; weekly has 5 0 * * * and is after etl", lanes("")), ("etl fails", lanes("etl"))],
    )


def _ended(one: Occurrence) -> str:
    reason = text_of(one.reason).partition(": occ_")[0]
    return one.state.value + (f": {reason}" if reason and one.state is OccurrenceState.SKIPPED else "")


def retry() -> str:
    policy = RetryPolicy(max=3, interval_ms=2 * MINUTE, jitter=0)
    machine = machine_of(job_of("@once 2027-01-01T00:02:00Z", retry=policy), takes=2 * MINUTE, fails="main")
    machine.run_until(HALF_AN_HOUR.end_ms)
    return draw(
        HALF_AN_HOUR,
        [('retry = { max = 3, interval = "2m", jitter = 0 }', occurrence_lanes(machine, "job", HALF_AN_HOUR))],
    )


def timeout() -> str:
    machine = machine_of(job_of("@once 2027-01-01T00:02:00Z", execution_timeout_ms=10 * MINUTE), takes=HOUR)
    machine.run_until(HALF_AN_HOUR.end_ms)
    (lane,) = occurrence_lanes(machine, "job", HALF_AN_HOUR)
    # The simulated machine ends it as canceled, a daemon as failed; both say why.
    lane = lane._replace(words=lane.words.rpartition(": ")[2])
    return draw(HALF_AN_HOUR, [('execution_timeout = "10m"', [lane])])


def spread() -> str:
    jobs = {
        "plain": job_of("10 * * * *", "plain"),
        "spread": job_of("10 * * * *", "spread", spread=SpreadPolicy(duration_ms=30 * MINUTE)),
        "stagger": job_of("10 * * * * {stagger:30m}", "stagger"),
        "jitter": job_of("10 * * * * {jitter:30m}", "jitter"),
    }
    ruler = Ruler(START, 4 * MINUTE, 45, 15)
    machine = machine_of(*jobs.values())
    machine.run_until(ruler.end_ms)
    keys = {
        "plain": "",
        "spread": 'spread = { duration = "30m" }',
        "stagger": "{stagger:30m}",
        "jitter": "{jitter:30m}",
    }
    lanes = [
        Lane(
            f"  {name}", tuple(bar for one in machine.occurrences(name) for bar in bars_of(machine, one)), keys[name]
        )
        for name in jobs
    ]
    return draw(ruler, [('schedule = "10 * * * *"', lanes)])


def calendars() -> str:
    wednesday = (date(2027, 1, 6) - date(1970, 1, 1)).days
    closed = JobCalendar(name="closed", days=(wednesday, wednesday))
    rules = {
        'except = ["closed"]': CalendarRules(excluded=(closed,)),
        'on_excluded = "next_workday"': CalendarRules(excluded=(closed,), on_excluded=OnExcluded.NEXT_WORKDAY),
        'on_excluded = "previous_workday"': CalendarRules(
            excluded=(closed,), on_excluded=OnExcluded.PREVIOUS_WORKDAY
        ),
        "workday = [2]": CalendarRules(workday=(2,)),
        '[scheduler] blackout = ["closed"]': CalendarRules(blackout=(closed,)),
    }
    ruler = Ruler(START + 3 * DAY, 4 * HOUR, 42, 6)
    lanes = []
    for key, rule in {"": None, **rules}.items():
        machine = machine_of(job_of("0 9 * * MON,WED,FRI", calendars=rule), takes=HOUR)
        machine.run_until(ruler.end_ms)
        bars = tuple(
            bar
            for one in machine.occurrences("job")
            for bar in bars_of(machine, one)
            if bar.start_ms >= ruler.start_ms
        )
        lanes.append(Lane("", bars, key))
    return draw(ruler, [('schedule = "0 9 * * MON,WED,FRI", and the calendar "closed" has Wednesday', lanes)])


def window() -> str:
    def lanes(key: str) -> list[Lane]:
        long = job_of("@once 2027-01-01T00:02:00Z", "long", tasks=(Task(name="slow", run=("true",)),))
        machine = SimulatedMachine(
            [long, job_of(f"5 * * * *{key}")],
            slots=1,
            outcome=lambda launch: ProcessOutcome((17 if launch.task.name == "slow" else 4) * MINUTE),
        )
        machine.run_until(HALF_AN_HOUR.end_ms)
        (first,) = machine.occurrences("long")
        return [Lane("  another", bars_of(machine, first)), *occurrence_lanes(machine, "job", HALF_AN_HOUR)]

    keys = ("", " {window:10m}")
    return draw(HALF_AN_HOUR, [(f'schedule = "5 * * * *{key}", max_concurrent_jobs = 1', lanes(key)) for key in keys])


def paused() -> str:
    machine = machine_of(job_of("10-50/10 0 * * *"))
    machine.run_until(START + 16 * MINUTE)
    until = START + 36 * MINUTE
    machine.store.update(
        lambda tx: pause(Records(tx, machine.now), "job", Actor("ann", "cli", "desk"), until_ms=until)
    )
    machine.run_until(AN_HOUR.end_ms)
    return draw(AN_HOUR, [("paused at 00:16 until 00:36", occurrence_lanes(machine, "job", AN_HOUR))])


def backfilled() -> str:
    """As `chronex backfill` does it: the next one is asked for when the one before it has ended."""
    policy = RecoveryPolicy(RecoveryStrategy.MARK_MISSED)
    machine = machine_of(job_of("10-50/10 0 * * *", recovery=policy), takes=3 * MINUTE)
    machine.run_until(START + 6 * MINUTE)
    machine.go_down(30 * MINUTE)
    machine.run_until(START + 44 * MINUTE)
    found = machine.read(
        lambda reading: plan_backfill(reading, "job", START, START + 40 * MINUTE, BackfillScope.MISSING, machine.now)
    )
    for instant in found.instants:
        machine.store.update(
            lambda tx, instant=instant: fill(
                Records(tx, machine.now), "job", instant, Actor("ann", "cli", "desk"), ""
            )  # type: ignore[misc]
        )
        machine.run_until(machine.now + 4 * MINUTE)
    machine.run_until(AN_HOUR.end_ms)
    lanes = [
        lane._replace(label=f"  {AN_HOUR.time(one.scheduled_ms)}")
        for one, lane in zip(machine.occurrences("job"), occurrence_lanes(machine, "job", AN_HOUR), strict=True)
    ]
    return draw(AN_HOUR, [("at 00:44: chronex backfill job --from 00:00 --to 00:40", lanes)])


def cadence() -> str:
    def lanes(value: Cadence) -> list[Lane]:
        machine = machine_of(job_of("@every 15m", cadence=value), takes=6 * MINUTE)
        machine.run_until(AN_HOUR.end_ms)
        return occurrence_lanes(machine, "job", AN_HOUR)

    return draw(AN_HOUR, [(f'cadence = "{value}"', lanes(value)) for value in Cadence])


BERLIN = ZoneInfo("Europe/Berlin")
SCHEDULES = {"fixed": "30 2 * * *", "interval": "*/30 * * * *"}


def night(first: datetime, schedules: dict[str, str], settings: tuple[DstSetting, ...], key: str) -> str:
    """Starts in the night of a clock change; each hour that is lived has a column of its own."""
    ruler = Ruler(round(first.timestamp() * 1000), 10 * MINUTE, 30, 6, BERLIN)
    groups = []
    for setting in settings:
        lanes = []
        for kind, schedule in schedules.items():
            job = job_of(schedule, timezone="Europe/Berlin", dst=setting)
            machine = SimulatedMachine([job], start=ruler.start_ms - SECOND)
            machine.run_until(ruler.end_ms)
            bars = tuple(Bar(p.started_ms, p.started_ms, RUNS) for p in machine.processes)
            lanes.append(Lane(f"  {kind}", bars, f'schedule = "{schedule}"'))
        groups.append((f'dst = {{ {key} = "{getattr(setting, key)}" }}', lanes))
    return draw(ruler, groups)


def gap() -> str:
    settings = tuple(DstSetting(gap=value, overlap="by-kind") for value in ("end", "skip"))
    return night(datetime(2027, 3, 28, 0, tzinfo=BERLIN), SCHEDULES, settings, "gap")


def doubled() -> str:
    settings = tuple(DstSetting(gap="end", overlap=value) for value in ("by-kind", "first", "both"))
    return night(datetime(2027, 10, 31, 1, tzinfo=BERLIN), SCHEDULES, settings, "overlap")


def _named_lanes(machine: SimulatedMachine, *names: str) -> list[Lane]:
    """One line for all occurrences of a job, up to the end of the ruler."""
    return [
        Lane(f"  {name}", tuple(bar for one in machine.occurrences(name) for bar in bars_of(machine, one)))
        for name in names
    ]


def grouped(settings: GroupSettings) -> SimulatedMachine:
    names = ("backup", "reindex", "report")
    jobs = [
        job_of("10 0 * * *", name, groups={"database": 1}, priority=20 if name == "report" else 0) for name in names
    ]
    machine = machine_of(takes=12 * MINUTE)
    machine.apply(jobs, groups=[settings])
    machine.run_until(AN_HOUR.end_ms)
    return machine


def groups() -> str:
    machine = grouped(GroupSettings("database", limit=1))
    return draw(AN_HOUR, [("[groups.database] limit = 1", _named_lanes(machine, "backup", "reindex", "report"))])


def rate() -> str:
    machine = grouped(GroupSettings("database", rate=StartRate(1, 20 * MINUTE)))
    return draw(AN_HOUR, [('[groups.database] rate = "1/20m"', _named_lanes(machine, "backup", "reindex", "report"))])


def conditions() -> str:
    def lanes(wait_at_most_ms: int) -> list[Lane]:
        job = job_of("5 0 * * *", wait_for=("path:/nas",), wait_at_most_ms=wait_at_most_ms)
        machine = machine_of(job, takes=6 * MINUTE)
        for minute in range(5, 21):  # as a daemon would look; it is mounted at 00:20
            machine.run_until(START + minute * MINUTE)
            lacking = "" if minute == 20 else "path:/nas (no such file or directory)"
            machine.engine.found["job"] = Found(not lacking, machine.now, lacking)
            machine.engine.has_news = True
        machine.run_until(HALF_AN_HOUR.end_ms)
        return occurrence_lanes(machine, "job", HALF_AN_HOUR)

    waits = {"1h": HOUR, "10m": 10 * MINUTE}
    return draw(HALF_AN_HOUR, [(f'wait_at_most = "{text}"', lanes(ms)) for text, ms in waits.items()])


PICTURES: dict[str, Callable[[], str]] = {
    "overlap": overlap, "recovery": recovery, "failure": failure, "retry": retry, "timeout": timeout, "spread": spread,
    "window": window, "pause": paused, "cadence": cadence, "dst-gap": gap, "dst-overlap": doubled,
    "calendars": calendars, "groups": groups, "rate": rate, "conditions": conditions,
    "graph": graph, "chain": chain, "backfill": backfilled,
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_engine_does(name: str) -> None:
    fresh = PICTURES[name]()
    assert all(len(line) <= 118 for line in fresh.splitlines())
    if os.environ.get("CHRONEX_UPDATE_DOCS"):
        replaced = PICTURE.sub(
            lambda found: found[1] + fresh + found[4] if found[2] == name else found[0], PAGE.read_text()
        )
        PAGE.write_text(replaced)
    shown = {found[2]: found[3] for found in PICTURE.finditer(PAGE.read_text())}
    assert shown.get(name) == fresh


def test_the_page_shows_every_picture_once() -> None:
    assert LEGEND in PAGE.read_text()
    assert sorted(found[2] for found in PICTURE.finditer(PAGE.read_text())) == sorted(PICTURES)


def test_what_runs_and_what_waits_is_drawn_in_its_columns() -> None:
    ruler = Ruler(round(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1000), MINUTE, 10, 5)
    bars = (Bar(START + MINUTE, START + 3 * MINUTE, WAITS), Bar(START + 3 * MINUTE, START + 4 * MINUTE + 1, RUNS))
    lanes = [Lane("a", bars, "completed"), Lane("b", (Bar(START + 9 * MINUTE, START + 9 * MINUTE, NOT_RUN),))]
    assert draw(ruler, [("title", lanes)]).splitlines() == [
        "            :00  :05",
        "title",
        "a            ··██       completed",
        "b                    ○",
    ]
