"""What the engine asks of a store, small enough for LMDB now and a shared SQL database later.

Any implementation must pass tests/store/test_contract.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Protocol, TypeVar, runtime_checkable

from chronex.storage.scopes import WHOLE, Scope

MAX_KEY_BYTES = 511
MAX_VALUE_BYTES = 64 * 1024
SCAN_LIMIT = 1000

T = TypeVar("T")
Row = tuple[bytes, bytes]


class ReadTransaction(Protocol):
    """One consistent snapshot. It ends when fn returns; using it later raises StoreClosedError."""

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`, or None."""
        ...

    def scan(
        self, prefix: bytes, after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[Row]:
        """Up to `limit` rows whose key starts with `prefix`, in byte order of the key.

        `after` is the last key of the page before: only keys beyond it (below it when `reverse`) are
        returned, whether or not that key still exists, so pages stay stable while rows come and go.
        An empty prefix scans everything.
        """
        ...

    def expect(self, jobs: Collection[str]) -> None:
        """The open records of these jobs are read next: a store that is far away reads them all at once."""
        ...


class Transaction(ReadTransaction, Protocol):
    """A snapshot that can be changed; reads see the transaction's own writes.

    Keys are 1 to MAX_KEY_BYTES bytes (InvalidKeyError), values up to MAX_VALUE_BYTES (RecordTooLargeError).
    """

    def create(self, key: bytes, value: bytes) -> bool:
        """Write `value` only where `key` does not exist; False, and no change, where it does."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Write `value`, replacing what was there."""
        ...

    def delete(self, key: bytes) -> bool:
        """Remove `key`; False where it did not exist."""
        ...


# What only some transactions can do is inherited, not guessed from their methods: every decision asks for it, and
# `isinstance` of a protocol costs a hundred times as much.
class OwnerCounts(ABC):
    """A transaction that can count by owner without reading every record."""

    @abstractmethod
    def count_running(self, owner: str) -> int:
        """How many occurrences the node runs, as it was when the transaction began."""

    @abstractmethod
    def count_rows(self, prefix: bytes, limit: int) -> int:
        """How many rows there are up to `limit`, as it was at some moment of the transaction."""


class KeyCounts(ABC):
    """A transaction that counts rows at once, as they are now, without their values."""

    __slots__ = ()

    @abstractmethod
    def count_keys(self, prefix: bytes, limit: int) -> int:
        """How many rows there are below `prefix`, counted up to `limit`."""


class HeldGroups(ABC):
    """An update of a shared store, which may decide about some groups and has to leave the others to others."""

    @abstractmethod
    def holds_group(self, name: str) -> bool: ...


class LostCommits(Protocol):
    """What a database had lost of the commits of this process, and what became of that."""

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The jobs on which others have decided meanwhile, which is what holds."""
        ...


@runtime_checkable
class FailsOver(Protocol):
    """A store that may lose commits which it had acknowledged; it does them once more, and tells it."""

    on_went_back: Callable[[LostCommits], None]


class ClaimedDue(ABC):
    """A transaction whose scope is what is due and held by nobody: `scan` finds what is due of that alone."""

    @abstractmethod
    def has_claimed_most(self) -> bool:
        """Whether more may be due than was claimed."""

    @abstractmethod
    def next_due_elsewhere(self) -> int | None:
        """When the first of what was not claimed is due; a hint for how long to sleep."""


ViewFn = Callable[[ReadTransaction], T]
UpdateFn = Callable[[Transaction], T]


class Store(Protocol):
    """Ordered bytes to bytes, with serializable transactions.

    A transaction begun inside another one of the same thread raises NestedTransactionError.
    Threads may share a store; processes each open their own.
    """

    def view(self, fn: ViewFn[T]) -> T:
        """Run fn on a snapshot and return its result. Keep it under 50 ms: a snapshot holds old pages."""
        ...

    async def view_async(self, fn: ViewFn[T]) -> T:
        """`view` for an event loop: where the store may take its time, the loop goes on meanwhile."""
        ...

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        """Run fn, make its writes durable, return its result.

        All or nothing: when fn raises, nothing of it is kept and the exception is passed on. Updates are
        serializable and durable when this returns. fn may run more than once and must have no other
        effect. Concurrent updates may share one commit; a failing one does not touch its neighbours.
        StoreFullError: nothing was written. StoreOutcomeUnknownError: re-read to learn what happened.
        Ordinary updates leave a reserve of the free space untouched; those with `use_reserve`, which record the end
        of running work, may use it. `scope` is what fn is about, for a store that machines share.
        """
        ...

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        """`update` for an event loop: fn runs on another thread, the loop goes on meanwhile.

        A cancelled caller does not cancel the update: its outcome is what a later read finds.
        """
        ...

    def wait(self, since: int, timeout: float) -> int:
        """Return the change counter as soon as it differs from `since`, or after `timeout` seconds.

        The counter moves with every update, of any process, that changed something. `wait(-1, 0)` reads it.
        Read the counter first and the data second: then no change is lost, one may be seen twice.
        """
        ...

    async def wait_async(self, since: int, timeout: float) -> int:
        """`wait` for an event loop."""
        ...

    def now(self) -> int:
        """The store's wall clock in epoch milliseconds: one clock for all who share the store."""
        ...

    def close(self) -> None:
        """Wait for running transactions, then let go. Idempotent; all else then raises StoreClosedError."""
        ...
