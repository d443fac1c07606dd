"""The log of an attempt as people read it, also while it is written: in order, with what was dropped marked."""

from __future__ import annotations

import os
from pathlib import Path

from chronex.errors import LogDirectoryError
from chronex.run.logfile import DEFAULT_LIMIT, SEAM, LogDirectory

STILL_DROPPING = b"\n--- chronex: output dropped here; the attempt still runs ---\n"


class LogReader:
    """Reads logs and makes nothing: where there is no directory yet, there are no logs."""

    def __init__(self, path: Path) -> None:
        self._directory = LogDirectory(path) if path.is_dir() else None

    def whole(self, name: str, limit: int = DEFAULT_LIMIT, *, is_over: bool = True) -> bytes:
        """Everything that is kept of the log `name`; nothing where nothing was written."""
        found = self.beyond(name, 0)
        return found if is_over else in_order(found, limit)

    def beyond(self, name: str, offset: int) -> bytes:
        """What stands behind `offset`."""
        if self._directory is None or not name:
            return b""
        try:
            descriptor = self._directory.open(name)
        except LogDirectoryError as problem:
            if isinstance(problem.__cause__, FileNotFoundError):
                return b""
            raise
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
