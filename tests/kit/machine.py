"""The real engine on a memory store, driven one step at a time: the test gives every time and every end."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from chronex.engine.commands import Actor
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.update import apply_jobs
from chronex.model.event import Event
from chronex.model.groups import CatchUpPace
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence, ProcessIdentity, Run
from chronex.model.policies import RetryPolicy
from chronex.model.records import Node
from chronex.storage import journal
from chronex.storage.records import Reading, Records
from chronex.testing import MINUTE, MemoryStore

START = 1_798_761_600_000  # 2027-01-01T00:00:00Z, where a SimulatedMachine starts as well
FIRST = START + MINUTE
ANN = Actor("ann", "cli", "desk")
BOB = Actor("bob", "tui", "lap")
# Missed runs start together, where how they are spaced is not the subject.
AT_ONCE = CatchUpPace(spacing_ms=0, share=1.0)
ONE, TWO, THREE = (Task(name=name, run=("true",)) for name in ("one", "two", "three"))
T = TypeVar("T")


def steady(most: int | None, interval_ms: int = 30_000, *, newest_wins: bool = False) -> RetryPolicy:
    """Pauses that neither grow nor vary, so that a test can write down when the next attempt comes."""
    return RetryPolicy(most, interval_ms, backoff=1, jitter=0, newest_wins=newest_wins)


class SteppedEngine:
    """An engine with one job, called "job" unless the test says otherwise; nothing happens between two calls."""

    def __init__(
        self,
        schedule: str = "* * * * *",
        places: int = 10,
        *,
        name: str = "job",
        start: int = START,
        **policy: object,
    ) -> None:
        self.store = MemoryStore()
        self.start = start
        policy.setdefault("tasks", (ONE,))
        self.job = Job(id=name, schedule=schedule, **policy)  # type: ignore[arg-type]
        apply_jobs(self.store, [self.job], start)
        self.boot("node-1", places)

    def boot(self, name: str, places: int = 10) -> None:
        self.engine = Engine(self.store, name, places, Random(1))
        self.engine.pace = AT_ONCE
        node = Node(id=name, process=ProcessIdentity(int(name[-1]), "boot", 1))
        self.store.update(lambda tx: Records(tx, self.start).put(node))

    def ask(
        self, command: Callable[..., T], *arguments: object, at: int = FIRST + 1, by: Actor = ANN, **more: object
    ) -> T:
        """`ask(trigger, "job")`: the command as `by` gives it at `at`; what follows the actor is given by name."""
        return self.store.update(lambda tx: command(Records(tx, at), *arguments, by, **more))

    def tick(self, now: int, awake_since: int | None = None) -> list[Launch]:
        awake_since = self.start if awake_since is None else awake_since
        return [order for order in self.engine.tick(now, awake_since).orders if isinstance(order, Launch)]

    def canceled(self, now: int) -> list[Cancel]:
        return [order for order in self.engine.tick(now, self.start).orders if isinstance(order, Cancel)]

    def end(self, launch: Launch, state: str, now: int, **more: object) -> tuple[Order, ...]:
        """The attempt of `launch` ends; what the engine orders next."""
        end = AttemptEnd(state, **more)  # type: ignore[arg-type]
        return self.store.update(self.engine.ended(launch.attempt, end, now))

    def launches_after(self, launch: Launch, state: str, now: int, **more: object) -> list[Launch]:
        """The attempt of `launch` ends; what is started next."""
        return [order for order in self.end(launch, state, now, **more) if isinstance(order, Launch)]

    def read(self, fn: Callable[[Reading], T]) -> T:
        return self.store.view(lambda tx: fn(Reading(tx)))

    def occurrence(self, nominal: int) -> Occurrence:
        found = self.read(lambda reading: reading.occurrence(self.job.id, nominal))
        assert found is not None
        return found

    def run(self, nominal: int, task: str = "one") -> Run:
        found = self.read(lambda reading: reading.run(self.job.id, nominal, task))
        assert found is not None
        return found

    def stored(self) -> Job:
        found = self.read(lambda reading: reading.job(self.job.id))
        assert found is not None
        return found

    def events(self) -> list[Event]:
        return [event for _, event in self.store.view(journal.tail)]

    def event_names(self) -> list[str]:
        return [event.name for event in self.events()]
