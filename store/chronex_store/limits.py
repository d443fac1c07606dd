"""What every implementation refuses before it touches anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from chronex.errors import InvalidKeyError, NestedTransactionError, RecordTooLargeError, StoreClosedError
from chronex.storage.ports import MAX_KEY_BYTES, MAX_VALUE_BYTES


def check_key(key: bytes) -> None:
    if type(key) is not bytes or not 0 < len(key) <= MAX_KEY_BYTES:
        what = f"{len(key)} bytes" if isinstance(key, bytes) else type(key).__name__
        raise InvalidKeyError(f"a key must be 1 to {MAX_KEY_BYTES} bytes, not {what}")


def check_row(key: bytes, value: bytes) -> None:
    are_bytes = type(key) is bytes and type(value) is bytes
    if are_bytes and 0 < len(key) <= MAX_KEY_BYTES and len(value) <= MAX_VALUE_BYTES:
        return  # what nearly every row is, told with one call
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


class Over:
    """Stands in for the snapshot of a transaction that has ended."""

    def __getattr__(self, name: str) -> NoReturn:
        raise StoreClosedError("the transaction is over; read and write only inside the function given to it")


OVER = Over()


class NestingGuard(threading.local):
    """Knows whether the current thread is inside a transaction of one store."""

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
