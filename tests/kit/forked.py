"""The program without its start: a process that has imported it forks for each command and each daemon.

Importing is most of what a short command does, and a thousand of them import the same. Whole starts are for those tests
that begin a process of their own: the surface, start-up, the binary.
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
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from chronex import failpoints
from tests.kit.forked_dashboard import prepare_dashboards, wants_dashboard
from tests.kit.forked_keeper import PADDING, fork_keepers, show_environment

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0
# What the commands use; a command imports most of it only when it runs.
PRELOADED = (
    "chronex.cli",
    "chronex.daemon",
    "chronex.engine",
    "chronex.imports",
    "chronex.lint",
    "chronex.lsp",
    "chronex.verify",
    "chronex.views",
    "chronex_store",
    "chronex_tui",
)
_READY = b"ready"
_CLONE_PARENT = 0x00008000
_CLONE_NUMBERS = {"x86_64": 56, "aarch64": 220}
_CAN_FORK = sys.platform == "linux" and platform.machine() in _CLONE_NUMBERS
_PARAMETERS = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]


# What a shell or an editor starts in place of `chronex`: it hands its streams over and waits for the exit code. It
# begins in a few milliseconds, because it imports nothing that is written in Python.
_STAND_IN = """#!{python} -IS
import _socket, os, sys
line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
line.connect({place!r})
told = [os.getcwdb(), b"%d" % len(sys.argv), *map(os.fsencode, sys.argv[1:])]
told += [name + b"=" + value for name, value in os.environb.items()]
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
line.sendmsg([b"\\0".join(told)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
code = line.recv(16)
if not code:
    sys.exit("the process that stood for chronex was killed")
os._exit(int(code))
"""


def command_of(arguments: Sequence[str]) -> list[str]:
    """The same as a whole start."""
    return [sys.executable, "-m", "chronex", *arguments]


class PythonProcess(subprocess.Popen[Any]):
    """`python` with these arguments (`-c CODE`, `-m MODULE` or a file): a child of this process like any other, that
    begins where its imports are done.

    Variables that speak to the interpreter before any program begins need a whole start.
    `takes_terminal`: the terminal at its standard input is the one of its new session, and hangs up with it.
    """

    def __init__(
        self, arguments: Sequence[str], *, starts_whole: bool = False, takes_terminal: bool = False, **options: Any
    ) -> None:
        needs_start = options.get("preexec_fn") is not None or _is_heard_at_the_start(options.get("env") or {})
        self._is_forked = _CAN_FORK and not needs_start and not starts_whole
        self._takes_terminal = takes_terminal
        if takes_terminal and not self._is_forked:
            options["preexec_fn"] = _take_terminal
        super().__init__([sys.executable, *arguments], **options)

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
            "takes_terminal": self._takes_terminal,
        }
        ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        streams = [number if end == -1 else end for number, end in enumerate(ends)]
        try:
            self.pid = _forks(_tree(order["environment"])).begin(order, streams)
            self._child_created = True
        finally:
            pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


class ChronexProcess(PythonProcess):
    """`chronex` with these arguments."""

    def __init__(self, arguments: Sequence[str], **options: Any) -> None:
        super().__init__(["-m", "chronex", *arguments], **options)


def _take_terminal() -> None:
    ioctl(0, termios.TIOCSCTTY, 0)


def _is_heard_at_the_start(environment: Mapping[str, str]) -> bool:
    heard = {name for name in environment if name.startswith(("PYTHON", "LC_", "LANG", "LD_"))} - {"PYTHONPATH"}
    known = {**os.environ, **_OURS}  # of the process that forks, too
    return any(environment[name] != known.get(name) for name in heard)


def _tree(environment: Mapping[str, str]) -> Path:
    """Where the program would be found; a campaign upgrades to another version by this variable."""
    places = [Path(place) for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    return next((place for place in places if (place / "chronex" / "version.py").exists()), ROOT)


_OURS = {"LC_ALL": "C.UTF-8"}


def run_chronex(
    arguments: Sequence[str], given: str | bytes | None = None, timeout: float = PATIENCE_S, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run` with its output captured."""
    return run_python(["-m", "chronex", *arguments], given, timeout, **options)


def run_python(
    arguments: Sequence[str], given: str | bytes | None = None, timeout: float = PATIENCE_S, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """The same with a program of the test's own, that uses what is preloaded."""
    if given is not None:
        options["stdin"] = subprocess.PIPE
    with PythonProcess(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            out, err = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class _Forks:
    """Asks the process that forks, which has imported the program from one tree."""

    def __init__(self, tree: Path) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        self._is_ready = False
        self._directory = Path(tempfile.mkdtemp(prefix="chronex-"))
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, door:
            door.bind(str(self._directory / "door"))
            door.listen(100)
            path = os.pathsep.join(map(str, (tree, ROOT, ROOT / "store")))
            ends = [theirs.fileno(), door.fileno()]
            # Whoever looks for the processes of a store must not find this one, and end it: a test that begins it may
            # have set a variable that names its store.
            inherited = {name: value for name, value in os.environ.items() if not name.startswith("CHRONEX_")}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.forked", *map(str, ends)],
                cwd=tree, pass_fds=ends, env={**inherited, "PYTHONPATH": path, **_OURS, **PADDING},
            )  # fmt: skip
        self._line.settimeout(PATIENCE_S)
        atexit.register(self._end)

    def begin(self, order: dict[str, Any], streams: list[int]) -> int:
        """The id of the process that carries it out."""
        self._wait_for_imports()
        with self._one_at_a_time:
            socket.send_fds(self._line, [json.dumps(order).encode()], streams)
            return int(self._line.recv(16))

    def open_door(self) -> str:
        """Where others ask it to fork; whoever waits for a keeper for some seconds only need not wait for imports."""
        self._wait_for_imports()
        return self._door

    @property
    def _door(self) -> str:
        return str(self._directory / "door")

    def _wait_for_imports(self) -> None:
        with self._one_at_a_time:
            if not self._is_ready:
                assert self._line.recv(16) == _READY, "the process that forks could not begin"
                self._is_ready = True

    def stand_in(self) -> Path:
        """A program that may be started any number of times, by anybody."""
        program = self._directory / "chronex"
        if not program.exists():
            program.write_text(_STAND_IN.format(python=sys.executable, place=self._door))
            program.chmod(0o755)
        return program

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def _end(self) -> None:
        self._line.close()
        shutil.rmtree(self._directory, ignore_errors=True)  # first: xdist kills a worker that waits for ten seconds
        self._process.wait()


_SERVERS: dict[Path, _Forks] = {}


def _forks(tree: Path = ROOT) -> _Forks:
    """The process that forks from this tree; another one where it was killed, by whatever a test had aimed at."""
    found = _SERVERS.get(tree)
    if found is None or found.has_ended:
        found = _SERVERS[tree] = _Forks(tree)
    return found


def stand_in() -> str:
    """The path of a `chronex` for shells and editors, whose name is `chronex` too.

    Its process is not theirs: no signal reaches it, but it sees when its streams are closed.
    """
    if _CAN_FORK:
        return str(_forks().stand_in())
    return str(Path(sys.executable).parent / "chronex")


def begin_to_fork() -> None:
    """For tests that count what they leave behind: the process that forks stays until the last of all tests."""
    if _CAN_FORK:
        _forks()


def fork_our_keepers() -> None:
    """Those that this process starts for schedulers of its own."""
    if _CAN_FORK:
        fork_keepers(lambda: _forks().open_door())


# -- the process that forks ------------------------------------------------------------------------------------------


def serve(line: socket.socket, door: socket.socket) -> None:
    """Until the other side closes; a child leaves this loop for the command it was asked for."""
    for package in PRELOADED:
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            try:
                import_module(module.name)
            except ModuleNotFoundError as error:  # of an extra that is not installed
                if (error.name or "").startswith("chronex"):
                    raise
    place = door.getsockname()
    fork_keepers(lambda: place)
    gc.freeze()
    line.send(_READY)
    while True:
        ready, _, _ = select.select([line, door], [], [])
        _forget_those_that_have_ended()
        if line not in ready:
            _let_in(line, door)
            continue
        text, streams, _, _ = socket.recv_fds(line, 1 << 20, 3)
        if not text:
            return
        child = _fork_for_parent()
        if child == 0:
            line.close()
            door.close()
            become(json.loads(text), streams)
        for stream in streams:
            os.close(stream)
        line.send(b"%d" % child)


def _forget_those_that_have_ended() -> None:
    """Who came through the door is a child of ours, and has told its exit code to whom it concerns."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _let_in(line: socket.socket, door: socket.socket) -> None:
    visitor, _ = door.accept()
    with visitor:
        if os.fork():
            return
        line.close()
        door.close()
        text, streams, _, _ = socket.recv_fds(visitor, 1 << 20, 3)
        if not text:  # whoever came was killed before it could say what it wants
            os._exit(0)
        directory, count, *rest = map(os.fsdecode, text.split(b"\0"))
        arguments, variables = rest[: int(count) - 1], rest[int(count) - 1 :]
        environment = dict(variable.split("=", 1) for variable in variables)
        order = {"command": command_of(arguments), "environment": environment, "directory": directory}
        if is_keeper := arguments[:1] == ["keeper"]:
            os.register_at_fork(after_in_child=visitor.close)  # who starts a keeper waits until its parent has ended
            show_environment(environment)
        asked_by = None if is_keeper else visitor
        become({**order, "new_session": is_keeper, "takes_terminal": False}, streams, asked_by)


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


def become(order: dict[str, Any], streams: list[int], asked_by: socket.socket | None = None) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if order["new_session"]:
        os.setsid()
    if order["takes_terminal"]:
        _take_terminal()
    os.chdir(order["directory"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    _arm_fail_point()
    sys.orig_argv = order["command"]  # what `chronex restart` begins again
    if wants_dashboard(order["command"][2:]):
        prepare_dashboards(lambda arguments: _end_with(_carry_out(["-m", "chronex", *arguments])))
    _end_with(_carry_out(order["command"][1:]), asked_by)


def _end_with(code: int, asked_by: socket.socket | None = None) -> NoReturn:
    for printed in (sys.stdout, sys.stderr):
        if not printed.closed:  # a language server closes its own when it is told to exit
            printed.flush()
    if asked_by is not None:
        asked_by.send(b"%d" % code)
    os._exit(code)  # what was imported is the parent's: taking it apart would be half of the time


def _carry_out(arguments: list[str]) -> int:
    """The exit code of `python` with these arguments."""
    try:
        match arguments:
            case ["-m", "chronex", "keeper", directory, logs]:
                import_module("chronex.keeper.keeper_process").main(directory, logs)
                return 0
            case ["-m", "chronex", *rest]:
                sys.argv = ["chronex", *rest]
                import_module("chronex.cli").main()
                return 0
            case ["-c", code, *rest]:
                sys.argv = ["-c", *rest]
                sys.modules["__main__"] = main = ModuleType("__main__")
                exec(code, vars(main))
            case ["-m", module, *rest]:
                sys.argv = [module, *rest]
                runpy.run_module(module, run_name="__main__", alter_sys=True)
            case [path, *rest]:
                sys.argv = [path, *rest]
                sys.path.insert(0, str(Path(path).parent.absolute()))
                runpy.run_path(path, run_name="__main__")
        _leave_in_order()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return int(end.code or 0)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _leave_in_order() -> None:
    """What the interpreter does at the end of a program: it waits for threads and calls what asked to be called."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


def _arm_fail_point() -> None:
    """Which one is wanted is read when the module is imported, and here that was before anybody could say."""
    if failpoints.VARIABLE not in os.environ:
        return
    armed = failpoints.armed(os.environ[failpoints.VARIABLE])
    for module in list(sys.modules.values()):
        if getattr(module, "fail_point", None) is failpoints._pass:
            vars(module)["fail_point"] = armed


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as ours, socket.socket(fileno=int(sys.argv[2])) as way_in:
        serve(ours, way_in)
