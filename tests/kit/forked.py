"""The program without its start: a process that has imported it forks for each command and each daemon.

Importing is most of what a short command does, and a thousand of them import the same. Whole starts are for those tests
that begin a process of their own: the surface, the README, the docs, the dashboard.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import inspect
import json
import os
import pkgutil
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from chronex import failpoints

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
# What the commands use; a command imports most of it only when it runs.
PRELOADED = (
    "chronex.cli",
    "chronex.daemon",
    "chronex.engine",
    "chronex.imports",
    "chronex.lint",
    "chronex.verify",
    "chronex.views",
    "chronex_store",
    "chronex_tui",
)
_CLONE_PARENT = 0x00008000
_CLONE_NUMBERS = {"x86_64": 56, "aarch64": 220}
_CAN_FORK = sys.platform == "linux" and platform.machine() in _CLONE_NUMBERS
_PARAMETERS = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


def command_of(arguments: Sequence[str]) -> list[str]:
    """The same as a whole start."""
    return [sys.executable, "-m", "chronex", *arguments]


class ChronexProcess(subprocess.Popen[Any]):
    """`chronex` with these arguments: a child of this process like any other, that begins where its imports are done.

    Variables that speak to the interpreter before any program begins need a whole start, and so does another tree.
    """

    def __init__(self, arguments: Sequence[str], **options: Any) -> None:
        needs_start = options.get("preexec_fn") is not None or _is_heard_at_the_start(options.get("env") or {})
        self._is_forked = _CAN_FORK and not needs_start
        super().__init__(command_of(arguments), **options)

    def _execute_child(self, *arguments: Any) -> None:
        if not self._is_forked:
            super()._execute_child(*arguments)  # type: ignore[misc]
            return
        given = _PARAMETERS.bind(self, *arguments).arguments
        order = {
            "command": given["args"],
            "environment": dict(os.environ if given["env"] is None else given["env"]),
            "directory": os.path.abspath(given["cwd"] or os.curdir),
            "new_session": given["start_new_session"],
        }
        ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if end == -1 else end for number, end in enumerate(ends)]
        try:
            self.pid = _forks().begin(order, streams)
            self._child_created = True
        finally:
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


def _is_heard_at_the_start(environment: Mapping[str, str]) -> bool:
    heard = {name for name in environment if name.startswith(("PYTHON", "LC_", "LANG", "LD_"))} - {"PYTHONPATH"}
    return any(environment[name] != _OURS.get(name) for name in heard) or _tree(environment) != ROOT


def _tree(environment: Mapping[str, str]) -> Path:
    """Where the program would be found; a campaign upgrades to another version by this variable."""
    places = [Path(place) for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    return next((place for place in places if (place / "chronex" / "version.py").exists()), ROOT)


_OURS = {"LC_ALL": "C.UTF-8"}


def run_chronex(
    arguments: Sequence[str], given: str | bytes | None = None, timeout: float = PATIENCE_S, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run` with its output captured."""
    if given is not None:
        options["stdin"] = subprocess.PIPE
    with ChronexProcess(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            out, err = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class _Forks:
    """Asks the process that forks."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        with theirs:
            path = os.pathsep.join([str(ROOT), str(ROOT / "store")])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.forked", str(theirs.fileno())],
                cwd=ROOT, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONPATH": path, **_OURS},
            )  # fmt: skip
        self._line.settimeout(PATIENCE_S)
        atexit.register(self._end)

    def begin(self, order: dict[str, Any], streams: list[int]) -> int:
        """The id of the process that carries it out."""
        with self._one_at_a_time:
            socket.send_fds(self._line, [json.dumps(order).encode()], streams)
            return int(self._line.recv(16))

    def _end(self) -> None:
        self._line.close()
        self._process.wait()


@cache
def _forks() -> _Forks:
    return _Forks()


# -- the process that forks ------------------------------------------------------------------------------------------


def serve(line: socket.socket) -> None:
    """Until the other side closes; a child leaves this loop for the command it was asked for."""
    for package in PRELOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            try:
                import_module(module.name)
            except ModuleNotFoundError as error:  # of an extra that is not installed
                if (error.name or "").startswith("chronex"):
                    raise
    gc.freeze()
    while True:
        text, streams, _, _ = socket.recv_fds(line, 1 << 20, 3)
        if not text:
            return
        child = _fork_for_parent()
        if child == 0:
            line.close()
            become(json.loads(text), streams)
            return
        for stream in streams:
            os.close(stream)
        line.send(b"%d" % child)


def _fork_for_parent() -> int:
    """A child of our parent: the tests wait for it and send it signals as for one that they started themselves."""
    ctypes.pythonapi.PyOS_BeforeFork()
    libc = ctypes.PyDLL(None)
    libc.syscall.restype = ctypes.c_long
    number = _CLONE_NUMBERS[platform.machine()]
    child = int(libc.syscall(number, _CLONE_PARENT | signal.SIGCHLD.value, 0, 0, 0, 0))
    if child == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return child


def become(order: dict[str, Any], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if order["new_session"]:
        os.setsid()
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    _arm_fail_point()
    sys.orig_argv = order["command"]  # what `chronex restart` begins again
    sys.argv = ["chronex", *order["command"][3:]]
    from chronex.cli import main

    try:
        main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # what was imported is the parent's: taking it apart would be half of the time


def _arm_fail_point() -> None:
    """Which one is wanted is read when the module is imported, and here that was before anybody could say."""
    if failpoints.VARIABLE not in os.environ:
        return
    armed = failpoints.armed(os.environ[failpoints.VARIABLE])
    for module in list(sys.modules.values()):
        if getattr(module, "fail_point", None) is failpoints._pass:
            vars(module)["fail_point"] = armed


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as theirs:
        serve(theirs)
