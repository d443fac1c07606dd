"""Real daemons on one PostgreSQL: each as a machine of its own, with its own state and its own keeper."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from chronex.daemon import headless
from chronex.daemon.loop import LEASE
from chronex.daemon.maintenance import add_maintenance
from chronex.engine.commands import Actor, pause
from chronex.engine.membership import LEASE_MS, lose
from chronex.engine.shared_logs import read_excerpt
from chronex.engine.update import apply_jobs
from chronex.jobfile import SchedulerSettings
from chronex.model.job import Job, Task
from chronex.model.policies import StopMode
from chronex.model.records import Excerpt
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage import journal
from chronex.storage.records import EVERYTHING, Reading, Records
from chronex.verify import PropertyVerdict, verify_store
from chronex_store.postgres import pg_connections
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_connections import Connections, DatabaseClock
from chronex_store.postgres.pg_store import PostgresStore
from tests.daemon.machine import Machine
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.kit.processes import end_all
from tests.kit.waits import until, until_async
from tests.store.postgres.test_pg_failover import Backup
from tests.store.postgres.test_pg_store import sql
from tests.verify.assertion import assert_verified


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """One that the test may stop."""
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    found = begin_server()
    yield found
    end_server(found)


class Machines:
    """Machines that share a store and a directory into which their commands write what they did."""

    def __init__(self, url: str, directory: Path, count: int) -> None:
        self.url = url
        self.witness = directory / "witness"
        self.all = [self._machine(directory / f"host-{number}") for number in range(count)]

    def _machine(self, directory: Path) -> Machine:
        directory.mkdir()
        machine = Machine(directory)
        machine.env |= {
            "CHRONEX_STORE": self.url,
            "CHRONEX_STATE_DIR": str(directory / "state"),
            "WITNESS": str(self.witness),
        }
        return machine

    def apply(self, text: str) -> None:
        machine = self.all[0]
        machine.write(text.replace("WITNESS", str(self.witness)))
        done = machine.chronex("apply")
        assert done.returncode == 0, done.stderr
        (machine.directory / "chronex.toml").unlink()

    def lines(self) -> list[str]:
        return self.witness.read_text().splitlines() if self.witness.exists() else []

    @property
    def store(self) -> PostgresStore:
        return PostgresStore.open(self.url, create=False)


@contextmanager
def machines(url: str, directory: Path, count: int) -> Iterator[Machines]:
    """However the test ends, no daemon, keeper or command is left; and the journal holds the formal model."""
    made = Machines(url, directory, count)
    try:
        yield made
    finally:
        for machine in made.all:
            for daemon in machine.daemons:
                daemon.kill()
                daemon.wait()
                if daemon.stderr is not None:
                    daemon.stderr.close()
            end_all(machine.directory / "state")
    with made.store as store:
        assert_verified(store)


TICKS = """
[jobs.tick]
schedule = "* * * * * *"
run = "echo $CHRONEX_SCHEDULED_TIME >> WITNESS"
recovery = "execute_all"
overlap = "queue"
"""


def test_two_machines_run_every_instant_once_also_when_the_database_is_restarted(
    server: PostgresServer, tmp_path: Path
) -> None:
    with machines(server.url(), tmp_path, 2) as found:
        found.apply(TICKS)
        daemons = [machine.start(quiet=True) for machine in found.all]
        until(lambda: len(found.lines()) >= 2, "runs before the outage")
        server.stop("immediate")
        server.start()
        before = len(found.lines())
        until(lambda: len(found.lines()) >= before + 2, "runs after the outage")
        assert [daemon.poll() for daemon in daemons] == [None, None], "an outage ends no daemon"
        for daemon in daemons:
            daemon.send_signal(signal.SIGTERM)
        assert [daemon.ended() for daemon in daemons] == [0, 0]
        doubled = [line for line, count in Counter(found.lines()).items() if count > 1]
        assert doubled == []
        with found.store as store:
            occurrences = store.view(lambda tx: Reading(tx).occurrences("tick", limit=EVERYTHING))
        nominal = sorted(one.nominal_ms for one in occurrences)
        assert nominal == list(range(nominal[0], nominal[-1] + 1, 1_000)), "an instant has no outcome"
        assert {one.state for one in occurrences} <= {
            OccurrenceState.COMPLETED,
            OccurrenceState.PENDING,
            OccurrenceState.QUEUED,
            OccurrenceState.RUNNING,  # a daemon that stops leaves what runs to its keeper
        }


SLOW = """
[jobs.slow]
schedule = "@once +1s"
run = "echo began $$ >> WITNESS; while [ ! -e WITNESS.release ]; do sleep 0.05; done; echo ended >> WITNESS"
"""


def test_a_daemon_that_was_killed_finds_its_command_again_at_once(server: PostgresServer, tmp_path: Path) -> None:
    """On its own machine nobody waits for a lease: the process is there to be seen."""
    with machines(server.url(), tmp_path, 1) as found:
        found.apply(SLOW)
        (machine,) = found.all
        daemon = machine.start()
        daemon.until_logged("attempt started")
        until(found.lines, "the command")
        daemon.kill()
        successor = machine.start()
        successor.until_logged("attempt adopted")
        Path(f"{found.witness}.release").touch()
        successor.until_logged("attempt ended")
        assert successor.stopped() == 0
        assert [line.split()[0] for line in found.lines()] == ["began", "ended"]


def test_a_command_gets_no_password(server: PostgresServer, tmp_path: Path) -> None:
    with machines(server.url() + "&password=s3cret", tmp_path, 1) as found:
        found.apply('[jobs.show]\nschedule = "@once +1s"\nrun = "env > WITNESS.env; echo done >> WITNESS"\n')
        daemon = found.all[0].start()
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0
        seen = Path(f"{found.witness}.env").read_text()
        assert "CHRONEX_STORE=postgresql://" in seen
        assert "s3cret" not in seen


@pytest.mark.torture
def test_a_frozen_daemon_is_given_up_and_comes_back_under_another_name(
    server: PostgresServer, tmp_path: Path
) -> None:
    """SIGSTOP for longer than its lease while a command runs: the command goes on, and is adopted by its own machine."""
    with machines(server.url(), tmp_path, 2) as found:
        found.apply(SLOW)
        first = found.all[0].start()
        first.until_logged("attempt started")
        second = found.all[1].start(quiet=True)
        first.send_signal(signal.SIGSTOP)
        with found.store as store:
            until(lambda: "NodeLost" in _names(store), "that it is given up", deadline=60)
            first.send_signal(signal.SIGCONT)
            first.until_logged("attempt adopted")
            Path(f"{found.witness}.release").touch()
            first.until_logged("attempt ended")
        assert [line.split()[0] for line in found.lines()] == ["began", "ended"]
        assert (first.stopped(), second.stopped()) == (0, 0)


def test_a_run_whose_end_was_lost_with_the_database_does_not_stay_running(
    server: PostgresServer, tmp_path: Path
) -> None:
    """A restore, after which somebody else decides of the job first: nobody runs what the store says is running."""
    with machines(server.url(), tmp_path, 1) as found:
        found.apply(SLOW)
        daemon = found.all[0].start()
        daemon.until_logged("attempt started")
        until(found.lines, "its beginning")
        backup = Backup(found.url)
        with found.store as store:
            Path(f"{found.witness}.release").touch()
            until(lambda: not _active(store), "its end")
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
            daemon.send_signal(signal.SIGSTOP)
            while sql(server.url(), held) != [(0,)]:  # else it would hold what the restore needs
                daemon.send_signal(signal.SIGCONT)
                daemon.send_signal(signal.SIGSTOP)
            backup.restore()
            assert _active(store) == [AttemptState.RUNNING]
            store.update(lambda tx: pause(Records(tx, store.now()), "slow", Actor("test", "test", "test")))
            daemon.send_signal(signal.SIGCONT)
            until(lambda: not _active(store), "its end, once more")
        assert daemon.stopped() == 0


def _active(store: PostgresStore) -> list[AttemptState]:
    return [one.state for one in store.view(lambda tx: Reading(tx).active_attempts())]


def _names(store: PostgresStore) -> set[str]:
    return {event.name for _, event in store.view(lambda tx: journal.tail(tx, limit=EVERYTHING))}


# "taken over" and "node registered" are passed by every daemon that begins.
KILLED_AT = [
    "tick decided", "shared update written:6", "shared update committed:6", "held told", "before opening",
    "opening asked", "end told", "end recorded", "node registered", "taken over",
]  # fmt: skip


@pytest.mark.torture
@pytest.mark.parametrize("point", KILLED_AT)
def test_a_daemon_that_is_killed_anywhere_loses_and_doubles_nothing(
    point: str, server: PostgresServer, tmp_path: Path
) -> None:
    """Two machines; one is killed at a point on the way of a run, again and again, and begins anew each time."""
    with machines(server.url(), tmp_path, 2) as found:
        found.apply(TICKS)
        steady = found.all[1].start(quiet=True)
        for _ in range(4):
            killed = found.all[0].start(quiet=True, fail_at=point)
            until(lambda killed=killed: killed.poll() is not None, f"its end at {point}")  # type: ignore[misc]
        last = found.all[0].start()
        last.until_logged("SchedulerStarted")
        before = len(found.lines())
        until(lambda: len(found.lines()) >= before + 3, "runs after it")
        for daemon in (steady, last):
            daemon.send_signal(signal.SIGTERM)
        assert (steady.ended(), last.ended()) == (0, 0)
        assert [line for line, count in Counter(found.lines()).items() if count > 1] == []


def test_an_end_in_an_outage_is_recorded_though_its_daemon_dies_before_the_database_is_back(
    server: PostgresServer, tmp_path: Path
) -> None:
    """The keeper has the end on file; the next daemon of the machine records it, and nothing runs twice."""
    with machines(server.url(), tmp_path, 1) as found:
        found.apply(SLOW)
        (machine,) = found.all
        daemon = machine.start()
        daemon.until_logged("attempt started")
        until(found.lines, "the command")
        server.stop("immediate")
        Path(f"{found.witness}.release").touch()
        daemon.until_logged("attempt ended")
        daemon.kill()
        daemon.wait()
        server.start()
        successor = machine.start()
        with found.store as store:
            until(lambda: _states(store, "slow") == [OccurrenceState.COMPLETED], "the end on record")
        assert successor.stopped() == 0
        assert [line.split()[0] for line in found.lines()] == ["began", "ended"]


def test_a_machine_that_is_up_before_its_database_waits_for_it(server: PostgresServer, tmp_path: Path) -> None:
    """After a power failure nobody starts the services once more by hand."""
    with machines(server.url(), tmp_path, 1) as found:
        found.apply(TICKS)
        server.stop("immediate")
        (machine,) = found.all
        done = machine.chronex("run", "--once")
        assert (done.returncode, "is the server running?" in done.stderr) == (75, True)
        daemon = machine.start()
        daemon.until_logged("the store does not answer")
        server.start()
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0


CHAIN = "".join(
    f'[jobs.{name}]\n{when}\nrun = ["true"]\n'
    for name, when in (
        ("first", 'schedule = "@once +1ms"'),
        ("second", 'after = ["first"]\nwait_for = ["path:/"]'),
        ("third", 'after = ["second"]'),
    )
)


def test_once_sees_a_chain_through(postgres_url: str, tmp_path: Path) -> None:
    with machines(postgres_url, tmp_path, 1) as found:
        found.apply(CHAIN)
        (machine,) = found.all
        done = machine.chronex("run", "--once")
        assert done.returncode == 0, done.stderr
        with found.store as store:
            ends = [_states(store, name) for name in ("first", "second", "third")]
        assert ends == [[OccurrenceState.COMPLETED]] * 3, done.stderr


def test_a_daemon_that_begins_while_others_hold_the_store_waits_for_it(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was given up begins anew when most goes on: it was the end of the daemon."""
    monkeypatch.setitem(pg_connections._SESSION, "lock_timeout", "200ms")
    monkeypatch.setenv("CHRONEX_STATE_DIR", str(tmp_path / "state"))
    address = read_address(postgres_url)
    with PostgresStore.open(address) as store, Connections(address).connect() as other:
        daemon = headless._build_daemon(store, address, SchedulerSettings())

        async def until_begun() -> None:
            with other.transaction():
                other.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                other.execute("SELECT pg_advisory_xact_lock(hashtext(current_schema()), 1)")
                running = asyncio.get_running_loop().create_task(daemon.run())
                await until_async(lambda: daemon.away or running.done(), "a store that is busy")
            await until_async(lambda: bool(daemon.registration.last_seen) or running.done(), "its record")
            daemon.stop(StopMode.DRAIN)
            await running

        asyncio.run(until_begun())
        names = [event.name for _, event in store.view(journal.tail)]
    end_all(tmp_path / "state")
    assert {"SchedulerStarted", "SchedulerStopped"} <= set(names)


@pytest.mark.parametrize("is_asked_first", [True, False])
def test_the_stop_of_a_daemon_that_was_given_up_is_on_record(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_asked_first: bool
) -> None:
    """Whether it learns that while it stops, or is asked to stop after it was told: `verify` must not wait for it."""
    monkeypatch.setenv("CHRONEX_STATE_DIR", str(tmp_path / "state"))
    with PostgresStore.open(postgres_url) as store:
        daemon = headless._build_daemon(store, read_address(postgres_url), SchedulerSettings())

        def give_up() -> None:
            store.update(lambda tx: _give_up(Records(tx, store.now()), daemon.node.id))

        async def until_given_up() -> None:
            running = asyncio.get_running_loop().create_task(daemon.run())
            await until_async(lambda: bool(daemon.registration.last_seen) or running.done(), "its record")
            if is_asked_first:
                daemon.on_stopping = give_up
                daemon.stop(StopMode.DRAIN)
            else:
                give_up()
                await daemon._heartbeat()
            await running

        asyncio.run(until_given_up())
        assert daemon.must_restart is not is_asked_first
        report = verify_store(store)
        assert [one.property for one in report.properties if one.verdict is PropertyVerdict.OPEN] == []
        assert report.violated() == []
        found = store.view(lambda tx: Reading(tx).node(daemon.node.id))
        assert found is not None
        assert found.refused_ms is not None, "whoever asks why is told that it came back"
        assert (found.stopped_ms is not None) is is_asked_first
    end_all(tmp_path / "state")


def test_a_daemon_that_is_stopped_while_it_begins_anew_does_not(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that is stopped, a machine that goes down: who had been given up went on under another name."""
    monkeypatch.setenv("CHRONEX_STATE_DIR", str(tmp_path / "state"))
    with PostgresStore.open(postgres_url) as store:
        daemon = headless._build_daemon(store, read_address(postgres_url), SchedulerSettings())

        async def until_stopped() -> None:
            running = asyncio.get_running_loop().create_task(daemon.run())
            await until_async(lambda: bool(daemon.registration.last_seen) or running.done(), "its record")
            store.update(lambda tx: _give_up(Records(tx, store.now()), daemon.node.id))
            await daemon._heartbeat()
            assert daemon.must_restart
            await daemon._stop_as_asked(lambda: None, daemon.stop)
            await daemon._heartbeat()  # it is refused once more, and that changes nothing
            await running

        asyncio.run(until_stopped())
        assert not daemon.must_restart
    end_all(tmp_path / "state")


def _give_up(records: Records, name: str) -> None:
    found = records.node(name)
    assert found is not None
    journal.append(records.tx, lose(records, found))


def test_a_password_that_is_changed_under_a_daemon_ends_nothing(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes it comes to the machines one after the other, and the services must still be there."""
    password = tmp_path / "password"
    password.write_text("*:*:*:keyed:first\n")
    password.chmod(0o600)
    sql(server.url(), "CREATE ROLE keyed LOGIN SUPERUSER PASSWORD 'first'")
    settings = server.directory / "data" / "pg_hba.conf"
    settings.write_text(f"local all keyed scram-sha-256\n{settings.read_text()}")
    sql(server.url(), "SELECT pg_reload_conf()")
    with machines(server.url(user="keyed"), tmp_path, 1) as found:
        (machine,) = found.all
        monkeypatch.setenv("PGPASSFILE", str(password))
        machine.env["PGPASSFILE"] = str(password)
        found.apply(TICKS)
        daemon = machine.start()
        daemon.until_logged("attempt ended")
        ending = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keyed'"
        sql(server.url(), "ALTER ROLE keyed PASSWORD 'second'", ending)
        daemon.until_logged("refuses the password")
        password.write_text("*:*:*:keyed:second\n")
        daemon.until_logged("StoreBack")
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0


def test_a_right_that_is_missing_for_a_while_ends_nothing(server: PostgresServer, tmp_path: Path) -> None:
    PostgresStore.open(server.url()).close()
    grants = "GRANT ALL ON SCHEMA chronex TO plain; GRANT ALL ON ALL TABLES IN SCHEMA chronex TO plain"
    sql(server.url(), "CREATE ROLE plain LOGIN", grants)
    with machines(server.url(user="plain"), tmp_path, 1) as found:
        found.apply(TICKS)
        (machine,) = found.all
        daemon = machine.start()
        daemon.until_logged("attempt ended")
        sql(server.url(), "REVOKE INSERT, UPDATE ON chronex.occurrence FROM plain")
        daemon.until_logged("lacks a right")
        sql(server.url(), grants)
        daemon.until_logged("attempt ended")
        assert daemon.stopped() == 0


def test_a_daemon_that_is_stopped_while_the_database_is_away_says_so_and_leaves(
    server: PostgresServer, tmp_path: Path
) -> None:
    with machines(server.url(), tmp_path, 1) as found:
        found.apply(TICKS)
        (machine,) = found.all
        daemon = machine.start()
        daemon.until_logged("attempt ended")
        server.stop("immediate")
        daemon.until_logged("the store does not answer")
        daemon.send_signal(signal.SIGTERM)
        daemon.until_logged("stopped, which could not be recorded")
        assert daemon.ended() == 1
        server.start()


def test_a_node_that_drains_is_heard_until_its_last_command_has_ended(server: PostgresServer, tmp_path: Path) -> None:
    """At a tenth of the usual times. Without heartbeats it was given up, and began anew though it was asked to stop."""
    with machines(server.url(schema="chronex_torture_drain"), tmp_path, 2) as found:
        for number, machine in enumerate(found.all):
            machine.env |= {"CHRONEX_NODE": f"m{number}", "CHRONEX_TORTURE_PACE": "10"}
        found.apply(SLOW + 'nodes = ["m0"]\n')
        draining, observer = found.all
        draining.write('[scheduler]\non_stop = "drain"\n')
        daemon, other = draining.start(), observer.start(quiet=True)
        until(found.lines, "the command")
        daemon.send_signal(signal.SIGTERM)
        daemon.until_logged("SchedulerStopRequested")
        with found.store as store:
            asked_ms = store.now()

            def is_heard() -> bool:
                nodes = store.view(lambda tx: Reading(tx).nodes())
                return any(one.name == "m0" and one.seen_ms > asked_ms + 3 * LEASE_MS // 10 for one in nodes)

            until(is_heard, "heartbeats for three leases")
            Path(f"{found.witness}.release").touch()
            assert daemon.ended() == 0
            assert _states(store, "slow") == [OccurrenceState.COMPLETED]
            assert [event.name for _, event in store.view(journal.tail) if event.name == "NodeLost"] == []
        assert other.stopped() == 0


def _states(store: PostgresStore, job: str) -> list[OccurrenceState]:
    return [one.state for one in store.view(lambda tx: Reading(tx).occurrences(job))]


def test_no_question_to_the_database_is_asked_on_the_thread_of_the_loop(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not answer would hold up timeouts, cancels and output; only the beginning may wait for it.

    Also: whoever finds the end of an attempt finds its output with it. Another node may tell people at once.
    """
    asked: list[str] = []
    begun = threading.Event()

    def noted(name: str) -> None:
        real = getattr(PostgresStore, name)

        def call(self: PostgresStore, *given: Any, **more: Any) -> Any:
            if begun.is_set() and threading.current_thread() is threading.main_thread():
                asked.append(name)
            return real(self, *given, **more)

        monkeypatch.setattr(PostgresStore, name, call)

    for name in ("_view", "_begin", "_send"):
        noted(name)
    monkeypatch.setenv("CHRONEX_STATE_DIR", str(tmp_path / "state"))
    job = Job(id="a", schedule="* * * * * *", tasks=(Task(name="main", run="echo told"),))
    told: list[Excerpt | None] = []
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, [job], store.now())
        daemon = headless._build_daemon(store, read_address(postgres_url), SchedulerSettings())
        add_maintenance(daemon, daemon.executor.run_context.logs, SchedulerSettings())
        daemon.on_begun = begun.set

        async def until_some_ended() -> None:
            running = asyncio.get_running_loop().create_task(daemon.run())
            while not told:
                told.extend(await store.view_async(lambda tx: _excerpts_of_ended(Reading(tx), "a")))
                await asyncio.sleep(0.01)
            daemon.stop(StopMode.DRAIN)
            await running

        asyncio.run(until_some_ended())
    end_all(tmp_path / "state")
    assert begun.is_set()
    assert asked == []
    assert {None if one is None else one.head for one in told} == {b"told\n"}


def _excerpts_of_ended(reading: Reading, job: str) -> list[Excerpt | None]:
    """What is shared of the log of every attempt that has ended, as one look at the store finds it."""
    attempts = [one for run in reading.occurrences(job) for one in reading.attempts(job, run.nominal_ms)]
    return [read_excerpt(reading, one) for one in attempts if one.state is not AttemptState.RUNNING]


def test_an_idle_node_follows_the_clock_of_the_database_when_it_is_set_back(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rested until the time that the clock had shown came again, unless somebody changed the store."""
    step_ms = 0
    real = DatabaseClock.learn

    def learn(self: DatabaseClock, server_ms: float, asked_ms: int, answered_ms: int) -> None:
        real(self, server_ms + step_ms, asked_ms, answered_ms)

    monkeypatch.setattr(DatabaseClock, "learn", learn)
    monkeypatch.setenv("CHRONEX_STATE_DIR", str(tmp_path / "state"))
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, [Job(id="a", schedule="@daily", tasks=(Task(name="main", run="true"),))], store.now())
        daemon = headless._build_daemon(store, read_address(postgres_url), SchedulerSettings())

        def has_followed() -> bool:
            return any(event.name == "ClockStepped" for _, event in store.view(journal.tail))

        async def until_it_followed() -> None:
            nonlocal step_ms
            running = asyncio.get_running_loop().create_task(daemon.run())
            await until_async(lambda: daemon._rested is not None, "a daemon that rests")
            await asyncio.sleep(0)
            step_ms = -3_600_000
            daemon.periodic.hurry(LEASE)
            await until_async(has_followed, "that it follows")
            daemon.stop(StopMode.DRAIN)
            await running

        asyncio.run(until_it_followed())
    end_all(tmp_path / "state")


CANARY = "c4nary-s3cret"
LOOKS = (
    "status", "list", "show look", "history look", "why look", "events", "nodes", "logs look", "verify", "next look",
    "trigger look", "pause look", "resume look", "store check", "store migrate", "store roles", "doctor", "backup x",
    "restore x", "tui --print", "report look",
)  # fmt: skip


def test_a_password_in_the_address_is_shown_nowhere(server: PostgresServer, tmp_path: Path) -> None:
    """In what commands print, in words about mistakes, in logs, in processes, in files, and in the database itself."""
    url = server.url().replace("chronex@", f"chronex:{CANARY}@")
    seen: dict[str, str] = {}
    with machines(url, tmp_path, 1) as found:
        (machine,) = found.all
        found.apply('[jobs.look]\nschedule = "@once +1s"\nrun = "env; cat /proc/$PPID/cmdline /proc/$PPID/environ"\n')
        daemon = machine.start(starts_whole=True)
        daemon.until_logged("attempt ended")
        for line in LOOKS:
            done = machine.chronex(*line.split())
            seen[line] = done.stdout + done.stderr
            assert "Traceback" not in seen[line]
        for what, wrong in (
            ("no database", url.replace("/postgres?", "/nowhere?")), ("no server", url.replace("port=5432", "port=1")),
            ("bad option", f"{url}&bogus=1"), ("bad escape", url.replace(CANARY, f"{CANARY}%zz")),
            ("bad port", url.replace("@/", "@host:99999/")), ("bad schema", f"{url}&schema=A"),
            ("other scheme", url.replace("postgresql", "mysql")), ("by option", f"{server.url()}&password={CANARY}&x=1"),
        ):  # fmt: skip
            done = machine.chronex("status", CHRONEX_STORE=wrong)
            assert done.returncode in (2, 75), (what, done)
            seen[what] = done.stdout + done.stderr
            assert "Traceback" not in seen[what]
        seen["processes"] = "".join(_processes_below(daemon.pid))
        daemon.terminate()
        assert daemon.stderr is not None
        seen["log of the daemon"] = daemon.stderr.read()
        daemon.wait()
        seen["files"] = "".join(
            one.read_bytes().decode("latin-1") for one in (machine.directory / "state").rglob("*") if one.is_file()
        )
        assert "CHRONEX_STORE=postgresql://" in seen["files"], "the command has written what it was given"
        with found.store as store:
            seen["database"] = repr(store.view(lambda tx: tx.scan(b"", None, 100_000)))
    assert len(seen) > 20
    assert [what for what, text in seen.items() if CANARY in text] == []


def _processes_below(pid: int) -> Iterator[str]:
    """The command lines and the environments of what a process has begun."""
    children = [
        int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
    ]
    for child in children:
        for name in ("cmdline", "environ"):
            yield Path(f"/proc/{child}/{name}").read_bytes().decode("latin-1")
        yield from _processes_below(child)
