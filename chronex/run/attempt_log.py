"""The output of an attempt: read from its pipe, without secrets, into a bounded log file; and reading such logs."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import stat
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct

from chronex.errors import LogDirectoryError
from chronex.run.process import DescriptorWatcher, watcher_of

REDACTED = b"[redacted]"


class Redactor:
    """Every byte that belongs to an occurrence of a secret is replaced, also where occurrences overlap.

    Bytes that may be the beginning of a secret are held back until the next bytes, or `finish`, decide.
    That is at most the length of the longest secret, minus one.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        wanted = {secret for value in secrets for secret in (value, value.strip()) if secret}
        self._secrets = tuple(sorted(wanted, key=len, reverse=True))
        self._held = b""
        # So many of the held bytes belong to a secret whose mark has been written already.
        self._covered = 0

    def feed(self, chunk: bytes) -> bytes:
        """What can be shown by now."""
        data = self._held + chunk
        return self._emit(data, self._first_open_start(data))

    def finish(self) -> bytes:
        """What was held back: no more bytes will come."""
        return self._emit(self._held, len(self._held))

    def _emit(self, data: bytes, end: int) -> bytes:
        shown: list[bytes] = []
        position, marked = 0, self._covered
        self._covered = 0
        for start, stop in self._covers(data, marked):
            goes_on = start == 0 and marked > 0
            if start >= end and not goes_on:
                break
            shown.append(data[position:start])
            if not goes_on:
                shown.append(REDACTED)
            position = min(stop, end)
            self._covered = max(0, stop - end)
        shown.append(data[position:end])
        self._held = data[end:]
        return b"".join(shown)

    def _covers(self, data: bytes, marked: int) -> list[tuple[int, int]]:
        """The stretches of `data` that belong to secrets, merged and in order."""
        found = [(0, marked)] if marked else []
        for secret in self._secrets:
            start = data.find(secret)
            while start >= 0:
                found.append((start, start + len(secret)))
                start = data.find(secret, start + 1)
        found.sort()
        merged: list[tuple[int, int]] = []
        for start, stop in found:
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged

    def _first_open_start(self, data: bytes) -> int:
        """Where the longest end of `data` begins that may still grow into a secret."""
        first = len(data)
        for secret in self._secrets:
            start = data.find(secret[:1], max(0, len(data) - len(secret) + 1))
            while 0 <= start < first:
                if secret.startswith(data[start:]):
                    first = start
                start = data.find(secret[:1], start + 1)
        return first


DEFAULT_LIMIT = 10 * 1024 * 1024
SEAM = b"\n--- chronex: newest output above, oldest kept output below ---\n"
_ATTEMPT_ID = re.compile(r"attempt_[0-9a-f-]{36}", re.ASCII)
# Beside the log of an attempt lies what it hands over to others, until it has ended.
_LOG_NAME = re.compile(r"attempt_[0-9a-f-]{36}(?:(?:\.[2-9])?\.log|\.values)", re.ASCII)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a planted FIFO would wait for its other end.
_REOPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class LogSummary(Struct, frozen=True):
    """`name` is empty where nothing was written; `error` says why output could not be kept."""

    name: str = ""
    size: int = 0
    dropped: int = 0
    error: str = ""


class LogDirectory:
    """A held directory in which every name is made from an attempt's id."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._absolute = os.path.abspath(path)
        try:
            _make_private(path)
            self._descriptor = self._opened()
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise LogDirectoryError(f"{path} cannot hold logs: {why}; move it away, and it is made") from problem

    def _opened(self) -> int:
        """A descriptor of what is there now; LogDirectoryError where others may write or read in it."""
        descriptor = os.open(self._absolute, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_RDONLY)
        found = os.fstat(descriptor)
        if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return descriptor
        os.close(descriptor)
        if found.st_uid != os.geteuid():
            raise LogDirectoryError(f"{self.path} belongs to another user; choose a directory of your own")
        raise LogDirectoryError(f"{self.path} is open to other users; run: chmod 700 {self.path}")

    def _held(self, *, makes: bool = False) -> int:
        """The directory, wherever it was moved to. Where it was removed: the one that took its place, or is made now.

        Else no output could be kept until the next start. A store that is gone as a whole is not made again.
        """
        if os.fstat(self._descriptor).st_nlink == 0:
            if makes:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self._absolute, 0o700)
            with contextlib.suppress(FileNotFoundError):
                opened = self._opened()
                os.dup2(opened, self._descriptor, inheritable=False)  # a thread may be about to use that number
                os.close(opened)
        return self._descriptor

    def create(self, attempt_id: str) -> tuple[str, int]:
        """A new private file for the attempt, and its name. What lies in its place is left alone and not followed."""
        if not _ATTEMPT_ID.fullmatch(attempt_id):
            raise LogDirectoryError(f"{attempt_id[:60]!r} is not the id of an attempt")
        for number in range(1, 10):
            name = f"{attempt_id}.log" if number == 1 else f"{attempt_id}.{number}.log"
            try:
                descriptor = os.open(name, _CREATE, 0o600, dir_fd=self._held(makes=True))
            except FileExistsError:
                continue
            if os.fstat(descriptor).st_mode & 0o777 != 0o600:  # the umask took the owner's bits away
                os.fchmod(descriptor, 0o600)
            return name, descriptor
        raise LogDirectoryError(f"every name for the log of {attempt_id} is taken")

    def path_of(self, name: str) -> str:
        """For a program that is to make the file."""
        return f"{self._absolute}/{name}"

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of an existing log; LogDirectoryError where that is not one regular file of ours."""
        descriptor = self.open_if_there(name, flags)
        if descriptor is None:
            raise LogDirectoryError(f"the log {name} cannot be opened: {os.strerror(errno.ENOENT)}")
        return descriptor

    def open_if_there(self, name: str, flags: int = os.O_RDONLY) -> int | None:
        """The same; None where there is no such file."""
        if not _LOG_NAME.fullmatch(name):
            raise LogDirectoryError(f"{name[:60]!r} is not the name of a log")
        try:
            descriptor = os.open(name, flags | _REOPEN, dir_fd=self._held())
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise LogDirectoryError(f"the log {name} cannot be opened: {problem.strerror}") from problem
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid():
            return descriptor
        os.close(descriptor)
        raise LogDirectoryError(f"the log {name} is not a plain file of its own; remove it")

    def remove(self, name: str) -> bool:
        """Delete a log; False where there was none. A link is removed, never what it points to."""
        if not _LOG_NAME.fullmatch(name):
            raise LogDirectoryError(f"{name[:60]!r} is not the name of a log")
        try:
            os.unlink(name, dir_fd=self._held())
        except FileNotFoundError:
            return False
        return True

    def untouched_since(self, before_s: float, most: int) -> list[str]:
        """Logs that were not written to since `before_s`, a few of them; other files are not ours to speak of."""
        found: list[str] = []
        with os.scandir(self._held()) as entries:
            for entry in entries:
                if len(found) >= most:
                    break
                if _LOG_NAME.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < before_s:
                    found.append(entry.name)
        return found

    def close(self) -> None:
        """Let go of the directory. Idempotent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class BoundedLog:
    """Keeps the first and the last half of `limit` bytes. The file appears with the first byte.

    Nothing here raises for the sake of the disk: an attempt must not fail because its output cannot be kept.
    """

    __slots__ = ("_attempt_id", "_descriptor", "_directory", "_head", "_lost", "_ring", "_seen", "error", "name")

    def __init__(self, directory: LogDirectory, attempt_id: str, limit: int = DEFAULT_LIMIT) -> None:
        self._directory = directory
        self._attempt_id = attempt_id
        self._head = limit // 2
        self._ring = limit - self._head
        self._seen = 0
        self._lost = 0
        self._descriptor = -1
        self.name = ""
        self.error = ""

    @classmethod
    def resume(cls, directory: LogDirectory, name: str, limit: int = DEFAULT_LIMIT) -> BoundedLog:
        """Go on with the log of an attempt whose daemon died; bytes dropped before are no longer known."""
        log = cls(directory, name.partition(".")[0], limit)
        log._descriptor = directory.open(name, os.O_RDWR)
        log.name = name
        size = os.fstat(log._descriptor).st_size
        log._seen = min(size, limit)
        if size > limit:
            ring = os.pread(log._descriptor, log._ring + len(SEAM), log._head)
            log._seen = log._head + log._ring + max(0, ring.find(SEAM))
        return log

    def write(self, data: bytes) -> None:
        """Keep what the limit lets be kept."""
        if self.error:
            self._lost += len(data)
            return
        try:
            if self._descriptor < 0:
                self.name, self._descriptor = self._directory.create(self._attempt_id)
            self._write(data)
        except (OSError, LogDirectoryError) as problem:
            self._lost += len(data)
            self.error = f"output could not be kept: {getattr(problem, 'strerror', None) or problem}"

    def _write(self, data: bytes) -> None:
        if self._seen < self._head:
            free = self._head - self._seen
            _write_all(self._descriptor, data[:free], self._seen)
            self._seen += min(free, len(data))
            data = data[free:]
        while data:
            position = (self._seen - self._head) % self._ring
            piece = data[: self._ring - position]
            wraps = self._seen + len(piece) > self._head + self._ring
            _write_all(self._descriptor, piece + SEAM if wraps else piece, self._head + position)
            self._seen += len(piece)
            data = data[len(piece) :]

    @property
    def must_be_put_in_order(self) -> bool:
        """`finish` will rewrite the tail: some megabytes of work, better done off the event loop."""
        return self._seen > self._head + self._ring

    def finish(self) -> LogSummary:
        """Put the tail in order behind a mark, and close. Call it once."""
        if self._descriptor < 0:
            return LogSummary(dropped=self._lost, error=self.error)
        size, dropped = 0, 0
        try:
            if self.must_be_put_in_order:
                dropped = self._put_in_order()
            size = os.fstat(self._descriptor).st_size if dropped or self.error else self._seen
        except OSError as problem:
            self.error = self.error or f"the log could not be put in order: {problem.strerror}"
        finally:
            os.close(self._descriptor)
            self._descriptor = -1
        return LogSummary(self.name, size, dropped + self._lost, self.error)

    def _put_in_order(self) -> int:
        ring = os.pread(self._descriptor, self._ring, self._head)
        position = (self._seen - self._head) % self._ring or self._ring
        tail = ring[position + len(SEAM) :] + ring[:position]
        dropped = self._seen - self._head - len(tail)
        mark = b"\n--- chronex: %d bytes of output dropped here ---\n" % (dropped + self._lost)
        _write_all(self._descriptor, mark + tail, self._head)
        os.ftruncate(self._descriptor, self._head + len(mark) + len(tail))
        return dropped


def _make_private(path: Path) -> None:
    """Every directory that is missing, each 0700: Path.mkdir would leave the parents to the umask."""
    for directory in (*reversed(path.parents), path):
        if not directory.exists():
            directory.mkdir(mode=0o700, exist_ok=True)
            directory.chmod(0o700)  # a umask such as 0777 takes even the owner's bits away


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    """A disk that is nearly full, or a size limit, takes a part before it refuses the rest."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


_READ = 64 * 1024
# One flooding child gets this much of a turn of the loop (well under a millisecond); then the others are served.
TURN_BUDGET = 128 * 1024
_WIDER_PIPE = 256 * 1024
_MAX_LEFT_RUNNING = 64

# Pipes that processes still hold after their attempt has ended; what comes out is thrown away.
_left_running: OrderedDict[int, DescriptorWatcher] = OrderedDict()


def open_pipe() -> tuple[int, int]:
    """(our end, the child's end).

    Where /proc allows it the child's end can be read as well as written. Then it does not break when the daemon
    dies: a child that goes on writing is not killed by SIGPIPE, waits at worst once the pipe is full, and the
    next daemon can take our end's place through /proc/PID/fd/1.
    """
    if not hasattr(os, "pipe2"):
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        return ours, theirs
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        # Opened anew, so it has flags of its own: a child's output must not be non-blocking.
        both_ways = os.open(f"/proc/self/fd/{theirs}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        os.set_blocking(theirs, True)
        return ours, theirs
    os.close(theirs)
    return ours, both_ways


def reopen_pipe(pid: int) -> int | None:
    """Our end of the pipe of an adopted process; None where it no longer holds that pipe, or it may not be seen.

    Ours is the pipe that is open both ways. After `exec > >(tee file)` a process's output is a pipe as well, but
    tee's, and reading from that would steal.
    """
    for number in (1, 2):
        try:
            with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as source:
                flags = next(int(line.split()[1], 8) for line in source if line.startswith("flags:"))
            is_pipe = os.readlink(f"/proc/{pid}/fd/{number}").startswith("pipe:")
            if is_pipe and flags & os.O_ACCMODE == os.O_RDWR:
                return os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
    return None


class Capture:
    """Reads our end of the pipe while the loop runs. `ended` is done once no process holds the other end.

    A descriptor of -1 is no pipe at all: nothing will come.
    """

    __slots__ = ("_descriptor", "_log", "_redactor", "_watcher", "_widened", "ended")

    def __init__(self, loop: asyncio.AbstractEventLoop, descriptor: int, log: BoundedLog, secrets: tuple[bytes, ...]):
        self._watcher = watcher_of(loop)
        self._descriptor = descriptor
        self._log = log
        self._redactor = Redactor(secrets) if secrets else None
        self._widened = False
        self.ended: asyncio.Future[None] = loop.create_future()
        if descriptor < 0:
            self.ended.set_result(None)

    def start(self) -> None:
        if self._descriptor >= 0:
            self._watcher.add(self._descriptor, self.pump)

    def pump(self) -> None:
        """Take what is there, up to the budget of one turn."""
        left = TURN_BUDGET
        while left > 0 and self._descriptor >= 0:
            try:
                data = os.read(self._descriptor, _READ)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._end()
                return
            self._log.write(self._redactor.feed(data) if self._redactor else data)
            if len(data) < _READ:
                return
            left -= len(data)
            self._widen()

    def _widen(self) -> None:
        """A child that fills the pipe gets a wider one, once; the system may refuse, and then it does not matter."""
        if not self._widened and hasattr(fcntl, "F_SETPIPE_SZ"):
            self._widened = True
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, _WIDER_PIPE)

    def _end(self) -> None:
        self._watcher.remove(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if not self.ended.done():
            self.ended.set_result(None)

    def finish(self) -> None:
        """The log gets what was held back. Output of processes that still hold the pipe is now thrown away."""
        if self._redactor:
            held = self._redactor.finish()
            if held:
                self._log.write(held)
        if self._descriptor >= 0:
            self._watcher.remove(self._descriptor)
            _leave_running(self._watcher, self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Stop reading at once. Idempotent."""
        if self._descriptor >= 0:
            self._end()


def _leave_running(watcher: DescriptorWatcher, descriptor: int) -> None:
    """A closed pipe would kill or stop a process that the policy keeps; so it is emptied as long as it is held."""
    if len(_left_running) >= _MAX_LEFT_RUNNING:
        oldest = next(iter(_left_running))
        _close_left_running(oldest)
    _left_running[descriptor] = watcher
    watcher.add(descriptor, partial(_throw_away, descriptor))


def _throw_away(descriptor: int) -> None:
    try:
        if os.read(descriptor, TURN_BUDGET):
            return
    except BlockingIOError:
        return
    except OSError:
        pass
    _close_left_running(descriptor)


def _close_left_running(descriptor: int) -> None:
    _left_running.pop(descriptor).remove(descriptor)
    os.close(descriptor)


STILL_DROPPING = b"\n--- chronex: output dropped here; the attempt still runs ---\n"


def tail_of(directory: LogDirectory, name: str, limit: int, most: int, *, is_over: bool) -> bytes:
    """The last `most` bytes of a log, in order also while it is written; the whole of it is read only then."""
    with os.fdopen(directory.open(name), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if is_over or size <= limit // 2:
            file.seek(max(0, size - most))
            return file.read(most)
        return in_order(file.read(limit + len(SEAM)), limit)[-most:]


class LogReader:
    """Reads logs and makes nothing: where there is no directory yet, there are no logs."""

    def __init__(self, path: Path) -> None:
        self._directory = LogDirectory(path) if path.is_dir() else None

    def whole(self, name: str, limit: int = DEFAULT_LIMIT, *, is_over: bool = True) -> bytes:
        """Everything that is kept of the log `name`; nothing where nothing was written."""
        found = self.beyond(name, 0)
        return found if is_over else in_order(found, limit)

    def beyond(self, name: str, offset: int) -> bytes:
        """The bytes from `offset` on."""
        if self._directory is None or not name:
            return b""
        descriptor = self._directory.open_if_there(name)
        if descriptor is None:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            file.seek(offset)
            return file.read()

    def close(self) -> None:
        if self._directory is not None:
            self._directory.close()


def in_order(found: bytes, limit: int) -> bytes:
    """A log that has outgrown its limit is a head and a ring; the seam in the ring is where the oldest begins."""
    head = limit // 2
    seam = found.find(SEAM, head)
    if seam < 0:
        return found
    # Behind the limit lie the remains of a seam that was written where the ring ends.
    return found[:head] + STILL_DROPPING + found[seam + len(SEAM) : limit] + found[head:seam]
