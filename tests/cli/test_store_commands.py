"""The commands print one sentence or one JSON value, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chronex.cli import store_commands as commands
from chronex.errors import (
    BackupError,
    ChronexError,
    ForeignStoreError,
    NotPossibleError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreInUseError,
    StoreOutcomeUnknownError,
    StorePermissionError,
    StoreRefusedError,
    UnknownJobError,
)
from chronex.storage.records import key_of
from chronex_store import LmdbStore
from chronex_store.daemon_lock import acquire_daemon_lock
from tests.storage.samples import JOB
from tests.store.test_doctor import fill

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store") as store:
        fill(store)
    return tmp_path / "store"


def test_doctor_on_a_sound_store(made: Path, capsys: Capture) -> None:
    assert commands.doctor(made) == 0
    assert "the store is sound" in capsys.readouterr().out
    assert commands.doctor(made, "json") == 0
    assert json.loads(capsys.readouterr().out)["sound"] is True


def test_doctor_repairs_on_request(made: Path, capsys: Capture) -> None:
    with LmdbStore.open(made) as store:
        store.update(lambda tx: tx.put(key_of(JOB), b"?"))
    assert commands.doctor(made) == 1
    assert "doctor --repair" in capsys.readouterr().out
    assert commands.doctor(made, repair=True) == 0
    assert "1 quarantined" in capsys.readouterr().out


def test_doctor_does_not_repair_what_only_a_backup_can(made: Path, capsys: Capture) -> None:
    data = made / "data.mdb"
    data.write_bytes(data.read_bytes()[:8192] + b"\0" * (data.stat().st_size - 8192))
    assert commands.doctor(made, repair=True) == 1
    assert "chronex restore" in capsys.readouterr().out


def test_doctor_without_a_store(tmp_path: Path, capsys: Capture) -> None:
    assert commands.doctor(tmp_path / "none\x1b[31m") == 2
    assert "\x1b" not in capsys.readouterr().out


def test_backup_and_restore(made: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "b.backup"
    assert commands.backup(made, file) == 0
    assert str(file) in capsys.readouterr().out
    assert commands.backup(made, file) == 2
    assert "never overwritten" in capsys.readouterr().err
    assert commands.restore(made, file) == 0
    assert "before-restore" in capsys.readouterr().out
    assert commands.restore(made, file, "json") == 0
    assert json.loads(capsys.readouterr().out)["records"] > 0
    assert commands.backup(made, tmp_path / "c.backup", "json") == 0
    assert json.loads(capsys.readouterr().out)["size"] > 0


def test_restore_over_a_daemon_has_its_own_exit_code(made: Path, tmp_path: Path, capsys: Capture) -> None:
    commands.backup(made, tmp_path / "b.backup")
    with acquire_daemon_lock(made):
        assert commands.restore(made, tmp_path / "b.backup") == 75
    assert "another daemon" in capsys.readouterr().err


def test_an_operating_system_error_is_one_sentence(
    made: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chronex_store import backup

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(backup, "backup", fail)
    assert commands.backup(made, made / "x") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_store_or_no_backup_is_bad_input_and_leaves_nothing_behind(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").write_text("not a store")
    for place in ("none", "file"):
        assert commands.backup(tmp_path / place, tmp_path / "b.backup") == 2
        assert commands.doctor(tmp_path / place) == 2
    assert commands.restore(tmp_path / "none", tmp_path / "file") == 2
    assert commands.restore(tmp_path / "none", tmp_path / "no such backup") == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_a_reader_that_has_gone_is_told_nothing(made: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(commands, "out", gone)
    with pytest.raises(BrokenPipeError):
        commands.doctor(made)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreError, 1), (StoreFullError, 1), (StoreDamagedError, 1), (StoreOutcomeUnknownError, 1),
        (StoreRefusedError, 2), (StorePermissionError, 2), (ForeignStoreError, 2), (BackupError, 2), (UnknownJobError, 2),
        (NotPossibleError, 1), (StoreInUseError, 75),
    ],
)  # fmt: skip
def test_a_store_that_fails_is_1_and_one_that_is_wrong_is_2(error: type[ChronexError], code: int) -> None:
    assert error.exit_code == code
