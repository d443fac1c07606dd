"""One daemon per store: a flock on `daemon.lock`, which the kernel drops however the holder dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from chronex.errors import StoreInUseError, StoreNamespaceError
from chronex_store.directory_checks import DAEMON_LOCK_FILE, check_file, open_private

# A look at whether a daemon runs holds the lock shared for microseconds; a start waits two seconds for looks at most.
_LOOK_TRIES = 200
_LOOK_PAUSE_S = 0.01


class LockHolder(msgspec.Struct, frozen=True):
    """The process that holds the lock. Boot and namespace tell containers apart; the lock file has it as JSON."""

    pid: int
    boot_id: str
    namespace: int


def this_process() -> LockHolder:
    return LockHolder(os.getpid(), _boot_id(), _pid_namespace())


class DaemonLock:
    """Held until `release` or the end of the process; children do not inherit it.

    `was_abandoned` says that the holder before did not release it: the machine or the daemon died.
    """

    def __init__(self, descriptor: int, was_abandoned: bool) -> None:
        self._descriptor = descriptor
        self.was_abandoned = was_abandoned

    def release(self) -> None:
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> DaemonLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def acquire_daemon_lock(directory: Path) -> DaemonLock:
    """The lock of the store in `directory`, or StoreInUseError naming its holder."""
    path = directory / DAEMON_LOCK_FILE
    check_file(path)
    descriptor = open_private(path, os.O_RDWR)
    try:
        _lock_exclusive(descriptor)
        was_abandoned = os.fstat(descriptor).st_size > 0
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, msgspec.json.encode(this_process()), 0)
    except BlockingIOError:
        os.close(descriptor)
        holder = lock_holder(directory)
        who = f" (process {holder.pid})" if holder else ""
        raise StoreInUseError(
            f"another daemon{who} holds the store {directory}; stop it first or choose another --store"
        ) from None
    except BaseException:
        os.close(descriptor)
        raise
    return DaemonLock(descriptor, was_abandoned)


def _lock_exclusive(descriptor: int) -> None:
    """BlockingIOError beside a daemon; those who only look whether there is one are waited for."""
    for _ in range(_LOOK_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # refused while a daemon holds the lock
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_LOOK_PAUSE_S)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_holder(directory: Path) -> LockHolder | None:
    """The holder that the lock file names. The text stays after a kill, so `is_daemon_alive` asks the kernel."""
    try:
        return msgspec.json.decode((directory / DAEMON_LOCK_FILE).read_bytes(), type=LockHolder)
    except (OSError, msgspec.MsgspecError):
        return None


def is_daemon_alive(directory: Path) -> bool:
    with _probe(directory) as is_held:
        return is_held


def refuse_other_namespace(directory: Path) -> None:
    """Refuse a store whose daemon runs in another container: LMDB tells live readers from dead ones by pid."""
    holder = lock_holder(directory)
    here = this_process()
    is_same = holder is None or (holder.boot_id, holder.namespace) == (here.boot_id, here.namespace)
    if not is_same and is_daemon_alive(directory):
        raise StoreNamespaceError


@contextlib.contextmanager
def _probe(directory: Path) -> Iterator[bool]:
    """Whether another process holds the lock; the caller holds a shared one meanwhile if it is free."""
    try:
        descriptor = os.open(directory / DAEMON_LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield False
    except BlockingIOError:
        yield True
    finally:
        os.close(descriptor)


def _boot_id() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _pid_namespace() -> int:
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino
    return 0
