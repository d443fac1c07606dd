"""The store beside bare py-lmdb: every figure is a ratio taken in one run."""

from __future__ import annotations

import asyncio
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb

from benchmarks.measure import Row, Size
from chronex.model import Occurrence, OccurrenceState
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex.storage.ports import Transaction
from chronex.storage.records import index_keys, key_of
from chronex_store import LmdbStore
from chronex_store.doctor import examine

VALUE = b"v" * 200
AT = 1_700_000_000_000


def notes() -> list[str]:
    return [
        "Beside bare py-lmdb with the same flags, in one run. The engine updates on its event loop; among threads",
        "the hand-over between them is the larger part on a disk this fast, so that row has no limit.",
    ]


def run(size: Size) -> Iterator[Row]:
    """The targets speak of 1,000,000 records; the doctor row is scaled to the number measured."""
    updates, records = (600, 100_000) if size.repeats > 1 else (20, 500)
    place = Path(tempfile.mkdtemp(prefix="chronex-bench-"))
    try:
        single, bare = _single(place, updates)
        yield Row(
            "store",
            "durable single updates: bare py-lmdb",
            single / bare,
            "×",
            at_least=0.8,
            remark=f"{single:,.0f}/s",
        )
        with LmdbStore.open(place / "group") as store:
            lone = _rate(max(updates // 2, 10), lambda n: _put(store, n))
            each = 100 if size.repeats > 1 else 2
            tasks, threads = _tasks(store, 64, each), _threads(store, 64, each)
        loop = "64 updaters on an event loop: one updater"
        yield Row("store", loop, tasks / lone, "×", at_least=10, remark=f"{tasks:,.0f}/s")
        yield Row("store", "64 updaters on threads: one updater", threads / lone, "×", remark=f"{threads:,.0f}/s")
        yield from _large(place / "large", records)
    finally:
        shutil.rmtree(place)


def _single(place: Path, updates: int) -> tuple[float, float]:
    """Alternating blocks, so that a noisy minute hits both."""
    (place / "bare").mkdir()
    env = lmdb.open(str(place / "bare"), map_size=1 << 30)
    ours: list[float] = []
    bare: list[float] = []
    with LmdbStore.open(place / "single") as store:

        def one(number: int) -> None:
            with env.begin(write=True) as txn:
                txn.put(b"k%08d" % number, VALUE)

        for block in range(max(updates // 50, 1)):
            start = block * 50
            ours.append(_rate(50, lambda n, s=start: _put(store, s + n)))  # type: ignore[misc]
            bare.append(_rate(50, lambda n, s=start: one(s + n)))  # type: ignore[misc]
    env.close()
    return statistics.median(ours), statistics.median(bare)


def _put(store: LmdbStore, number: int) -> None:
    store.update(lambda tx: tx.put(b"k%08d" % number, VALUE))


def _rate(count: int, work: Callable[[int], None]) -> float:
    started = time.perf_counter()
    for number in range(count):
        work(number)
    return count / (time.perf_counter() - started)


def _tasks(store: LmdbStore, count: int, each: int) -> float:
    async def one(task: int) -> None:
        for number in range(each):
            await store.update_async(lambda tx, n=number: tx.put(b"a%d.%d" % (task, n), VALUE))  # type: ignore[misc]

    async def every() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(one(task) for task in range(count)))
        return count * each / (time.perf_counter() - started)

    return asyncio.run(every())


def _threads(store: LmdbStore, count: int, each: int) -> float:
    def one(thread: int) -> None:
        for number in range(each):
            store.update(lambda tx, n=number: tx.put(b"t%d.%d" % (thread, n), VALUE))  # type: ignore[misc]

    workers = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return count * each / (time.perf_counter() - started)


def _large(path: Path, records: int) -> Iterator[Row]:
    """A store of `records` occurrences and as many index entries."""
    with LmdbStore.open(path, map_size=4 << 30) as store:
        for start in range(0, records, 20_000):
            store.update(lambda tx, s=start: _fill(tx, s, min(s + 20_000, records)))  # type: ignore[misc]
    opened = statistics.median(_open_ms(path) for _ in range(5))
    started = time.perf_counter()
    report = examine(path)
    checked = time.perf_counter() - started
    assert report.is_sound, report
    yield Row("store", f"open with {records:,} records", opened, " ms", at_most=5)
    limit = max(30.0 * records / 1_000_000, 1.0)
    yield Row("store", f"doctor on {records:,} records", checked, " s", at_most=limit)


def _fill(tx: Transaction, start: int, end: int) -> None:
    for number in range(start, end):
        at = AT + number * 1000
        record = Occurrence(
            job=f"job-{number % 1000}",
            nominal_ms=at,
            due_ms=at,
            state=OccurrenceState.COMPLETED,
            created_ms=at,
            started_ms=at,
            finished_ms=at,
            owner="node",
        )
        key = key_of(record)
        tx.put(key, encode(key, record))
        for index in index_keys(key, record):
            tx.put(index, b"")


def _open_ms(path: Path) -> float:
    started = time.perf_counter()
    store = LmdbStore.open(path)
    store.view(lambda tx: tx.get(keys.STORE_META))
    took = time.perf_counter() - started
    store.close()
    return took * 1000
