"""What a tick reads does not grow with how many wait: counted in rows, because seconds depend on the machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from benchmarks.waiting import WaitKind, store_of_waiting
from chronex.engine.engine import Engine
from chronex.storage.ports import Transaction
from chronex_store import MemoryStore
from tests.kit.machine import START


class Reads(NamedTuple):
    calls: int
    rows: int


class CountingReads:
    """A transaction that counts what is read through it."""

    def __init__(self, tx: Transaction) -> None:
        self._tx, self.calls, self.rows = tx, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)

    def get(self, key: bytes) -> bytes | None:
        self.calls += 1
        return self._tx.get(key)

    def scan(self, *arguments: Any, **options: Any) -> Sequence[tuple[bytes, bytes]]:
        found = self._tx.scan(*arguments, **options)
        self.calls, self.rows = self.calls + 1, self.rows + len(found)
        return found


def reads_of_a_tick(waiting: int, kind: WaitKind) -> Reads:
    store = MemoryStore()
    store_of_waiting(store, waiting, 30, kind)
    tick = Engine(store, "node", slots=50).tick_update(START + 1_000, START)

    def update(tx: Transaction) -> Reads:
        counted: Any = CountingReads(tx)
        tick(counted)
        return Reads(counted.calls, counted.rows)

    return store.update(update)


@pytest.mark.parametrize("lines", [("one",), ("one", "three", "two")])
@pytest.mark.parametrize("is_missed", [False, True])
def test_thousands_who_wait_cost_a_tick_what_a_hundred_cost(lines: tuple[str, ...], is_missed: bool) -> None:
    kind = WaitKind(lines, is_missed)
    few, many = reads_of_a_tick(100, kind), reads_of_a_tick(3_000, kind)
    assert many == few
    assert few.calls < 50
