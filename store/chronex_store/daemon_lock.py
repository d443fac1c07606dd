"""One daemon per store: a flock on `daemon.lock`, which the kernel drops however the holder dies.

Engines inside programs share a flock on `engines.lock`: several may work on one store, but only where each can see
whether the processes of the others live.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import msgspec

from chronex.errors import StoreFullError, StoreInUseError, StoreNamespaceError
from chronex_store.directory_checks import DAEMON_LOCK_FILE, ENGINES_LOCK_FILE, check_file, open_private

# An engine that is the first one writes its name, which takes no time that could be seen.
_TRIES = 500
_PAUSE_S = 0.01

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
        _name_holder(descriptor)
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


def _name_holder(descriptor: int) -> None:
    """Written before the rest is cut off: where the disk is full, it is still to be seen that the last one died."""
    name = msgspec.json.encode(this_process())
    try:
        os.pwrite(descriptor, name, 0)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise StoreFullError("the disk is full, so the store cannot be opened; free some space") from error
    os.ftruncate(descriptor, len(name))


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


class EngineLock:
    """Shared with the other engines of this boot and process namespace, until `release` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def acquire_engine_lock(directory: Path) -> EngineLock:
    """StoreNamespaceError where a scheduler on the store in `directory` lives in another container or boot."""
    refuse_other_namespace(directory)
    path = directory / ENGINES_LOCK_FILE
    check_file(path)
    descriptor = open_private(path, os.O_RDWR)
    try:
        _share(descriptor)
        if not _is_here(lock_holder(directory, ENGINES_LOCK_FILE)):
            raise StoreNamespaceError
    except BaseException:
        os.close(descriptor)
        raise
    return EngineLock(descriptor)


def _share(descriptor: int) -> None:
    """Take the lock together with others; whoever finds nobody writes where it lives."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _name_holder(descriptor)
            # The kernel may let another one in between the two locks: the caller reads who is named in the end.
        except BlockingIOError:
            pass
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return
    raise StoreInUseError("the store is being opened by another process that does not go on; look at it, then retry")


def _is_here(holder: LockHolder | None) -> bool:
    here = this_process()
    return holder is None or (holder.boot_id, holder.namespace) == (here.boot_id, here.namespace)


def lock_holder(directory: Path, name: str = DAEMON_LOCK_FILE) -> LockHolder | None:
    """The holder that the lock file names. The text stays after a kill, so `is_daemon_alive` asks the kernel."""
    try:
        return msgspec.json.decode((directory / name).read_bytes(), type=LockHolder)
    except (OSError, msgspec.MsgspecError):
        return None


def is_daemon_alive(directory: Path) -> bool:
    with _probe(directory / DAEMON_LOCK_FILE, fcntl.LOCK_SH) as is_held:
        return is_held


def refuse_other_namespace(directory: Path) -> None:
    """Refuse a store whose schedulers run in another container: LMDB, and they, tell live from dead by pid."""
    for name, kind in ((DAEMON_LOCK_FILE, fcntl.LOCK_SH), (ENGINES_LOCK_FILE, fcntl.LOCK_EX)):
        if not _is_here(lock_holder(directory, name)):
            with _probe(directory / name, kind) as is_held:
                if is_held:
                    raise StoreNamespaceError


@contextlib.contextmanager
def _probe(path: Path, kind: int) -> Iterator[bool]:
    """Whether another process holds the lock; the caller holds it meanwhile, as `kind` says, if it is free."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
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
