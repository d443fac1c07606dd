"""Kill at every write system call, and let every one fail: what was acknowledged stays, nothing is half there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chronex_store import LmdbStore

from .processes import assert_sound, command, needs_strace, run_worker, traced, triples

UPDATES = 4
WRITE_CALLS = ["pwrite64", "writev", "pwritev", "fdatasync", "fallocate"]
KILLED = {-9, 137}


def kill_at(path: Path, call: str, number: int) -> bool:
    """Run until the Nth `call`, then look; True when the run came to its end without being killed."""
    code, said = run_worker(traced(command("commit", path, UPDATES), f"{call}:signal=KILL:when={number}"))
    acknowledged = {int(line) for line in said if line.isdigit()}
    if (path / "data.mdb").exists() and (path / "data.mdb").stat().st_size:
        # Opening is all the recovery there is; it makes a store that died while it was made.
        LmdbStore.open(path).close()
        assert_sound(path)
        kept = triples(path)
        assert acknowledged <= kept <= acknowledged | {len(acknowledged)}
        with LmdbStore.open(path) as store:
            store.update(lambda tx: tx.put(b"Qafter", b""))
    else:
        assert not acknowledged
    assert code in KILLED or said[-1] == "done"
    return code == 0


@needs_strace
@pytest.mark.parametrize(("call", "numbers"), [("pwrite64", (1, 2, 3, 6)), ("writev", (1, 2)), ("fdatasync", (1, 3))])
def test_a_kill_at_a_write_call_loses_nothing_acknowledged(
    tmp_path: Path, call: str, numbers: tuple[int, ...]
) -> None:
    for number in numbers:
        assert not kill_at(tmp_path / str(number), call, number)


@needs_strace
@pytest.mark.torture
@pytest.mark.parametrize("call", WRITE_CALLS)
def test_a_kill_at_every_write_call_loses_nothing_acknowledged(tmp_path: Path, call: str) -> None:
    number = 1
    while not kill_at(tmp_path / str(number), call, number):
        number += 1
    assert number > 1 or call == "pwritev"


@needs_strace
def test_a_kill_during_the_recovery_is_recovered_from(tmp_path: Path) -> None:
    path = tmp_path / "store"
    acknowledged: set[int] = set()
    for number in (8, 3, 2, 4):
        _, said = run_worker(traced(command("commit", path, UPDATES), f"pwrite64:signal=KILL:when={number}"))
        acknowledged |= {int(line) for line in said if line.isdigit()}
    assert acknowledged <= triples(path)
    assert_sound(path)


def fail_at(path: Path, call: str, error: str, number: int) -> bool:
    """Let the Nth `call` fail; True when the run never came that far."""
    code, said = run_worker(
        traced(command("commit_with_faults", path, UPDATES), f"{call}:error={error}:when={number}")
    )
    if said and said[0].startswith("error"):
        assert code == 3, said  # refused at open, in one sentence
        return False
    assert code == 0, said
    assert said[-1] == "done"
    for update in range(UPDATES):
        outcomes = [line.split()[1:] for line in said if line.startswith(f"{update} ")]
        assert outcomes[-1] == ["ok"], said
        assert ["full", "True"] not in outcomes, "a full disk means that nothing was written"
    assert triples(path) == set(range(UPDATES))
    assert_sound(path)
    return len(said) == UPDATES + 1


@needs_strace
@pytest.mark.parametrize(
    ("call", "error", "number"),
    [
        ("pwrite64", "ENOSPC", 2),
        ("pwrite64", "ENOSPC", 5),
        ("writev", "ENOSPC", 1),
        ("writev", "EIO", 2),
        ("pwrite64", "EIO", 4),
        ("pwrite64", "EIO", 6),
        ("fdatasync", "EIO", 2),
        ("fallocate", "ENOSPC", 1),
    ],
)
def test_a_failing_call_is_a_typed_error_and_the_store_goes_on(
    tmp_path: Path, call: str, error: str, number: int
) -> None:
    assert not fail_at(tmp_path / "store", call, error, number)


@needs_strace
@pytest.mark.torture
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize("call", WRITE_CALLS)
def test_every_failing_call_is_a_typed_error(tmp_path: Path, call: str, error: str) -> None:
    number = 1
    while not fail_at(tmp_path / "store", call, error, number):
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        number += 1
    assert number > 1 or call == "pwritev"
