"""What is wrong with a database is said in one sentence with a hint, and never with a password."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronex.engine.update import apply_jobs
from chronex.errors import StoreAwayError, StoreFullError, StoreRefusedError
from chronex.model.event import Event
from chronex.storage import journal
from chronex_store.postgres import pg_connections
from chronex_store.postgres.pg_address import read_address
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.pooler import PORT, WHY_NO_POOLER, find_pooler, pooler
from tests.kit.postgres import PostgresServer
from tests.store.postgres.test_pg_races import AT, jobs_due_each_minute, race
from tests.store.postgres.test_pg_store import sql

CANARY = "c4nary-s3cret"


@pytest.fixture
def locked_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A user whom the server asks for a password, with another one than it wants."""
    url = postgres_server.url()
    settings = postgres_server.directory / "data" / "pg_hba.conf"
    before = settings.read_text()
    settings.write_text(f"local all locked scram-sha-256\n{before}")
    sql(
        url,
        "DO $$ BEGIN CREATE ROLE locked LOGIN PASSWORD 'right'; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
        "SELECT pg_reload_conf()",
    )
    yield url.replace("chronex@", f"locked:{CANARY}@")
    settings.write_text(before)
    sql(url, "SELECT pg_reload_conf()")


def test_a_wrong_password_is_called_that_and_not_shown(locked_url: str) -> None:
    def refusal() -> str:
        with pytest.raises(StoreRefusedError) as refused:
            PostgresStore.open(locked_url)
        return str(refused.value)

    said = refusal()
    assert "refuses the password; put the right one into" in said
    assert CANARY not in said


def role(url: str, name: str, options: str, *more: str) -> str:
    """The address for a new user of the server."""
    sql(url, f"CREATE ROLE {name}_{read_address(url).schema} LOGIN {options}")
    for statement in more:
        sql(url, statement.format(role=f"{name}_{read_address(url).schema}"))
    return url.replace("chronex@", f"{name}_{read_address(url).schema}@")


def test_a_standby_is_called_one(postgres_url: str) -> None:
    reader = role(postgres_url, "standby", "", "ALTER ROLE {role} SET default_transaction_read_only = on")
    with pytest.raises(StoreAwayError, match=r"only a standby answers, which takes no writes; .* name the primary"):
        PostgresStore.open(reader)


def test_a_service_that_no_file_has_is_called_that(postgres_url: str) -> None:
    with pytest.raises(StoreRefusedError, match=r"no service file has it; .*pg_service.conf"):
        PostgresStore.open("postgresql://?service=chronex_nowhere")


def test_a_schema_of_somebody_else_is_left_alone(postgres_url: str) -> None:
    schema = f"{read_address(postgres_url).schema}_foreign"
    sql(postgres_url, f"CREATE SCHEMA {schema}", f"CREATE TABLE {schema}.layout (x int)")
    with pytest.raises(StoreRefusedError, match=rf"{schema} holds tables of something else; name another .*schema="):
        PostgresStore.open(f"{postgres_url}_foreign")


def test_a_server_without_a_free_connection_says_so(postgres_url: str) -> None:
    with pytest.raises(StoreAwayError, match=r"no connection left; .* raise max_connections"):
        PostgresStore.open(role(postgres_url, "crowd", "CONNECTION LIMIT 0"))


def test_an_old_server_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pg_connections, "OLDEST_SERVER", 990_000)
    with pytest.raises(StoreRefusedError, match=r"runs PostgreSQL \d+; Chronex needs 99 or newer"):
        PostgresStore.open(postgres_url)


def test_one_who_may_make_no_tables_is_told_so(postgres_url: str) -> None:
    with pytest.raises(StoreRefusedError, match=r"lacks a right .*; its owner may say: GRANT CREATE ON DATABASE"):
        PostgresStore.open(role(postgres_url, "guest", ""))


def test_a_full_disk_of_the_server_loses_nothing_and_it_goes_on(postgres_url: str) -> None:
    with PostgresStore.open(postgres_url) as store:
        store.update(lambda tx: journal.append(tx, Event(name="Noted", at_ms=AT)))
        sql(
            postgres_url,
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
            "CREATE TRIGGER full_disk BEFORE INSERT ON event EXECUTE FUNCTION full_disk()",
        )
        with pytest.raises(StoreFullError, match="has no space left and nothing was written; free some"):
            store.update(lambda tx: journal.append(tx, Event(name="Lost", at_ms=AT)))
        sql(postgres_url, "DROP TRIGGER full_disk ON event")
        store.update(lambda tx: journal.append(tx, Event(name="Noted", at_ms=AT)))
        assert [event.name for _, event in store.view(journal.tail)] == ["Noted", "Noted"]


# -- behind a pooler ------------------------------------------------------------------------------------------------


@pytest.fixture
def pooled(postgres_server: PostgresServer) -> Iterator[str]:
    if find_pooler() is None:
        pytest.skip(WHY_NO_POOLER)
    with pooler(postgres_server) as place:
        yield f"postgresql://chronex@/postgres?host={place}&port={PORT}"


def test_four_nodes_race_behind_a_pooler_that_gives_each_transaction_another_connection(
    pooled: str, postgres_url: str
) -> None:
    url = f"{pooled}&schema={read_address(postgres_url).schema}"
    race(url, jobs_due_each_minute(6), instants=1, slots=3)
    with PostgresStore.open(url) as store:
        counter = store.wait(-1, 0)
        with PostgresStore.open(postgres_url) as direct:
            direct.update(lambda tx: journal.append(tx, Event(name="Noted", at_ms=AT)))
        assert store.wait(counter, 30) != counter, "without a word, by asking"
        apply_jobs(store, [], AT + 1)


def test_a_pooler_that_refuses_our_settings_is_told_of(postgres_server: PostgresServer) -> None:
    if find_pooler() is None:
        pytest.skip(WHY_NO_POOLER)
    refused = pytest.raises(StoreRefusedError, match="ignore_startup_parameters = options")
    with pooler(postgres_server, ignored="extra_float_digits") as place, refused:
        PostgresStore.open(f"postgresql://chronex@/postgres?host={place}&port={PORT}")
