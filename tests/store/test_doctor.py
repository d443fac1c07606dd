"""Doctor finds what is wrong, says what to do, and is not brought down by what it reads."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.errors import StoreError
from chronex.model import Event
from chronex.model.reasons import free_text
from chronex.storage import keys
from chronex.storage.journal import append
from chronex.storage.ports import Row, Transaction
from chronex.storage.records import Reading, Records, index_keys, key_of
from chronex_store import LmdbStore
from chronex_store.doctor import check_pages, check_store, examine, repair
from tests.storage.samples import AT, JOB, KEYED, OCCURRENCE, of_version

from .conftest import OpenLmdb

Spoil = Callable[[Transaction], object]
# The bytes of a store, how many copies, and the seed of what is damaged in them: each copy with what was done to it.
Copies = Callable[[bytes, int, int], list[tuple[str, bytes]]]


def fill(store: LmdbStore) -> None:
    def write(tx: Transaction) -> None:
        records = Records(tx, AT)
        for record in KEYED:
            records.create(record)
        append(tx, Event(name="SchedulerInitializationStarted", at_ms=AT))

    store.update(write)


def findings(store: LmdbStore) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    check_store(store, lambda severity, code, message, advice: found.append((severity, code)))
    return found


@pytest.fixture
def filled(open_lmdb: OpenLmdb) -> LmdbStore:
    store = open_lmdb()
    fill(store)
    return store


def test_a_sound_store_is_sound(filled: LmdbStore) -> None:
    report = examine(filled.path)
    assert report.is_sound, report
    assert report.findings == ()
    assert report.figures["records"]["J"] == 1
    assert report.to_dict()["sound"] is True


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda tx: tx.put(key_of(JOB), b"nonsense"), "record"),
        (lambda tx: tx.put(key_of(OCCURRENCE), tx.get(key_of(JOB)) or b""), "record"),
        (lambda tx: tx.put(b"?x", b"unknown kind"), "record"),
        (lambda tx: tx.delete(index_keys(key_of(JOB.progress), JOB.progress)[0]), "index"),
        (lambda tx: tx.put(keys.timed(keys.DUE, 1, key_of(JOB)), b""), "index"),
        (lambda tx: tx.put(keys.ACTIVE + keys.job_key("gone"), b""), "index"),
        (lambda tx: tx.put(keys.DUE, b""), "index"),
        (lambda tx: tx.put(index_keys(key_of(JOB.progress), JOB.progress)[0], b"x"), "index"),
    ],
    ids=["bytes", "moved", "unknown", "missing index", "old index", "orphan", "short index", "a value in an index"],
)
def test_every_kind_of_damage_is_found_and_repaired(filled: LmdbStore, spoil: Spoil, code: str) -> None:
    filled.update(spoil)
    assert ("error", code) in findings(filled)
    repair(filled)
    assert all(severity != "error" for severity, _ in findings(filled))


def test_a_record_of_a_newer_version_is_told_and_left_alone(filled: LmdbStore) -> None:
    key = key_of(JOB)
    newer = of_version(2, key, filled.view(lambda tx: tx.get(key)) or b"")
    filled.update(lambda tx: tx.put(key, newer))
    assert ("error", "newer") in findings(filled)
    assert repair(filled).quarantined == 0
    assert filled.view(lambda tx: tx.get(key)) == newer


def test_repair_counts_what_it_did(filled: LmdbStore) -> None:
    def spoil(tx: Transaction) -> None:
        tx.put(key_of(OCCURRENCE), b"")
        tx.delete(index_keys(key_of(JOB.progress), JOB.progress)[0])

    filled.update(spoil)
    assert repair(filled).to_dict() == {"quarantined": 1, "indexes_added": 1, "indexes_removed": 1}
    assert [key for key, _ in filled.view(lambda tx: Reading(tx).quarantined())] == [key_of(OCCURRENCE)]


def test_a_full_map_is_told(open_lmdb: OpenLmdb) -> None:
    store = open_lmdb(map_size=1 << 20)
    for number in range(15):
        store.update(lambda tx, n=number: tx.put(keys.event_key(n + 1), b"x" * 50_000))  # type: ignore[misc]
    assert ("warning", "space") in findings(store)


def test_a_refused_place_is_a_finding(tmp_path: Path, filled: LmdbStore) -> None:
    assert examine(tmp_path / "nothing").findings[0].code == "StoreRefusedError"
    filled.path.chmod(0o755)
    assert "chmod 700" in examine(filled.path).findings[0].message


@pytest.mark.parametrize("size", [0, 4096, 8192])
def test_a_file_that_was_begun_and_never_committed_to_is_no_damaged_store(tmp_path: Path, size: int) -> None:
    (tmp_path / "data.mdb").write_bytes(bytes(size))
    (tmp_path / "data.mdb").chmod(0o600)
    tmp_path.chmod(0o700)
    found = examine(tmp_path).findings
    assert [one.code for one in found] == ["StoreRefusedError"]
    assert "there is no store" in found[0].message


def damaged_copies(data: bytes, count: int, seed: int) -> list[tuple[str, bytes]]:
    """Flips, zeroed pages, cuts and swapped meta pages."""
    chance = random.Random(seed)
    pages = len(data) // 4096
    copies: list[tuple[str, bytes]] = [
        ("swapped metas", data[4096:8192] + data[:4096] + data[8192:]),
        ("no metas", b"\0" * 8192 + data[8192:]),
        ("cut in half", data[: len(data) // 2]),
        ("empty pages", data[:8192]),
    ]
    for number in range(count - len(copies)):
        copy = bytearray(data)
        if number % 3 == 0:
            page = chance.randrange(2, pages)
            copy[page * 4096 : page * 4096 + 4096] = b"\0" * 4096
            copies.append((f"zeroed page {page}", bytes(copy)))
        else:
            for _ in range(chance.choice((1, 1, 8))):
                at = chance.randrange(len(copy))
                copy[at] ^= chance.randrange(1, 256)
            copies.append((f"flipped {number}", bytes(copy)))
    return copies


def flipped_copies(data: bytes, count: int, seed: int) -> list[tuple[str, bytes]]:
    """Single bits, anywhere in the file."""
    chance = random.Random(seed)
    copies = []
    for _ in range(count):
        copy, at, bit = bytearray(data), chance.randrange(len(data)), chance.randrange(8)
        copy[at] ^= 1 << bit
        copies.append((f"bit {bit} of byte {at % 4096} of page {at // 4096}", bytes(copy)))
    return copies


def survive_damaged_pages(
    path: Path, store: LmdbStore, count: int, seed: int, damaged: Copies = damaged_copies
) -> None:
    """Each damaged copy is either reported, or every record that is read is right, also after further commits."""
    expected = store.view(lambda tx: tx.scan(b""))
    store.close()
    data = (store.path / "data.mdb").read_bytes()
    path.mkdir(mode=0o700)
    for name, copy in damaged(data, count, seed):
        (path / "data.mdb").write_bytes(copy)
        (path / "data.mdb").chmod(0o600)
        (path / "lock.mdb").unlink(missing_ok=True)
        outcome = read_damaged(path)
        assert outcome == expected or isinstance(outcome, str), name


def read_damaged(path: Path) -> list[Row] | str:
    """All rows, or what was said instead. Damage that is not in the pages is in a record, and found there."""
    found: list[str] = []
    try:
        with LmdbStore.open(path, create=False, verify=True) as store:
            check_store(store, lambda severity, code, message, advice: found.append(message))
            rows = store.view(lambda tx: tx.scan(b""))
            if found:
                return found[0]
            for number in range(3):  # pages that a damaged list of free ones names would be written over
                store.update(lambda tx, n=number: tx.put(b"Q%d" % n, b"q" * 3000))  # type: ignore[misc]
            after = [row for row in store.view(lambda tx: tx.scan(b"")) if row[1] != b"q" * 3000]
            return rows if rows == after else []
    except StoreError as error:
        return str(error)


def page_findings(data: Path) -> list[str]:
    found: list[str] = []
    check_pages(data, lambda severity, code, message, advice: found.append(code))
    return found


def fill_pages(open_lmdb: OpenLmdb) -> LmdbStore:
    store = open_lmdb()
    fill(store)

    def many(tx: Transaction) -> None:
        append(tx, *(Event(name=f"Event{number}", at_ms=AT, reason=free_text("r" * 200)) for number in range(200)))

    store.update(many)
    store.update(lambda tx: tx.delete(keys.event_key(50)))
    return store


def test_damaged_pages_are_reported_or_harmless(tmp_path: Path, open_lmdb: OpenLmdb) -> None:
    survive_damaged_pages(tmp_path / "damaged", fill_pages(open_lmdb), 14, seed=4)


def test_flipped_bits_are_reported_or_harmless(tmp_path: Path, open_lmdb: OpenLmdb) -> None:
    survive_damaged_pages(tmp_path / "flipped", fill_pages(open_lmdb), 40, 5, flipped_copies)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_many_flipped_bits_are_reported_or_harmless(tmp_path: Path, open_lmdb: OpenLmdb, seed: int) -> None:
    survive_damaged_pages(tmp_path / "flipped", fill_pages(open_lmdb), 1_000, seed, flipped_copies)


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_many_damaged_pages_are_reported_or_harmless(tmp_path: Path, open_lmdb: OpenLmdb, seed: int) -> None:
    survive_damaged_pages(tmp_path / "damaged", fill_pages(open_lmdb), 200, seed)


def test_a_crash_of_the_child_is_a_finding(
    tmp_path: Path, filled: LmdbStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chronex_store import doctor

    monkeypatch.setattr(doctor, "run_checks", die)
    report = examine(filled.path)
    assert not report.is_sound
    assert "SIGKILL" in report.findings[0].message
    assert "restore" in report.findings[0].advice


def die(path: str, connection: object, migrate: bool) -> None:
    import os

    os.kill(os.getpid(), 9)


def test_the_structure_of_a_text_file_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"text " * 5000)
    assert page_findings(tmp_path / "data.mdb") == ["page"]
