"""What those who wait cost a tick, and what a simulation of a year costs: rows of the topic `engine`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.measure import Row, seconds
from chronex.engine.engine import Engine
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.model.groups import GroupSettings
from chronex.model.job import Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Records
from chronex.timing.zones import load_zone
from chronex.views.folded_simulation import fold
from chronex.views.simulation import simulate_runs, tally
from chronex_store import LmdbStore

TOPIC = "engine"
_AT = 1_798_761_600_000
_YEAR_MS = 365 * 86_400_000
_OF_A_JOB = 100  # a job lets so many wait
_PLAYED_SHARE = 20


def rows(place: Path, many: int, repeats: int) -> Iterator[Row]:
    """`many` and a thousandth of it wait behind one run of a group, of as many jobs; nothing else is due."""
    few, jobs = max(many // 1_000, 1), many // _OF_A_JOB
    for name, lines, is_missed in (
        ("a group", ("one",), False),
        ("three groups each", ("one", "three", "two"), False),
        ("a group, to be made up for", ("one",), True),
    ):
        kind = WaitKind(lines, is_missed)
        costs = {
            count: _tick_seconds(place / f"waiting-{len(lines)}-{is_missed}-{count}", count, jobs, repeats, kind)
            for count in (few, many)
        }
        what = f"a tick with {many:,} who wait for {name}, beside {few:,}"
        remark = f"{costs[many] * 1e6:.0f} µs"
        yield Row(TOPIC, what, costs[many] / costs[few], "×", at_most=1.3, remark=remark)


class WaitKind(NamedTuple):
    """In which lines all stand, and whether they are missed runs."""

    lines: tuple[str, ...]
    is_missed: bool

    @property
    def groups(self) -> dict[str, int]:
        return dict.fromkeys(self.lines, 1)


def _tick_seconds(path: Path, waiting: int, count: int, repeats: int, kind: WaitKind) -> float:
    """A tick that writes nothing: the groups are full, and have places for no one."""
    with LmdbStore.open(path) as store:
        store_of_waiting(store, waiting, count, kind)
        engine = Engine(store, "node", slots=50)
        return seconds(lambda: store.update(engine.tick_update(_AT + 1_000, _AT)), repeats)


def store_of_waiting(store: Store, waiting: int, count: int, kind: WaitKind) -> None:
    """So many runs of `count` jobs wait for the groups that one run holds; tests/engine/test_cost_of_waiting.py
    counts the rows that a tick reads of it."""
    jobs = [_job(f"job-{number}", kind.groups) for number in range(count)]
    groups = tuple(GroupSettings(name, 1) for name in kind.groups)
    apply_jobs(store, [*jobs, _job("holder", kind.groups)], _AT, owns=JobSource("", groups=groups))
    store.update(lambda tx: _put(Records(tx, _AT), "holder", -1, OccurrenceState.RUNNING, kind))
    for begin in range(0, waiting, 5_000):
        store.update(lambda tx, begin=begin: _queue(tx, begin, min(begin + 5_000, waiting), kind))  # type: ignore[misc]


def _job(name: str, groups: dict[str, int]) -> Job:
    task = Task(name="main", run=("true",))
    return Job(id=name, schedule="0 0 1 1 *", tasks=(task,), groups=groups)


def _queue(tx: Transaction, begin: int, end: int, kind: WaitKind) -> None:
    records = Records(tx, _AT)
    for number in range(begin, end):
        _put(records, f"job-{number // _OF_A_JOB}", number, OccurrenceState.QUEUED, kind)


def _put(records: Records, job: str, number: int, state: OccurrenceState, kind: WaitKind) -> None:
    one = Occurrence(job=job, nominal_ms=_AT + number, due_ms=_AT, state=state, created_ms=_AT)
    if state is OccurrenceState.RUNNING:
        records.put(replace(one, groups=kind.groups, owner="node", started_ms=_AT))
    else:
        records.put(replace(one, lines=kind.lines, order_ms=_AT + number, recovery=kind.is_missed))


def year_rows(jobs: int, repeats: int) -> Iterator[Row]:
    """Hourly jobs over a year: folded, and beside a share of them that is played run by run."""
    drawn = [replace(_job(f"job-{number}", {}), schedule=f"{number % 60} * * * *") for number in range(jobs)]
    zone, span = load_zone("Europe/Berlin"), (_AT, _AT + _YEAR_MS)
    folded = seconds(lambda: fold(drawn, span, _minute, jobs, Random(1), (), zone), repeats)
    some = drawn[: max(jobs // _PLAYED_SHARE, 1)]

    def play() -> object:
        return tally(simulate_runs(some, *span, _minute, jobs, Random(1)), (one.id for one in drawn), zone)

    played = seconds(play, 1) * jobs / len(some)
    yield Row(TOPIC, f"simulate a year of {jobs:,} hourly jobs", folded, " s", at_most=1.5)
    yield Row(TOPIC, "the same played run by run", played / folded, "×", at_least=8, remark=f"{played:.3g} s")
    crowded = [replace(one, schedule="0 * * * *") for one in drawn]
    full = seconds(lambda: fold(crowded, span, _minute, jobs // 2, Random(1), (), zone), repeats)
    yield Row(TOPIC, "the same with half as many slots as are due at once", full, " s", at_most=1.5)


def _minute(_job: str) -> int:
    return 60_000
