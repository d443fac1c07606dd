"""The program without its start: a process that has imported it forks for each command.

Importing is most of what a short command does, and hundreds of commands import the same. Whole starts are for those
tests that begin a process of their own: the surface, the README, the docs, the daemon.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
# What the commands use; a command imports most of it only when it runs.
PRELOADED = (
    "chronex.cli",
    "chronex.engine",
    "chronex.imports",
    "chronex.lint",
    "chronex.verify",
    "chronex.views",
    "chronex_store",
)


class Parent:
    """Asks the process that forks; as a context it ends with it."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            path = os.pathsep.join([str(ROOT), str(ROOT / "store")])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.fork", str(theirs.fileno())],
                cwd=ROOT, pass_fds=[theirs.fileno()], env={**os.environ, "PYTHONPATH": path, "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        self._line.settimeout(PATIENCE_S)

    def __enter__(self) -> Parent:
        return self

    def __exit__(self, *_: object) -> None:
        self._line.close()
        self._process.wait()

    def run(self, arguments: tuple[str, ...], stdin: bytes, environment: dict[str, str]) -> tuple[int, bytes, bytes]:
        order = {"arguments": arguments, "environment": environment, "directory": os.getcwd()}
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            streams = [given.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(self._line, [json.dumps(order).encode()], streams)
            code = int(self._line.recv(16))
            return code, _whole(out), _whole(err)


def _whole(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def serve(line: socket.socket) -> None:
    """Until the other side closes; a child leaves this loop for the command it was asked for."""
    for package in PRELOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    gc.freeze()
    while True:
        text, streams, _, _ = socket.recv_fds(line, 1 << 20, 3)
        if not text:
            return
        child = os.fork()
        if child == 0:
            line.close()
            become(json.loads(text), streams)
            return
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        line.send(b"%d" % os.waitstatus_to_exitcode(status))


def become(order: dict[str, Any], streams: list[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.argv = ["chronex", *order["arguments"]]
    from chronex.cli import main

    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))  # what was imported is the parent's: taking it apart would be half of the time


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as theirs:
        serve(theirs)
