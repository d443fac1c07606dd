"""Stores with many jobs and a long past, made without living through it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage.codec import encode
from chronex.storage.keys import index_keys, key_of
from chronex.storage.ports import Transaction
from chronex_store import LmdbStore

_PAGE = 5_000


def jobs_of(count: int) -> list[Job]:
    """None of them is due for months, and no two hundred of them have the same schedule."""
    return [
        Job(id=f"job-{number}", schedule=_schedule(number), tasks=(Task(name="main", run=("true",)),))
        for number in range(count)
    ]


def _schedule(number: int) -> str:
    month = (wall_ms() // (30 * 86_400_000) + 6) % 12 + 1
    return f"{number % 60} {number // 60 % 24} {number // 1440 % 28 + 1} {month} *"


def fill(
    path: Path, jobs: int, past: int, logs: Path | None = None, text_of: Callable[[int], bytes] | None = None
) -> None:
    """`jobs` jobs, and `past` occurrences that have ended, each with its run and its attempt; with `logs` also its
    output, which `text_of` makes of its number."""
    with LmdbStore.open(path, map_size=4 << 30) as store:
        if logs is not None:
            logs.mkdir(mode=0o700)
        apply_jobs(store, jobs_of(jobs), wall_ms())
        for start in range(0, past, _PAGE):
            store.update(lambda tx, s=start: _write(tx, jobs, s, min(s + _PAGE, past), logs, text_of))  # type: ignore[misc]


def _write(
    tx: Transaction, jobs: int, start: int, end: int, logs: Path | None, text_of: Callable[[int], bytes] | None
) -> None:
    began = wall_ms() - 400 * 86_400_000
    for number in range(start, end):
        occurrence, run, attempt = _ended(f"job-{number % jobs}", began + number * 60_000)
        if logs is not None and text_of is not None:
            attempt = _logged(attempt, logs, text_of(number))
        for record in (occurrence, run, attempt):
            key = key_of(record)
            tx.put(key, encode(key, record))
            for index in index_keys(key, record):
                tx.put(index, b"")


def _logged(attempt: Attempt, logs: Path, text: bytes) -> Attempt:
    name = f"{attempt.id}.log"
    (logs / name).write_bytes(text)
    return replace(attempt, log_path=name, log_bytes=len(text))


def _ended(job: str, at: int) -> tuple[Occurrence, Run, Attempt]:
    end = at + 900
    occurrence = Occurrence(
        job=job, nominal_ms=at, due_ms=at, state=OccurrenceState.COMPLETED, owner="node-0", epoch=1, created_ms=at,
        started_ms=at, finished_ms=end,
    )  # fmt: skip
    run = Run(
        job=job, nominal_ms=at, task="main", state=RunState.SUCCESS, attempts=1, exit_code=0, created_ms=at,
        started_ms=at, finished_ms=end,
    )  # fmt: skip
    attempt = Attempt(
        job=job, nominal_ms=at, task="main", number=1, state=AttemptState.SUCCESS, exit_code=0, owner="node-0",
        created_ms=at, started_ms=at, finished_ms=end,
    )  # fmt: skip
    return occurrence, run, attempt
