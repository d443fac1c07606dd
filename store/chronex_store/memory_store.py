"""The store in memory: the model that the LMDB store is compared with, and the store of fast tests."""

from __future__ import annotations

import asyncio
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import StoreClosedError
from chronex.storage.ports import SCAN_LIMIT, Row, T, UpdateFn, ViewFn
from chronex.storage.scopes import WHOLE, Scope
from chronex_store.transaction import NestingGuard, check_key, check_row, end_of_prefix


class MemoryStore:
    """One lock, one dictionary, one sorted list of keys; nothing survives `close`."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._rows = _SortedRows()
        self._counter = 0
        self._changed = threading.Condition()
        self._nesting = NestingGuard()
        self._closed = False

    def view(self, fn: ViewFn[T]) -> T:
        with self._nesting.enter(), self._changed:
            tx = MemoryReading(self._open_rows())
            try:
                return fn(tx)
            finally:
                tx.end()

    async def view_async(self, fn: ViewFn[T]) -> T:
        return self.view(fn)

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        with self._nesting.enter(), self._changed:
            tx = MemoryTransaction(self._open_rows())
            try:
                result = fn(tx)
            except BaseException:
                tx.roll_back()
                raise
            finally:
                tx.end()
            if tx.undo:
                self._counter += 1
                self._changed.notify_all()
            return result

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        return self.update(fn)

    def wait(self, since: int, timeout: float) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._counter != since or self._closed, timeout)
            self._open_rows()
            return self._counter

    async def wait_async(self, since: int, timeout: float) -> int:
        return await asyncio.to_thread(self.wait, since, timeout)

    def now(self) -> int:
        return self._clock.wall_ms()

    def close(self) -> None:
        self._nesting.refuse_nesting()
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _open_rows(self) -> _SortedRows:
        if self._closed:
            raise StoreClosedError
        return self._rows


class _SortedRows:
    """Rows by key, with the keys in order."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.keys: list[bytes] = []

    def put(self, key: bytes, value: bytes | None) -> bytes | None:
        """Set or, for None, remove; returns what was there."""
        old = self.values.get(key)
        if value is None:
            if old is not None:
                del self.values[key]
                del self.keys[bisect_left(self.keys, key)]
            return old
        if old is None:
            insort(self.keys, key)
        self.values[key] = value
        return old


class MemoryReading:
    """A snapshot: the store's lock is held, so no other thread writes."""

    def __init__(self, rows: _SortedRows) -> None:
        self._rows: _SortedRows | None = rows

    @property
    def _live(self) -> _SortedRows:
        if self._rows is None:
            raise StoreClosedError("the transaction is over; read and write only inside the function given to it")
        return self._rows

    def get(self, key: bytes) -> bytes | None:
        check_key(key)
        return self._live.values.get(key)

    def scan(
        self, prefix: bytes, after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[Row]:
        rows = self._live
        keys = rows.keys
        low = bisect_left(keys, prefix)
        if low == len(keys) or not keys[low].startswith(prefix):
            return []  # as most scans of a tick: no row of that prefix
        end = end_of_prefix(prefix)
        high = len(keys) if end is None else bisect_left(keys, end)
        if after is not None and reverse:
            high = min(high, bisect_left(keys, after))
        elif after is not None:
            low = max(low, bisect_right(keys, after))
        picked = keys[max(low, high - limit) : high][::-1] if reverse else keys[low : min(high, low + limit)]
        return [(key, rows.values[key]) for key in picked]

    def expect(self, jobs: Collection[str]) -> None:
        """Everything is here already."""

    def end(self) -> None:
        self._rows = None


class MemoryTransaction(MemoryReading):
    """Writes at once and keeps the old values that undo it, as the LMDB transaction does."""

    def __init__(self, rows: _SortedRows) -> None:
        super().__init__(rows)
        self.undo: list[tuple[bytes, bytes | None]] = []

    def create(self, key: bytes, value: bytes) -> bool:
        check_row(key, value)
        if key in self._live.values:
            return False
        self.put(key, value)
        return True

    def put(self, key: bytes, value: bytes) -> None:
        check_row(key, value)
        self.undo.append((key, self._live.put(key, value)))

    def delete(self, key: bytes) -> bool:
        check_key(key)
        old = self._live.put(key, None)
        if old is not None:
            self.undo.append((key, old))
        return old is not None

    def roll_back(self) -> None:
        for key, old in reversed(self.undo):
            self._live.put(key, old)
