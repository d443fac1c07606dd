"""The keeper of a scheduler of the tests: forked, like the daemons, from the process that has its imports done.

A whole start imports for as long as the command that most tests give it to keep. What is about that start (what the
interpreter was told, what others see of the process) asks for `whole_keepers`, or starts its daemon as a whole.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from chronex.keeper import keepers

# Room for the environment of a keeper, where others look for it.
PADDING = {"CHRONEX_TESTS_PADDING": "x" * (32 << 10)}


def fork_keepers(door: Callable[[], str]) -> None:
    """Keepers that this process starts come through the door of the process that forks."""

    def begin(command: list[str], **options: Any) -> Any:
        if command[4:5] == [keepers._BOOTSTRAP]:
            return ForkedKeeper(door(), command[5:7], **options)
        return subprocess.Popen(command, **options)

    vars(keepers)["subprocess"] = SimpleNamespace(**{**vars(subprocess), "Popen": begin})


class ForkedKeeper:
    """In place of the process that a scheduler starts, which ends as soon as the keeper has begun."""

    def __init__(
        self, door: str, places: list[str], *, stderr: IO[bytes], env: Mapping[str, str], **_options: Any
    ) -> None:
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(door)
        reading, writing = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        told = [os.getcwd(), "4", "keeper", *places, *(f"{name}={value}" for name, value in env.items())]
        try:
            socket.send_fds(self._line, [os.fsencode("\0".join(told))], [nothing, writing, stderr.fileno()])
        finally:
            os.close(writing)
            os.close(nothing)
        self.stdout = os.fdopen(reading, "rb", buffering=0)

    def wait(self, timeout: float | None = None) -> int:
        self._line.settimeout(timeout)
        try:
            with suppress(ConnectionError):
                self._line.recv(1)  # nothing: it is closed by its end
        except TimeoutError:
            raise subprocess.TimeoutExpired("keeper", timeout or 0) from None
        self._line.close()
        return 0

    def kill(self) -> None:
        """It is nobody's child here; without a scheduler it ends by itself."""

    def __del__(self) -> None:
        """A test that ends while its scheduler still starts a keeper leaves nobody who waits for it."""
        self._line.close()


def show_environment(environment: Mapping[str, str]) -> None:
    """Write it where the kernel shows the one that this process had when it was started as another."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    told = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    assert len(told) <= end - start, "the environment of a keeper needs more room"
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, told, len(told))
