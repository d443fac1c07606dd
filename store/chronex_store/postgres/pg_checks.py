"""Whether a shared store is sound: its rows by themselves, its server, and the way to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chronex.errors import DamagedRecordError, NewerRecordError
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.keys import index_keys
from chronex.storage.ports import ReadTransaction
from chronex.storage.records import pages
from chronex_store.postgres.pg_connections import Connection
from chronex_store.postgres.pg_layout import LAYOUT
from chronex_store.postgres.pg_migration import layout_of
from chronex_store.postgres.pg_store import PostgresStore

# From here on an instant of one machine is not quite that of another.
_UNSURE_MS = 100
_MOST_SHOWN = 20


@dataclass
class CheckedStore:
    """What was found: facts, and findings, each a sentence with what to do."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def check(store: PostgresStore) -> CheckedStore:
    """Look at everything and change nothing."""
    found = CheckedStore()
    with store.reading_connection() as connection:
        _check_server(connection, store, found)
    _check_rows(store, found)
    return found


def _check_server(connection: Connection, store: PostgresStore, found: CheckedStore) -> None:
    layout = layout_of(connection, store.address)
    settings = {
        name: str(connection.execute(f"SHOW {name}").fetchall()[0][0])
        for name in ("server_version", "fsync", "synchronous_commit", "autovacuum")
    }
    uncertainty = store.clock_uncertainty_ms
    found.facts |= {"layout": layout, **settings, "pooled": store.is_pooled, "clock_uncertainty_ms": uncertainty}
    if layout is not None and layout < LAYOUT:
        found.findings.append(f"its layout is {layout}, and the newest is {LAYOUT}; run: chronex store migrate")
    for name, why in (
        ("fsync", "a crash of the server can damage the store"),
        ("synchronous_commit", "what was acknowledged can be lost, and run twice"),
        ("autovacuum", "its tables grow without end"),
    ):
        if settings[name] == "off":
            found.findings.append(f"the server has {name} = off: {why}; set it to on")
    if uncertainty > _UNSURE_MS:
        found.findings.append(f"the server's time is known to {uncertainty:.0f} ms only; use a nearer server")
    if not store.address.is_guarded:
        found.findings.append("its network connection is not checked; add sslmode=verify-full to the address")


def _check_rows(store: PostgresStore, found: CheckedStore) -> None:
    """Every record can be read and stands in its indexes, and nothing else stands there; of one snapshot."""

    def walk(tx: ReadTransaction) -> tuple[int, list[str], set[bytes], set[bytes]]:
        count, problems = 0, []
        expected: set[bytes] = set()
        entries: set[bytes] = set()
        for rows in pages(tx, b""):
            count += len(rows)
            for key, raw in rows:
                if key[:1] in keys.INDEXES:
                    entries.add(key)
                elif (problem := _note(key, raw, expected)) is not None:
                    problems.append(problem)
        return count, problems, expected, entries

    count, problems, expected, entries = store.view(walk)
    found.facts["rows"] = count
    problems += [f"the record {keys.record_of(key)!r} is missing from an index" for key in sorted(expected - entries)]
    problems += [f"the index entry {key!r} stands for no record" for key in sorted(entries - expected)]
    found.findings += [f"{problem}; restore the database from its backup" for problem in problems[:_MOST_SHOWN]]
    if len(problems) > _MOST_SHOWN:
        found.findings.append(f"{len(problems) - _MOST_SHOWN} more rows are damaged")


def _note(key: bytes, raw: bytes, expected: set[bytes]) -> str | None:
    try:
        expected.update(index_keys(key, decode(key, raw)))
    except NewerRecordError as error:
        return f"{error}, and is left alone here"
    except DamagedRecordError as error:
        return str(error)
    return None
