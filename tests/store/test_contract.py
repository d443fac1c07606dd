"""The contract of `chronex.storage.ports`: one suite, every implementation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from chronex.errors import (
    InvalidKeyError,
    NestedTransactionError,
    RecordTooLargeError,
    StoreClosedError,
)
from chronex.storage.ports import MAX_KEY_BYTES, MAX_VALUE_BYTES, KeyCounts, Store, Transaction
from tests.kit.waits import DEADLINE_S

from .conftest import OpenLmdb


def put_all(store: Store, *keys: bytes) -> None:
    def write(tx: Transaction) -> None:
        for key in keys:
            tx.put(key, b"v" + key)

    store.update(write)


def keys_of(store: Store, prefix: bytes = b"", **options: object) -> list[bytes]:
    return [key for key, _ in store.view(lambda tx: tx.scan(prefix, **options))]  # type: ignore[arg-type]


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures, failures


class RefusedError(Exception):
    pass


class TestAtomicity:
    def test_a_new_store_is_empty_for_every_prefix_that_is_ours(self, store: Store) -> None:
        assert keys_of(store, b"J") == []

    def test_all_writes_of_an_update_appear_together(self, store: Store) -> None:
        put_all(store, b"Ja", b"Jb", b"Jc")
        assert keys_of(store, b"J") == [b"Ja", b"Jb", b"Jc"]

    def test_when_fn_raises_nothing_is_kept_and_the_exception_is_passed_on(self, store: Store) -> None:
        put_all(store, b"Ja", b"Jb")

        def change_everything(tx: Transaction) -> None:
            tx.put(b"Ja", b"new")
            tx.delete(b"Jb")
            tx.create(b"Jc", b"new")
            tx.put(b"Jc", b"newer")
            tx.delete(b"Ja")
            raise RefusedError

        with pytest.raises(RefusedError):
            store.update(change_everything)
        assert store.view(lambda tx: tx.scan(b"J")) == [(b"Ja", b"vJa"), (b"Jb", b"vJb")]

    def test_any_exception_of_fn_is_its_callers_own(self, store: Store) -> None:
        def leave(tx: Transaction) -> None:
            tx.put(b"Jx", b"")
            raise SystemExit(7)

        with pytest.raises(SystemExit):
            store.update(leave)
        assert keys_of(store, b"J") == []

    def test_a_failing_update_leaves_its_neighbours_alone(self, store: Store) -> None:
        def work(number: int) -> None:
            key = b"J%03d" % number

            def write(tx: Transaction) -> None:
                tx.put(key, b"x")
                tx.put(b"Jshared", key)
                if number % 3 == 0:
                    raise RefusedError

            for _ in range(5):
                if number % 3 == 0:
                    with pytest.raises(RefusedError):
                        store.update(write)
                else:
                    store.update(write)

        in_threads(24, work)
        kept = [b"J%03d" % number for number in range(24) if number % 3]
        assert keys_of(store, b"J") == [*kept, b"Jshared"]
        assert store.view(lambda tx: tx.get(b"Jshared")) in kept

    def test_update_returns_what_fn_returns(self, store: Store) -> None:
        assert store.update(lambda tx: tx.create(b"J", b"")) is True
        assert store.view(lambda tx: tx.get(b"J")) == b""

    def test_create_writes_only_where_nothing_is(self, store: Store) -> None:
        assert store.update(lambda tx: tx.create(b"J", b"first"))
        assert not store.update(lambda tx: tx.create(b"J", b"second"))
        assert store.view(lambda tx: tx.get(b"J")) == b"first"

    def test_delete_says_whether_there_was_something(self, store: Store) -> None:
        put_all(store, b"J")
        assert store.update(lambda tx: tx.delete(b"J"))
        assert not store.update(lambda tx: tx.delete(b"J"))

    def test_a_transaction_sees_its_own_writes(self, store: Store) -> None:
        def write_and_read(tx: Transaction) -> list[bytes]:
            tx.put(b"Jb", b"1")
            tx.put(b"Ja", b"2")
            tx.delete(b"Jb")
            return [key for key, _ in tx.scan(b"J")]

        assert store.update(write_and_read) == [b"Ja"]


class TestIsolation:
    def test_concurrent_increments_are_all_counted(self, store: Store) -> None:
        def increment(tx: Transaction) -> None:
            tx.put(b"Jn", b"%d" % (int(tx.get(b"Jn") or b"0") + 1))

        def work(_: int) -> None:
            for _ in range(20):
                store.update(increment)

        in_threads(16, work)
        assert store.view(lambda tx: tx.get(b"Jn")) == b"320"

    def test_a_view_never_sees_half_an_update(self, store: Store) -> None:
        put_all(store, b"Jx", b"Jy")
        torn: list[object] = []
        over = threading.Event()

        def look(_: int) -> None:
            while not over.is_set():
                pair = store.view(lambda tx: (tx.get(b"Jx"), tx.get(b"Jy")))
                if pair[0] != pair[1] and pair != (b"vJx", b"vJy"):
                    torn.append(pair)

        def write(number: int) -> None:
            def both(tx: Transaction) -> None:
                tx.put(b"Jx", b"%d" % number)
                tx.put(b"Jy", b"%d" % number)

            store.update(both)

        reader = threading.Thread(target=look, args=(0,))
        reader.start()
        for number in range(50):
            write(number)
        over.set()
        reader.join(10)
        assert torn == []

    def test_create_is_won_by_exactly_one_of_many(self, store: Store) -> None:
        winners: list[tuple[int, int]] = []

        def work(number: int) -> None:
            for item in range(20):
                key, mine = b"O%03d" % item, b"%d" % number
                if store.update(lambda tx, key=key, mine=mine: tx.create(key, mine)):  # type: ignore[misc]
                    winners.append((item, number))

        in_threads(8, work)
        assert sorted(item for item, _ in winners) == list(range(20))
        for item, number in winners:
            assert store.view(lambda tx, k=b"O%03d" % item: tx.get(k)) == b"%d" % number  # type: ignore[misc]

    @pytest.mark.parametrize("outer", ["view", "update"])
    @pytest.mark.parametrize("inner", ["view", "update"])
    def test_a_transaction_inside_another_is_refused(self, store: Store, outer: str, inner: str) -> None:
        with pytest.raises(NestedTransactionError):
            getattr(store, outer)(lambda _: getattr(store, inner)(lambda tx: tx.get(b"J")))
        assert store.update(lambda tx: tx.create(b"J", b""))

    def test_a_transaction_is_over_when_fn_returns(self, store: Store) -> None:
        leaked = store.update(lambda tx: tx)
        for use in (
            lambda: leaked.put(b"J", b""),
            lambda: leaked.get(b"J"),
            lambda: leaked.scan(b""),
            lambda: leaked.create(b"J", b""),
            lambda: leaked.delete(b"J"),
        ):
            with pytest.raises(StoreClosedError):
                use()
        read = store.view(lambda tx: tx)
        with pytest.raises(StoreClosedError):
            read.get(b"J")


class TestScan:
    KEYS = (b"A", b"A\0", b"A\0\xff", b"Aa", b"A\xff", b"A\xff\xff", b"B", b"\xff", b"\xff\xff")

    @pytest.fixture(autouse=True)
    def rows(self, store: Store) -> None:
        put_all(store, *reversed(self.KEYS))

    @pytest.mark.parametrize("prefix", [b"A", b"A\0", b"A\xff", b"B", b"C", b"\xff", b"\xff\xff", b"A\0\xff\0"])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_rows_come_in_byte_order(self, store: Store, prefix: bytes, reverse: bool) -> None:
        expected = sorted((k for k in self.KEYS if k.startswith(prefix)), reverse=reverse)
        assert keys_of(store, prefix, reverse=reverse) == expected

    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("size", [1, 2, 5, 100])
    def test_pages_join_to_the_whole(self, store: Store, reverse: bool, size: int) -> None:
        seen: list[bytes] = []
        after = None
        while page := keys_of(store, b"A", after=after, limit=size, reverse=reverse):
            assert len(page) <= size
            seen += page
            after = page[-1]
        assert seen == sorted((k for k in self.KEYS if k.startswith(b"A")), reverse=reverse)

    @pytest.mark.parametrize("reverse", [False, True])
    def test_paging_stays_stable_when_rows_come_and_go(self, store: Store, reverse: bool) -> None:
        first = keys_of(store, b"A", limit=3, reverse=reverse)

        def disturb(tx: Transaction) -> None:
            tx.delete(first[-1])
            tx.put(b"A\0\0" if reverse else b"A\xff\0", b"")

        store.update(disturb)
        rest = keys_of(store, b"A", after=first[-1], reverse=reverse)
        left = {k for k in self.KEYS if k.startswith(b"A")} - set(first) | {b"A\0\0" if reverse else b"A\xff\0"}
        assert rest == sorted(left, reverse=reverse)

    @pytest.mark.parametrize("after", [b"", b"0", b"A\0", b"Ab", b"Z", b"\xff\xff\xff"])
    @pytest.mark.parametrize("reverse", [False, True])
    def test_after_may_be_any_key(self, store: Store, after: bytes, reverse: bool) -> None:
        expected = [k for k in self.KEYS if k.startswith(b"A") and (k < after if reverse else k > after)]
        assert keys_of(store, b"A", after=after, reverse=reverse) == sorted(expected, reverse=reverse)

    def test_no_rows_are_returned_for_a_limit_of_none(self, store: Store) -> None:
        assert keys_of(store, b"A", limit=0) == []

    @pytest.mark.parametrize("limit", [0, 1, 5, 17, 1000])
    def test_who_counts_keys_counts_what_a_scan_finds(self, store: Store, limit: int) -> None:
        put_all(store, *(b"A%03d" % number for number in range(200)))

        def count(tx: Transaction) -> None:
            tx.delete(b"A007")
            tx.put(b"A200", b"")
            for prefix in (b"A", b"A0", b"B", b"C", b"\xff"):
                found = len(tx.scan(prefix, None, limit))
                assert not isinstance(tx, KeyCounts) or tx.count_keys(prefix, limit) == found

        store.update(count)


class TestLimits:
    def test_the_longest_key_and_value_are_kept(self, store: Store) -> None:
        key, value = b"J" * MAX_KEY_BYTES, b"v" * MAX_VALUE_BYTES
        store.update(lambda tx: tx.put(key, value))
        assert store.view(lambda tx: tx.get(key)) == value

    @pytest.mark.parametrize("key", [b"", b"J" * (MAX_KEY_BYTES + 1), "text", None])
    def test_other_keys_are_refused(self, store: Store, key: bytes) -> None:
        for use in (
            lambda tx: tx.put(key, b""),
            lambda tx: tx.create(key, b""),
            lambda tx: tx.delete(key),
            lambda tx: tx.get(key),
        ):
            with pytest.raises(InvalidKeyError):
                store.update(use)

    def test_a_larger_value_is_refused(self, store: Store) -> None:
        with pytest.raises(RecordTooLargeError):
            store.update(lambda tx: tx.put(b"J", b"v" * (MAX_VALUE_BYTES + 1)))
        with pytest.raises(InvalidKeyError):
            store.update(lambda tx: tx.put(b"J", "text"))  # type: ignore[arg-type]
        assert keys_of(store, b"J") == []


class TestWait:
    def test_the_counter_moves_with_changes_only(self, store: Store) -> None:
        before = store.wait(-1, 0)
        store.view(lambda tx: tx.get(b"J"))
        store.update(lambda tx: tx.get(b"J"))
        store.update(lambda tx: tx.delete(b"J"))
        assert store.wait(-1, 0) == before
        put_all(store, b"J")
        assert store.wait(-1, 0) != before

    def test_a_change_before_the_wait_is_not_lost(self, store: Store) -> None:
        before = store.wait(-1, 0)
        put_all(store, b"J")
        assert store.wait(before, DEADLINE_S) != before

    def test_a_change_during_the_wait_wakes_it(self, store: Store) -> None:
        before = store.wait(-1, 0)
        threading.Timer(0.05, put_all, (store, b"J")).start()
        assert store.wait(before, DEADLINE_S) != before

    def test_no_change_ends_with_the_timeout(self, store: Store) -> None:
        before = store.wait(-1, 0)
        assert store.wait(before, 0.05) == before

    def test_many_waiters_lose_no_change(self, store: Store) -> None:
        put_all(store, b"Jn")
        seen: list[bytes | None] = []

        def follow(_: int) -> None:
            since, value = -1, None
            while value != b"last":
                since = store.wait(since, DEADLINE_S)
                value = store.view(lambda tx: tx.get(b"Jn"))
            seen.append(value)

        def work(number: int) -> None:
            if number:
                follow(number)
                return
            for step in range(30):
                store.update(lambda tx, step=step: tx.put(b"Jn", b"%d" % step))  # type: ignore[misc]
            store.update(lambda tx: tx.put(b"Jn", b"last"))

        in_threads(5, work)
        assert seen == [b"last"] * 4

    async def test_the_asynchronous_form_waits_too(self, store: Store) -> None:
        before = await store.wait_async(-1, 0)
        assert await store.wait_async(before, 0.02) == before
        waiting = asyncio.create_task(store.wait_async(before, DEADLINE_S))
        await asyncio.sleep(0.01)
        await store.update_async(lambda tx: tx.put(b"J", b""))
        assert await asyncio.wait_for(waiting, DEADLINE_S) != before


class TestAsynchronousUpdate:
    async def test_it_returns_and_raises_as_the_other_does(self, store: Store) -> None:
        assert await store.update_async(lambda tx: tx.create(b"J", b""))

        def fail(tx: Transaction) -> None:
            tx.put(b"Jx", b"")
            raise RefusedError

        with pytest.raises(RefusedError):
            await store.update_async(fail)
        assert keys_of(store, b"J") == [b"J"]

    async def test_many_tasks_and_threads_share_the_store(self, store: Store) -> None:
        def increment(tx: Transaction) -> None:
            tx.put(b"Jn", b"%d" % (int(tx.get(b"Jn") or b"0") + 1))

        async def task() -> None:
            for _ in range(10):
                await store.update_async(increment)

        def work(_: int) -> None:
            for _ in range(10):
                store.update(increment)

        thread = asyncio.to_thread(in_threads, 4, work)
        await asyncio.gather(thread, *(task() for _ in range(16)))
        assert store.view(lambda tx: tx.get(b"Jn")) == b"200"


class TestDurability:
    """Of those that outlive their process; tests/store/test_crash.py and test_power_loss.py pull the plug."""

    def test_what_an_update_acknowledged_is_there_after_reopening(self, open_lmdb: OpenLmdb) -> None:
        store = open_lmdb()
        put_all(store, b"Ja", b"Jb")
        store.update(lambda tx: tx.delete(b"Ja"))
        before = store.wait(-1, 0)
        store.close()
        again = open_lmdb()
        assert keys_of(again, b"J") == [b"Jb"]
        assert again.wait(-1, 0) == before

    async def test_asynchronous_updates_too(self, open_lmdb: OpenLmdb) -> None:
        store = open_lmdb()
        await asyncio.gather(*(store.update_async(lambda tx, n=n: tx.put(b"J%d" % n, b"")) for n in range(9)))  # type: ignore[misc]
        store.close()
        assert len(keys_of(open_lmdb(), b"J")) == 9


class TestClose:
    def test_everything_is_refused_afterwards(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreClosedError):
            store.view(lambda tx: tx.get(b"J"))
        with pytest.raises(StoreClosedError):
            store.update(lambda tx: tx.get(b"J"))
        with pytest.raises(StoreClosedError):
            store.wait(0, 1)

    def test_it_wakes_those_who_wait(self, store: Store) -> None:
        before = store.wait(-1, 0)
        raised: list[type[BaseException]] = []

        def sleeper() -> None:
            try:
                store.wait(before, 2 * DEADLINE_S)
            except StoreClosedError as error:
                raised.append(type(error))

        thread = threading.Thread(target=sleeper)
        thread.start()
        time.sleep(0.02)
        store.close()
        thread.join(DEADLINE_S)
        assert raised == [StoreClosedError]

    async def test_it_wakes_those_who_wait_on_an_event_loop(self, store: Store) -> None:
        before = await store.wait_async(-1, 0)
        waiting = asyncio.create_task(store.wait_async(before, 2 * DEADLINE_S))
        await asyncio.sleep(0.02)
        store.close()
        with pytest.raises(StoreClosedError):
            await asyncio.wait_for(waiting, DEADLINE_S)

    def test_it_is_refused_inside_a_transaction(self, store: Store) -> None:
        with pytest.raises(NestedTransactionError):
            store.update(lambda _: store.close())

    def test_now_is_the_clock_of_the_store(self, store: Store) -> None:
        """Of a database on this machine too, give or take what asking for it takes."""
        before = time.time_ns() // 1_000_000
        assert before - 250 <= store.now() <= time.time_ns() // 1_000_000 + 250
