"""The first pages are judged before LMDB maps the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.errors import ForeignStoreError, StoreDamagedError
from chronex_store import LmdbStore
from chronex_store.lmdb_environment import _META, PAGE, DataFileState, damaged_pages, data_file_state, write_snapshot


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with LmdbStore.open(tmp_path / "store") as store:
        for number in range(5):
            store.update(lambda tx, n=number: tx.put(b"Q%d" % n, b"x" * 5000))  # type: ignore[misc]
    return tmp_path / "store" / "data.mdb"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert data_file_state(tmp_path / "none") is DataFileState.MISSING


def test_a_store_is_whole_until_a_page_is_missing(data: Path) -> None:
    assert data_file_state(data) is DataFileState.WHOLE
    raw = data.read_bytes()
    data.write_bytes(raw[: -len(raw) // 2])
    assert data_file_state(data) is DataFileState.SHORT
    with pytest.raises(StoreDamagedError, match="restore"):
        LmdbStore.open(data.parent)


def test_a_short_file_with_every_page_in_use_is_opened(data: Path) -> None:
    with LmdbStore.open(data.parent) as store:
        store.update(lambda tx: [tx.delete(b"Q%d" % n) for n in range(5)])
        for number in range(4):
            store.update(lambda tx, n=number: tx.put(b"Qs", b"%d" % n))  # type: ignore[misc]
    raw = data.read_bytes()
    data.write_bytes(raw[: -PAGE // 2])
    assert data_file_state(data) is DataFileState.SHORT
    with LmdbStore.open(data.parent) as store:
        assert store.view(lambda tx: tx.get(b"Qs")) == b"3"


@pytest.mark.parametrize("raw", [b"", b"\0" * 100, b"\0" * PAGE, b"\0" * 3 * PAGE])
def test_nothing_but_zeros_was_never_committed_to(data: Path, raw: bytes) -> None:
    data.write_bytes(raw)
    assert data_file_state(data) is DataFileState.UNCOMMITTED
    LmdbStore.open(data.parent).close()
    assert data_file_state(data) is DataFileState.WHOLE


@pytest.mark.parametrize("raw", [b"text", b"text" * PAGE, b"\0" * PAGE + b"text" * PAGE])
def test_other_bytes_are_not_ours_to_overwrite(data: Path, raw: bytes) -> None:
    data.write_bytes(raw)
    assert data_file_state(data) is DataFileState.FOREIGN


def test_one_lost_meta_page_is_not_guessed_at(data: Path) -> None:
    raw = data.read_bytes()
    data.write_bytes(raw[:PAGE] + b"\0" * PAGE + raw[2 * PAGE :])
    assert data_file_state(data) is DataFileState.FOREIGN


@pytest.mark.parametrize("lost", [1, 2, 3], ids=lambda count: f"{count} pages")
def test_a_store_whose_first_pages_are_zeros_is_refused_and_left_as_it_is(data: Path, lost: int) -> None:
    raw = b"\0" * lost * PAGE + data.read_bytes()[lost * PAGE :]
    data.write_bytes(raw)
    with pytest.raises(ForeignStoreError, match="restore a backup"):
        LmdbStore.open(data.parent)
    assert data.read_bytes() == raw


def test_a_file_of_zeros_that_is_longer_than_a_first_commit_was_a_store(data: Path) -> None:
    data.write_bytes(b"\0" * 5 * PAGE)
    with pytest.raises(ForeignStoreError):
        LmdbStore.open(data.parent)


@pytest.mark.parametrize("records", [1, 50])
def test_a_restored_store_without_its_newer_meta_page_is_refused(tmp_path: Path, records: int) -> None:
    """A compact copy has its one commit on the second page, and the first one says that there is none."""
    with LmdbStore.open(tmp_path / "store") as store:
        for number in range(records):
            store.update(lambda tx, n=number: tx.put(b"Q%d" % n, b"x" * 100))  # type: ignore[misc]
        write_snapshot(store.environment(), tmp_path / "copy")
    data = tmp_path / "store" / "data.mdb"
    raw = bytearray((tmp_path / "copy").read_bytes())
    raw[PAGE : 2 * PAGE] = bytes(PAGE)
    data.write_bytes(raw)
    assert data_file_state(data) is DataFileState.FOREIGN


def test_a_first_commit_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    LmdbStore.open(tmp_path / "store").close()
    data = tmp_path / "store" / "data.mdb"
    raw = data.read_bytes()
    data.write_bytes(bytes(2 * PAGE) + raw[2 * PAGE :])
    assert data_file_state(data) is DataFileState.UNCOMMITTED


def changed_number(data: Path, page: int, bit: int) -> None:
    """A bit of the number of a commit, which is the last field of a meta page."""
    raw = bytearray(data.read_bytes())
    raw[page * PAGE + _META.size - 8 + bit // 8] ^= 1 << bit % 8
    data.write_bytes(raw)


@pytest.mark.parametrize("page", [0, 1])
def test_a_changed_number_of_a_commit_is_found(data: Path, page: int) -> None:
    """LMDB would take the older state for the newer. A bit that makes 5 and 6 of 7 and 6 is the one that is not found."""
    assert damaged_pages(data) == []
    raw = data.read_bytes()
    for bit in (bit for bit in range(64) if bit != 1):
        changed_number(data, page, bit)
        assert damaged_pages(data) != [], bit
        data.write_bytes(raw)


def test_a_new_store_and_a_snapshot_have_meta_pages_that_follow_each_other(data: Path, tmp_path: Path) -> None:
    LmdbStore.open(tmp_path / "new").close()
    assert damaged_pages(tmp_path / "new" / "data.mdb") == []
    with LmdbStore.open(data.parent, create=False) as store:
        write_snapshot(store.environment(), tmp_path / "copy")
    assert damaged_pages(tmp_path / "copy") == []
