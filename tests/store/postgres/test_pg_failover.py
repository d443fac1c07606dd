"""A database that went back: commits that it had acknowledged are gone, and are done once more or left to others."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from psycopg.types.json import Jsonb

from chronex.engine.orders import Launch
from chronex.engine.update import apply_jobs
from chronex.errors import StoreWentBackError
from chronex.model.job import Job, Task
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage import journal, scopes
from chronex.storage.ports import LostCommits
from chronex.storage.records import Reading, Records
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_redo import WentBack
from chronex_store.postgres.pg_store import PostgresStore
from chronex_store.postgres.pg_tables import TABLES
from tests.kit.postgres import WHY_MISSING, PostgresServer, begin_server, end_server, find_programs
from tests.kit.racing import RacingNode
from tests.kit.relay import Relay
from tests.kit.waits import until
from tests.verify.assertion import assert_verified

AT = 1_798_761_600_000
_ALL = (*(table.name for table in TABLES), "journal_head", "commit_mark")


class Backup:
    """What was in the tables at some time, to which the database can be made to go back."""

    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        with self._connect() as connection:
            self._rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in _ALL}

    def restore(self) -> None:
        with self._connect() as connection, connection.transaction():
            for name, rows in self._rows.items():
                connection.execute(f"DELETE FROM {name}")
                for row in rows:
                    places = ", ".join(["%s"] * len(row))
                    connection.execute(f"INSERT INTO {name} VALUES ({places})", [_value(one) for one in row])

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        options = f"-c search_path={self._address.schema}"
        made: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            autocommit=True,
            options=options,
            **self._address.parameters,  # type: ignore[arg-type]
        )
        return made


def _value(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict | list) else value


def hourly(name: str) -> Job:
    return Job(id=name, schedule="0 * * * *", tasks=(Task(name="main", run="true"),))


@pytest.fixture
def node(emptied_url: str) -> Iterator[RacingNode]:
    """A node on a store of two jobs that are due at AT; it is registered already."""
    with PostgresStore.open(emptied_url) as store:
        apply_jobs(store, [hourly("a"), hourly("b")], AT - 1000)
        made = RacingNode(store, "node-1", 5)
        made.register(AT - 500)
        made.launched.append("so that the next one goes well")
        yield made


def heard(store: PostgresStore) -> list[LostCommits]:
    found: list[LostCommits] = []
    store.on_went_back = found.append
    return found


def states(store: PostgresStore, job: str) -> list[OccurrenceState]:
    return [one.state for one in store.view(lambda tx: Reading(tx).occurrences(job))]


def contents(store: PostgresStore) -> list[tuple[bytes, bytes]]:
    """Everything but the journal, which tells one thing more, and what nodes said."""
    rows = store.view(lambda tx: tx.scan(b"", None, 100_000))
    return [row for row in rows if row[0][:1] not in (b"E", b"M", b"N")]


def test_what_was_claimed_run_and_ended_is_not_decided_again(node: RacingNode, emptied_url: str) -> None:
    backup, told = Backup(emptied_url), heard(node.store)
    node.work(AT)
    assert states(node.store, "a") == [OccurrenceState.COMPLETED]
    before, events = contents(node.store), node.store.view(journal.tail)
    backup.restore()
    assert states(node.store, "a") == [], "it went back"
    assert node.engine.tick(AT + 1, AT - 1000).orders == (), "nothing is due again"
    assert contents(node.store) == before
    assert told == [WentBack(commits=4, again=2, conflicts=())]
    after = [event.name for _, event in node.store.view(journal.tail)]
    assert after == [*(event.name for _, event in events), "StoreWentBack"]
    assert_verified(node.store)


def test_a_start_that_was_lost_is_on_record_again_before_anything_is_claimed(
    node: RacingNode, emptied_url: str
) -> None:
    launches = [one for one in node.engine.tick(AT, AT - 1000).orders if isinstance(one, Launch)]
    backup = Backup(emptied_url)
    starts = node.engine.all_started([node.start_of(one, AT) for one in launches])
    node.store.update(starts, scope=scopes.of_jobs("a", "b"))
    backup.restore()
    assert {one.started_ms for one in node.store.view(lambda tx: Reading(tx).active_attempts())} == {None}
    node.engine.tick(AT + 1, AT - 1000)
    assert {one.started_ms for one in node.store.view(lambda tx: Reading(tx).active_attempts())} == {AT}


def test_what_another_node_has_decided_meanwhile_stays_as_it_has_it(node: RacingNode, emptied_url: str) -> None:
    told = heard(node.store)
    backup = Backup(emptied_url)
    node.work(AT)
    backup.restore()
    with PostgresStore.open(emptied_url) as elsewhere:
        other = RacingNode(elsewhere, "node-2", 1)
        other.register(AT)
        (taken,) = (one for one in other.engine.tick(AT, AT - 1000).orders if isinstance(one, Launch))
        assert taken.job.id == "a"
        node.engine.tick(AT + 1, AT - 1000)
        assert told == [WentBack(commits=4, again=1, conflicts=("a",))]
        (attempt,) = elsewhere.view(lambda tx: Reading(tx).active_attempts())
        assert (attempt.owner, attempt.state) == ("node-2", AttemptState.RUNNING)
        assert states(elsewhere, "b") == [OccurrenceState.COMPLETED]


@pytest.mark.parametrize("is_first_back", [True, False])
def test_what_nodes_had_decided_in_turns_is_not_left_out(
    node: RacingNode, emptied_url: str, is_first_back: bool
) -> None:
    """Of three instants of a job one node had the first and the last, the other one that in between."""
    hour = 3_600_000
    told = heard(node.store)
    with PostgresStore.open(emptied_url) as elsewhere:
        other = RacingNode(elsewhere, "node-2", 5)
        other.register(AT - 500)
        backup = Backup(emptied_url)
        for number, one in enumerate((node, other, node)):
            one.register(AT + number * hour)
            one.work(AT + number * hour)
        assert states(node.store, "a") == [OccurrenceState.COMPLETED] * 3
        backup.restore()
        for one in (node, other) if is_first_back else (other, node):
            one.work(AT + 2 * hour + 1)
        node.work(AT + 3 * hour)
        assert [one.conflicts for one in told] == [("a", "b")]
        for job in ("a", "b"):
            found = elsewhere.view(lambda tx, job=job: Reading(tx).occurrences(job))  # type: ignore[misc]
            assert sorted(one.nominal_ms for one in found) == [AT + number * hour for number in range(4)]
        assert_verified(elsewhere)


def test_one_that_lost_more_than_it_can_do_again_says_so(node: RacingNode, emptied_url: str) -> None:
    backup = Backup(emptied_url)
    apply_jobs(node.store, [hourly("a"), hourly("b"), hourly("c")], AT - 100)
    backup.restore()
    with pytest.raises(StoreWentBackError, match="went back to a time before"):
        node.engine.tick(AT, AT - 1000)


def test_a_node_that_others_gave_up_is_not_brought_back_by_what_it_does_again(
    node: RacingNode, emptied_url: str
) -> None:
    backup = Backup(emptied_url)
    node.register(AT)
    node.engine.tick(AT, AT - 1000)
    backup.restore()
    with PostgresStore.open(emptied_url) as elsewhere:
        found = elsewhere.view(lambda tx: Reading(tx).node("node-1"))
        assert found is not None
        lost = replace(found, lost_ms=AT, epoch=found.epoch + 1)
        elsewhere.update(lambda tx: Records(tx, AT).put(lost))
        with pytest.raises(Exception, match="given"):
            node.engine.tick(AT + 1, AT - 1000)
        assert elsewhere.view(lambda tx: Reading(tx).node("node-1")) == lost


# -- real standbys --------------------------------------------------------------------------------------------------


@pytest.fixture
def primary() -> Iterator[PostgresServer]:
    if find_programs() is None:
        pytest.skip(WHY_MISSING)
    made = begin_server()
    yield made
    shutil.rmtree(made.directory, ignore_errors=True)


def both(one: PostgresServer, other: PostgresServer) -> str:
    return f"postgresql://chronex@/postgres?host={one.directory},{other.directory}&port={one.port},{other.port}"


@pytest.mark.parametrize("synchronous", [False, pytest.param(True, marks=pytest.mark.torture)])
def test_a_standby_takes_over_and_no_run_is_doubled(primary: PostgresServer, synchronous: bool) -> None:
    """The last commits never reach the standby where nobody waits for it: they are acknowledged, and lost."""
    with Relay(primary) as relay:
        standby = primary.standby(relay.host, synchronous=synchronous)
        try:
            with PostgresStore.open(both(primary, standby)) as store:
                told = heard(store)
                apply_jobs(store, [hourly("a"), hourly("b")], AT - 1000)
                node = RacingNode(store, "node-1", 5)
                node.register(AT - 500)
                node.launched.append("so that the next one goes well")
                until(lambda: _has_followed(primary), "that the standby has it all")
                if not synchronous:
                    relay.is_down = True
                    relay.cut()
                node.work(AT)
                primary.stop("immediate")
                standby.promote()
                assert node.engine.tick(AT + 1, AT - 1000).orders == ()
                assert states(store, "a") == states(store, "b") == [OccurrenceState.COMPLETED]
                assert len(told) == (0 if synchronous else 1)
                assert_verified(store)
        finally:
            end_server(standby)


def _has_followed(primary: PostgresServer) -> bool:
    address = read_address(primary.url())
    with psycopg.connect(autocommit=True, **address.parameters) as connection:  # type: ignore[arg-type]
        query = "SELECT replay_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"
        found = connection.execute(query).fetchone()
    return found is not None and bool(found[0])
