"""A backup is whole, private and never overwritten; a restore is examined first and never over a daemon."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from chronex.errors import BackupError, StoreAlreadyOpenError, StoreInUseError, StoreReplacedError
from chronex.storage import keys
from chronex_store import LmdbStore, lmdb_environment, migration
from chronex_store.backup import backup, restore
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.doctor import examine

from .test_doctor import fill


@pytest.fixture
def made(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store") as store:
        fill(store)
    return tmp_path / "store"


def rows(path: Path) -> list[tuple[bytes, bytes]]:
    with LmdbStore.open(path, create=False) as store:
        return store.view(lambda tx: tx.scan(b""))


def change(path: Path) -> None:
    with LmdbStore.open(path) as store:
        store.update(lambda tx: tx.put(keys.quarantine_key(b"later"), b""))


def test_what_was_backed_up_comes_back(made: Path, tmp_path: Path) -> None:
    before = rows(made)
    report = backup(made, tmp_path / "b.backup")
    assert stat.S_IMODE((tmp_path / "b.backup").stat().st_mode) == 0o600
    assert report.to_dict()["size"] > 0
    change(made)
    restored = restore(tmp_path / "b.backup", made)
    assert rows(made) == before
    assert restored.records == len(before)
    assert examine(made).is_sound
    assert restored.replaced is not None
    restore(Path(restored.replaced), made)
    assert len(rows(made)) == len(before) + 1
    assert not list(made.glob("restore-*"))


def test_a_backup_restores_into_an_empty_place(made: Path, tmp_path: Path) -> None:
    backup(made, tmp_path / "b.backup")
    report = restore(tmp_path / "b.backup", tmp_path / "new")
    assert report.replaced is None
    assert rows(tmp_path / "new") == rows(made)


def test_a_backup_is_never_overwritten(made: Path, tmp_path: Path) -> None:
    (tmp_path / "b.backup").write_text("precious")
    with pytest.raises(BackupError, match="never overwritten"):
        backup(made, tmp_path / "b.backup")
    with pytest.raises(BackupError, match="could not be written: no such file or directory; choose another"):
        backup(made, tmp_path / "none" / "b.backup")
    assert (tmp_path / "b.backup").read_text() == "precious"


def test_a_backup_works_beside_a_daemon_and_a_restore_does_not(made: Path, tmp_path: Path) -> None:
    with acquire_daemon_lock(made):
        backup(made, tmp_path / "b.backup")
        with pytest.raises(StoreInUseError):
            restore(tmp_path / "b.backup", made)
    with LmdbStore.open(made), pytest.raises(StoreAlreadyOpenError):
        restore(tmp_path / "b.backup", made)


@pytest.mark.parametrize("content", [b"", b"text" * 5000])
def test_what_is_no_backup_changes_nothing(made: Path, tmp_path: Path, content: bytes) -> None:
    before = rows(made)
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(BackupError, match="nothing was changed"):
        restore(tmp_path / "bad", made)
    with pytest.raises(BackupError, match="cannot be read"):
        restore(tmp_path / "missing", made)
    assert rows(made) == before


def test_a_damaged_store_is_replaced_and_kept(made: Path, tmp_path: Path) -> None:
    before = rows(made)
    backup(made, tmp_path / "b.backup")
    data = made / "data.mdb"
    data.write_bytes(b"\0" * 8192 + data.read_bytes()[8192:])
    report = restore(tmp_path / "b.backup", made)
    assert rows(made) == before
    assert report.replaced is not None
    assert Path(report.replaced).stat().st_size == data.stat().st_size or Path(report.replaced).exists()


def test_those_who_have_the_old_store_open_are_told(made: Path, tmp_path: Path) -> None:
    backup(made, tmp_path / "b.backup")
    with LmdbStore.open(made) as store:
        since = store.wait(-1, 0)
        # As another process would: this one is refused, because it has the store open.
        (made / "lock.mdb").unlink()
        (made / "data.mdb").rename(tmp_path / "old")
        with pytest.raises(StoreReplacedError):
            store.update(lambda tx: tx.put(b"J", b""))
        with pytest.raises(StoreReplacedError):
            store.wait(since, 1)


NOW = lmdb_environment.FORMAT


class TestMigration:
    @pytest.fixture(autouse=True)
    def next_format(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lmdb_environment, "FORMAT", NOW + 2)

    def test_it_runs_every_step_after_a_backup(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            migration,
            "STEPS",
            {NOW: lambda tx: tx.put(b"Qone", b"1"), NOW + 1: lambda tx: tx.put(b"Qtwo", tx.get(b"Qone") or b"")},
        )
        with LmdbStore.open(made) as store:
            assert store.view(lambda tx: tx.get(b"Qtwo")) == b"1"
            assert store.environment().meta.migrated_from == (NOW, NOW + 1)
        with LmdbStore.open(made) as store:
            assert store.environment().meta.format == NOW + 2
        monkeypatch.undo()
        (saved,) = made.glob("before-format-*.backup")
        restore(saved, made.parent / "old")
        assert not any(key.startswith(b"Qo") for key, _ in rows(made.parent / "old"))

    def test_a_failing_step_leaves_the_old_format(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(tx: object) -> None:
            raise RuntimeError

        monkeypatch.setattr(migration, "STEPS", {NOW: lambda tx: tx.put(b"Qone", b"1"), NOW + 1: fail})
        for _ in range(2):
            with pytest.raises(RuntimeError):
                LmdbStore.open(made)
        monkeypatch.undo()
        assert not any(key == b"Qone" for key, _ in rows(made))

    def test_it_is_refused_beside_a_daemon_and_without_a_way(self, made: Path) -> None:
        with acquire_daemon_lock(made), pytest.raises(StoreInUseError):
            LmdbStore.open(made)
        with pytest.raises(Exception, match="no way leads"):
            LmdbStore.open(made)
