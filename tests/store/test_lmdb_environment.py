"""Where and how a store may be opened: every refusal is typed, says what to do, and changes nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from msgspec.structs import replace

from chronex.errors import (
    ForeignStoreError,
    StoreAlreadyOpenError,
    StoreDamagedError,
    StoreError,
    StoreForkedError,
    StoreFormatError,
    StoreFullError,
    StoreInUseError,
    StoreLibraryError,
    StoreNamespaceError,
    StoreNetworkError,
    StorePermissionError,
    StoreRefusedError,
)
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex_store import LmdbStore, daemon_lock, directory_checks, lmdb_environment
from chronex_store.daemon_lock import acquire_daemon_lock, is_daemon_alive, lock_holder
from chronex_store.lmdb_environment import MAX_READERS, grow_map

from .conftest import OpenLmdb


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with LmdbStore.open(path) as store:
        store.update(lambda tx: tx.put(b"Jx", b"kept"))
    return path


def fingerprint(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file() and p.name != "lock.mdb"}


def alter_meta(path: Path, **changes: object) -> None:
    with LmdbStore.open(path) as store:
        meta = replace(store.environment().meta, **changes)
        store.update(lambda tx: tx.put(keys.STORE_META, encode(keys.STORE_META, meta)))


class TestFiles:
    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277, 0o777])
    def test_they_are_private_under_every_umask(self, tmp_path: Path, umask: int) -> None:
        before = os.umask(umask)
        try:
            with LmdbStore.open(tmp_path / "deep" / "store") as store, acquire_daemon_lock(store.path):
                modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in store.path.iterdir()}
        finally:
            os.umask(before)
        for made in (tmp_path / "deep", tmp_path / "deep" / "store"):
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
        assert set(modes) == {"data.mdb", "lock.mdb", "daemon.lock", "reserve"}
        assert all(mode & 0o177 == 0 for mode in modes.values()), modes

    def test_commits_are_durable_by_the_flags_that_are_read_back(self, lmdb_store: LmdbStore) -> None:
        flags = lmdb_store.environment().lmdb.flags()
        assert flags["sync"]
        assert flags["metasync"]
        assert flags["lock"]
        assert not flags["writemap"]
        assert not flags["map_async"]

    def test_flags_that_are_not_durable_are_refused(self, tmp_path: Path) -> None:
        with lmdb.open(str(tmp_path / "x"), sync=False) as env, pytest.raises(StoreError, match="durable"):
            lmdb_environment.check_flags(env)

    def test_the_lock_file_is_really_on_the_disk(self, lmdb_store: LmdbStore) -> None:
        found = (lmdb_store.path / "lock.mdb").stat()
        assert found.st_blocks * 512 >= found.st_size
        assert lmdb_store.environment().lmdb.info()["max_readers"] >= MAX_READERS

    def test_the_map_size_is_fixed_when_the_store_is_made(self, open_lmdb: OpenLmdb) -> None:
        open_lmdb(map_size=8 << 20).close()
        open_lmdb(map_size=4 << 20).close()
        assert open_lmdb().space().map_bytes == 8 << 20

    def test_the_map_grows_only_offline(self, made: Path) -> None:
        with acquire_daemon_lock(made), pytest.raises(StoreInUseError):
            grow_map(made, 2 << 30)
        assert grow_map(made, 2 << 30) == 2 << 30
        with pytest.raises(StoreError, match="larger"):
            grow_map(made, 1 << 20)
        with LmdbStore.open(made) as store:
            assert store.space().map_bytes == store.environment().meta.map_size == 2 << 30


def loosen_directory(path: Path, _: pytest.MonkeyPatch) -> None:
    path.chmod(0o777)


def loosen_data(path: Path, _: pytest.MonkeyPatch) -> None:
    (path / "data.mdb").chmod(0o640)


def be_somebody_else(path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "geteuid", lambda: 12345)


def be_on_nfs(path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory_checks, "file_system_magic", lambda _: 0x6969)


def use_system_library(path: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lmdb, "version", lambda **_: (0, 9, 36, 0))


def plant_link(path: Path, _: pytest.MonkeyPatch) -> None:
    (path / "data.mdb").rename(path.parent / "elsewhere")
    (path / "data.mdb").symlink_to(path.parent / "elsewhere")


def plant_hard_link(path: Path, _: pytest.MonkeyPatch) -> None:
    os.link(path / "data.mdb", path.parent / "second-name")


def be_newer(path: Path, _: pytest.MonkeyPatch) -> None:
    alter_meta(path, format=99)


def be_foreign(path: Path, _: pytest.MonkeyPatch) -> None:
    shutil.rmtree(path)
    path.mkdir(mode=0o700)
    with lmdb.open(str(path), mode=0o700) as env, env.begin(write=True) as txn:
        txn.put(b"somebody", b"else's")


def be_text(path: Path, _: pytest.MonkeyPatch) -> None:
    (path / "data.mdb").write_bytes(b"not a database, but long enough to look at\n" * 500)


def lose_meta(path: Path, _: pytest.MonkeyPatch) -> None:
    with LmdbStore.open(path) as store:
        store.update(lambda tx: tx.put(keys.STORE_META, b"?"))


def hold_in_another_container(path: Path, patch: pytest.MonkeyPatch) -> None:
    holder = daemon_lock.LockHolder(1, "another boot", 1)
    with patch.context() as inner:
        inner.setattr(daemon_lock, "this_process", lambda: holder)
        lock = acquire_daemon_lock(path)
    KEPT.append(lock)


KEPT: list[daemon_lock.DaemonLock] = []


@pytest.mark.parametrize(
    ("spoil", "error", "hint"),
    [
        (loosen_directory, StorePermissionError, "chmod 700"),
        (loosen_data, StorePermissionError, "chmod 600"),
        (be_somebody_else, StorePermissionError, "use your own"),
        (be_on_nfs, StoreNetworkError, "choose a local directory"),
        (use_system_library, StoreLibraryError, "install the `lmdb` wheel"),
        (plant_link, ForeignStoreError, "remove it"),
        (plant_hard_link, ForeignStoreError, "remove it"),
        (be_newer, StoreFormatError, "install the newer version"),
        (be_foreign, ForeignStoreError, "choose another"),
        (be_text, ForeignStoreError, "restore a backup"),
        (lose_meta, StoreDamagedError, "restore a backup"),
        (hold_in_another_container, StoreNamespaceError, "another container"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_an_unsafe_store_is_refused_untouched(
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path, pytest.MonkeyPatch], None],
    error: type[StoreError],
    hint: str,
) -> None:
    spoil(made, monkeypatch)
    before = fingerprint(made.parent)
    for _ in range(2):
        with pytest.raises(error, match=hint) as raised:
            LmdbStore.open(made)
        assert "\n" not in str(raised.value)
    assert fingerprint(made.parent) == before
    while KEPT:
        KEPT.pop().release()


def test_a_network_store_can_be_forced(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    be_on_nfs(made, monkeypatch)
    LmdbStore.open(made, allow_network=True).close()


def test_the_file_system_is_asked() -> None:
    assert directory_checks.file_system_magic(Path("/proc")) == 0x9FA0
    assert directory_checks.file_system_magic(Path("/no/such/place")) == 0


def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        tmp_path.chmod(0o700)
        with pytest.raises(StoreRefusedError):
            LmdbStore.open(path, create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_other_things_is_not_to_be_closed_for_our_sake(tmp_path: Path) -> None:
    """`--store /etc` is a slip, and "run chmod 700 /etc" no advice."""
    tmp_path.chmod(0o755)
    (tmp_path / "passwd").touch()
    with pytest.raises(StoreRefusedError, match="there is no store in"):
        LmdbStore.open(tmp_path, create=False)
    with pytest.raises(StorePermissionError, match="give the store a directory of its own"):
        LmdbStore.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["passwd"]


def test_a_read_only_file_system_is_a_typed_error(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(StoreRefusedError, match="read-only file system; a store must"):
            directory_checks.open_private(made / "lock.mdb", os.O_RDWR)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ForeignStoreError, match="not a directory"):
        LmdbStore.open(tmp_path / "file")


def test_a_second_open_in_the_process_is_refused_also_by_another_name(made: Path) -> None:
    (made.parent / "alias").symlink_to(made)
    with LmdbStore.open(made):
        for name in (made, made.parent / "alias"):
            with pytest.raises(StoreAlreadyOpenError):
                LmdbStore.open(name)
    with LmdbStore.open(made) as again:
        assert again.view(lambda tx: tx.get(b"Jx")) == b"kept"


FORKED = """
import os, sys
from chronex_store import LmdbStore
from chronex.errors import StoreForkedError
store = LmdbStore.open(sys.argv[1])
if os.fork() == 0:
    refused = 0
    for use in (lambda: store.view(lambda tx: None), lambda: store.update(lambda tx: None), lambda: store.wait(-1, 0)):
        try:
            use()
        except StoreForkedError:
            refused += 1
    store.close()
    os._exit(refused)
child = os.waitstatus_to_exitcode(os.wait()[1])
assert store.update(lambda tx: tx.put(b"Jy", b"")) is None
sys.exit(child)
"""


def test_use_after_a_fork_is_refused_and_does_no_harm(made: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(made)], env=child_env(), timeout=60, check=False)
    assert done.returncode == 3
    assert StoreForkedError.__doc__


def child_env() -> dict[str, str]:
    root = Path(__file__).parent.parent.parent
    return {**os.environ, "PYTHONPATH": f"{root}:{root / 'store'}"}


class TestDaemonLock:
    def test_one_holds_it_and_the_other_is_told_who(self, made: Path) -> None:
        assert not is_daemon_alive(made)
        with acquire_daemon_lock(made):
            assert is_daemon_alive(made)
            with pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
                acquire_daemon_lock(made)
        assert not is_daemon_alive(made)
        acquire_daemon_lock(made).release()

    def test_a_killed_holder_does_not_keep_it(self, made: Path) -> None:
        code = (
            "import os, sys; from pathlib import Path; from chronex_store.daemon_lock import acquire_daemon_lock;"
            "lock = acquire_daemon_lock(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
        )
        subprocess.run([sys.executable, "-c", code, str(made)], env=child_env(), timeout=60, check=False)
        assert lock_holder(made) is not None
        assert not is_daemon_alive(made)
        with acquire_daemon_lock(made) as lock:
            assert lock.was_abandoned
        with acquire_daemon_lock(made) as lock:
            assert not lock.was_abandoned

    def test_a_look_at_the_wrong_moment_is_waited_for(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        acquire_daemon_lock(made).release()
        look = os.open(made / "daemon.lock", os.O_RDONLY)
        fcntl.flock(look, fcntl.LOCK_SH)
        monkeypatch.setattr("chronex_store.daemon_lock.time.sleep", lambda _: fcntl.flock(look, fcntl.LOCK_UN))
        acquire_daemon_lock(made).release()
        os.close(look)

    def test_a_look_without_an_end_is_not_waited_for_for_ever(
        self, made: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        acquire_daemon_lock(made).release()
        look = os.open(made / "daemon.lock", os.O_RDONLY)
        fcntl.flock(look, fcntl.LOCK_SH)
        monkeypatch.setattr("chronex_store.daemon_lock.time.sleep", lambda _: None)
        with pytest.raises(StoreInUseError):
            acquire_daemon_lock(made)
        os.close(look)

    def test_it_does_not_hinder_reading_and_writing(self, made: Path) -> None:
        with acquire_daemon_lock(made), LmdbStore.open(made) as store:
            store.update(lambda tx: tx.put(b"Jy", b""))


def test_a_disk_that_is_full_at_open_is_a_typed_error(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_space)
    with pytest.raises(StoreFullError, match="free some space"):
        LmdbStore.open(made)


def test_a_system_without_fallocate_writes_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS is: the store opens, and its files have their space on the disk."""
    monkeypatch.delattr(os, "posix_fallocate")
    path = tmp_path / "elsewhere"
    for _ in range(2):
        with LmdbStore.open(path) as store:
            store.update(lambda tx: tx.put(b"Jy", b"kept"))
    assert (path / "lock.mdb").stat().st_size >= lmdb_environment.LOCK_FILE_BYTES
    reserve = (path / "reserve").stat()
    assert reserve.st_size == lmdb_environment.RESERVE_FILE_BYTES
    assert reserve.st_blocks * 512 >= reserve.st_size


def test_a_full_disk_is_told_without_fallocate_too(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.delattr(os, "posix_fallocate")
    monkeypatch.setattr(os, "pwrite", no_space)
    (made / "lock.mdb").unlink()
    with pytest.raises(StoreFullError, match="free some space"):
        LmdbStore.open(made)
