"""What callers of one commit see when its leader is interrupted or the batch breaks."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from chronex.errors import StoreError, StoreOutcomeUnknownError
from chronex.storage.ports import Transaction
from chronex_store import LmdbStore, commits
from chronex_store import lmdb_store as module
from chronex_store.commits import hold_job_control, release_job_control, run_batch
from tests.kit.waits import DEADLINE_S, until
from tests.run.conftest import forbid_threads


def increment(tx: Transaction) -> None:
    tx.put(b"Qn", b"%d" % (int(tx.get(b"Qn") or b"0") + 1))


def count(store: LmdbStore) -> int:
    return int(store.view(lambda tx: tx.get(b"Qn")) or b"0")


class Crowd:
    """Threads whose updates go into the same commit as the caller's."""

    def __init__(self, store: LmdbStore, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = store
        self.outcomes: list[str] = []
        self.threads = [threading.Thread(target=self.update) for _ in range(size)]
        begin = module._begin_on_same_file
        is_first = True

        def begin_when_all_are_there(env: Any) -> Any:
            nonlocal is_first
            if is_first:
                is_first = False
                for thread in self.threads:
                    thread.start()
                until(lambda: len(store._group._queue) > size, "the updates of the others")
            return begin(env)

        monkeypatch.setattr(module, "_begin_on_same_file", begin_when_all_are_there)

    def update(self) -> None:
        try:
            self.store.update(increment)
            self.outcomes.append("ok")
        except StoreError as error:
            self.outcomes.append(type(error).__name__)

    def join(self) -> list[str]:
        for thread in self.threads:
            thread.join(DEADLINE_S)
        return self.outcomes


def test_a_leader_interrupted_in_its_function_hands_the_others_on(
    lmdb_store: LmdbStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(lmdb_store, 3, monkeypatch)

    def interrupted(tx: Transaction) -> None:
        increment(tx)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lmdb_store.update(interrupted)
    assert crowd.join() == ["ok"] * 3
    assert count(lmdb_store) == 3


def test_a_leader_interrupted_in_the_commit_never_lets_it_run_twice(
    lmdb_store: LmdbStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(lmdb_store, 3, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("chronex_store.lmdb_store.run_batch", interrupting_commit(patch))
        with pytest.raises(KeyboardInterrupt):
            lmdb_store.update(increment)
    assert crowd.join() == [StoreOutcomeUnknownError.__name__] * 3
    assert count(lmdb_store) == 4


def interrupting_commit(patch: pytest.MonkeyPatch) -> Any:
    run = run_batch

    def run_then_interrupt(txn: Any, batch: Any, keep_reserve: bool) -> bool:
        wrote = run(txn, batch, keep_reserve)
        patch.setattr(module, "_try_commit", interrupted_commit(module._try_commit))
        return wrote

    return run_then_interrupt


def interrupted_commit(real: Any) -> Any:
    class Interrupted:
        def __init__(self, txn: Any) -> None:
            self.txn = txn

        def commit(self) -> None:
            self.txn.commit()
            raise KeyboardInterrupt

    return lambda txn, batch: real(Interrupted(txn), batch)


def test_an_update_whose_taking_back_fails_leaves_its_neighbours_alone(
    lmdb_store: LmdbStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lmdb

    from chronex_store.transaction import LmdbTransaction

    crowd = Crowd(lmdb_store, 3, monkeypatch)

    def broken(_: LmdbTransaction) -> None:
        raise lmdb.Error("cannot")

    def fail(tx: Transaction) -> None:
        increment(tx)
        raise ValueError

    monkeypatch.setattr(LmdbTransaction, "roll_back", broken)
    with pytest.raises((ValueError, StoreError)):
        lmdb_store.update(fail)
    assert crowd.join() == ["ok"] * 3
    assert count(lmdb_store) == 3


def test_job_control_signals_wait_in_the_main_thread() -> None:
    import signal

    assert hold_job_control()
    try:
        assert signal.SIGTSTP in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        assert not hold_job_control(), "a second hold must not be released by the first"
    finally:
        release_job_control()
    assert signal.SIGTSTP not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_nobody_who_is_interrupted_keeps_the_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while it waits for company: the next update must find a leader, and closing must end."""

    def commit(take: commits.Take) -> None:
        for update in take():
            update.result = update.fn(None)
            update.done = True

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    queue = commits.GroupCommit(commit)
    queue._last_size = 8  # the last commit served many, so this one waits for them
    monkeypatch.setattr(time, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        queue.run(commits.Update(lambda _tx: 1, False))
    monkeypatch.undo()
    assert not queue._has_leader
    assert queue.run(commits.Update(lambda _tx: 2, False)) == 2
    queue.close()


def test_a_sleeper_whom_an_interrupt_struck_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in `chronex events --follow` between the count of a sleeper and its sleep: the program hung for ever."""
    monkeypatch.setattr(commits, "SLEEPERS_LEAVE_WITHIN_S", 0.01)
    store = LmdbStore.open(tmp_path / "store")
    store._commits._sleepers += 1  # as the interrupt leaves it
    closing = threading.Thread(target=store.close, daemon=True)
    closing.start()
    closing.join(DEADLINE_S)
    assert not closing.is_alive()


def test_where_no_thread_can_be_started_whoever_asks_commits_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that was first written to in such a moment took nothing any more, and could not be closed."""

    async def several(store: LmdbStore) -> None:
        await asyncio.wait_for(asyncio.gather(*(store.update_async(increment) for _ in range(3))), DEADLINE_S)

    store = LmdbStore.open(tmp_path / "store")
    with monkeypatch.context() as patched:
        forbid_threads(patched)
        asyncio.run(several(store))
    asyncio.run(several(store))
    store.update(increment)
    assert count(store) == 7
    store.close()
