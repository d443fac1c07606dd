"""A store with a past: jobs that have run a few times, with logs, as a daemon would have left them."""

from __future__ import annotations

from pathlib import Path

from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.policies import RetryPolicy
from chronex.model.reasons import free_text
from chronex.model.states import AttemptState
from chronex.run.attempt_log import BoundedLog, LogDirectory
from chronex_store import LmdbStore

MINUTE = 60_000


HOSTILE = "\x1b]0;owned\x07"


class Past:
    """Jobs that have run a few times by now, with logs, as a daemon would have left them."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.now = wall_ms() // MINUTE * MINUTE - 10 * MINUTE
        with LmdbStore.open(place) as store:
            apply_jobs(store, JOBS, self.now)
            self.engine = Engine(store, "node-1", 50)
            self.logs = LogDirectory(place / "logs")
            self.minute(store, good=AttemptState.SUCCESS)
            self.minute(store, good=AttemptState.FAILED)
            self.left = self.start(store)

    def start(self, store: LmdbStore) -> list[Launch]:
        self.now += MINUTE
        return [order for order in self.engine.tick(self.now, self.now).orders if isinstance(order, Launch)]

    def minute(self, store: LmdbStore, good: AttemptState) -> None:
        for launch in self.start(store):
            state = good if launch.job.id == "hello" else AttemptState.FAILED
            self.end(store, launch, state)

    def end(self, store: LmdbStore, launch: Launch, state: AttemptState) -> None:
        log = BoundedLog(self.logs, launch.attempt.id, 1000)
        log.write(f"{launch.job.id} {HOSTILE}\nsecond line of {launch.attempt.number}\n".encode())
        kept = log.finish()
        store.update(self.engine.started(launch.attempt, None, kept.name, self.now, 1000))
        good = state is AttemptState.SUCCESS
        end = AttemptEnd(
            state, free_text("" if good else "exit code 3"), exit_code=0 if good else 3, log_bytes=kept.size
        )
        store.update(self.engine.ended(launch.attempt, end, self.now + 1_500))


JOBS = [
    Job(id="hello", schedule="* * * * *", tasks=(Task(name="main", run=("echo", "hello")),), tags=("demo",)),
    Job(
        id="flaky",
        schedule="* * * * *",
        tasks=(Task(name="only", run="exit 3", retry=RetryPolicy(max=2, interval_ms=3_600_000, newest_wins=True)),),
        timezone="Europe/Berlin",
    ),
    Job(id="yearly", schedule="0 3 1 1 * {jitter:5m}", description=f"New Year {HOSTILE}", tasks=(Task(name="a", run=("true",)),)),
]  # fmt: skip
