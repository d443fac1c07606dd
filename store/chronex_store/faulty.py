"""A store that fails on purpose: tests wrap the store they use and name the call that goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from chronex.errors import StoreError, StoreOutcomeUnknownError
from chronex.storage.ports import SCAN_LIMIT, Row, Store, T, Transaction, UpdateFn, ViewFn


class Fault(StrEnum):
    """What goes wrong."""

    FAIL = "fail"  # nothing happens, and an error is raised
    LOSE_REPLY = "lose_reply"  # it happens, but the caller is told that nobody knows
    DELAY = "delay"  # `pause` is called first
    TEAR = "tear"  # every value that the update writes is cut in half


@dataclass(frozen=True, slots=True)
class Plan:
    """The `at`-th call of `method` (1 is the first) suffers `fault`; with `lasting`, all after it too."""

    method: str
    at: int
    fault: Fault
    lasting: bool = False
    error: type[StoreError] = StoreError

    def strikes(self, method: str, number: int) -> bool:
        return method == self.method and (number >= self.at if self.lasting else number == self.at)


class FaultyStore:
    """Passes the port on to `inner`, except where a plan strikes. `calls` says how far a run came."""

    def __init__(self, inner: Store, plans: Iterable[Plan] = (), pause: Callable[[], None] | None = None) -> None:
        self._inner = inner
        self._plans = list(plans)
        self._pause = pause
        self._lock = threading.Lock()
        self.calls = {"view": 0, "update": 0, "wait": 0}
        self.struck: list[Plan] = []

    def view(self, fn: ViewFn[T]) -> T:
        plan = self._next("view")
        result = self._inner.view(fn)
        return self._reply(plan, result)

    def update(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        plan = self._next("update")
        return self._reply(plan, self._inner.update(_torn(plan, fn), essential=essential))

    async def update_async(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        plan = self._next("update")
        return self._reply(plan, await self._inner.update_async(_torn(plan, fn), essential=essential))

    def wait(self, since: int, timeout: float) -> int:
        return self._reply(self._next("wait"), self._inner.wait(since, timeout))

    async def wait_async(self, since: int, timeout: float) -> int:
        return self._reply(self._next("wait"), await self._inner.wait_async(since, timeout))

    def now(self) -> int:
        return self._inner.now()

    def close(self) -> None:
        self._inner.close()

    def _next(self, method: str) -> Plan | None:
        with self._lock:
            self.calls[method] += 1
            number = self.calls[method]
            plan = next((p for p in self._plans if p.strikes(method, number)), None)
            if plan is not None:
                self.struck.append(plan)
        if plan is not None and plan.fault is Fault.FAIL:
            raise plan.error(f"a planned fault: {method} number {number} failed")
        if plan is not None and plan.fault is Fault.DELAY and self._pause is not None:
            self._pause()
        return plan

    def _reply(self, plan: Plan | None, result: T) -> T:
        if plan is not None and plan.fault is Fault.LOSE_REPLY:
            raise StoreOutcomeUnknownError("a planned fault: it was done, and the reply was lost")
        return result


def _torn(plan: Plan | None, fn: UpdateFn[T]) -> UpdateFn[T]:
    if plan is None or plan.fault is not Fault.TEAR:
        return fn
    return lambda tx: fn(cast("Transaction", TornTransaction(tx)))


class TornTransaction:
    """Writes the first half of every value, as a lying disk would."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def get(self, key: bytes) -> bytes | None:
        return cast("bytes | None", self._inner.get(key))

    def scan(
        self, prefix: bytes, after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[Row]:
        return cast("list[Row]", self._inner.scan(prefix, after, limit, reverse))

    def create(self, key: bytes, value: bytes) -> bool:
        return cast("bool", self._inner.create(key, value[: len(value) // 2]))

    def put(self, key: bytes, value: bytes) -> None:
        self._inner.put(key, value[: len(value) // 2])

    def delete(self, key: bytes) -> bool:
        return cast("bool", self._inner.delete(key))
