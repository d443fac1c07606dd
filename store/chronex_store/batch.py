"""One durable commit for a batch of updates, each all or nothing."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import lmdb

from chronex.errors import StoreError
from chronex_store.group import Update, fail_all
from chronex_store.transaction import LmdbTransaction

# A process stopped inside a write transaction blocks every other writer until it is continued.
_JOB_CONTROL = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


class BatchBrokenError(Exception):
    """LMDB gave the shared transaction up; each update must be tried alone."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


def run_batch(txn: Any, batch: list[Update], frugal: bool) -> bool:
    """Run every update on the shared transaction; True when any of them wrote. Raises BatchBrokenError."""
    wrote = False
    for update in batch:
        wrote |= _run_one(txn, update, frugal and not update.essential)
    return wrote


def _run_one(txn: Any, update: Update, frugal: bool) -> bool:
    tx = LmdbTransaction(txn, frugal)
    try:
        update.result = update.fn(tx)
        update.error = None
    except KeyboardInterrupt:
        raise  # meant for the leader's thread, not for the update that happened to run
    except BaseException as error:
        update.error = error
        _take_back(tx)
    finally:
        tx.end()
    if tx.broken is not None:
        raise BatchBrokenError(tx.broken)
    return bool(tx.undo)


def _take_back(tx: LmdbTransaction) -> None:
    if tx.broken is None:
        try:
            tx.roll_back()
        except lmdb.Error as error:
            raise BatchBrokenError(StoreError(f"an update could not be taken back: {error}")) from error


def finish(batch: list[Update]) -> None:
    for update in batch:
        update.done = True


def fail_written(batch: list[Update], error: Exception) -> None:
    """The commit failed: whoever has no error of its own gets this one."""
    for update in batch:
        if update.error is not None:
            update.done = True
    fail_all(batch, error)


def has_terminal() -> bool:
    """Whether anybody could press Ctrl-Z on this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError:
        return False
    return True


def hold_job_control() -> bool:
    """Let Ctrl-Z wait until `release_job_control`. Only the main thread's mask matters to a terminal tool."""
    if threading.get_ident() != threading.main_thread().ident:
        return False
    return not signal.pthread_sigmask(signal.SIG_BLOCK, _JOB_CONTROL) & _JOB_CONTROL


def release_job_control() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _JOB_CONTROL)
