"""One view or update on PostgreSQL: reads ask the database, writes are kept until the commit sends them together.

Every read sees the transaction's own writes. The journal is numbered by the commit: an update that appends sees a
head beyond all real ones, and its events get their numbers when the row of the head is locked, as the last thing
before the commit. So numbers follow the order of the commits and nobody waits for another one's decision.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any, Protocol

from chronex.errors import DamagedRecordError, StoreClosedError
from chronex.model.records import Sequence
from chronex.storage import keys
from chronex.storage.codec import encode, payload_of, with_header
from chronex.storage.ports import SCAN_LIMIT, Row
from chronex_store.postgres.pg_tables import EVENTS, TABLES, RowTable, table_of
from chronex_store.transaction import check_key, check_row, end_of_prefix

# No journal is ever so long: numbers above it are given anew by the commit.
PROVISIONAL = 1 << 62
_HEAD_IN_UPDATE = encode(keys.JOURNAL_HEAD, Sequence(PROVISIONAL))
# The first byte of a stored event: its bytes follow whole, or without the header, which depends on its number.
_WHOLE, _BARE = b"\0", b"\1"


class Ask(Protocol):
    """Runs one query of the transaction's connection and returns its rows."""

    def __call__(self, query: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]: ...


def stored_event(key: bytes, raw: bytes) -> bytes:
    """An event as its table has it."""
    try:
        return _BARE + payload_of(key, raw)
    except DamagedRecordError:
        return _WHOLE + raw


def read_event(key: bytes, stored: bytes) -> bytes:
    return with_header(key, stored[1:]) if stored[:1] == _BARE else stored[1:]


class PostgresReading:
    """The read half of the port, over one snapshot."""

    def __init__(self, ask: Ask) -> None:
        self._ask: Ask | None = ask

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

    def _live(self) -> Ask:
        if self._ask is None:
            raise StoreClosedError("the transaction is over; read and write only inside the function given to it")
        return self._ask

    def _read(self, key: bytes) -> bytes | None:
        ask = self._live()
        if key == keys.JOURNAL_HEAD:
            return self._head(ask)
        table = table_of(key)
        rows = ask(f"SELECT value FROM {table.name} WHERE key = %b", (key,))
        if not rows:
            return None
        found: bytes = rows[0][0]
        return read_event(key, found) if table is EVENTS else found

    def _head(self, ask: Ask) -> bytes | None:
        rows = ask("SELECT last FROM journal_head", ())
        last: int = rows[0][0]
        return encode(keys.JOURNAL_HEAD, Sequence(last)) if last else None

    def _read_range(self, prefix: bytes, low: bytes, high: bytes | None, limit: int, reverse: bool) -> list[Row]:
        ask = self._live()
        if limit <= 0 or (high is not None and low >= high):
            return []
        tables = (table_of(prefix),) if prefix else TABLES
        order = "DESC" if reverse else "ASC"
        rows: list[Row] = []
        for table in tables:
            query = f"SELECT key, value FROM {table.name} WHERE key >= %b"
            parameters: tuple[Any, ...] = (low,)
            if high is not None:
                query += " AND key < %b"
                parameters += (high,)
            found = ask(f"{query} ORDER BY key {order} LIMIT %s", (*parameters, limit))
            rows += [(key, read_event(key, value) if table is EVENTS else value) for key, value in found]
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


class Writes:
    """What a transaction will send: the last value of each key, None for one that is removed."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self._order: list[bytes] = []

    def put(self, key: bytes, value: bytes | None) -> None:
        if key not in self.rows:
            insort(self._order, key)
        self.rows[key] = value

    def forget(self, key: bytes) -> None:
        """As if it had never been written here."""
        if self.rows.pop(key, b"") is not None or key in self._order:
            index = bisect_left(self._order, key)
            if index < len(self._order) and self._order[index] == key:
                del self._order[index]

    def within(self, low: bytes, high: bytes | None) -> list[bytes]:
        begin = bisect_left(self._order, low)
        end = len(self._order) if high is None else bisect_left(self._order, high)
        return self._order[begin:end]


_UNWRITTEN: Any = object()


class PostgresTransaction(PostgresReading):
    """The write half. Several updates of one commit share `writes`; each can be taken back alone."""

    def __init__(self, ask: Ask, writes: Writes) -> None:
        super().__init__(ask)
        self._writes = writes
        self._undo: list[tuple[bytes, Any]] = []

    @property
    def has_written(self) -> bool:
        return bool(self._undo)

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
        self._undo.append((key, self._writes.rows.get(key, _UNWRITTEN)))
        self._writes.put(key, value)

    def _read(self, key: bytes) -> bytes | None:
        known = self._writes.rows.get(key, _UNWRITTEN)
        if known is not _UNWRITTEN:
            self._live()
            return None if known is None else bytes(known)
        return super()._read(key)

    def _head(self, ask: Ask) -> bytes | None:
        return _HEAD_IN_UPDATE

    def _read_range(self, prefix: bytes, low: bytes, high: bytes | None, limit: int, reverse: bool) -> list[Row]:
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


def tables_written(writes: Writes) -> dict[RowTable, list[tuple[bytes, bytes | None]]]:
    """The rows to send, by table; the journal's head is not a row, and goes with its events."""
    grouped: dict[RowTable, list[tuple[bytes, bytes | None]]] = {}
    for key, value in writes.rows.items():
        if key != keys.JOURNAL_HEAD:
            grouped.setdefault(table_of(key), []).append((key, value))
    return grouped
