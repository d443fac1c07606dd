"""A little room set aside on the disk, given up when it is full, so that the end of work can be recorded."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from chronex_store.places import RESERVE_FILE, open_private

BALLAST_BYTES = 256 * 1024
# Laid again only when the disk has room to spare, not in the first moment that a byte is free.
ROOM_FACTOR = 4


class Ballast:
    """The file `reserve` of a store directory."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / RESERVE_FILE

    def lay(self) -> None:
        """Set the room aside where there is enough; never a reason to fail."""
        if self._path.exists():
            return
        found = os.statvfs(self._path.parent)
        if found.f_bavail * found.f_frsize < ROOM_FACTOR * BALLAST_BYTES:
            return
        with contextlib.suppress(OSError):
            descriptor = open_private(self._path, os.O_WRONLY)
            try:
                os.posix_fallocate(descriptor, 0, BALLAST_BYTES)
            finally:
                os.close(descriptor)

    def drop(self) -> bool:
        """Give the room back; False when there was none."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True
