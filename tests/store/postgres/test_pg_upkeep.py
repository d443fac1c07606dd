"""Two layouts at once, checks of a shared store, and roles that may do no more than they are for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from chronex.engine.commands import pause, trigger
from chronex.engine.commands.actor import Actor
from chronex.engine.orders import Launch
from chronex.engine.update import apply_jobs
from chronex.errors import NewerRecordError, StoreFormatError, StorePermissionError
from chronex.model.job import Job, JobVersion, Task
from chronex.model.policies import RunOn
from chronex.model.states import OccurrenceState
from chronex.storage import keys, scopes
from chronex.storage.records import Reading, Records
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_checks import check
from chronex_store.postgres.pg_layout import LAYOUT, OLDEST_LAYOUT
from chronex_store.postgres.pg_migration import MigrationReport, migrate
from chronex_store.postgres.pg_roles import statements
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.racing import RacingNode
from tests.storage.samples import of_version
from tests.store.postgres.test_pg_store import sql

AT = 1_798_761_600_000
HOUR = 3_600_000
ACTOR = Actor("somebody", "cli", "here")


def hourly(name: str) -> Job:
    return Job(id=name, schedule="0 * * * *", tasks=(Task(name="main", run="true"),))


# -- layouts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def older(postgres_url: str) -> str:
    """A store as the version before this one made it."""
    PostgresStore.open(postgres_url).close()
    sql(
        postgres_url,
        f"UPDATE layout SET number = {LAYOUT - 1}",
        "ALTER TABLE index_entry RESET (autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor)",
    )
    return postgres_url


def settings_of(url: str, table: str) -> object:
    schema = read_address(url).schema
    return sql(url, f"SELECT reloptions FROM pg_class WHERE oid = '{schema}.{table}'::regclass")[0][0]


def test_a_store_of_the_version_before_is_worked_with_as_it_is(older: str) -> None:
    with PostgresStore.open(older) as store:
        apply_jobs(store, [hourly("a")], AT - 1000)
        node = RacingNode(store, "node-1", 5)
        node.register(AT)
        assert len(node.engine.tick(AT, AT - 1000).orders) == 1
    assert sql(older, "SELECT number FROM layout") == [(LAYOUT - 1,)]


def test_its_layout_is_raised_once_every_living_node_knows_the_new_one(older: str) -> None:
    with PostgresStore.open(older) as store:
        node = RacingNode(store, "node-old", 5)
        node.register(store.now())
        assert migrate(read_address(older)) == MigrationReport(LAYOUT - 1, LAYOUT - 1, ("node-old",))
        assert "autovacuum_vacuum_scale_factor=0.02" in str(settings_of(older, "index_entry")), "it is prepared"
        node.register(store.now())
        found = store.view(lambda tx: Reading(tx).node("node-old"))
        assert found is not None
        store.update(lambda tx: Records(tx, AT).put(replace(found, layout=LAYOUT)))
        assert migrate(read_address(older)) == MigrationReport(LAYOUT - 1, LAYOUT)
        assert migrate(read_address(older)) == MigrationReport(LAYOUT, LAYOUT)
        node.register(store.now())


def test_a_new_store_is_what_a_migrated_one_is(older: str, postgres_url: str) -> None:
    migrate(read_address(older))
    made = f"{postgres_url[:-2]}zz"
    PostgresStore.open(made).close()
    query = (
        "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = '{schema}'::regnamespace ORDER BY 1"
    )
    one, other = (sql(url, query.format(schema=read_address(url).schema)) for url in (older, made))
    assert one == other


@pytest.mark.parametrize("number", [LAYOUT + 1, OLDEST_LAYOUT - 1])
def test_another_layout_is_refused_and_left_alone(postgres_url: str, number: int) -> None:
    PostgresStore.open(postgres_url).close()
    sql(postgres_url, f"UPDATE layout SET number = {number}")
    before = sql(postgres_url, "SELECT * FROM layout")
    for refuse in (lambda: PostgresStore.open(postgres_url), lambda: migrate(read_address(postgres_url))):
        with pytest.raises(StoreFormatError, match=f"layout {number} of a"):
            refuse()
    assert sql(postgres_url, "SELECT * FROM layout") == before


@pytest.mark.parametrize(
    "key",
    [
        keys.job_progress_key("a"), keys.job_key("a"), keys.occurrence_key("a", AT), keys.run_key("a", AT, "main"),
        keys.attempt_key("a", AT, "main", 1),
    ],
    ids=["progress", "definition", "occurrence", "run", "attempt"],
)  # fmt: skip
def test_a_record_of_a_newer_version_is_neither_removed_nor_written_over(emptied_url: str, key: bytes) -> None:
    with PostgresStore.open(emptied_url) as store:
        apply_jobs(store, [hourly("a")], AT - 1000)
        node = RacingNode(store, "node-1", 5)
        node.register(AT)
        launches = [one for one in node.engine.tick(AT, AT - 1000).orders if isinstance(one, Launch)]
        newer = of_version(2, key, store.view(lambda tx: tx.get(key)) or b"")
        store.update(lambda tx: tx.put(key, newer))
        for work in (
            lambda: node.carry_out(launches, AT + 1),
            lambda: node.engine.tick(AT + HOUR, AT - 1000),
            lambda: store.update(lambda tx: Records(tx, AT).delete(key)),
        ):
            with contextlib.suppress(NewerRecordError):
                work()
            assert store.view(lambda tx: tx.get(key)) == newer


# -- checks ---------------------------------------------------------------------------------------------------------


def test_a_sound_store_has_nothing_to_tell_but_that_its_server_does_not_sync(emptied_url: str) -> None:
    with PostgresStore.open(emptied_url) as store:
        apply_jobs(store, [hourly("a")], AT - 1000)
        found = check(store)
        assert found.findings == [
            "the server has fsync = off: a crash of the server can damage the store; set it to on"
        ]
        assert found.facts["layout"] == LAYOUT
        assert found.facts["rows"] == 4


def test_a_damaged_row_an_index_without_record_and_a_record_without_index_are_found(emptied_url: str) -> None:
    with PostgresStore.open(emptied_url) as store:
        apply_jobs(store, [hourly("a"), hourly("b")], AT - 1000)
        progress = store.view(lambda tx: Reading(tx).job("a"))
        assert progress is not None
        entry = keys.timed(keys.DUE, progress.progress.next_ms or 0, keys.job_progress_key("a"))
        store.update(lambda tx: tx.delete(entry))
        store.update(lambda tx: tx.put(keys.timed(keys.DUE, 5, keys.job_progress_key("none")), b""))
        store.update(lambda tx: tx.put(keys.job_key("b"), b"damaged"))
        told = "\n".join(check(store).findings)
    assert "is missing from an index" in told
    assert "stands for no record" in told
    assert told.count("restore the database from its backup") == 3


# -- roles ----------------------------------------------------------------------------------------------------------


class Roles:
    def __init__(self, url: str) -> None:
        self.url, self.schema = url, read_address(url).schema
        script = "\n".join(statements(self.schema))
        for _ in range(2):  # to run it twice is to run it once
            sql(url, script)
        for name in ("node", "operator", "reader"):
            sql(url, f"CREATE ROLE {self.schema}_some_{name} LOGIN IN ROLE {self.schema}_{name}")

    def open(self, name: str) -> PostgresStore:
        return PostgresStore.open(self.url.replace("chronex@", f"{self.schema}_some_{name}@"))


@pytest.fixture
def roles(postgres_url: str) -> Iterator[Roles]:
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, [hourly("a")], AT - 2000)
        apply_jobs(store, [replace(hourly("a"), description="changed")], AT - 1000)
        yield Roles(postgres_url)


def test_a_node_works_and_cannot_change_what_is_run(roles: Roles) -> None:
    with roles.open("node") as store:
        node = RacingNode(store, "node-1", 5)
        node.register(AT)
        node.launched.append("so that the next one goes well")
        node.work(AT)
        (found,) = store.view(lambda tx: Reading(tx).occurrences("a"))
        assert found.state is OccurrenceState.COMPLETED
        node.engine.take_over(lambda process: True, AT)
        with pytest.raises(StorePermissionError):
            apply_jobs(store, [hourly("b")], AT)


def test_a_node_makes_and_removes_the_jobs_of_nodes_and_no_others(roles: Roles) -> None:
    """Else the first machine that joins where something runs on each node ends every daemon."""
    each = replace(hourly("e"), run_on=RunOn.EACH)
    with PostgresStore.open(roles.url) as owner:
        apply_jobs(owner, [hourly("a"), each], AT - 500)
    with roles.open("node") as store:
        node = RacingNode(store, "node-1", 5)
        node.register(AT - 400)
        node.launched.append("so that the next one goes well")
        for at in (AT, AT + HOUR):
            node.register(at)
            node.work(at)
        (made,) = store.view(lambda tx: Reading(tx).targets("e"))
        assert made.id == "e:node-1"
        assert len(store.view(lambda tx: Reading(tx).occurrences("e:node-1"))) > 0
        for definition in (replace(each, version=9), hourly("b")):
            with pytest.raises(StorePermissionError):
                store.update(lambda tx, one=definition: Records(tx, AT).put(one))  # type: ignore[misc]
        store.update(lambda tx: Records(tx, AT).put(JobVersion(job=made)))
        with pytest.raises(StorePermissionError):
            store.update(lambda tx: Records(tx, AT).put(JobVersion(job=replace(each, version=58))))
        store.update(lambda tx: tx.delete(keys.job_key("e:node-1")))
        assert store.view(lambda tx: Reading(tx).targets("e")) == []


def test_an_operator_gives_commands_and_cannot_change_what_is_run(roles: Roles) -> None:
    with roles.open("operator") as store:
        store.update(lambda tx: trigger(Records(tx, AT), "a", ACTOR), scope=scopes.of_jobs("a"))
        store.update(lambda tx: pause(Records(tx, AT), "a", ACTOR))
        with pytest.raises(StorePermissionError):
            apply_jobs(store, [hourly("b")], AT)
        version = keys.job_version_key("a", 1)
        assert store.view(lambda tx: tx.get(version)) is not None
        with pytest.raises(StorePermissionError):
            store.update(lambda tx: tx.put(version, b"an older version, that is run too"))


def test_a_reader_reads_and_changes_nothing(roles: Roles) -> None:
    with roles.open("reader") as store:
        assert [job.id for job in store.view(lambda tx: Reading(tx).jobs())] == ["a"]
        with pytest.raises(StorePermissionError):
            store.update(lambda tx: trigger(Records(tx, AT), "a", ACTOR))
    reader = roles.url.replace("chronex@", f"{roles.schema}_some_reader@")
    assert sql(reader, "SELECT job FROM jobs") == [("a",)]


@pytest.mark.parametrize(
    ("address", "is_guarded"),
    [
        ("postgresql:///jobs", True),
        ("postgresql://localhost/jobs", True),
        ("postgresql:///jobs?host=/run/postgresql", True),
        ("postgresql://db.example/jobs", False),
        ("postgresql://db.example/jobs?sslmode=require", False),
        ("postgresql://db.example/jobs?sslmode=verify-full", True),
        ("postgresql://localhost,db.example/jobs", False),
    ],
)
def test_a_way_is_guarded_where_it_is_short_or_the_server_is_checked(address: str, is_guarded: bool) -> None:
    assert read_address(address).is_guarded is is_guarded
