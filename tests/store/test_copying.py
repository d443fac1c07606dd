"""A store that is copied into a database and back is the same store."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.errors import StoreError, StoreInUseError, StoreRefusedError
from chronex.model.job import Job, Task
from chronex.model.states import AttemptState
from chronex.storage import journal, keys
from chronex.storage.ports import Row
from chronex_store import LmdbStore
from chronex_store.copying import copy_store
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.opening import OpenedStore, StoreLocation, open_location, read_location
from tests.verify.assertion import assert_verified

NOW = 1_800_000_000_000 // 60_000 * 60_000


def filled(path: Path, *, ends: bool = True) -> Path:
    """A store with a job, runs and a journal."""
    with LmdbStore.open(path) as store:
        apply_jobs(store, [Job(id="job", schedule="* * * * *", tasks=(Task(name="one", run=("true",)),))], NOW)
        engine = Engine(store, "node-1", 5)
        for minute in range(1, 6):
            now = NOW + minute * 60_000
            for order in engine.tick(now, NOW).orders:
                if isinstance(order, Launch) and ends:
                    store.update(engine.ended(order.attempt, AttemptEnd(AttemptState.SUCCESS, exit_code=0), now + 1))
    return path


def rows(store: OpenedStore) -> list[Row]:
    found = store.view(lambda tx: tx.scan(b"", limit=100_000))
    return [row for row in found if row[0][:1] != keys.META]


def content(place: StoreLocation) -> tuple[list[Row], int]:
    with open_location(place, create=False) as store:
        return rows(store), store.view(journal.head)


def test_there_and_back(tmp_path: Path, postgres_url: str) -> None:
    source = filled(tmp_path / "store")
    database, back = read_location(postgres_url), tmp_path / "back"
    report = copy_store(source, database)
    assert content(database) == content(source)
    assert report.rows >= len(content(source)[0])
    copy_store(database, back)
    assert content(back) == content(source)
    with open_location(database) as store:
        assert_verified(store, has_daemon=False)
        engine = Engine(store, "node-2", 5)
        assert engine.tick(NOW + 6 * 60_000, NOW).orders, "the copy goes on where the store was"
        numbers = [number for number, _ in store.view(journal.tail)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path, postgres_url: str) -> None:
    source = filled(tmp_path / "store")
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreRefusedError, match="is there already"):
        copy_store(source, tmp_path / "there")
    copy_store(source, read_location(postgres_url))
    with pytest.raises(StoreRefusedError, match="has a store already"):
        copy_store(source, read_location(postgres_url))


def test_what_runs_must_have_ended(tmp_path: Path) -> None:
    source = filled(tmp_path / "store", ends=False)
    with pytest.raises(StoreError, match=r"1 command of .* may run still"):
        copy_store(source, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_no_daemon_may_work_on_it(tmp_path: Path) -> None:
    source = filled(tmp_path / "store")
    with acquire_daemon_lock(source), pytest.raises(StoreInUseError, match="stop it first"):
        copy_store(source, tmp_path / "copy")


def test_a_copy_that_was_interrupted_is_no_store(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = filled(tmp_path / "store")
    monkeypatch.setattr("chronex_store.copying._take_place", lambda *_places: None)
    copy_store(source, tmp_path / "copy")
    copy_store(source, read_location(postgres_url))
    assert not (tmp_path / "copy").exists()
    with pytest.raises(StoreRefusedError, match="there is no store"):
        open_location(read_location(postgres_url), create=False)
    monkeypatch.undo()
    copy_store(source, read_location(postgres_url))
    assert content(read_location(postgres_url)) == content(source)
