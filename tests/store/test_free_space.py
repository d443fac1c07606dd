"""No free space: a typed error, nothing half written, and running work can still be recorded."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.errors import StoreError, StoreFullError
from chronex.storage.ports import Transaction
from chronex_store import LmdbStore

from .conftest import OpenLmdb
from .processes import assert_sound


def fill_up(store: LmdbStore, size: int = 3000) -> int:
    for number in range(10_000):
        try:
            store.update(lambda tx, n=number: tx.put(b"Qfill%06d" % n, b"x" * size))  # type: ignore[misc]
        except StoreFullError:
            return number
    raise AssertionError("the store never became full")


@pytest.fixture
def small(open_lmdb: OpenLmdb) -> LmdbStore:
    return open_lmdb(map_size=1 << 20)


class TestFullMap:
    def test_it_is_a_typed_error_that_says_what_to_do(self, small: LmdbStore) -> None:
        count = fill_up(small)
        assert count > 100
        with pytest.raises(StoreFullError, match="keep less history"):
            small.update(lambda tx: tx.create(b"Qmore", b""))
        assert len(small.view(lambda tx: tx.scan(b"Qfill", limit=2000))) == count

    def test_the_end_of_running_work_can_still_be_recorded(self, small: LmdbStore) -> None:
        fill_up(small)
        for number in range(20):
            small.update(lambda tx, n=number: tx.put(b"Qend%03d" % n, b"x" * 300), use_reserve=True)  # type: ignore[misc]

    def test_room_that_is_made_is_used_again(self, small: LmdbStore) -> None:
        count = fill_up(small)
        for number in range(count // 2):
            small.update(lambda tx, n=number: tx.delete(b"Qfill%06d" % n))  # type: ignore[misc]
        for number in range(count // 3):
            small.update(lambda tx, n=number: tx.put(b"Qagain%06d" % n, b"x" * 3000))  # type: ignore[misc]

    def test_an_update_that_does_not_fit_leaves_its_neighbours_alone(self, small: LmdbStore) -> None:
        fill_up(small, size=9000)

        def large(tx: Transaction) -> None:
            for number in range(40):
                tx.put(b"Qlarge%02d" % number, b"x" * 60_000)

        outcomes: dict[int, str] = {}

        def work(number: int) -> None:
            try:
                if number % 4 == 0:
                    small.update(large, use_reserve=True)
                else:
                    small.update(lambda tx: tx.put(b"Qsmall%02d" % number, b"x"), use_reserve=True)
                outcomes[number] = "ok"
            except StoreFullError:
                outcomes[number] = "full"

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert outcomes == {number: "ok" if number % 4 else "full" for number in range(16)}
        assert len(small.view(lambda tx: tx.scan(b"Qsmall"))) == 12
        assert small.view(lambda tx: tx.scan(b"Qlarge")) == []

    def test_an_error_that_fn_swallows_fails_the_update_all_the_same(self, small: LmdbStore) -> None:
        def greedy(tx: Transaction) -> str:
            try:
                for number in range(40):
                    tx.put(b"Qlarge%02d" % number, b"x" * 60_000)
            except StoreFullError:
                return "never mind"
            return "fitted"

        with pytest.raises(StoreFullError):
            small.update(greedy, use_reserve=True)
        assert small.view(lambda tx: tx.scan(b"Qlarge")) == []
        small.update(lambda tx: tx.put(b"Qfine", b""))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB, where the tests may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "chronex-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small tmpfs")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def eat_all_room(file: Path) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)


def test_a_full_disk_stops_updates_until_there_is_room_again(tiny_disk: Path) -> None:
    store = LmdbStore.open(tiny_disk / "store")
    try:
        store.update(lambda tx: tx.put(b"Qbefore", b"kept"))
        ballast = tiny_disk / "output-of-a-job"
        eat_all_room(ballast)
        for _ in range(3):
            with pytest.raises(StoreFullError, match="disk is full"):
                store.update(lambda tx: tx.put(b"Qmore", b"x" * 60_000))
            assert store.view(lambda tx: (tx.get(b"Qbefore"), tx.get(b"Qmore"))) == (b"kept", None)
        ballast.unlink()
        store.update(lambda tx: tx.put(b"Qmore", b"x" * 60_000))
    finally:
        store.close()
    assert_sound(tiny_disk / "store")


def test_on_a_full_disk_the_end_of_running_work_is_recorded_all_the_same(tiny_disk: Path) -> None:
    with LmdbStore.open(tiny_disk / "store") as store:
        eat_all_room(tiny_disk / "output-of-a-job")
        with pytest.raises(StoreFullError):
            store.update(lambda tx: tx.put(b"Qmore", b"x" * 60_000))
        for number in range(10):
            store.update(lambda tx, n=number: tx.put(b"Qend%d" % n, b"x" * 2000), use_reserve=True)  # type: ignore[misc]
        assert not (store.path / "reserve").exists()
    (tiny_disk / "output-of-a-job").unlink()
    with LmdbStore.open(tiny_disk / "store") as store:
        assert (store.path / "reserve").exists()
        assert len(store.view(lambda tx: tx.scan(b"Qend"))) == 10


def test_a_limit_on_the_size_of_files_is_no_full_disk(tmp_path: Path) -> None:
    """A daemon waits for a disk that is full; it would wait for ever for this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40 * 1024, before[1]))
    try:
        with pytest.raises(StoreError, match="ulimit -f") as refused:
            LmdbStore.open(tmp_path / "store")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not isinstance(refused.value, StoreFullError)
