"""The writes of one commit as statements: one for each table, whatever their number."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from chronex.model.records import Sequence
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex_store.postgres.pg_known_rows import OrderedRows
from chronex_store.postgres.pg_tables import EVENTS, RowTable
from chronex_store.postgres.pg_transaction import PROVISIONAL, is_appended, stored_event, tables_written

Statement = tuple[str, tuple[Any, ...]]


def flush(writes: OrderedRows) -> Iterator[Statement]:
    """In this order: the journal's head is locked by the last one, and only until the commit."""
    appended: list[tuple[bytes, bytes]] = []
    for table, rows in tables_written(writes).items():
        kept = [(key, value) for key, value in rows if value is not None]
        if table is EVENTS:
            appended = [row for row in kept if is_appended(row[0])]
            kept = [row for row in kept if not is_appended(row[0])]
        removed = [key for key, value in rows if value is None]
        if kept:
            yield _upsert(table), _arrays(table, kept)
        if removed:
            yield f"DELETE FROM {table.name} WHERE key = ANY(%b::bytea[])", (removed,)
    head = writes.rows.get(keys.JOURNAL_HEAD)
    if appended:
        appended.sort()
        yield _append(), (len(appended), len(appended), *_arrays(EVENTS, appended)[1:])
    elif head is not None and (last := _last(head)) < PROVISIONAL:
        yield "UPDATE journal_head SET last = %s", (last,)


def _last(head: bytes) -> int:

    found = decode(keys.JOURNAL_HEAD, head)
    assert isinstance(found, Sequence)
    return found.last


def _arrays(table: RowTable, rows: list[tuple[bytes, bytes]]) -> tuple[list[Any], ...]:
    """One list for each column: the key, the value, and what the table shows of the record."""
    stored = [stored_event(key, value) if table is EVENTS else value for key, value in rows]
    shown = [table.values_of(key, value) for key, value in rows]
    columns = [list(column) for column in zip(*shown, strict=True)] if table.columns else []
    return ([key for key, _ in rows], stored, *columns)


@lru_cache
def _upsert(table: RowTable) -> str:
    names = ["value", *(column.name for column in table.columns)]
    arrays = ["%b::bytea[]", "%b::bytea[]", *(f"%s::{column.type}[]" for column in table.columns)]
    updated = ", ".join(f"{name} = excluded.{name}" for name in names)
    return (
        f"INSERT INTO {table.name} (key, {', '.join(names)}) SELECT * FROM unnest({', '.join(arrays)}) "
        f"ON CONFLICT (key) DO UPDATE SET {updated}"
    )


@lru_cache
def _append() -> str:
    names = ["value", *(column.name for column in EVENTS.columns)]
    arrays = ["%b::bytea[]", *(f"%s::{column.type}[]" for column in EVENTS.columns)]
    return (
        "WITH head AS (UPDATE journal_head SET last = last + %s RETURNING last) "
        f"INSERT INTO event (key, {', '.join(names)}) "
        f"SELECT '\\x45'::bytea || int8send(head.last - %s + e.place), {', '.join('e.' + name for name in names)} "
        f"FROM head, unnest({', '.join(arrays)}) WITH ORDINALITY AS e({', '.join(names)}, place)"
    )
