"""Jobs of several files and programs on one store: each update leaves those of the others alone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.update import Change, apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.errors import JobSourceError
from chronex.model.job import Job, Task
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex_store import MemoryStore
from tests.kit.machine import START

FILE, OTHER_FILE, PROGRAM = "/etc/chronex.toml", "/home/ann/chronex.toml", "program app.py"


def job(name: str, schedule: str = "@daily") -> Job:
    return Job(id=name, schedule=schedule, tasks=(Task(name="main", run=("true",)),))


def held(store: MemoryStore) -> dict[str, str]:
    return {job.id: job.source for job in store.view(lambda tx: Reading(tx).jobs())}


def _give_source(tx: Transaction, source: str) -> None:
    records = Records(tx, START)
    for one in records.jobs():
        records.put(replace(one, source=source))


def applied(store: MemoryStore, source: str, *jobs: Job) -> dict[str, str]:
    """What the update did to each job."""
    return {one.job: one.change.value for one in apply_jobs(store, jobs, START, owns=JobSource(source))}


@pytest.mark.parametrize("second", [OTHER_FILE, PROGRAM, "declarative app.py"])
def test_an_update_leaves_the_jobs_of_other_sources_alone(second: str) -> None:
    store = MemoryStore()
    assert applied(store, FILE, job("a"), job("b")) == {"a": Change.NEW, "b": Change.NEW}
    assert applied(store, second, job("c")) == {"c": Change.NEW}
    assert applied(store, FILE, job("a")) == {"a": Change.UNCHANGED, "b": Change.REMOVED}
    assert applied(store, second) == {"c": Change.REMOVED}
    assert held(store) == {"a": FILE}


def test_a_name_that_another_source_holds_is_refused_and_nothing_changes() -> None:
    store = MemoryStore()
    applied(store, FILE, job("a"))
    with pytest.raises(JobSourceError, match=r"'a' belongs to /etc/chronex\.toml; rename yours"):
        applied(store, PROGRAM, job("b"), job("a", "@hourly"))
    assert held(store) == {"a": FILE}


@pytest.mark.parametrize(
    ("before", "is_taken", "is_removed"),
    [
        ("", True, False),
        ("chronex.toml", True, True),
        ("../jobs/chronex.toml", True, True),
        ("nightly.toml", True, False),
        (PROGRAM, False, False),
    ],
)
def test_a_job_from_before_sources_were_kept_belongs_to_the_first_that_names_it(
    before: str, is_taken: bool, is_removed: bool
) -> None:
    """One that is not named any more is removed by the file of the name that it was applied from."""
    store = MemoryStore()
    apply_jobs(store, [job("old"), job("dropped")], START)
    store.update(lambda tx: _give_source(tx, before))
    if not is_taken:
        with pytest.raises(JobSourceError):
            applied(store, FILE, job("old"))
        return
    changes = applied(store, FILE, job("old"))
    assert changes == {"old": Change.UNCHANGED, **({"dropped": Change.REMOVED} if is_removed else {})}
    assert held(store) == {"old": FILE, **({} if is_removed else {"dropped": before})}
    assert store.view(lambda tx: [one.version for one in Reading(tx).jobs() if one.id == "old"]) == [1]


def test_a_file_that_is_gone_does_not_keep_its_jobs_from_its_new_name() -> None:
    store = MemoryStore()
    applied(store, FILE, job("a"))
    renamed = JobSource(OTHER_FILE, is_gone=lambda source: source == FILE)
    assert [one.change for one in apply_jobs(store, [job("a")], START, owns=renamed)] == [Change.UNCHANGED]
    assert held(store) == {"a": OTHER_FILE}
