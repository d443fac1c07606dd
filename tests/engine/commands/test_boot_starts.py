"""@start: each job of it once for every boot, asked for by the first scheduler of that boot."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from chronex.engine.commands.trigger import start_jobs_of_boot
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import runs_at_start
from chronex_store import MemoryStore

NOW = 1_800_000_000_123
AGENT = Job(id="agent", schedule="@start", tasks=(Task(name="main", run=("true",)),))


def node(boot: str, pid: int = 7, host_id: str = "", name: str = "box") -> Node:
    process = ProcessIdentity(pid=pid, boot_id=boot, start_time=1)
    return Node(id=f"node-{boot}-{pid}", process=process, host=name, host_id=host_id, started_ms=NOW, seen_ms=NOW)


def begin(store: MemoryStore, found: Node, now_ms: int = NOW) -> list[str]:
    """As a daemon begins: the jobs of the boot, then its own record."""
    asked = store.update(lambda tx: start_jobs_of_boot(Records(tx, now_ms), found))
    store.update(lambda tx: Records(tx, now_ms).put(found))
    return asked


def store_with(*jobs: Job) -> MemoryStore:
    store = MemoryStore()
    apply_jobs(store, jobs, NOW)
    return store


def count(store: MemoryStore, job: str = "agent") -> int:
    return len(store.view(lambda tx: Reading(tx).occurrences(job)))


@pytest.mark.parametrize(
    ("schedule", "does"),
    [
        ("@start", True),
        ("@START {jitter:5m}", True),
        ("0 3 * * * | @start", True),
        ("@once +1s", False),
        ("@daily", False),
    ],
)
def test_which_jobs_run_at_the_start(schedule: str, does: bool) -> None:
    assert runs_at_start(replace(AGENT, schedule=schedule)) is does


def test_the_first_scheduler_of_a_boot_asks_once() -> None:
    store = store_with(AGENT, replace(AGENT, id="other", schedule="@daily"))
    assert begin(store, node("one", 7)) == ["agent"]
    assert begin(store, node("one", 8), NOW + 60_000) == [], "a restart is no boot"
    assert begin(store, node("two", 7), NOW + 120_000) == ["agent"]
    assert (count(store), count(store, "other")) == (2, 0)


def test_a_scheduler_that_is_killed_before_its_record_asks_no_second_time() -> None:
    store = store_with(AGENT)
    store.update(lambda tx: start_jobs_of_boot(Records(tx, NOW), node("one", 7)))
    assert begin(store, node("one", 8), NOW + 1_000) == []
    assert count(store) == 1


def test_a_job_that_comes_later_waits_for_the_next_boot() -> None:
    store = store_with()
    assert begin(store, node("one", 7)) == []
    apply_jobs(store, [AGENT], NOW + 1_000)
    assert begin(store, node("one", 8), NOW + 2_000) == []
    assert begin(store, node("two", 7), NOW + 3_000) == ["agent"]


@pytest.mark.parametrize("change", ["paused", "disabled"])
def test_a_job_that_does_not_run_is_not_made_up_for_later(change: str) -> None:
    store = store_with(replace(AGENT, enabled=change != "disabled"))
    if change == "paused":
        job = store.view(lambda tx: Reading(tx).job("agent"))
        assert job is not None
        store.update(lambda tx: Records(tx, NOW).put(replace(job.progress, paused=True, paused_from_ms=NOW)))
    assert begin(store, node("one")) == []
    assert count(store) == 0


def test_machines_of_a_shared_store_have_boots_of_their_own() -> None:
    store = store_with(replace(AGENT, nodes=("a",)))
    assert begin(store, node("one", 7, "host-a", "a")) == ["agent"]
    assert begin(store, node("two", 7, "host-b", "b"), NOW + 1_000) == []
    assert begin(store, node("three", 7, "host-a", "a"), NOW + 2_000) == ["agent"]


def test_a_job_that_goes_and_comes_back_is_not_started_twice() -> None:
    store = store_with(AGENT)
    store.update(lambda tx: start_jobs_of_boot(Records(tx, NOW), node("one", 7)))
    apply_jobs(store, [], NOW + 1_000)
    apply_jobs(store, [AGENT], NOW + 2_000)
    assert store.update(lambda tx: start_jobs_of_boot(Records(tx, NOW + 3_000), node("one", 8))) == []


def test_jitter_delays_the_start() -> None:
    store = store_with(replace(AGENT, schedule="@start {jitter:10m}"))
    begin(store, node("one"))
    (wanted,) = store.view(lambda tx: Reading(tx).occurrences("agent"))
    assert 0 < wanted.jitter_ms < 600_000
    assert wanted.due_ms == NOW + wanted.jitter_ms
