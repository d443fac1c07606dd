"""An engine on a memory store, people who ask for things, and the clock in the test's hand."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from chronex.engine.commands import Asker
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch
from chronex.engine.update import apply_jobs
from chronex.model.records import Event, Job, Node, Occurrence, ProcessIdentity, Run, Task
from chronex.storage import journal
from chronex.storage.records import Ledger, Reading
from chronex_store import MemoryStore

START = 1_798_761_600_000  # 2027-01-01T00:00:00Z
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
FIRST = START + MINUTE
ANN = Asker("ann", "cli", "desk")
BOB = Asker("bob", "tui", "lap")
ONE, TWO, THREE = (Task(name=name, run=("true",)) for name in ("one", "two", "three"))
T = TypeVar("T")


class World:
    def __init__(self, schedule: str = "* * * * *", places: int = 10, **policy: object) -> None:
        self.store = MemoryStore()
        policy.setdefault("tasks", (ONE,))
        self.job = Job(id="job", schedule=schedule, **policy)  # type: ignore[arg-type]
        apply_jobs(self.store, [self.job], START)
        self.boot("node-1", places)

    def boot(self, name: str, places: int = 10) -> None:
        self.engine = Engine(self.store, name, places, Random(1))
        node = Node(id=name, process=ProcessIdentity(int(name[-1]), "boot", 1))
        self.store.update(lambda tx: Ledger(tx, START).put(node))

    def ask(
        self, act: Callable[..., T], *arguments: object, at: int = FIRST + 1, by: Asker = ANN, **more: object
    ) -> T:
        """`ask(trigger, "job")`: the act as `by` asks for it at `at`; what follows the asker is given by name."""
        return self.store.update(lambda tx: act(Ledger(tx, at), *arguments, by, **more))

    def tick(self, now: int, awake_since: int = START) -> list[Launch]:
        return [o for o in self.engine.tick(now, awake_since).orders if isinstance(o, Launch)]

    def canceled(self, now: int) -> list[Cancel]:
        return [o for o in self.engine.tick(now, START).orders if isinstance(o, Cancel)]

    def end(self, launch: Launch, state: str, now: int, **more: object) -> list[Launch]:
        end = AttemptEnd(state, **more)  # type: ignore[arg-type]
        return [o for o in self.store.update(self.engine.ended(launch.attempt, end, now)) if isinstance(o, Launch)]

    def read(self, look: Callable[[Reading], T]) -> T:
        return self.store.view(lambda tx: look(Reading(tx)))

    def occurrence(self, nominal: int) -> Occurrence:
        found = self.read(lambda reading: reading.occurrence("job", nominal))
        assert found is not None
        return found

    def run(self, nominal: int, task: str = "one") -> Run:
        found = self.read(lambda reading: reading.run("job", nominal, task))
        assert found is not None
        return found

    def stored(self) -> Job:
        found = self.read(lambda reading: reading.job("job"))
        assert found is not None
        return found

    def events(self) -> list[Event]:
        return [event for _, event in self.store.view(journal.tail)]
