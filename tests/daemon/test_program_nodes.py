"""Programs with an engine of their own on one PostgreSQL: each is a node, as a daemon is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import chronex
from chronex.cli.store_session import open_session
from chronex.daemon.embedded import EmbeddedEngine
from chronex.engine.membership import LEASE_MS, lose
from chronex.engine.update import apply_jobs
from chronex.engine.update.sources import JobSource
from chronex.errors import JobSourceError
from chronex.model.job import Call, Job, Task
from chronex.model.records import Node
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.journal import append
from chronex.storage.records import Reading, Records
from chronex_store.postgres.pg_store import PostgresStore
from tests.daemon.machine import Machine
from tests.kit.processes import end_all
from tests.kit.waits import is_gone, until, until_async
from tests.verify.assertion import assert_verified


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What this machine keeps of its work on the database; whatever lives there at the end is ended."""
    directory = tmp_path / "state"
    monkeypatch.setenv("CHRONEX_STATE_DIR", str(directory))
    yield directory
    end_all(directory)


def living(engine: EmbeddedEngine) -> list[Node]:
    nodes = engine.store.view(lambda tx: Reading(tx).nodes())
    return [node for node in nodes if node.stopped_ms is None and node.lost_ms is None]


async def registered(engine: EmbeddedEngine) -> Node:
    """The only node that works on the store, once it is on record."""
    await until_async(lambda: len(living(engine)) == 1, "its registration")
    (node,) = living(engine)
    return node


def calling(job: str, target: str, schedule: str = "@every 100ms {max:5}") -> Job:
    return Job(id=job, schedule=schedule, tasks=(Task(name="main", run=Call(target)),))


async def test_it_is_a_node_with_a_lease_by_the_clock_of_the_database(postgres_url: str, state: Path) -> None:
    async with EmbeddedEngine(postgres_url, name="shop") as engine:
        node = await registered(engine)
        assert (node.program, node.lease_ms, bool(node.host_id)) == ("shop", LEASE_MS, True)
        assert abs(engine.store.now() - engine._clock.wall_ms()) < 1_000
        assert {path.name for path in state.iterdir()} >= {"logs", "host-id"}


async def test_so_is_one_on_a_store_that_the_program_has_opened(postgres_url: str, state: Path) -> None:
    """As a node of one machine it would judge the processes of others by what runs here."""
    with PostgresStore.open(postgres_url) as store:
        async with EmbeddedEngine(store) as engine:
            assert (await registered(engine)).lease_ms == LEASE_MS
        assert store.now()  # who has opened it closes it


async def test_a_run_goes_to_the_program_that_has_its_function(postgres_url: str, state: Path) -> None:
    ran: list[str] = []
    async with (
        EmbeddedEngine(postgres_url, name="web", calls={"mail": lambda context: ran.append("web")}) as web,
        EmbeddedEngine(postgres_url, name="worker", calls={"crunch": lambda context: ran.append("worker")}) as worker,
    ):
        web.apply([calling("mails", "mail")])
        worker.apply([calling("numbers", "crunch")])
        for job in ("mails", "numbers"):
            completed = lambda job=job: web.row(job).job.progress.counters.completed == 5  # noqa: E731
            await until_async(completed, f"five runs of {job}")
        owners = {
            (one.job, attempt.owner)
            for job in ("mails", "numbers")
            for one in web.store.view(lambda tx, job=job: Reading(tx).occurrences(job))  # type: ignore[misc]
            for attempt in web.store.view(lambda tx, one=one: Reading(tx).attempts(one.job, one.nominal_ms))  # type: ignore[misc]
        }
        named = {node.id: node.program for node in living(web)}
        assert {(job, named[owner]) for job, owner in owners} == {("mails", "web"), ("numbers", "worker")}
    assert sorted(ran) == ["web"] * 5 + ["worker"] * 5
    with PostgresStore.open(postgres_url, create=False) as store:
        assert_verified(store)


async def test_what_waits_for_a_program_says_so_and_starts_with_it(postgres_url: str, state: Path) -> None:
    ran = threading.Event()
    async with EmbeddedEngine(postgres_url, name="web") as web:
        web.apply([calling("mails", "mail", "@daily")])
        found = web.trigger("mails")
        assert found.occurrence.state in (OccurrenceState.PENDING, OccurrenceState.QUEUED)
        async with EmbeddedEngine(postgres_url, name="worker", calls={"mail": lambda context: ran.set()}):
            await until_async(ran.is_set, "the run")


async def test_one_that_was_given_up_begins_anew_under_another_name(postgres_url: str, state: Path) -> None:
    ended = threading.Event()
    async with EmbeddedEngine(postgres_url, name="web", calls={"note": lambda context: ended.set()}) as engine:
        engine.apply([calling("notes", "note", "@daily")])
        before = await registered(engine)

        def give_up(tx: object) -> None:
            records = Records(tx, engine.store.now())  # type: ignore[arg-type]
            found = records.node(before.id)
            assert found is not None
            append(records.tx, lose(records, found))

        engine.store.update(give_up)
        engine.trigger("notes")
        await until_async(ended.is_set, "a run by its successor")
        after = await registered(engine)
        assert (after.id != before.id, after.program) == (True, "web")
        assert engine.is_running
    with PostgresStore.open(postgres_url, create=False) as store:
        nodes = store.view(lambda tx: Reading(tx).nodes())
        assert [node.stopped_ms is not None for node in nodes if node.id == after.id] == [True]


async def test_a_command_finds_the_address_without_its_password(
    postgres_url: str, state: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    async with EmbeddedEngine(postgres_url.replace("chronex@", "chronex:s3cret@", 1)) as engine:
        engine.add("look", "@daily", ["sh", "-c", f'echo "$CHRONEX_STORE $CHRONEX_FENCE" > {seen}'])
        found = await asyncio.to_thread(lambda: engine.wait_for(engine.trigger("look")))
        assert found.state is OccurrenceState.COMPLETED
        store, fence = seen.read_text().split()
        assert (store.startswith("postgresql://chronex@"), int(fence) > 0) == (True, True)


async def test_the_fence_is_in_the_context(postgres_url: str, state: Path) -> None:
    fences: list[int] = []
    async with EmbeddedEngine(postgres_url, calls={"note": lambda context: fences.append(context.fence)}) as engine:
        engine.apply([calling("notes", "note", "@every 100ms {max:3}")])
        await until_async(lambda: len(fences) == 3, "three runs")
    assert fences == sorted(set(fences))
    assert fences[0] > 0


async def test_it_takes_no_job_of_a_file_that_may_be_on_another_machine(postgres_url: str, state: Path) -> None:
    theirs = JobSource("/on/another/machine.toml", lambda source: True)
    with PostgresStore.open(postgres_url) as store:
        backup = Job(id="backup", schedule="@daily", tasks=(Task(name="main", run="true"),))
        apply_jobs(store, [backup], store.now(), owns=theirs)
    async with EmbeddedEngine(postgres_url, name="web", calls={"note": print}) as engine:
        with pytest.raises(JobSourceError, match=r"machine\.toml"):
            engine.apply([calling("backup", "note")])


def test_no_signal_is_sent_to_a_program(postgres_url: str, state: Path, tmp_path: Path) -> None:
    """`chronex stop` and `restart` mean the daemon; a program that works on the store beside it is none."""
    with EmbeddedEngine(postgres_url, name="web"):
        with open_session(postgres_url) as session:
            until(lambda: session.has_daemon, "its registration")
            assert (session.daemon_pid, session.has_daemon) == (None, True)
        machine = Machine(tmp_path)
        machine.env |= {"CHRONEX_STORE": postgres_url, "CHRONEX_STATE_DIR": str(state)}
        done = machine.chronex("stop")
        assert (done.returncode, done.stdout.strip()) == (0, "no daemon runs on this store")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "the store is empty; name a directory or a postgresql:// address"),
        ("mysql://ann:s3cret@db/jobs", "the store is a mysql address, and a store is a directory or a postgresql://"),
        ("postgresql:/ann:s3cret@db/jobs", "the store is not written as an address"),
        ("host=db password=s3cret", "the store is not written as an address"),
    ],
)
def test_what_is_no_address_becomes_no_directory(
    given: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(chronex.ChronexError) as caught, chronex.Engine(given):
        pass
    assert says in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_database_that_is_away_is_said_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = chronex.Engine("postgresql://ann:s3cret@127.0.0.1:1/jobs")
    with pytest.raises(chronex.ChronexError, match=r"127\.0\.0\.1:1") as caught:
        engine.open()
    assert "s3cret" not in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_threads_and_processes_of_a_program_are_ended_before_others_begin_them_anew(
    postgres_url: str, state: Path
) -> None:
    """As its keeper ends commands: by the boot time since its last heartbeat, whatever the database does."""
    begun, asked = threading.Event(), threading.Event()

    def work(context: chronex.TaskContext) -> None:
        begun.set()
        while not context.cancellation.wait(0.05):
            pass
        asked.set()

    with EmbeddedEngine(postgres_url, name="web", calls={"work": work}) as engine:
        engine.apply([calling("long", "work", "@daily")])
        found = engine.trigger("long").occurrence
        until(begun.is_set, "its begin")
        assert engine._daemon is not None
        assert engine._daemon.guard is not None
        engine._daemon.guard.trust(0)  # the last heartbeat was sent when the machine was started
        until(asked.is_set, "that it is asked to end")

        def attempts() -> list[AttemptState]:
            seen = engine.store.view(lambda tx: Reading(tx).attempts("long", found.nominal_ms))
            return [one.state for one in seen if one.finished_ms is not None]

        until(lambda: attempts() == [AttemptState.CRASHED], "an end of which nobody knows how it would have been")


PROGRAM = """
import os, sys, time
import chronex

engine = chronex.Engine(sys.argv[1], name="web")

@engine.job("@daily", executor="process", args=[sys.argv[2]])
def crunch(context, place):
    with open(place + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(place + ".part", place)
    while True:
        time.sleep(1)

if __name__ == "__main__":
    with engine:
        engine.trigger("crunch")
        engine.join()
"""


def test_a_function_in_a_process_ends_with_its_program(postgres_url: str, state: Path, tmp_path: Path) -> None:
    """No keeper holds it, so that it would run on while another machine begins it anew."""
    script, place = tmp_path / "program.py", tmp_path / "pid"
    script.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(script), postgres_url, str(place)]) as program:
        until(place.exists, "the function to begin")
        program.kill()
    pid = int(place.read_text())
    until(lambda: is_gone(pid), "the end of the function")


@pytest.mark.parametrize("given", ["postgresql://ann:s3cret@db/jobs", "host=db password=s3cret", ""])
def test_a_scheduler_of_registrations_has_its_store_to_itself(given: str) -> None:
    with pytest.raises(chronex.ChronexError) as caught:
        chronex.Scheduler(given)
    assert "s3cret" not in str(caught.value)
