"""The tables of a store, made on first use; and what is promised to those who ask in SQL: the views."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from chronex_store.postgres.pg_address import PostgresAddress
from chronex_store.postgres.pg_connections import Connections, translate_pg
from chronex_store.postgres.pg_layout import LAYOUT, OLDEST_LAYOUT
from chronex_store.postgres.pg_migration import STEPS
from chronex_store.postgres.pg_tables import TABLES, RowTable

# Rows that change in place leave room for their next version on the same page.
_FILL = {"job_progress": 70, "occurrence": 85, "run": 85, "attempt": 85, "node": 50}
_OPEN = "('pending', 'queued', 'running')"
_INDEXES = (
    "CREATE UNIQUE INDEX ON job (job)",
    "CREATE UNIQUE INDEX ON job_progress (job)",
    "CREATE UNIQUE INDEX ON occurrence (job, nominal_ms)",
    f"CREATE INDEX ON occurrence (job) WHERE state IN {_OPEN}",
    "CREATE INDEX ON run (job, nominal_ms)",
    "CREATE INDEX ON attempt (job, nominal_ms)",
    "CREATE INDEX ON index_entry (open_job) WHERE open_job IS NOT NULL",
    "CREATE INDEX ON occurrence (owner) WHERE state = 'running'",
    "CREATE INDEX ON attempt (owner) WHERE state = 'running'",
    "CREATE INDEX ON event (at_ms)",
)
# A table that has one row and no more.
_SINGLE = "single bool PRIMARY KEY DEFAULT true CHECK (single)"
_VIEWS = {
    "jobs": "SELECT j.job, j.version, j.schedule, j.source, p.paused, {next_ms} AS next_run,"
    " {last_run_ms} AS last_run, {last_success_ms} AS last_success, j.definition"
    " FROM job j LEFT JOIN job_progress p USING (job)",
    "occurrences": "SELECT job, {nominal_ms} AS scheduled, {due_ms} AS due, state, owner, {started_ms} AS started,"
    " {finished_ms} AS finished, reason, version, manual FROM occurrence",
    "runs": "SELECT job, {nominal_ms} AS scheduled, task, state, owner, attempts, {next_attempt_ms} AS next_attempt,"
    " exit_code, {started_ms} AS started, {finished_ms} AS finished, reason FROM run",
    "attempts": "SELECT job, {nominal_ms} AS scheduled, task, number, state, owner, exit_code,"
    " {started_ms} AS started, {finished_ms} AS finished, reason FROM attempt",
    "events": "SELECT ('x' || encode(substr(key, 2), 'hex'))::bit(64)::bigint AS number, {at_ms} AS at, name, job,"
    " {nominal_ms} AS scheduled, task, attempt, actor, reason, data FROM event",
    "nodes": "SELECT node, host, chronex, places, {started_ms} AS started, {seen_ms} AS seen,"
    " {stopped_ms} AS stopped FROM node",
}


class _Timestamps(dict[str, str]):
    def __missing__(self, column: str) -> str:
        return f"to_timestamp({column} / 1000.0)"


def statements(schema: str) -> Iterator[str]:
    """Everything that a new store consists of, in order."""
    yield f"CREATE SCHEMA IF NOT EXISTS {schema}"
    yield f"SET LOCAL search_path TO {schema}"
    for table in TABLES:
        yield _create(table)
    yield f"CREATE TABLE journal_head ({_SINGLE}, last bigint NOT NULL)"
    yield "INSERT INTO journal_head (last) VALUES (0)"
    yield "CREATE TABLE commit_mark (writer text PRIMARY KEY, n bigint NOT NULL, token uuid) WITH (fillfactor = 50)"
    yield "INSERT INTO commit_mark (writer, n) VALUES ('clients', 0)"
    yield f"CREATE TABLE layout ({_SINGLE}, number int NOT NULL, store_id text NOT NULL)"
    yield f"INSERT INTO layout (number, store_id) VALUES ({LAYOUT}, gen_random_uuid()::text)"
    yield from _INDEXES
    for name, query in _VIEWS.items():
        yield f"CREATE VIEW {name} AS {query.format_map(_Timestamps())}"
    for number in range(OLDEST_LAYOUT + 1, LAYOUT + 1):
        yield from STEPS[number]


def _create(table: RowTable) -> str:
    columns = "".join(f", {column.name} {column.type}" for column in table.columns)
    fill = f" WITH (fillfactor = {_FILL[table.name]})" if table.name in _FILL else ""
    return f"CREATE TABLE {table.name} (key bytea PRIMARY KEY, value bytea NOT NULL{columns}){fill}"


def drop(address: PostgresAddress) -> None:
    """Remove a copy that was interrupted."""
    _execute(address, f"DROP SCHEMA IF EXISTS {address.schema} CASCADE")


def rename(unfinished: PostgresAddress, target: PostgresAddress) -> None:
    """A copy takes its place, all at once."""
    _execute(unfinished, f"ALTER SCHEMA {unfinished.schema} RENAME TO {target.schema}")


def _execute(address: PostgresAddress, statement: str) -> None:
    connection = Connections(address).connect()
    try:
        connection.execute(statement)
    except psycopg.Error as error:
        raise translate_pg(error, address) from None
    finally:
        connection.close()
