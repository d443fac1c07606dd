"""The formal model over a long journal: a million events, read from the store and judged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time

from benchmarks.measure import FULL, Row, Size
from chronex.model.event import Event
from chronex.storage import journal
from chronex.verify import PropertyVerdict, verify_store
from chronex_store import LmdbStore

START_MS = 1_799_020_800_000  # 2027-01-04T00:00:00Z
MINUTE_MS = 60_000
JOBS = 20
_PAGE = 20_000


def notes() -> list[str]:
    return ["A journal of 20 jobs, one run a minute each, in LMDB; reading, decoding and all properties."]


def run(size: Size = FULL) -> Iterator[Row]:
    count = 1_000_000 if size is FULL else 1_000
    with tempfile.TemporaryDirectory() as place, LmdbStore.open(Path(place) / "store") as store:
        events = journal_of(count)
        while page := list(islice(events, _PAGE)):
            store.update(lambda tx, page=page: journal.append(tx, *page))  # type: ignore[misc]
        began = process_time()  # of this process, as for the other topics: neighbours do not count
        report = verify_store(store)
        taken = process_time() - began
    assert report.verdict is not PropertyVerdict.VIOLATED, report.violated()
    yield Row("verify", f"{report.coverage.events} events", taken, " s", at_most=10.0)


def journal_of(count: int, jobs: int = JOBS) -> Iterator[Event]:
    """At least `count` events of a quiet life."""
    told = {"schedule": "* * * * *", "timezone": "Europe/Berlin", "overlap": "skip", "recovery": "execute_last"}
    for number in range(jobs):
        yield Event(name="JobNew", at_ms=START_MS - 1, job=f"job-{number}", data=told)
    yield Event(name="SchedulerStarted", at_ms=START_MS - 1, data={"node": "node-1"})
    for turn in range(-(-count // (4 * jobs))):
        at = START_MS + turn * MINUTE_MS
        for number in range(jobs):
            yield from _one_run(f"job-{number}", at)


def _one_run(job: str, at: int) -> Iterator[Event]:
    yield Event(name="OccurrenceStarted", at_ms=at + 3, job=job, nominal_ms=at, data={"due_ms": at, "lag_ms": 3})
    for name, when, data in (
        ("TaskRunStarted", at + 3, {"node": "node-1"}),
        ("TaskRunCompleted", at + 50, {"exit_code": 0, "state": "success"}),
    ):
        yield Event(name=name, at_ms=when, job=job, nominal_ms=at, task="main", attempt=1, data=data)
    yield Event(name="OccurrenceCompleted", at_ms=at + 50, job=job, nominal_ms=at)
