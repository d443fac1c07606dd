"""A handful of jobs as people have them, for worlds that live a whole year."""

from __future__ import annotations

from datetime import UTC, datetime

from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy, SpreadPolicy
from chronex.model.records import Job, Task
from tests.engine.simulated.expected import Cron, FixedRate
from tests.engine.simulated.hands import DAY, HOUR, MINUTE
from tests.engine.simulated.workload import Drawn

NEW_YEAR = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()) * 1000
YEAR = 365 * DAY

_RETRIES = RetryPolicy(2, MINUTE, backoff=2.0)


def typical_jobs() -> list[Drawn]:
    backup, report, billing = "30 2 * * *", "0 9 * * MON-FRI", "0 0 L * *"
    return [
        _drawn("backup", Cron(backup, "Europe/Berlin"), "dump", "upload", overlap=OverlapPolicy.QUEUE_ONE),
        _drawn("report", Cron(report, "America/New_York"), "mail", spread=SpreadPolicy("after", 15 * MINUTE)),
        _drawn("billing", Cron(billing, "Asia/Seoul"), "bill", recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)),
        _drawn("clean", Cron("17 */6 * * *"), "clean", recovery=RecoveryPolicy(RecoveryStrategy.MARK_MISSED)),
        Drawn(_job("sync", "@every 4h", "UTC", ("pull",), overlap=OverlapPolicy.SKIP), FixedRate(NEW_YEAR, 4 * HOUR)),
    ]


def _drawn(name: str, cron: Cron, *tasks: str, **policies: object) -> Drawn:
    return Drawn(_job(name, cron.fields, cron.zone, tasks, **policies), cron)


def _job(name: str, schedule: str, zone: str, tasks: tuple[str, ...], **policies: object) -> Job:
    steps = tuple(Task(name=task, run=("true",)) for task in tasks)
    return Job(id=name, schedule=schedule, timezone=zone, tasks=steps, retry=_RETRIES, **policies)  # type: ignore[arg-type]
