"""The log file of one attempt: private, named by its id, and never larger than its limit.

    while it fits          head | tail
    beyond the limit       head | newest  SEAM  oldest      (a ring; the seam moves with every write)
    after the end          head | MARK with the dropped bytes | oldest ... newest

So the file can be read at every moment, also after a crash, and neither memory nor disk grows with the output.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from chronex.errors import LogDirectoryError

DEFAULT_LIMIT = 10 * 1024 * 1024
SEAM = b"\n--- chronex: newest output above, oldest kept output below ---\n"
_ATTEMPT_ID = re.compile(r"attempt_[0-9a-f-]{36}", re.ASCII)
_LOG_NAME = re.compile(r"attempt_[0-9a-f-]{36}(\.[2-9])?\.log", re.ASCII)
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK, opening a planted FIFO would wait for its other end.
_REOPEN = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class LogSummary:
    """`name` is empty where nothing was written; `error` says why output could not be kept."""

    name: str = ""
    size: int = 0
    dropped: int = 0
    error: str = ""


class LogDirectory:
    """A held directory in which every name is made from an attempt's id."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            _make_private(path)
            self._descriptor = os.open(path, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_RDONLY)
        except OSError as problem:
            why = (problem.strerror or str(problem)).lower()
            raise LogDirectoryError(f"{path} cannot hold logs: {why}; move it away, and it is made") from problem
        self._refuse_if_open_to_others()

    def _refuse_if_open_to_others(self) -> None:
        found = os.fstat(self._descriptor)
        if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
            return
        self.close()
        if found.st_uid != os.geteuid():
            raise LogDirectoryError(f"{self.path} belongs to another user; choose a directory of your own")
        raise LogDirectoryError(f"{self.path} is open to other users; run: chmod 700 {self.path}")

    def create(self, attempt_id: str) -> tuple[str, int]:
        """A new private file for the attempt, and its name. What lies in its place is left alone and not followed."""
        if not _ATTEMPT_ID.fullmatch(attempt_id):
            raise LogDirectoryError(f"{attempt_id[:60]!r} is not the id of an attempt")
        for number in range(1, 10):
            name = f"{attempt_id}.log" if number == 1 else f"{attempt_id}.{number}.log"
            try:
                descriptor = os.open(name, _CREATE, 0o600, dir_fd=self._descriptor)
            except FileExistsError:
                continue
            if os.fstat(descriptor).st_mode & 0o777 != 0o600:  # the umask took the owner's bits away
                os.fchmod(descriptor, 0o600)
            return name, descriptor
        raise LogDirectoryError(f"every name for the log of {attempt_id} is taken")

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """A descriptor of an existing log; LogDirectoryError where that is not one regular file of ours."""
        if not _LOG_NAME.fullmatch(name):
            raise LogDirectoryError(f"{name[:60]!r} is not the name of a log")
        try:
            descriptor = os.open(name, flags | _REOPEN, dir_fd=self._descriptor)
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
            os.unlink(name, dir_fd=self._descriptor)
        except FileNotFoundError:
            return False
        return True

    def untouched_since(self, before_s: float, most: int) -> list[str]:
        """Logs that nobody wrote to since `before_s`, a few of them; other files are not ours to speak of."""
        found: list[str] = []
        with os.scandir(self._descriptor) as entries:
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
            room = self._head - self._seen
            _write_all(self._descriptor, data[:room], self._seen)
            self._seen += min(room, len(data))
            data = data[room:]
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
