"""A store at a fixed moment: one job in every situation, with history, attempts and output."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import fields

from chronex.engine.plan import next_plan_ms
from chronex.model.event import Event
from chronex.model.job import Counters, Job, JobProgress, Task
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.policies import RetryPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, of_task
from chronex.model.records import Node, Record
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.run import identity_of
from chronex.storage.journal import append
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Records
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import Zone, load_zone
from chronex_store import LmdbStore

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
EXIT_1 = Reason(ReasonCode.EXIT_CODE, "exit code 1")
EXIT_2 = Reason(ReasonCode.EXIT_CODE, "exit code 2")
NOW = 1_794_750_964_000  # Sunday 2026-11-15 14:56:04 in Berlin
HOME: Zone = load_zone("Europe/Berlin")
BACKUP_LOG = (
    b"starting pg_dump of 3 databases\npg_dump: error: connection to server at \"10.0.0.5\", port 5432 failed\n"
    b"pg_dump: error: connection refused\n"
)  # fmt: skip


@dataclass
class FixedClock:
    """Time stands still until a test moves it."""

    now: int = NOW

    def wall_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    def boottime_ms(self) -> int:
        return self.now


PROGRESS = {field.name for field in fields(JobProgress)}


def job(name: str, schedule: str, zone: str = "UTC", command: str = "true", **more: Any) -> Job:
    """A job; `more` may name fields of its definition and of its progress."""
    far: dict[str, Any] = {"job": name, "cursor_ms": NOW, "anchor_ms": NOW - 30 * DAY, "created_ms": NOW - 30 * DAY}
    far |= {key: value for key, value in more.items() if key in PROGRESS}
    rest: dict[str, Any] = {"tasks": (Task(name="main", run=command),)}
    rest |= {key: value for key, value in more.items() if key not in PROGRESS}
    made = Job(id=name, schedule=schedule, timezone=zone, progress=JobProgress(**far), **rest)
    return made.progressed(next_ms=next_plan_ms(made, schedule_of(made), NOW))


RETRYING = RetryPolicy(max=4, interval_ms=MINUTE, backoff=2.0, max_interval_ms=30 * MINUTE)
JOBS = (
    job("backup-db", "30 2 * * *", "Europe/Berlin", "pg_dump -Fc app > /srv/backup/app.dump", retry=RETRYING,
        tags=("nightly", "db"), counters=Counters(fired=41, completed=40)),
    job("etl-orders", "*/15 * * * *", command="etl --source orders", tags=("etl",),
        counters=Counters(fired=40, completed=39)),
    job("newsletter", "0 9 * * MON", "America/New_York", "send-newsletter", paused=True, paused_by="maria",
        counters=Counters(fired=6, completed=6)),
    job("report-eu", "15 2 * * SUN", "Europe/Berlin", "make-report --region eu",
        counters=Counters(fired=8, completed=8)),
    job("rotate-logs", "@hourly", command="logrotate /etc/logrotate.conf", counters=Counters(fired=30, completed=30)),
    job("sync-s3", "*/5 * * * *", command="aws s3 sync /srv s3://archive", retry=RetryPolicy(max=2, interval_ms=5000),
        counters=Counters(fired=40, completed=38, failed=2, failures_in_a_row=2)),
    job("vacuum", "0 3 * * *", command="vacuumdb --all", counters=Counters(fired=12, completed=12)),
    job("warm-cache", "10 * * * *", command="curl -s localhost/warm"),
)  # fmt: skip


def history(name: str, period: int, count: int, took: int, last: int, bad: tuple[int, ...] = ()) -> list[Record]:
    """Ended occurrences of a job, the newest at `last`; those numbered in `bad` (0 is the newest) failed."""
    found: list[Record] = []
    for number in range(count):
        at = last - number * period
        is_bad = number in bad
        spent = took + (number * 7919 % 17) * took // 40
        done = at + spent
        found.append(
            Occurrence(
                job=name, nominal_ms=at, due_ms=at, started_ms=at + 12, finished_ms=done, created_ms=at,
                state=OccurrenceState.FAILED if is_bad else OccurrenceState.COMPLETED,
                reason=of_task("main", EXIT_2) if is_bad else NO_REASON,
            )
        )  # fmt: skip
        state = RunState.DLQ if is_bad else RunState.SUCCESS
        found.append(
            Run(job=name, nominal_ms=at, task="main", state=state, attempts=1, started_ms=at + 12, finished_ms=done,
                reason=EXIT_2 if is_bad else NO_REASON)
        )  # fmt: skip
        found.append(
            Attempt(job=name, nominal_ms=at, task="main", number=1, created_ms=at, started_ms=at + 15,
                    finished_ms=done, exit_code=2 if is_bad else 0, reason=EXIT_2 if is_bad else NO_REASON,
                    state=AttemptState.FAILED if is_bad else AttemptState.SUCCESS)
        )  # fmt: skip
    return found


def running_etl() -> list[Record]:
    at = NOW - 42_000
    return [
        Occurrence(job="etl-orders", nominal_ms=at, due_ms=at, started_ms=at, state=OccurrenceState.RUNNING, epoch=1),
        Run(job="etl-orders", nominal_ms=at, task="main", state=RunState.RUNNING, attempts=1, started_ms=at),
        Attempt(job="etl-orders", nominal_ms=at, task="main", number=1, created_ms=at, started_ms=at),
    ]


def retrying_backup() -> list[Record]:
    at = NOW - 12 * MINUTE
    tries: list[Record] = [
        Attempt(job="backup-db", nominal_ms=at, task="main", number=number, created_ms=start, started_ms=start,
                finished_ms=start + 400, exit_code=1, state=AttemptState.FAILED, reason=EXIT_1,
                log_bytes=len(BACKUP_LOG) if number == 2 else 0)
        for number, start in ((1, at), (2, NOW - 4 * MINUTE - 4000))
    ]  # fmt: skip
    return [
        Occurrence(job="backup-db", nominal_ms=at, due_ms=at, started_ms=at, state=OccurrenceState.RUNNING, epoch=1),
        Run(job="backup-db", nominal_ms=at, task="main", state=RunState.RETRY, attempts=2, started_ms=at,
            next_attempt_ms=NOW + 190_000, reason=EXIT_1, exit_code=1),
        *tries,
    ]  # fmt: skip


def records() -> list[Record]:
    quarter = NOW // (15 * MINUTE) * 15 * MINUTE
    five = NOW // (5 * MINUTE) * 5 * MINUTE
    hour = NOW // HOUR * HOUR
    today = NOW // DAY * DAY
    return [
        *JOBS,
        *history("etl-orders", 15 * MINUTE, 39, 62_000, quarter),
        *history("sync-s3", 5 * MINUTE, 40, 3_000, five, bad=(0, 1)),
        *history("rotate-logs", HOUR, 30, 300, hour),
        *history("newsletter", 7 * DAY, 6, 95_000, today - 6 * DAY + 14 * HOUR),
        *history("report-eu", 7 * DAY, 8, 12_000, today + 75 * MINUTE),
        *history("vacuum", DAY, 12, 4 * MINUTE, today + 3 * HOUR),
        *history("backup-db", DAY, 40, 41_000, today + 90 * MINUTE),
        *running_etl(),
        *retrying_backup(),
    ]


def node(*, is_alive: bool = True) -> Node:
    process = identity_of(os.getpid())
    assert process is not None
    if not is_alive:
        from msgspec.structs import replace

        process = replace(process, start_time=1)
    return Node(
        id="node-1", process=process, host="here", started_ms=NOW - 3 * DAY - 4 * HOUR, seen_ms=NOW, places=50
    )


def fill(store: Store, *, is_alive: bool = True) -> None:
    def write(tx: Transaction) -> None:
        ledger = Records(tx, NOW)
        for record in (*records(), node(is_alive=is_alive)):
            ledger.put(record)
        append(tx, Event(name="SchedulerStarted", at_ms=NOW - 3 * DAY))

    store.update(write)


def make_store(path: Path, *, is_alive: bool = True) -> Path:
    """The store, closed again, with the output of the attempt that failed last."""
    with LmdbStore.open(path) as store:
        fill(store, is_alive=is_alive)
        second = Attempt(job="backup-db", nominal_ms=NOW - 12 * MINUTE, task="main", number=2)
        logs = path / "logs"
        logs.mkdir(mode=0o700)
        name = f"{second.id}.log"
        (logs / name).write_bytes(BACKUP_LOG)
        (logs / name).chmod(0o600)

        def link(tx: Transaction) -> None:
            from msgspec.structs import replace

            ledger = Records(tx, NOW)
            found = ledger.attempt(second.job, second.nominal_ms, "main", 2)
            assert found is not None
            ledger.put(replace(found, log_path=name))

        store.update(link)
    return path
