"""The dashboard of `chronex run`, in a process of its own: whatever becomes of it, the daemon goes on.

The daemon is the process that was started; the dashboard is its child, has the terminal, and reads the store as
`chronex tui` does. When it ends without having been told to, a line says so and offers to open it again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chronex.cli.output import err
from chronex.model.policies import StopMode

if TYPE_CHECKING:
    from chronex.daemon.headless import Stop

# The dashboard finds the modules where this process has found them, also where that was its working directory.
_BOOTSTRAP = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from chronex.cli import main; main()"
# What a killed dashboard leaves in the terminal: a frame held back, other screen, no cursor, long lines cut off,
# mouse, focus, paste, size and keyboard reports.
_MODES_LEFT = (
    "?2026l", "?1049l", "?25h", "?7h", "?1000l", "?1002l", "?1003l", "?1015l", "?1006l", "?1016l", "?1004l", "?2004l",
    "?2048l", "<u", "0m",
)  # fmt: skip
_PLAIN_SCREEN = "".join(f"\x1b[{mode}" for mode in _MODES_LEFT)
_AS_ASKED = "as-asked"
OF_ENVIRONMENT = "-"
_MOST_S = 5.0  # for the dashboard to restore the screen
_OFFER = "The daemon goes on, and so do its jobs. Enter opens the dashboard again, q and Enter stops the daemon."


class DashboardProcess:
    """Opens the dashboard, waits for it on a thread of its own, and opens it again when the user wants that."""

    def __init__(self, store: Path | None, config: str | None, environ: Mapping[str, str] | None = None) -> None:
        """Without a directory the store is the database that `environ` names: an argument could be read by others."""
        location = OF_ENVIRONMENT if store is None else str(store.absolute())
        self._arguments = [location, *([] if config is None else [config])]
        self._environ = None if environ is None else dict(environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._is_over = False
        self._terminal: list[Any] | None = None

    def begin(self, stop: Stop) -> None:
        with contextlib.suppress(termios.error):
            self._terminal = termios.tcgetattr(0)
        self._watcher = threading.Thread(target=self._watch, args=(stop,), name="chronex-dashboard", daemon=True)
        self._watcher.start()

    def end(self) -> None:
        """Ends the dashboard, if it is open; its own end restores the screen."""
        with self._lock:
            self._is_over = True
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_MOST_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                self._restore_settings()
                self._leave_the_screen()

    def _watch(self, stop: Stop) -> None:
        while True:
            answer = self._show()
            if self._is_over:
                return
            if answer:
                _say_how_it_stops(answer)
                stop(None if answer == _AS_ASKED else StopMode(answer))
                return
            if not self._is_to_reopen():
                stop(None)
                return

    def _show(self) -> str:
        """Until it has ended; what it was told to do with the daemon, or nothing where nobody told it to end."""
        reading, writing = os.pipe()
        with self._lock:
            if self._is_over:
                return ""
            command = [*this_program(), "dashboard", str(writing), *self._arguments]
            try:
                self._process = subprocess.Popen(command, pass_fds=(writing,), env=self._environ)  # noqa: S603  this program again
            except OSError as error:
                err(f"chronex: the dashboard could not be started: {error}")
                return ""
            finally:
                os.close(writing)
        with open(reading, encoding="utf-8") as answers:
            answer = answers.read().strip()
        code = self._process.wait()
        if not self._is_over:
            self._restore_settings()
            if code < 0:
                self._leave_the_screen()
                err(f"chronex: the dashboard was ended by {signal.Signals(-code).name}")
        return answer

    def _is_to_reopen(self) -> bool:
        """Asks on the terminal. Where that is gone the daemon stops, as when its window is closed."""
        with contextlib.suppress(termios.error):
            termios.tcflush(0, termios.TCIFLUSH)  # keys that the dashboard has not read were meant for it
        try:
            err(_OFFER)
            answer = os.read(0, 1024)
        except OSError:
            return False
        return bool(answer) and answer.strip().lower() != b"q"

    def _restore_settings(self) -> None:
        with contextlib.suppress(termios.error, OSError):
            if self._terminal is not None:
                termios.tcsetattr(0, termios.TCSANOW, self._terminal)

    def _leave_the_screen(self) -> None:
        """For a dashboard that could not do it, and once: it moves the cursor to where that was before."""
        with contextlib.suppress(OSError):
            os.write(1, _PLAIN_SCREEN.encode())


def _say_how_it_stops(answer: str) -> None:
    with contextlib.suppress(OSError):
        if answer == StopMode.DRAIN:
            err("chronex: waiting for what runs; Ctrl-C leaves it running")
        else:
            err("chronex: stopping; Ctrl-C leaves at once")


def this_program() -> list[str]:
    """What starts this program again, with the modules that it has found."""
    if getattr(sys, "frozen", False):
        return [sys.executable]
    places = [os.path.abspath(location) for location in sys.path]
    return [sys.executable, "-c", _BOOTSTRAP, json.dumps(places)]


class DaemonProcess:
    """The daemon, as its dashboard sees it: it is the parent, and is told through a pipe how it is to stop."""

    def __init__(self, pipe: int) -> None:
        self._pipe, self._parent = pipe, os.getppid()

    @property
    def is_alive(self) -> bool:
        return os.getppid() == self._parent

    def ask_to_stop(self, mode: StopMode | None) -> None:
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.write(self._pipe, (mode or _AS_ASKED).encode())
