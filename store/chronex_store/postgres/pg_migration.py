"""From one layout of the tables to the next, while programs of both work on them: first add, then raise the number.

A step only adds. So a program of the layout before goes on beside it, and nothing depends on what was added before
the number says that it is there. The number is raised once no living node knows less: an older program refuses it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import psycopg

from chronex.errors import DamagedRecordError, StoreFormatError, StoreRefusedError
from chronex.model.records import Node
from chronex.storage.codec import decode
from chronex_store.postgres.pg_address import PostgresAddress
from chronex_store.postgres.pg_connections import Connection, Connections, translate_pg
from chronex_store.postgres.pg_layout import LAYOUT, OLDEST_LAYOUT
from chronex_store.postgres.pg_tables import TABLES

# A node that sent no heartbeat for so long is not waited for: it registers anew when it comes back, and is refused.
_SILENT_MS = 60_000
_CHANGES_OFTEN = (
    "index_entry",
    "job_progress",
    "occurrence",
    "run",
    "attempt",
    "node",
    "commit_mark",
    "journal_head",
)
# With the server's defaults a table is cleaned when a fifth of it is dead: too late for rows that change often.
_CLEANED_SOON = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05"
STEPS: dict[int, tuple[str, ...]] = {
    2: tuple(f"ALTER TABLE {name} SET ({_CLEANED_SOON})" for name in _CHANGES_OFTEN),
}


@dataclass(frozen=True)
class MigrationReport:
    """From which layout to which; and the nodes that know only the older one, for which the number waits."""

    before: int
    after: int
    waits_for: tuple[str, ...] = ()


def layout_of(connection: Connection, address: PostgresAddress) -> int | None:
    """The number of the layout; None where there is no store."""
    try:
        row = connection.execute(f"SELECT number FROM {address.schema}.layout").fetchone()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        return None
    except psycopg.errors.UndefinedColumn:
        raise StoreRefusedError(
            f"{address.shown}: the schema {address.schema} holds tables of something else; "
            "name another one in the address: ?schema=chronex_jobs"
        ) from None
    return None if row is None else int(row[0])


def refuse_unknown_layout(number: int, address: PostgresAddress) -> None:
    if number > LAYOUT:
        raise StoreFormatError(
            f"the store at {address.shown} has layout {number} of a newer Chronex, and this one knows "
            f"{LAYOUT}; install that version here too"
        )
    if number < OLDEST_LAYOUT:
        raise StoreFormatError(
            f"the store at {address.shown} has layout {number} of a Chronex that is too old; "
            "bring it up with a version between"
        )


def migrate(address: PostgresAddress) -> MigrationReport:
    """Bring the tables to the newest layout, as far as the nodes that work on them allow it."""
    connection = Connections(address).connect()
    try:
        with connection.transaction():
            return _migrate(connection, address)
    except psycopg.Error as error:
        raise translate_pg(error, address) from None
    finally:
        connection.close()


def _migrate(connection: Connection, address: PostgresAddress) -> MigrationReport:
    connection.execute(f"SET LOCAL search_path TO {address.schema}")
    connection.execute("SET LOCAL statement_timeout = 0")
    connection.longest_silence_s = math.inf  # a large table takes its time
    before = layout_of(connection, address)
    if before is None:
        raise StoreRefusedError(f"there is no store at {address.shown} yet; `chronex apply` makes it")
    refuse_unknown_layout(before, address)
    # As every update takes it: nobody writes meanwhile, and no node registers unseen.
    connection.execute("SELECT pg_advisory_xact_lock(hashtext(current_schema()), 1)")
    for number in range(before + 1, LAYOUT + 1):
        for statement in STEPS[number]:
            connection.execute(statement)
    for table in TABLES:
        connection.execute(f"ANALYZE {table.name}")
    older = tuple(sorted(node.name or node.id for node in _living(connection) if node.layout < LAYOUT))
    if older:
        return MigrationReport(before, before, older)
    connection.execute("UPDATE layout SET number = %s", (LAYOUT,))
    return MigrationReport(before, LAYOUT)


def _living(connection: Connection) -> list[Node]:
    row = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    found: list[Node] = []
    for key, value in connection.execute("SELECT key, value FROM node").fetchall():
        try:
            node = decode(key, value)
        except DamagedRecordError:
            continue  # `chronex store check` names it
        if isinstance(node, Node) and node.stopped_ms is None and row[0] - node.seen_ms <= _SILENT_MS:
            found.append(node)
    return found
