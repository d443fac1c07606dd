"""The checks of a store on PostgreSQL: the way to it, its clock, its records, and the nodes that work on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from chronex.cli.machine_checks import (
    Check,
    CheckVerdict,
    StoreFacts,
    examine,
    facts_of,
    job_file_checks,
    keeper_checks,
)
from chronex.cli.options import job_file_path
from chronex.cli.service_units import service_state
from chronex.clock import SYSTEM_CLOCK
from chronex.run import is_alive
from chronex.storage.ports import SCAN_LIMIT, ReadTransaction
from chronex.storage.records import Reading
from chronex.views.nodes import CLOCK_TOLERANCE_MS, NodeRow, concern_words, nodes_of
from chronex_store.opening import open_postgres, state_directory
from chronex_store.postgres.pg_address import PostgresAddress
from chronex_store.postgres.pg_connections import Connections
from chronex_store.postgres.pg_store import PostgresStore

_LOCAL = ("", "localhost", "127.0.0.1", "::1")
_WITH_NAME = "verify-full"
_MOST_PAGES = 2_000


class ServerFacts(NamedTuple):
    version: int
    is_encrypted: bool
    standbys: str
    is_standby: bool


def database_checks(address: PostgresAddress) -> list[Check]:
    """StoreError where it cannot be opened, with what is wrong: then there is nothing to check."""
    with open_postgres(address, create=False) as store:
        server = _server(address)
        rows = store.view(lambda tx: nodes_of(Reading(tx), store.now(), is_alive))
        facts = store.view(lambda tx: facts_of(Reading(tx)))
        checks = [
            *server_checks(server, address),
            *clock_checks(store),
            *record_checks(store),
            *node_checks(rows),
        ]
    return [*checks, *_machine_checks(address, facts)]


def _machine_checks(address: PostgresAddress, facts: StoreFacts) -> list[Check]:
    return [
        *examine(facts, os.environ, service_state().text),
        *keeper_checks(state_directory(address), facts),
        *job_file_checks(job_file_path(None)),
    ]


def _server(address: PostgresAddress) -> ServerFacts:
    connection = Connections(address).connect()
    try:
        row = connection.execute(
            "SELECT current_setting('synchronous_standby_names'), pg_is_in_recovery()"
        ).fetchone()
        standbys, is_standby = ("", False) if row is None else (str(row[0]), bool(row[1]))
        info = connection.info
        return ServerFacts(info.server_version, bool(connection.pgconn.ssl_in_use), standbys, is_standby)
    finally:
        connection.close()


def server_checks(server: ServerFacts, address: PostgresAddress) -> Iterator[Check]:
    version = f"PostgreSQL {server.version // 10_000}.{server.version % 10_000}, schema {address.schema}"
    yield Check("database", CheckVerdict.FINE, f"{address.shown} answers: {version}")
    host = address.parameters.get("host", os.environ.get("PGHOST", ""))
    if host.startswith("/") or host in _LOCAL:
        yield Check("encryption", CheckVerdict.FINE, "not needed: the database is on this machine")
    elif server.is_encrypted and address.parameters.get("sslmode") == _WITH_NAME:
        yield Check("encryption", CheckVerdict.FINE, "TLS, and the server's certificate is checked")
    else:
        how = "TLS without a check of the server's name" if server.is_encrypted else "nothing is encrypted"
        yield Check("encryption", CheckVerdict.NOTE, f"{how}: who is on the way can read jobs, or change them",
                    "add sslmode=verify-full to the address")  # fmt: skip
    if not server.standbys:
        yield Check("standby", CheckVerdict.NOTE, "no synchronous standby: a failover can take runs back",
                    "set synchronous_standby_names where the database fails over")  # fmt: skip


def clock_checks(store: PostgresStore) -> Iterator[Check]:
    clock = store.clock()
    ahead = SYSTEM_CLOCK.wall_ms() - clock.wall_ms()
    within = round(getattr(clock, "uncertainty_ms", 0))
    verdict = CheckVerdict.FINE if within <= CLOCK_TOLERANCE_MS else CheckVerdict.NOTE
    yield Check("clock", verdict, f"that of the database is known within {within} ms",
                "" if verdict is CheckVerdict.FINE else "starts may be so late: bring it nearer")  # fmt: skip
    if abs(ahead) > CLOCK_TOLERANCE_MS:
        side = "ahead of" if ahead > 0 else "behind"
        yield Check("clock", CheckVerdict.NOTE, f"this machine's own is {abs(ahead)} ms {side} the database's, "
                    "which alone counts", "turn on time synchronization")  # fmt: skip


def record_checks(store: PostgresStore) -> Iterator[Check]:
    """Every record is read once, a page at a time."""
    count, damaged, after = 0, 0, None
    for _ in range(_MOST_PAGES):

        def page(tx: ReadTransaction, after: bytes | None = after) -> tuple[int, int, bytes | None]:
            reading = Reading(tx)
            rows = tx.scan(b"", after, SCAN_LIMIT)
            for key, raw in rows:
                reading.check(key, raw)
            return len(rows), len(reading.damaged), rows[-1][0] if rows else None

        read, broken, after = store.view(page)
        count, damaged = count + read, damaged + broken
        if after is None:
            break
    quarantined = store.view(lambda tx: len(Reading(tx).quarantined()))
    if damaged or quarantined:
        finding = f"{damaged} of {count} rows are not what was written, {quarantined} are put aside"
        yield Check("records", CheckVerdict.WRONG, finding, "restore the database from its backup, or ask for help")
    else:
        yield Check("records", CheckVerdict.FINE, f"{count} rows, all of them whole")


def node_checks(rows: list[NodeRow]) -> Iterator[Check]:
    living = [row for row in rows if row.is_alive]
    if not living:
        yield Check("nodes", CheckVerdict.NOTE, "no node works on the store; nothing will start", "chronex run")
        return
    names = ", ".join(row.name for row in living)
    yield Check("nodes", CheckVerdict.FINE, f"{len(living)} at work: {names}")
    for row in living:
        for concern in row.concerns:
            yield Check("nodes", CheckVerdict.NOTE, f"{row.name} {concern_words(row, concern)}")
