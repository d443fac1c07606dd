"""Lines of the log on their way to standard error: whoever reads them, or does not, never holds up the scheduler."""

from __future__ import annotations

import os
import select
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

# What may wait for a slow reader: a screen that was stopped with Ctrl-S, a pager, a pipe that nobody empties.
MOST_BYTES = 1 << 20
AT_ONCE = 1 << 16
# A daemon that leaves gives its last lines this long.
LAST_LINES_S = 1.0


class Outlet:
    """A thread of its own writes. Beyond MOST_BYTES lines are dropped, and told by their number when there is room.

    It writes to the descriptor and not to the stream: a thread that waits inside a stream holds its lock, and the
    interpreter could not end. A stream without a descriptor (a test's, an embedding program's) is written to at once.
    """

    def __init__(self, stream: TextIO | None, tell_dropped: Callable[[int], str]) -> None:
        """None: the program was started without standard error."""
        self._stream, self._encoding = stream, getattr(stream, "encoding", None) or "ascii"
        self._tell_dropped = tell_dropped
        self._descriptor = _descriptor_of(stream)
        self._waiting: deque[bytes] = deque()
        self._size = self.dropped = 0
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._write_all, name="chronex log", daemon=True)
        if self._descriptor is not None:
            self._thread.start()

    def say(self, line: str) -> None:
        """Never waits. What the encoding lacks becomes a question mark."""
        said = self._encoded(line)
        if self._descriptor is None:
            if self._stream is not None:
                self._stream.write(said.decode(self._encoding))
            return
        with self._changed:
            if self._size + len(said) > MOST_BYTES:
                self.dropped += 1
                return
            self._waiting.append(said)
            self._size += len(said)
            self._changed.notify()

    def _encoded(self, line: str) -> bytes:
        return line.encode(self._encoding, "replace") + b"\n"

    def close(self) -> None:
        """What waits may still be written, for a moment; a reader that does not read gets no longer."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._descriptor is not None:
            self._thread.join(LAST_LINES_S)

    def __enter__(self) -> Outlet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the thread --------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while taken := self._next():
            try:
                self._write(b"".join(taken))
            except OSError:  # whoever listened has gone, or the disk is full; it may have room again
                with self._changed:
                    self.dropped += len(taken)

    def _next(self) -> list[bytes]:
        """As many lines as go in one write; none once it is closed and all is said."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            taken: list[bytes] = []
            size = 0
            while self._waiting and size < AT_ONCE:
                taken.append(self._waiting.popleft())
                size += len(taken[-1])
            self._size -= size
            if taken and self.dropped:
                taken.append(self._encoded(self._tell_dropped(self.dropped)))
                self.dropped = 0
            return taken

    def _write(self, said: bytes) -> None:
        assert self._descriptor is not None
        while said:
            try:
                said = said[os.write(self._descriptor, said) :]
            except BlockingIOError:  # somebody who shares the descriptor wants it so
                select.select([], [self._descriptor], [])


def _descriptor_of(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except OSError:
        return None
