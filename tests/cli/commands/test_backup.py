"""backup and restore as they are typed: what is printed, and the exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from chronex.cli import main
from chronex.cli.commands.backup import run_backup
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
from chronex_store import LmdbStore
from chronex_store.daemon_lock import acquire_daemon_lock
from tests.cli.conftest import Chronex
from tests.cli.small_store import Capture
from tests.store.test_doctor import fill


@pytest.fixture
def made(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store") as store:
        fill(store)
    return tmp_path / "store"


def test_backup_and_restore(chronex: Chronex, made: Path, tmp_path: Path) -> None:
    file, store = str(tmp_path / "b.backup"), ("--store", str(made))
    done = chronex("backup", file, *store)
    assert (done.code, file in done.out) == (0, True)
    done = chronex("backup", file, *store)
    assert done.code == 2
    assert "never overwritten" in done.err
    done = chronex("restore", file, *store)
    assert done.code == 0
    assert "before-restore" in done.out
    assert json.loads(chronex("restore", file, *store, "--format", "json").out)["records"] > 0
    other = str(tmp_path / "c.backup")
    assert json.loads(chronex("backup", other, *store, "--format", "json").out)["size"] > 0


def test_restore_over_a_daemon_has_its_own_exit_code(chronex: Chronex, made: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.backup"
    assert run_backup(made, file) == 0
    with acquire_daemon_lock(made):
        done = chronex("restore", str(file), "--store", str(made))
    assert done.code == 75
    assert "another daemon" in done.err


def test_an_operating_system_error_is_one_sentence(
    made: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chronex_store import backup

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error", "x")

    monkeypatch.setattr(backup, "backup", fail)
    monkeypatch.setattr(sys, "argv", ["chronex", "backup", "x", "--store", str(made)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_store_or_no_backup_is_bad_input_and_leaves_nothing_behind(
    chronex: Chronex, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a store")
    for name in ("none", "file"):
        store = str(tmp_path / name)
        assert chronex("backup", str(tmp_path / "b.backup"), "--store", store).code == 2
        assert chronex("doctor", "--store", store).code == 2
    for name in ("file", "no such backup"):
        assert chronex("restore", str(tmp_path / name), "--store", str(tmp_path / "none")).code == 2
    told = chronex("restore", str(tmp_path / "file"), "--store", str(tmp_path / "none")).err
    file = tmp_path / "file"
    assert told == f"chronex: {file} is not a backup of Chronex; name a file that backup wrote; nothing was changed\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


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
