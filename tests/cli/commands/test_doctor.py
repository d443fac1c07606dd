"""doctor prints one sentence or one JSON value, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chronex.cli.commands.doctor import run_doctor
from chronex.storage.records import key_of
from chronex_store import LmdbStore
from tests.cli.small_store import Capture
from tests.storage.samples import JOB
from tests.store.test_doctor import fill


@pytest.fixture
def made(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store") as store:
        fill(store)
    return tmp_path / "store"


def test_doctor_on_a_sound_store(made: Path, capsys: Capture) -> None:
    assert run_doctor(made) == 0
    assert "the store is sound" in capsys.readouterr().out
    assert run_doctor(made, "json") == 0
    assert json.loads(capsys.readouterr().out)["sound"] is True


def test_doctor_repairs_on_request(made: Path, capsys: Capture) -> None:
    with LmdbStore.open(made) as store:
        store.update(lambda tx: tx.put(key_of(JOB), b"?"))
    assert run_doctor(made) == 1
    assert "doctor --repair" in capsys.readouterr().out
    assert run_doctor(made, repair=True) == 0
    assert "1 quarantined" in capsys.readouterr().out


def test_doctor_does_not_repair_what_only_a_backup_can(made: Path, capsys: Capture) -> None:
    data = made / "data.mdb"
    data.write_bytes(data.read_bytes()[:8192] + b"\0" * (data.stat().st_size - 8192))
    assert run_doctor(made, repair=True) == 1
    assert "chronex restore" in capsys.readouterr().out


def test_doctor_without_a_store(tmp_path: Path, capsys: Capture) -> None:
    assert run_doctor(tmp_path / "none\x1b[31m") == 2
    assert "\x1b" not in capsys.readouterr().out


def test_a_reader_that_has_gone_gets_no_message(made: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("chronex.cli.output.out", gone)
    with pytest.raises(BrokenPipeError):
        run_doctor(made)
    assert capsys.readouterr().err == ""
