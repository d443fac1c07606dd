"""Random jobs, in which every policy of the model turns up within a few dozen seeds, and the jobs of a typical year."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.orders import Launch
from chronex.model.groups import GroupSettings, StartRate
from chronex.model.job import Job, Task
from chronex.model.policies import (
    Cadence,
    CrashCheck,
    CrashPolicy,
    FailureStrategy,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    SpreadPolicy,
    TaskMode,
)
from chronex.testing import DAY, HOUR, MINUTE, SECOND, WEEK, ProcessOutcome
from tests.engine.simulator.expected_schedule import AfterEnd, Chain, Cron, Expected, FixedRate

LONGEST_RUN = 12 * MINUTE
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu")
# Around the clock changes of the zones above, and a week in which none has one.
STARTS = tuple(
    int(datetime(*day, tzinfo=UTC).timestamp()) * 1000
    for day in ((2027, 3, 10), (2027, 3, 25), (2027, 4, 1), (2027, 10, 1), (2027, 10, 28), (2028, 2, 26))
)
FIELDS = (
    "0 * * * *", "17 * * * *", "*/30 * * * *", "0 */2 * * *", "30 2 * * *", "15 1,2,3 * * *", "45 23 * * *", "0 0 * * *",
    "0 9 * * MON-FRI", "10 8-18/2 * * *", "0 0 1,29 * *", "30 1 * * SUN",
)  # fmt: skip
OPTIONS = (
    "",
    "",
    "",
    "jitter:20s",
    "stagger:5m",
    "window:90s",
    "max:9",
    "jitter:2m, window:1m",
    "stagger:30s, max:40",
)
SPREADS = (
    SpreadPolicy("after", 30 * MINUTE),
    SpreadPolicy("before", 20 * MINUTE, "skewLate"),
    SpreadPolicy("around", HOUR, "normal", seed="daily"),
    SpreadPolicy("after", 2 * HOUR, only="hours=0-5,12"),
)


class DrawnJob(NamedTuple):
    job: Job
    expected: Expected


class DrawnOutcomes:
    """What processes do: most are short, one in five fails, and some take a while to stop."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def run(self, _launch: Launch) -> ProcessOutcome:
        longest = self._random.choice((200, 5_000, 5_000, 50_000, LONGEST_RUN))
        duration = self._random.randrange(100, 100 + longest)
        return ProcessOutcome(duration, int(self._random.random() < 0.2))

    def stop_time(self, _launch: Launch) -> int:
        return self._random.choice((0, 0, 700, 5_000))


def draw_jobs(random: Random, start: int, count: int) -> list[DrawnJob]:
    return [_job(random, f"job-{number}", start) for number in range(count)]


def _job(random: Random, name: str, start: int) -> DrawnJob:
    text, zone, expected, cadence = _schedule(random, start)
    job = Job(
        id=name,
        schedule=text,
        timezone=zone,
        cadence=cadence,
        tasks=tuple(_task(random, number) for number in range(random.choice((1, 1, 1, 2, 3)))),
        mode=random.choice(list(TaskMode)),
        overlap=random.choice(list(OverlapPolicy)),
        recovery=_recovery(random),
        failure=random.choice(list(FailureStrategy)),
        on_crash=random.choice((CrashPolicy.RETRY, CrashCheck("look"), CrashPolicy.FAIL)),
        retry=RetryPolicy(random.choice((0, 1, 3)), 20 * SECOND, backoff=2.0, max_interval_ms=MINUTE, jitter=0.1),
        spread=random.choice(SPREADS) if isinstance(expected, Cron) and random.random() < 0.25 else None,
        execution_timeout_ms=random.choice((None, None, 5 * MINUTE)),
    )
    return DrawnJob(job, expected)


def _task(random: Random, number: int) -> Task:
    return Task(
        name=f"task-{number}",
        run=("true",),
        on_failure=random.choice((None, None, FailureStrategy.CONTINUE)),
        retry=random.choice((None, None, RetryPolicy(2, 5 * SECOND))),
    )


def _recovery(random: Random) -> RecoveryPolicy:
    strategy = random.choice(list(RecoveryStrategy))
    if strategy is not RecoveryStrategy.BOUNDED:
        return RecoveryPolicy(strategy)
    return RecoveryPolicy(strategy, *random.choice(((3, None), (None, 6 * HOUR), (5, 2 * HOUR))))


def _schedule(random: Random, start: int) -> tuple[str, str, Expected, Cadence]:
    kind = random.random()
    if kind < 0.7:
        return _cron(random, start)
    if kind < 0.8:
        period = random.choice((20 * MINUTE, 45 * MINUTE, 7 * HOUR))
        return f"@every {period // MINUTE}m", "UTC", FixedRate(start, period), Cadence.FIXED_RATE
    if kind < 0.9:
        delay = random.choice((15 * MINUTE, 3 * HOUR))
        return f"@every {delay // MINUTE}m", "UTC", AfterEnd(start, delay), Cadence.FIXED_DELAY
    return "@every 40m-90m", "UTC", Chain(start, 40 * MINUTE, 90 * MINUTE), Cadence.FIXED_RATE


def _cron(random: Random, start: int) -> tuple[str, str, Expected, Cadence]:
    zone, options = random.choice(ZONES), random.choice(OPTIONS)
    if random.random() < 0.05:
        # Dense, but not for long: a backlog too long to be listed can build up here.
        first = start + random.randrange(WEEK) // MINUTE * MINUTE
        last = first + 45 * MINUTE
        cron, bounds = Cron("*/5 * * * * *", zone, first, last), f"from:{_written(first)}, until:{_written(last)}"
        options = f"{bounds}, {options}" if options else bounds
    else:
        cron = Cron(random.choice(FIELDS), zone)
    return f"{cron.fields} {{{options}}}" if options else cron.fields, zone, cron, Cadence.FIXED_RATE


def _written(at: int) -> str:
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"


# -- a typical year --------------------------------------------------------------------------------

NEW_YEAR = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 1000
YEAR = 365 * DAY

_RETRIES = RetryPolicy(2, MINUTE, backoff=2.0)


def typical_jobs() -> list[DrawnJob]:
    backup, report, billing = "30 2 * * *", "0 9 * * MON-FRI", "0 0 L * *"
    return [
        _typical("backup", Cron(backup, "Europe/Berlin"), "dump", "upload", overlap=OverlapPolicy.QUEUE_ONE),
        _typical("report", Cron(report, "America/New_York"), "mail", spread=SpreadPolicy("after", 15 * MINUTE)),
        _typical(
            "billing", Cron(billing, "Asia/Seoul"), "bill", recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)
        ),
        _typical("clean", Cron("17 */6 * * *"), "clean", recovery=RecoveryPolicy(RecoveryStrategy.MARK_MISSED)),
        DrawnJob(
            _typical_job("sync", "@every 4h", "UTC", ("pull",), overlap=OverlapPolicy.SKIP),
            FixedRate(NEW_YEAR, 4 * HOUR),
        ),
    ]


def _typical(name: str, cron: Cron, *tasks: str, **policies: object) -> DrawnJob:
    return DrawnJob(_typical_job(name, cron.fields, cron.zone, tasks, **policies), cron)


def _typical_job(name: str, schedule: str, zone: str, tasks: tuple[str, ...], **policies: object) -> Job:
    steps = tuple(Task(name=task, run=("true",)) for task in tasks)
    return Job(id=name, schedule=schedule, timezone=zone, tasks=steps, retry=_RETRIES, **policies)  # type: ignore[arg-type]


# -- groups ------------------------------------------------------------------------------------------------


def draw_grouped(random: Random, start: int, count: int) -> tuple[list[DrawnJob], tuple[GroupSettings, ...]]:
    """Jobs that are often due together, in groups with limits, rates, weights and priorities."""
    groups = tuple(_group(random, f"group-{number}") for number in range(random.choice((1, 2, 3))))
    drawn = draw_jobs(random, start, count)
    return [DrawnJob(_grouped(random, each.job, groups), each.expected) for each in drawn], groups


def _group(random: Random, name: str) -> GroupSettings:
    rate = random.choice((None, None, StartRate(1, 5 * MINUTE), StartRate(3, HOUR), StartRate(2, 20 * SECOND)))
    limit = random.choice((1, 1, 2, 3)) if rate is None else random.choice((None, 1, 2))
    return GroupSettings(name, limit, rate)


def _grouped(random: Random, job: Job, groups: tuple[GroupSettings, ...]) -> Job:
    chosen = random.sample(groups, random.randrange(len(groups) + 1))
    weights = {group.name: random.randint(1, group.limit or 3) for group in chosen}
    return replace(job, groups=weights, priority=random.choice((0, 0, 0, 5, 30, 100, -20)))
