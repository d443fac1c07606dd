"""What the processes of the crash and race tests do; run as `python -m tests.store.worker ROLE PATH ...`.

Acknowledgements go to standard output, one line each, unbuffered: a line means that the update had returned.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

from msgspec.structs import replace

from chronex.errors import StoreError, StoreFullError, StoreOutcomeUnknownError
from chronex.storage.ports import ReadTransaction, Transaction
from chronex.storage.records import Records
from chronex_store import LmdbStore

KEYS_PER_UPDATE = 3


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def triple(tx: Transaction, number: int, size: int = 40) -> None:
    """An update whose parts must be seen together or not at all."""
    for part in range(KEYS_PER_UPDATE):
        tx.put(b"Qtriple%06d.%d" % (number, part), b"%d" % number * size)


def claim(path: str, name: str, count: str) -> None:
    """Race for every id, in an order of one's own; say which were won."""
    ids = list(range(int(count)))
    random.Random(name).shuffle(ids)
    with LmdbStore.open(path) as store:
        say("ready")
        sys.stdin.readline()
        for number in ids:
            key = b"Qclaim%06d" % number
            if store.update(lambda tx, key=key: tx.create(key, name.encode())):  # type: ignore[misc]
                say(str(number))


def commit(path: str, count: str) -> None:
    """A few updates, each acknowledged."""
    with LmdbStore.open(path, map_size=4 << 20) as store:
        for number in range(int(count)):
            store.update(lambda tx, n=number: triple(tx, n))  # type: ignore[misc]
            say(str(number))
    say("done")


def commit_with_faults(path: str, count: str) -> None:
    """The same where system calls fail: say how each update ended, and try again until it does."""
    store = LmdbStore.open(path, map_size=4 << 20)
    for number in range(int(count)):
        for _ in range(5):
            try:
                store.update(lambda tx, n=number: triple(tx, n))  # type: ignore[misc]
                say(f"{number} ok")
                break
            except StoreFullError:
                say(f"{number} full {has(store, number)}")
            except StoreOutcomeUnknownError:
                say(f"{number} unknown {has(store, number)}")
    store.close()
    say("done")


def has(store: LmdbStore, number: int) -> bool:
    return store.view(lambda tx: tx.get(b"Qtriple%06d.0" % number)) is not None


def churn(path: str, name: str) -> None:
    """Write and read for ever; numbers below 1000 are used again and again, the last acknowledged one counts."""
    chance = random.Random(name)
    with LmdbStore.open(path) as store:
        step = 0
        while True:
            step += 1
            key = b"Qchurn%s.%03d" % (name.encode(), chance.randrange(20))
            value = b"%09d" % step + b"x" * chance.randrange(2000)
            store.update(lambda tx, k=key, v=value: tx.put(k, v))  # type: ignore[misc]
            say(f"{key.decode()} {step}")
            if step % 3 == 0:
                store.view(lambda tx: tx.scan(b"Qchurn", limit=50))
            if step % 7 == 0:
                store.wait(store.wait(-1, 0), 0.005)


def read_for_ever(path: str, count: str) -> None:
    """Hold many snapshots open, as killed readers would."""
    store = LmdbStore.open(path)

    def hold_on(tx: ReadTransaction) -> None:
        say("held")
        time.sleep(600)

    def hold() -> None:
        store.view(hold_on)

    for _ in range(int(count)):
        threading.Thread(target=hold, daemon=True).start()
    time.sleep(600)


def die_inside(path: str) -> None:
    """Killed in the middle of an update."""
    store = LmdbStore.open(path)

    def half(tx: Transaction) -> None:
        tx.put(b"Qhalf", b"")
        os.kill(os.getpid(), 9)

    store.update(half)


def write_when_told(path: str) -> None:
    """One update for each line that is read."""
    with LmdbStore.open(path) as store:
        for value in iter(sys.stdin.buffer.readline, b""):
            store.update(lambda tx, value=value: tx.put(b"Qtime", value.strip()))  # type: ignore[misc]


def reschedule(path: str, job: str, schedule: str) -> None:
    """Change a job's definition and pause it, as `chronex apply` and `chronex pause` would."""

    def change(tx: Transaction) -> None:
        records = Records(tx, 0)
        found = records.job(job)
        assert found is not None
        records.put(replace(found, schedule=schedule).progressed(paused=True))

    with LmdbStore.open(path) as store:
        store.update(change)


ROLES = {
    "claim": claim,
    "commit": commit,
    "commit_with_faults": commit_with_faults,
    "churn": churn,
    "read_for_ever": read_for_ever,
    "die_inside": die_inside,
    "reschedule": reschedule,
    "write_when_told": write_when_told,
}

if __name__ == "__main__":
    try:
        ROLES[sys.argv[1]](*sys.argv[2:])  # type: ignore[operator]
    except StoreError as error:
        say(f"error {type(error).__name__}: {error}")
        sys.exit(3)
