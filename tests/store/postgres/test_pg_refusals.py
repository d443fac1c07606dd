"""What is wrong with a database is said in one sentence with a hint, and never with a password."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
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
from tests.kit.relay import LATE_S, Relay
from tests.kit.waits import until
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


def test_who_was_let_in_before_waits_for_what_refuses_it_now(postgres_url: str) -> None:
    """A password that is changed, a database that is restored: a daemon goes on when that is mended."""
    keyed = role(postgres_url, "keyed", "", "GRANT chronex TO {role}")
    name = read_address(keyed).parameters["user"]
    with PostgresStore.open(keyed) as store:
        sql(
            postgres_url,
            f"ALTER ROLE {name} NOLOGIN",
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{name}'",
        )
        with pytest.raises(StoreAwayError, match="does not let this user in"):
            store.view(journal.tail)
        with pytest.raises(StoreRefusedError, match="does not let this user in"):
            PostgresStore.open(keyed)
        sql(postgres_url, f"ALTER ROLE {name} LOGIN")
        until(lambda: reads(store), "a connection")


def test_tables_that_are_gone_are_waited_for(postgres_url: str) -> None:
    """A database is restored under a daemon: it is there, empty at first, and then as it was."""
    schema = read_address(postgres_url).schema
    with PostgresStore.open(postgres_url) as store:
        apply_jobs(store, jobs_due_each_minute(1), AT)
        before = store.view(journal.tail)
        sql(postgres_url, f"ALTER SCHEMA {schema} RENAME TO {schema}_away")
        for act in (lambda: store.view(journal.tail), lambda: apply_jobs(store, [], AT)):
            with pytest.raises(StoreAwayError, match=r"are gone .*; restore them from a backup"):
                act()
        sql(postgres_url, f"ALTER SCHEMA {schema}_away RENAME TO {schema}")
        assert store.view(journal.tail) == before


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused_before_it_has_to(
    postgres_server: PostgresServer, encoding: str
) -> None:
    name = f"encoded_{encoding.lower()}"
    sql(
        postgres_server.url(),
        f"DROP DATABASE IF EXISTS {name}",
        f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
    )
    url = postgres_server.url(database=name)
    if encoding == "LATIN1":
        with pytest.raises(StoreRefusedError, match=r"encoding LATIN1, which cannot .*; make another .* -E UTF8"):
            PostgresStore.open(url)
        return
    with PostgresStore.open(url) as store:
        told = Event(name="Told", at_ms=AT, data={"text": "grüße ✓"})
        store.update(lambda tx: journal.append(tx, told))
        assert [event for _, event in store.view(journal.tail)] == [told]


def test_the_settings_of_a_user_change_nothing(postgres_url: str) -> None:
    """A database administrator may have set any of them, for other programs."""
    odd = role(
        postgres_url, "odd", "SUPERUSER",
        *(
            f"ALTER ROLE {{role}} SET {setting}"
            for setting in (
                "standard_conforming_strings = off", "default_transaction_isolation = 'serializable'",
                "client_encoding = 'LATIN1'", "statement_timeout = '1ms'", "lock_timeout = '1ms'",
                "idle_in_transaction_session_timeout = '1ms'", "bytea_output = 'escape'", "timezone = 'Asia/Kolkata'",
                "enable_indexscan = off", "search_path = pg_catalog",
            )
        ),
    )  # fmt: skip
    assert race(odd, jobs_due_each_minute(6), instants=1, slots=3)


def reads(store: PostgresStore) -> bool:
    try:
        store.view(journal.tail)
    except StoreAwayError:
        return False
    return True


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


@pytest.fixture
def smallest_pool(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A pooler that has one connection to the server, as if it were the server."""
    if find_pooler() is None:
        pytest.skip(WHY_NO_POOLER)
    with pooler(postgres_server, size=1) as place:
        yield PostgresServer(postgres_server.programs, Path(place), PORT)


def test_no_connection_of_a_pooler_is_kept_after_a_commit(
    smallest_pool: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request to flush that comes behind the commit is one more transaction for the pooler, which never ends."""
    monkeypatch.setattr(pg_connections.Connection, "longest_silence_s", 5.0)
    schema = read_address(postgres_url).schema
    with Relay(smallest_pool) as relay:
        relay.late_flush = True
        with PostgresStore.open(relay.url(schema)) as one, PostgresStore.open(smallest_pool.url(schema)) as other:
            for number in range(3):
                told = Event(name="Told", at_ms=AT, data={"n": number})
                one.update(lambda tx, told=told: journal.append(tx, told))  # type: ignore[misc]
                time.sleep(3 * LATE_S)
                assert len(other.view(journal.tail)) == number + 1


def test_a_pooler_is_found_also_where_the_schema_is_the_default(
    smallest_pool: PostgresServer, postgres_server: PostgresServer
) -> None:
    sql(
        postgres_server.url(),
        "DROP DATABASE IF EXISTS with_default",
        "CREATE DATABASE with_default",
        "ALTER DATABASE with_default SET search_path = chronex",
    )
    with PostgresStore.open(smallest_pool.url(database="with_default")) as store:
        assert store.is_pooled


def test_a_pooler_that_refuses_our_settings_is_told_of(postgres_server: PostgresServer) -> None:
    if find_pooler() is None:
        pytest.skip(WHY_NO_POOLER)
    refused = pytest.raises(StoreRefusedError, match="ignore_startup_parameters = options")
    with pooler(postgres_server, ignored="extra_float_digits") as place, refused:
        PostgresStore.open(f"postgresql://chronex@/postgres?host={place}&port={PORT}")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            'root certificate file "/root/.postgresql/root.crt" does not exist\nEither provide the file, use the '
            "system's trusted roots with sslrootcert=system, or change sslmode to disable server certificate "
            "verification.",
            r"no file says whom to trust; .* sslrootcert=/…/ca.crt.*\(root certificate file [^ ]* does not exist\)$",
        ),
        ("SSL error: certificate verify failed", r"is not to be trusted: .*; renew it, or name the file"),
        ('server certificate for "a" does not match host name "b"', r"is not to be trusted: .* host name .b.\)$"),
        ('invalid sslmode value: "x"', r"as the address asks for it"),
        (
            'invalid "ssl_min_protocol_version" value: "x"',
            r"as the address asks for it; put that right in the address",
        ),
        (
            'could not read root certificate file "/ca.crt": no certificate or crl found',
            r"no file says whom to trust; .* \(could not read root certificate file",
        ),
        (
            'FATAL:  certificate authentication failed for user "ann"',
            r"takes this certificate for no such user; .*pg_ident.conf .*\(certificate authentication failed",
        ),
        (
            "FATAL:  connection requires a valid client certificate",
            r"asks for a certificate of this machine; .*sslcert=.* \(connection requires a valid client certificate\)$",
        ),
        ("SSL error: tlsv1 alert unknown ca", r"does not trust the certificate of this machine: .*; renew it"),
        (
            "SSL error: ssl/tls alert certificate expired",
            r"does not trust the certificate of this machine: .*; renew",
        ),
        (
            'could not load private key file "/me.key": key values mismatch',
            r"must belong together, .*key values mism",
        ),
        ('could not load private key file "/me.key": bad decrypt', r"sslpassword open it .*\(could not load private"),
        ('private key file "/me.key" has group or world access; file must …', r"readable by its owner alone"),
        ('certificate present, but not private key file "/me.key"', r"its key cannot be used; .*but not private key"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_said_with_what_to_do(said: str, words: str) -> None:
    """In the words of libpq 17, as a real server with such certificates made it say them."""
    error = psycopg.OperationalError(f'connection to server at "127.0.0.1", port 5432 failed: {said}')
    found = pg_connections.describe_connect(error, read_address("postgresql://chronex@b/jobs?sslmode=verify-full"))
    assert isinstance(found, StoreRefusedError)
    assert re.search(words, str(found)), found


@pytest.mark.parametrize("said", ["SSL SYSCALL error: EOF detected", "SSL connection has been closed unexpectedly"])
def test_a_server_that_goes_away_while_it_greets_may_come_back(said: str) -> None:
    error = psycopg.OperationalError(f'connection to server at "127.0.0.1", port 5432 failed: {said}')
    found = pg_connections.describe_connect(error, read_address("postgresql://chronex@b/jobs?sslmode=verify-full"))
    assert isinstance(found, StoreAwayError)


def test_the_words_in_brackets_are_those_that_are_meant() -> None:
    """With encryption the password was refused; then libpq tried without, and was told something else."""
    error = psycopg.OperationalError(
        'connection to server at "b" (::1), port 5432 failed: FATAL:  password authentication failed for user "ann"\n'
        'connection to server at "b" (::1), port 5432 failed: FATAL:  no pg_hba.conf entry for host "b", no encryption'
    )
    found = str(pg_connections.describe_connect(error, read_address("postgresql://ann@b/jobs")))
    assert found.endswith('~/.pgpass (password authentication failed for user "ann")')


# -- a key with a password ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "service", "given"),
    [
        ("", None, "none was given"),
        ("?sslpassword=s3cret", None, "s3cret"),
        ("?service=jobs", None, None),
        ("", "jobs", None),
    ],
)
def test_nobody_is_asked_for_the_password_of_a_key(
    monkeypatch: pytest.MonkeyPatch, query: str, service: str | None, given: str | None
) -> None:
    """OpenSSL would ask at the terminal, in the middle of a dashboard, once for each connection."""
    told: dict[str, object] = {}

    def connect(**parameters: object) -> None:
        told.update(parameters)
        raise psycopg.OperationalError("enough")

    monkeypatch.setattr(pg_connections.Connection, "connect", connect)
    monkeypatch.delenv("PGSERVICE", raising=False)
    if service is not None:
        monkeypatch.setenv("PGSERVICE", service)
    with pytest.raises(StoreAwayError):
        pg_connections.Connections(read_address(f"postgresql://ann@b/jobs{query}")).connect()
    assert told.get("sslpassword") == given
