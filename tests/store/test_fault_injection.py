"""The wrapper does what its plan says, and otherwise keeps the contract."""

from __future__ import annotations

import pytest

from chronex.errors import StoreError, StoreFullError, StoreOutcomeUnknownError
from chronex.storage.ports import Store
from chronex.storage.records import Reading, Records
from chronex_store import MemoryStore
from chronex_store.fault_injection import Fault, FaultyStore, PlannedFault
from tests.storage.samples import AT, JOB

from . import test_contract
from .conftest import OpenLmdb


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, open_lmdb: OpenLmdb) -> FaultyStore:
    """Takes the place of the plain stores in the contract suite below."""
    inner: Store = MemoryStore() if request.param == "memory" else open_lmdb()
    return FaultyStore(inner, [PlannedFault("update", 10**9, Fault.FAIL)])


class TestWithoutFault(
    test_contract.TestAtomicity, test_contract.TestIsolation, test_contract.TestWait, test_contract.TestClose
):
    """The contract holds through the wrapper."""


def put(store: Store, key: bytes) -> None:
    store.update(lambda tx: tx.put(key, b"value"))


def keys(store: Store) -> list[bytes]:
    return [key for key, _ in store.view(lambda tx: tx.scan(b"J"))]


def test_the_nth_call_fails_and_leaves_nothing() -> None:
    store = FaultyStore(MemoryStore(), [PlannedFault("update", 2, Fault.FAIL, error=StoreFullError)])
    put(store, b"J1")
    with pytest.raises(StoreFullError):
        put(store, b"J2")
    put(store, b"J3")
    assert keys(store) == [b"J1", b"J3"]
    assert store.calls["update"] == 3


def test_a_lasting_fault_stays() -> None:
    store = FaultyStore(MemoryStore(), [PlannedFault("view", 2, Fault.FAIL, lasting=True)])
    keys(store)
    for _ in range(3):
        with pytest.raises(StoreError):
            keys(store)
    assert len(store.injected) == 3


async def test_a_lost_reply_is_a_deed_done() -> None:
    store = FaultyStore(
        MemoryStore(), [PlannedFault("update", 1, Fault.LOSE_REPLY), PlannedFault("update", 2, Fault.LOSE_REPLY)]
    )
    with pytest.raises(StoreOutcomeUnknownError):
        put(store, b"J1")
    with pytest.raises(StoreOutcomeUnknownError):
        await store.update_async(lambda tx: tx.put(b"J2", b""))
    assert keys(store) == [b"J1", b"J2"]


def test_a_delay_calls_the_pause() -> None:
    called: list[int] = []
    store = FaultyStore(MemoryStore(), [PlannedFault("wait", 1, Fault.DELAY)], pause=lambda: called.append(1))
    store.wait(-1, 0)
    store.wait(-1, 0)
    assert called == [1]


def test_a_torn_record_is_seen_and_put_aside() -> None:
    store = FaultyStore(MemoryStore(), [PlannedFault("update", 1, Fault.TEAR)])
    store.update(lambda tx: Records(tx, AT).create(JOB))
    assert store.view(lambda tx: Reading(tx).jobs()) == []
    assert store.update(lambda tx: Records(tx, AT).job(JOB.id)) is None
    assert len(store.view(lambda tx: Reading(tx).quarantined())) == 2, "a job is two rows"
    store.update(lambda tx: Records(tx, AT).create(JOB))
    assert store.view(lambda tx: Reading(tx).jobs()) == [JOB]
