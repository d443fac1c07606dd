"""One update or view on an LMDB transaction: what it checks, how it is undone, and what an error of LMDB means.

Several updates share one LMDB transaction, so a failing one must be undone without an abort. Each keeps
the first value of every key it changes and puts them back: measured at 5.7 µs an update against 6.5 µs with
nested LMDB transactions, and scans need no overlay.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NoReturn

import lmdb

from chronex.errors import (
    ForeignStoreError,
    InvalidKeyError,
    NestedTransactionError,
    RecordTooLargeError,
    StoreClosedError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreLibraryError,
    StoreOutcomeUnknownError,
    StoreReplacedError,
)
from chronex.storage.ports import MAX_KEY_BYTES, MAX_VALUE_BYTES, SCAN_LIMIT, KeyCounts, Row

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.BadValsizeError)
MAP_FULL = "the store's map is full and nothing was written; keep less history, or grow it with the daemon stopped"


def is_no_space(error: lmdb.Error) -> bool:
    return error.code in _NO_SPACE


def translate(error: lmdb.Error, during: str) -> StoreError:
    """The typed error for what LMDB reported outside a commit: nothing was written."""
    if isinstance(error, lmdb.MapFullError | lmdb.TxnFullError):
        return StoreFullError(MAP_FULL)
    if is_no_space(error):
        return StoreFullError("the disk is full and nothing was written; free some space")
    if isinstance(error, _DAMAGE):
        return StoreDamagedError(
            f"the store's file is damaged ({during}: {error}); run `chronex doctor`, then `chronex restore`"
        )
    if isinstance(error, lmdb.VersionMismatchError):
        return StoreLibraryError("another version of LMDB has the store open; use one Chronex for all")
    if isinstance(error, lmdb.MapResizedError):
        return StoreReplacedError("the store's map was grown while it was open; open it again")
    if isinstance(error, lmdb.PanicError):
        return StoreOutcomeUnknownError()
    return StoreError(f"the store failed in {during}: {error}")


def translate_open(error: lmdb.Error, path: str) -> StoreError:
    if isinstance(error, lmdb.InvalidError):
        return ForeignStoreError(
            f"{path} holds no Chronex store, or a damaged one; restore a backup or choose another directory"
        )
    return translate(error, "open")


# How many rows a scan reads first. Most prefixes hold a few rows.
FIRST_PAGE = 16


def check_key(key: bytes) -> None:
    if type(key) is not bytes or not 0 < len(key) <= MAX_KEY_BYTES:
        what = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise InvalidKeyError(f"a key must be 1 to {MAX_KEY_BYTES} bytes, not {what}")


def check_row(key: bytes, value: bytes) -> None:
    check_key(key)
    if type(value) is not bytes:
        raise InvalidKeyError(f"a value must be bytes, not {type(value).__name__}")
    if len(value) > MAX_VALUE_BYTES:
        raise RecordTooLargeError(
            f"a record of {len(value)} bytes is over the limit of {MAX_VALUE_BYTES}; keep large data in files"
        )


def end_of_prefix(prefix: bytes) -> bytes | None:
    """The first key after all keys that start with `prefix`; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


class EndedTransaction:
    """Takes the place of the LMDB transaction when the function that it was for has returned."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreClosedError("the transaction is over; read and write only inside the function given to it")


ENDED = EndedTransaction()


class NestingGuard(threading.local):
    """Whether the current thread is inside a transaction of one store."""

    inside = False

    @contextmanager
    def enter(self) -> Iterator[None]:
        self.refuse_nesting()
        self.inside = True
        try:
            yield
        finally:
            self.inside = False

    def refuse_nesting(self) -> None:
        if self.inside:
            raise NestedTransactionError


class LmdbReading(KeyCounts):
    """The read half of the port over one LMDB transaction."""

    __slots__ = ("_txn", "broken")

    def __init__(self, txn: Any) -> None:
        self._txn = txn
        self.broken: StoreError | None = None

    def get(self, key: bytes) -> bytes | None:
        if type(key) is not bytes or not 0 < len(key) <= MAX_KEY_BYTES:
            check_key(key)
        try:
            found: bytes | None = self._txn.get(key)
        except lmdb.Error as error:
            raise self._break(error, "get") from error
        return found

    def scan(
        self, prefix: bytes, after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[Row]:
        try:
            with self._txn.cursor() as cursor:
                if reverse:
                    return _scan_down(cursor, prefix, after, limit)
                return _scan_up(cursor, prefix, after, limit)
        except lmdb.Error as error:
            raise self._break(error, "scan") from error

    def count_keys(self, prefix: bytes, limit: int) -> int:
        try:
            with self._txn.cursor() as cursor:
                return _count_up(cursor, prefix, limit)
        except lmdb.Error as error:
            raise self._break(error, "scan") from error

    def expect(self, jobs: Collection[str]) -> None:
        """Everything is near already."""

    def end(self) -> None:
        self._txn = ENDED

    def _break(self, error: lmdb.Error, during: str) -> StoreError:
        # LMDB marks a transaction dead after most errors, so the update must fail even if its function catches this.
        self.broken = self.broken or translate(error, during)
        return self.broken


class LmdbTransaction(LmdbReading):
    """The write half, with the old values that undo it. With `keep_reserve` it may delete, and not add."""

    __slots__ = ("_keep_reserve", "undo")

    def __init__(self, txn: Any, keep_reserve: bool = False) -> None:
        self._txn = txn
        self.broken = None
        self._keep_reserve = keep_reserve
        self.undo: dict[bytes, bytes | None] = {}  # of each key that was written, what was there before

    def create(self, key: bytes, value: bytes) -> bool:
        check_row(key, value)
        if self._keep_reserve:
            raise StoreFullError(MAP_FULL)
        try:
            created: bool = self._txn.put(key, value, overwrite=False)
        except lmdb.Error as error:
            raise self._break(error, "create") from error
        if created:
            self.undo.setdefault(key, None)
        return created

    def put(self, key: bytes, value: bytes) -> None:
        # Half of all calls to the store end here, so a row that is right is found to be so without another call.
        are_bytes = type(key) is bytes and type(value) is bytes
        if not (are_bytes and 0 < len(key) <= MAX_KEY_BYTES and len(value) <= MAX_VALUE_BYTES):
            check_row(key, value)
        if self._keep_reserve:
            raise StoreFullError(MAP_FULL)
        try:
            self.undo.setdefault(key, self._txn.replace(key, value))
        except lmdb.Error as error:
            raise self._break(error, "put") from error

    def delete(self, key: bytes) -> bool:
        check_key(key)
        try:
            old: bytes | None = self._txn.pop(key)
        except lmdb.Error as error:
            raise self._break(error, "delete") from error
        if old is not None:
            self.undo.setdefault(key, old)
        return old is not None

    def roll_back(self) -> None:
        """Undo every write. May raise lmdb.Error, and then the whole LMDB transaction must be aborted."""
        for key, old in self.undo.items():
            if old is None:
                self._txn.delete(key)
            else:
                self._txn.put(key, old)
        self.undo.clear()


def _scan_up(cursor: Any, prefix: bytes, after: bytes | None, limit: int) -> list[Row]:
    start = prefix
    if after is not None and after >= prefix:
        start = after + b"\0"
    if start and not (cursor.set_range(start) and cursor.key().startswith(prefix)):
        return []
    return _within(iter(cursor), prefix, limit)


def _scan_down(cursor: Any, prefix: bytes, after: bytes | None, limit: int) -> list[Row]:
    end = end_of_prefix(prefix)
    if after is not None and (end is None or after < end):
        end = after
    found = cursor.prev() if end is not None and cursor.set_range(end) else cursor.last()
    if not found:
        return []
    return _within(cursor.iterprev(), prefix, limit)


def _count_up(cursor: Any, prefix: bytes, limit: int) -> int:
    """Counted in pages, like a scan, because each row of Python's own costs more than all that LMDB does for it."""
    found, size = 0, FIRST_PAGE
    names: Iterator[bytes] = cursor.iternext(keys=True, values=False) if cursor.set_range(prefix) else iter(())
    while found < limit:
        wanted = min(size, limit - found)
        page = list(islice(names, wanted))
        if page and not page[-1].startswith(prefix):
            return found + sum(key.startswith(prefix) for key in page)
        found += len(page)
        if len(page) < wanted:
            break
        size *= 8
    return found


def _within(found: Iterator[Row], prefix: bytes, limit: int) -> list[Row]:
    """The first `limit` rows, up to the end of the prefix, read in pages that grow: to read a thousand rows and keep
    three would cost the engine more than all its decisions."""
    rows: list[Row] = []
    size = FIRST_PAGE
    while len(rows) < limit:
        wanted = min(size, limit - len(rows))
        page = list(islice(found, wanted))
        if page and not page[-1][0].startswith(prefix):
            return rows + [row for row in page if row[0].startswith(prefix)]
        rows += page
        if len(page) < wanted:
            return rows
        size *= 8
    return rows
