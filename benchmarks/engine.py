"""The engine beside APScheduler 3 on SQLite, and how late it starts what is due."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from benchmarks import waiting
from benchmarks.measure import FULL, Row, Size
from chronex.clock import wall_ms
from chronex.daemon.embedded import EmbeddedEngine
from chronex.engine.engine import Engine
from chronex.engine.update import apply_jobs
from chronex.jobfile import SchedulerSettings
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import Occurrence
from chronex.run.callables import TaskContext
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore

TOPIC = "engine"
_HOUR = 3_600_000
_HAS_PEER = importlib.util.find_spec("sqlalchemy") is not None


def notes() -> list[str]:
    told = [
        "Due at once: planned, claimed and handed out, each durably, on LMDB; the peer fires a tenth as many, and",
        "takes the same time for each. Both on this disk, in one run, by the wall.",
        "Lag: from the due instant to the call of the function, or to the spawned process.",
    ]
    return (
        told
        if _HAS_PEER
        else [*told, "APScheduler's SQLite store needs SQLAlchemy, which is not installed: skipped."]
    )


def run(size: Size = FULL) -> Iterator[Row]:
    count, callables, seconds = (10_000, 1_000, 6) if size is FULL else (40, 20, 1)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        yield Row(
            TOPIC, "one sync of this disk", _sync_ms(Path(place)), " ms", remark="every lag has two or three in it"
        )
        yield from due_at_once(Path(place), count)
        yield from waiting.rows(Path(place), 100_000 if size is FULL else 1_000, size.repeats)
        yield from waiting.year_rows(100 if size is FULL else 2, size.repeats)
        lags = asyncio.run(callable_lags(Path(place) / "callables", callables))
        what = f"{callables:,} callables due in one second: p99 lag"
        yield Row(TOPIC, what, _percentile(lags, 0.99), " ms", at_most=25, remark=f"median {median(lags):.3g} ms")
        lone = asyncio.run(command_lags(Path(place) / "commands", seconds))
        yield Row(TOPIC, "a lone command: lag", median(lone), " ms", at_most=10, remark=f"worst {max(lone):.3g} ms")


def _sync_ms(place: Path) -> float:
    """What a durable commit waits for at least; the figures below are worth what this one is."""
    times = []
    with (place / "sync").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(b"x" * 4096)
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - began) * 1000)
    return median(times)


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


# -- throughput ------------------------------------------------------------------------------------------------------


def due_at_once(place: Path, count: int) -> Iterator[Row]:
    rounds = [_handed_out(place / f"due-{number}", count) for number in range(3 if count > 1000 else 1)]
    rate = max(rounds)
    yield Row(TOPIC, f"{count:,} due at once: handed out", rate, "/s")
    if not _HAS_PEER:
        return
    theirs = _peer_rate(place, max(count // 10, 10))
    what = f"{count:,} due at once: APScheduler 3 on SQLite"
    yield Row(TOPIC, what, rate / theirs, "×", at_least=15, remark=f"{theirs:.0f}/s")


def _handed_out(path: Path, count: int) -> float:
    at = 1_798_761_600_000
    with LmdbStore.open(path) as store:
        apply_jobs(store, [_job(f"job-{number}", "0 * * * *", ("true",)) for number in range(count)], at - 1000)
        engine = Engine(store, "node", slots=count)
        handed_out = 0
        began = time.perf_counter()
        while True:
            tick = engine.tick(at, at - 5000)
            handed_out += len(tick.orders)
            if not tick.has_more:
                break
        took = time.perf_counter() - began
        assert handed_out == count, handed_out
    return count / took


def _peer_rate(place: Path, count: int) -> float:
    from benchmarks import apscheduler_due

    return apscheduler_due.rate(count, str(place))


def _job(name: str, schedule: str, run: tuple[str, ...] | Call) -> Job:
    return Job(id=name, schedule=schedule, tasks=(Task(name="main", run=run),))


# -- lag -------------------------------------------------------------------------------------------------------------


async def callable_lags(path: Path, count: int) -> list[float]:
    """Jobs of one interval that were added one after the other: each is due at its own place in the second."""
    called: dict[str, float] = {}

    async def work(context: TaskContext) -> None:
        called[context.job] = time.time() * 1000

    settings = SchedulerSettings(max_concurrent_jobs=count)
    async with EmbeddedEngine(path, calls={"work": work}, settings=settings) as engine:
        first = wall_ms() + 3000
        due = {f"job-{number}": first + number * 1000 // count for number in range(count)}

        def add(tx: Transaction) -> None:
            records = Records(tx, wall_ms())
            for name, at in due.items():
                job = _job(name, "@every 1h", Call("work"))
                records.put(job.progressed(anchor_ms=at - _HOUR, cursor_ms=at - _HOUR, next_ms=at))

        engine.store.update(add)
        await _until(lambda: len(called) == count, seconds=60)
    return [max(at - due[job], 0.0) for job, at in called.items()]


async def command_lags(path: Path, seconds: int) -> list[float]:
    """A command every second, alone on the machine's scheduler."""
    async with EmbeddedEngine(path) as engine:
        engine.apply([_job("lone", "* * * * * *", ("/bin/true",))])

        def ended() -> list[Occurrence]:
            return engine.store.view(lambda tx: Reading(tx).finished(limit=seconds))

        await _until(lambda: len(ended()) >= seconds, seconds=60)
        return [engine.store.view(lambda tx, o=o: _lag(Reading(tx), o)) for o in ended()]  # type: ignore[misc]


def _lag(reading: Reading, occurrence: Occurrence) -> float:
    attempt = reading.attempt(occurrence.job, occurrence.nominal_ms, "main", 1)
    assert attempt is not None
    assert attempt.started_ms is not None
    return float(attempt.started_ms - occurrence.nominal_ms)


async def _until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it does not come to an end"
        await asyncio.sleep(0.1)


def fields_of(second: int) -> str:
    """Six fields, in UTC, that match this second and no other of the year."""
    at = time.gmtime(second)
    return f"{at.tm_sec} {at.tm_min} {at.tm_hour} {at.tm_mday} {at.tm_mon} *"
