"""One process of a race: `engine` runs what is due until its input ends, `people` ask for things at random."""

from __future__ import annotations

import select
import sys
from pathlib import Path
from random import Random

from msgspec.structs import replace

from chronex.engine.commands import (
    Actor,
    cancel,
    dead_letters,
    drop_dead_letter,
    pause,
    replay,
    replay_dead_letter,
    resume,
    trigger,
)
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.update import Policy, apply_jobs, roll_back
from chronex.errors import CommandError
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import OverlapPolicy, RetryPolicy
from chronex.model.reasons import free_text
from chronex.model.records import Node
from chronex.model.states import is_final
from chronex.storage import journal
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from tests.engine.commands.store_invariants import CheckedStore

ONE, TWO = Task(name="one", run=("true",)), Task(name="two", run=("true",))
JOBS = [
    Job(
        id=f"job-{policy.value}",
        schedule="* * * * * *",
        overlap=policy,
        tasks=(ONE, TWO),
        retry=RetryPolicy(max=1, interval_ms=50),
    )
    for policy in OverlapPolicy
]


def engine(path: Path, seed: int) -> None:
    random = Random(seed)
    with LmdbStore.open(path) as inner:
        store = CheckedStore(inner)
        node = Node(id=f"node-{seed}", process=ProcessIdentity(seed, "boot", 1))
        store.update(lambda tx: Records(tx, inner.now()).put(node))
        runner = Engine(store, node.id, 5, random, shortest_pause_ms=50)
        live: dict[str, Launch] = {}
        stopped: set[str] = set()

        def carry_out(orders: tuple[Order, ...]) -> None:
            for order in orders:
                if isinstance(order, Launch):
                    live[order.attempt.id] = order
                elif isinstance(order, Cancel):
                    stopped.add(order.attempt.id)

        awake = inner.now()
        asked_to_stop = False
        while not asked_to_stop or live:
            asked_to_stop = bool(select.select([sys.stdin], [], [], 0.005)[0])
            if not asked_to_stop:
                carry_out(runner.tick(inner.now(), awake).orders)
            for name in random.sample(sorted(live), len(live) if asked_to_stop else len(live) // 2):
                state = "canceled" if name in stopped else random.choice(["success", "success", "failed"])
                carry_out(
                    store.update(
                        runner.ended(live.pop(name).attempt, AttemptEnd(state, free_text("the end")), inner.now())
                    )
                )


def people(path: Path, seed: int, count: int) -> None:
    random, actor = Random(seed), Actor(f"person-{seed}", "cli", "here")
    refused = 0
    with LmdbStore.open(path) as inner:
        store = CheckedStore(inner)
        for _ in range(count):
            try:
                _ask(random, actor, store, inner)  # type: ignore[arg-type]
            except CommandError:
                refused += 1
    sys.stdout.write(f"{refused}\n")


def _ask(random: Random, actor: Actor, store: LmdbStore, clock: LmdbStore) -> None:
    job, now = random.choice(JOBS).id, clock.now()
    found = store.view(lambda tx: Reading(tx).occurrences(job, limit=20))
    letters = store.view(lambda tx: dead_letters(Reading(tx)))
    basis = store.view(journal.head)
    edited = [replace(one, tasks=random.choice([(ONE,), (TWO,), (ONE, TWO)])) for one in JOBS[random.randrange(2) :]]
    running = [one for one in found if not is_final(one.state)]
    ended = [one for one in found if is_final(one.state)]
    match random.randrange(9):
        case 0:
            store.update(lambda tx: trigger(Records(tx, now), job, actor))
        case 1:
            store.update(lambda tx: pause(Records(tx, now), job, actor, until_ms=now + 200))
        case 2:
            store.update(lambda tx: resume(Records(tx, now), job, actor))
        case 3 | 4 if running:
            store.update(lambda tx: cancel(Records(tx, now), running[0], actor))
        case 5 if ended:
            store.update(lambda tx: replay(Records(tx, now), ended[0], actor, "again"))
        case 6 if letters:
            if random.random() < 0.5:
                store.update(lambda tx: replay_dead_letter(Records(tx, now), letters[0], actor))
            else:
                store.update(lambda tx: drop_dead_letter(Records(tx, now), letters[0], actor))
        case 7:
            apply_jobs(store, edited, now, str(actor), policy=random.choice(list(Policy)), basis=basis)
        case 8:
            roll_back(store, job, 1, now, str(actor))
        case _:
            return


if __name__ == "__main__":
    role, where, *numbers = sys.argv[1:]
    if role == "engine":
        engine(Path(where), int(numbers[0]))
    else:
        people(Path(where), int(numbers[0]), int(numbers[1]))
