"""A store that fails on purpose: a test wraps the store it uses and plans which call fails, and how."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from chronex.errors import StoreError, StoreOutcomeUnknownError
from chronex.storage.ports import SCAN_LIMIT, Row, Store, T, Transaction, UpdateFn, ViewFn
from chronex.storage.scopes import WHOLE, Scope


class Fault(StrEnum):
    """What goes wrong."""

    FAIL = "fail"  # the call has no effect, and an error is raised
    LOSE_REPLY = "lose_reply"  # the call takes effect, and raises StoreOutcomeUnknownError
    DELAY = "delay"  # `pause` is called first
    TEAR = "tear"  # every value that the update writes is cut in half


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """The `at`-th call of `method` (1 is the first) fails as `kind` says; with `lasting`, all calls after it too."""

    method: str
    at: int
    kind: Fault
    lasting: bool = False
    error: type[StoreError] = StoreError

    def applies_to(self, method: str, number: int) -> bool:
        return method == self.method and (number >= self.at if self.lasting else number == self.at)


class FaultyStore:
    """Passes every call on to `inner`, except where a fault is planned.

    `calls` counts the calls of each method; `injected` lists the faults that have happened.
    """

    def __init__(
        self, inner: Store, faults: Iterable[PlannedFault] = (), pause: Callable[[], None] | None = None
    ) -> None:
        self._inner = inner
        self._planned = list(faults)
        self._pause = pause
        self._lock = threading.Lock()
        self.calls = {"view": 0, "update": 0, "wait": 0}
        self.injected: list[PlannedFault] = []

    def view(self, fn: ViewFn[T]) -> T:
        fault = self._next("view")
        result = self._inner.view(fn)
        return self._reply(fault, result)

    async def view_async(self, fn: ViewFn[T]) -> T:
        return self._reply(self._next("view"), await self._inner.view_async(fn))

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        fault = self._next("update")
        return self._reply(fault, self._inner.update(_torn(fault, fn), use_reserve=use_reserve, scope=scope))

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        fault = self._next("update")
        return self._reply(
            fault, await self._inner.update_async(_torn(fault, fn), use_reserve=use_reserve, scope=scope)
        )

    def wait(self, since: int, timeout: float) -> int:
        return self._reply(self._next("wait"), self._inner.wait(since, timeout))

    async def wait_async(self, since: int, timeout: float) -> int:
        return self._reply(self._next("wait"), await self._inner.wait_async(since, timeout))

    def now(self) -> int:
        return self._inner.now()

    def close(self) -> None:
        self._inner.close()

    def _next(self, method: str) -> PlannedFault | None:
        with self._lock:
            self.calls[method] += 1
            number = self.calls[method]
            fault = next((p for p in self._planned if p.applies_to(method, number)), None)
            if fault is not None:
                self.injected.append(fault)
        if fault is not None and fault.kind is Fault.FAIL:
            raise fault.error(f"a planned fault: {method} number {number} failed")
        if fault is not None and fault.kind is Fault.DELAY and self._pause is not None:
            self._pause()
        return fault

    def _reply(self, fault: PlannedFault | None, result: T) -> T:
        if fault is not None and fault.kind is Fault.LOSE_REPLY:
            raise StoreOutcomeUnknownError("a planned fault: it was done, and the reply was lost")
        return result


def _torn(fault: PlannedFault | None, fn: UpdateFn[T]) -> UpdateFn[T]:
    if fault is None or fault.kind is not Fault.TEAR:
        return fn
    return lambda tx: fn(cast("Transaction", TornTransaction(tx)))


class TornTransaction:
    """Writes the first half of every value, as a disk that loses a part of a write does."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def get(self, key: bytes) -> bytes | None:
        return cast("bytes | None", self._inner.get(key))

    def scan(
        self, prefix: bytes, after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[Row]:
        return cast("list[Row]", self._inner.scan(prefix, after, limit, reverse))

    def expect(self, jobs: Collection[str]) -> None:
        self._inner.expect(jobs)

    def create(self, key: bytes, value: bytes) -> bool:
        return cast("bool", self._inner.create(key, value[: len(value) // 2]))

    def put(self, key: bytes, value: bytes) -> None:
        self._inner.put(key, value[: len(value) // 2])

    def delete(self, key: bytes) -> bool:
        return cast("bool", self._inner.delete(key))
