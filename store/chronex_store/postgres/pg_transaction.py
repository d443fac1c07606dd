"""One view or update on PostgreSQL: reads ask the database, writes are kept until the commit sends them together.

Every read sees the transaction's own writes. The journal is numbered by the commit: an update that appends sees a
head beyond all real ones, and its events get their numbers when the row of the head is locked, as the last thing
before the commit. So numbers follow the order of the commits and nobody waits for another one's decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any, Protocol

from chronex.errors import DamagedRecordError, StoreClosedError
from chronex.model.records import Sequence
from chronex.storage import keys
from chronex.storage.codec import decode, encode, payload_of, with_header
from chronex.storage.ports import SCAN_LIMIT, ClaimedDue, HeldGroups, OwnerCounts, Row
from chronex.storage.scopes import shared_group
from chronex_store.postgres.pg_arrays import ArrayColumn
from chronex_store.postgres.pg_known_rows import KnownRows, OrderedRows, Query, of_jobs
from chronex_store.postgres.pg_scopes import HeldScope, counting
from chronex_store.postgres.pg_tables import EVENTS, TABLES, RowTable, table_of
from chronex_store.transaction import check_key, check_row, end_of_prefix

_RUNNING = keys.ACTIVE + keys.OCCURRENCE
# No journal is ever so long: numbers above it are given anew by the commit.
PROVISIONAL = 1 << 62
_HEAD_IN_UPDATE = encode(keys.JOURNAL_HEAD, Sequence(PROVISIONAL))
# The first byte of a stored event: its bytes follow whole, or without the header, which depends on its number.
_WHOLE, _BARE = b"\0", b"\1"


class Ask(Protocol):
    """Runs queries of the transaction's connection, those of one call in one round trip, and returns their rows."""

    def __call__(self, *queries: Query) -> list[list[tuple[Any, ...]]]: ...


def stored_event(key: bytes, raw: bytes) -> bytes:
    """An event as its table has it."""
    try:
        return _BARE + payload_of(key, raw)
    except DamagedRecordError:
        return _WHOLE + raw


def read_event(key: bytes, stored: bytes) -> bytes:
    return with_header(key, stored[1:]) if stored[:1] == _BARE else stored[1:]


class PostgresReading(OwnerCounts):
    """The read half of the port, over one snapshot. What was read in bulk is not asked for again."""

    def __init__(self, ask: Ask, known: KnownRows | None = None) -> None:
        self._ask: Ask | None = ask
        self._known = known or KnownRows()

    def end(self) -> None:
        self._ask = None

    def get(self, key: bytes) -> bytes | None:
        check_key(key)
        return self._read(key)

    def scan(
        self, prefix: bytes, after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[Row]:
        low, high = bounds(prefix, after, reverse=reverse)
        return self._read_range(prefix, low, high, limit, reverse)

    def expect(self, jobs: Collection[str]) -> None:
        ask = self._live()
        names = [name for name in jobs if name not in self._known.newest]
        if names:
            self._known.learn_jobs(names, ask(*of_jobs(names)))

    def count_running(self, owner: str) -> int:
        ask, known = self._live(), self._known.running
        if owner not in known:
            ((row,),) = ask(counting(owner))
            known[owner] = int(row[0])
        return known[owner]

    def count_rows(self, prefix: bytes, limit: int) -> int:
        ask, known = self._live(), self._known.counts
        if prefix not in known:
            rows = f"SELECT FROM {table_of(prefix).name} WHERE key >= %b AND key < %b LIMIT %s"
            ((row,),) = ask((f"SELECT count(*) FROM ({rows}) AS found", (prefix, end_of_prefix(prefix), limit)))
            known[prefix] = int(row[0])
        return known[prefix]

    def _live(self) -> Ask:
        if self._ask is None:
            raise StoreClosedError("the transaction is over; read and write only inside the function given to it")
        return self._ask

    def _read(self, key: bytes) -> bytes | None:
        ask = self._live()
        if key == keys.JOURNAL_HEAD:
            return self._head(ask)
        if self._known.is_known(key):
            return self._known.rows.rows.get(key)
        table = table_of(key)
        (rows,) = ask((f"SELECT value FROM {table.name} WHERE key = %b", (key,)))
        if not rows:
            return None
        found: bytes = rows[0][0]
        return read_event(key, found) if table is EVENTS else found

    def _head(self, ask: Ask) -> bytes | None:
        ((row,),) = ask(("SELECT last FROM journal_head", ()))
        last: int = row[0]
        return encode(keys.JOURNAL_HEAD, Sequence(last)) if last else None

    def _read_range(self, prefix: bytes, low: bytes, high: bytes | None, limit: int, reverse: bool) -> list[Row]:
        ask = self._live()
        if limit <= 0 or (high is not None and low >= high):
            return []
        if self._known.is_complete(prefix):
            return self._known.range(low, high, limit, reverse=reverse)
        tables = (table_of(prefix),) if prefix else TABLES
        order = "DESC" if reverse else "ASC"
        bound, parameters = ("key >= %b", [low]) if high is None else ("key >= %b AND key < %b", [low, high])
        rest = f"WHERE {bound} ORDER BY key {order} LIMIT %s"
        found = ask(*((f"SELECT key, value FROM {table.name} {rest}", (*parameters, limit)) for table in tables))
        rows: list[Row] = []
        for table, some in zip(tables, found, strict=True):
            rows += [(key, read_event(key, value) if table is EVENTS else value) for key, value in some]
        if len(tables) > 1:
            rows.sort(reverse=reverse)
        return rows[:limit]


def bounds(prefix: bytes, after: bytes | None, *, reverse: bool) -> tuple[bytes, bytes | None]:
    """From which key, to before which one, a scan goes."""
    low, high = prefix, end_of_prefix(prefix)
    if after is None:
        return low, high
    if reverse:
        return low, after if high is None else min(high, after)
    return max(low, after + b"\0"), high


_UNWRITTEN: Any = object()


class PostgresTransaction(PostgresReading, HeldGroups, ClaimedDue):
    """The write half. Several updates of one commit share `writes`; each can be taken back alone."""

    def __init__(
        self, ask: Ask, writes: OrderedRows, known: KnownRows | None = None, held: HeldScope | None = None
    ) -> None:
        super().__init__(ask, known)
        self._writes = writes
        self._held = held or HeldScope()
        self._undo: list[tuple[bytes, Any]] = []

    @property
    def has_written(self) -> bool:
        return bool(self._undo)

    def expect(self, jobs: Collection[str]) -> None:
        self._held.check_jobs(jobs)
        super().expect(jobs)

    def count_rows(self, prefix: bytes, limit: int) -> int:
        own = self._writes.within(prefix, end_of_prefix(prefix))
        added = sum(1 if self._writes.rows[key] is not None else -1 for key in own)
        return max(super().count_rows(prefix, limit) + added, 0)

    def count_running(self, owner: str) -> int:
        """What updates of the same commit have begun counts too; what they ended counts from the next one on."""
        begun = self._writes.within(_RUNNING, end_of_prefix(_RUNNING))
        added = sum(self._writes.rows[key] is not None and not self._known.is_there(key) for key in begun)
        return super().count_running(owner) + added

    def holds_group(self, name: str) -> bool:
        return self._held.holds_shared(shared_group(name))

    def has_claimed_most(self) -> bool:
        return self._held.has_claimed_most

    def next_due_elsewhere(self) -> int | None:
        return self._held.next_elsewhere_ms

    def create(self, key: bytes, value: bytes) -> bool:
        check_row(key, value)
        if self._read(key) is not None:
            return False
        self._write(key, value)
        return True

    def put(self, key: bytes, value: bytes) -> None:
        check_row(key, value)
        self._write(key, value)

    def delete(self, key: bytes) -> bool:
        check_key(key)
        if self._read(key) is None:
            return False
        self._write(key, None)
        return True

    def roll_back(self) -> None:
        for key, before in reversed(self._undo):
            if before is _UNWRITTEN:
                self._writes.forget(key)
            else:
                self._writes.put(key, before)
        self._undo.clear()

    def _write(self, key: bytes, value: bytes | None) -> None:
        self._live()
        self._held.check_write(key, is_appended=is_appended(key))
        self._undo.append((key, self._writes.rows.get(key, _UNWRITTEN)))
        self._writes.put(key, value)

    def _read(self, key: bytes) -> bytes | None:
        self._held.check_read(key)
        known = self._writes.rows.get(key, _UNWRITTEN)
        if known is not _UNWRITTEN:
            self._live()
            return None if known is None else bytes(known)
        return super()._read(key)

    def _head(self, ask: Ask) -> bytes | None:
        return _HEAD_IN_UPDATE

    def _read_range(self, prefix: bytes, low: bytes, high: bytes | None, limit: int, reverse: bool) -> list[Row]:
        self._held.check_scan(prefix)
        own = self._writes.within(low, high)
        if not own:
            return super()._read_range(prefix, low, high, limit, reverse)
        found = dict(super()._read_range(prefix, low, high, limit + len(own), reverse))
        for key in own:
            value = self._writes.rows[key]
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return sorted(found.items(), reverse=reverse)[:limit]


def is_appended(key: bytes) -> bool:
    """Whether it is an event that gets its number from the commit."""
    return key[:1] == keys.EVENT and len(key) == 9 and PROVISIONAL < keys.sequence_of(key) < 2 * PROVISIONAL


def tables_written(writes: OrderedRows) -> dict[RowTable, list[tuple[bytes, bytes | None]]]:
    """The rows to send, by table; the journal's head is not a row, and goes with its events."""
    grouped: dict[RowTable, list[tuple[bytes, bytes | None]]] = {}
    for key, value in writes.rows.items():
        if key != keys.JOURNAL_HEAD:
            grouped.setdefault(table_of(key), []).append((key, value))
    return grouped


# The writes of one commit as statements: one for each table, whatever their number.

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
            yield f"DELETE FROM {table.name} WHERE key = ANY(%b::bytea[])", (ArrayColumn("bytea", removed),)
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


def _arrays(table: RowTable, rows: list[tuple[bytes, bytes]]) -> tuple[ArrayColumn, ...]:
    """The columns: the key, the value, and what the table shows of the record."""
    stored = [stored_event(key, value) if table is EVENTS else value for key, value in rows]
    shown = [table.values_of(key, value) for key, value in rows]
    columns = [list(column) for column in zip(*shown, strict=True)] if table.columns else []
    types = ["bytea", "bytea", *(column.type for column in table.columns)]
    return tuple(map(ArrayColumn, types, ([key for key, _ in rows], stored, *columns)))


@lru_cache
def _upsert(table: RowTable) -> str:
    names = ["value", *(column.name for column in table.columns)]
    arrays = ["%b::bytea[]", "%b::bytea[]", *(f"%b::{column.type}[]" for column in table.columns)]
    updated = ", ".join(f"{name} = excluded.{name}" for name in names)
    return (
        f"INSERT INTO {table.name} (key, {', '.join(names)}) SELECT * FROM unnest({', '.join(arrays)}) "
        f"ON CONFLICT (key) DO UPDATE SET {updated}"
    )


@lru_cache
def _append() -> str:
    names = ["value", *(column.name for column in EVENTS.columns)]
    arrays = ["%b::bytea[]", *(f"%b::{column.type}[]" for column in EVENTS.columns)]
    return (
        "WITH head AS (UPDATE journal_head SET last = last + %s RETURNING last) "
        f"INSERT INTO event (key, {', '.join(names)}) "
        f"SELECT '\\x45'::bytea || int8send(head.last - %s + e.place), {', '.join('e.' + name for name in names)} "
        f"FROM head, unnest({', '.join(arrays)}) WITH ORDINALITY AS e({', '.join(names)}, place)"
    )
