"""Run as a command of a scheduler that is root: tries to have what it should not have, and writes down what worked.

It is given the place of the test and the name of its report. Each try is a function without arguments; one that raises
has not worked.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import socket
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
PLACE = Path(sys.argv[1])
STORE = PLACE / "store"
FACTS = json.loads((PLACE / "facts.json").read_text())
KEEPER, DAEMON, VICTIM = os.getppid(), FACTS["daemon"], FACTS["victim"]
SHADOW = FACTS["shadow"]


def call(name: str, *arguments: Any) -> bool:
    return bool(getattr(LIBC, name)(*arguments) >= 0)


def in_child(work: Callable[[], object]) -> bool:
    """What cannot be undone is tried in a child."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(7 if work() is not False else 8)
        except BaseException:
            os._exit(8)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def attached(pid: int) -> bool:
    if LIBC.ptrace(16, pid, 0, 0) != 0:
        return False
    os.waitpid(pid, 0x40000000)
    LIBC.ptrace(17, pid, 0, 0)
    return True


def writable(path: Path | str) -> bool:
    os.close(os.open(path, os.O_WRONLY))
    return True


def made(path: Path) -> bool:
    path.touch()
    path.unlink()
    return True


def renamed(path: Path) -> bool:
    path.rename(f"{path}.x")
    Path(f"{path}.x").rename(path)
    return True


def connected() -> bool:
    (keeper,) = (STORE / "keepers").iterdir()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(keeper / "socket"))
    return True


def chowned() -> bool:
    file = PLACE / "shared" / f"chown-{os.getpid()}"
    file.touch()
    try:
        os.chown(file, 1, 1)
    finally:
        file.unlink()
    return True


def device() -> bool:
    file = PLACE / "shared" / f"device-{os.getpid()}"
    os.mknod(file, 0o20600, os.makedev(1, 3))
    file.unlink()
    return True


def more_files() -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard + 1))
    return True


def lent_descriptor() -> bool:
    pidfd = os.pidfd_open(KEEPER)
    return bool(LIBC.syscall(438, pidfd, 1, 0) >= 0)


def key_of_the_daemon() -> bool:
    """Whoever has the session keyring of a process can read what is in it, whatever user that is by now."""
    search, session = 10, -3
    return bool(LIBC.syscall(FACTS["keyctl"], search, session, b"user", b"chronex-probe", 0) >= 0)


def memory_of_the_keeper() -> bool:
    """By the call that needs no file of /proc: eight bytes of its program."""
    with open(f"/proc/{KEEPER}/maps") as maps:
        start = int(maps.readline().partition("-")[0], 16)
    kept = ctypes.create_string_buffer(8)
    own, theirs = (ctypes.c_size_t * 2)(ctypes.addressof(kept), 8), (ctypes.c_size_t * 2)(start, 8)
    return bool(LIBC.process_vm_readv(KEEPER, own, 1, theirs, 1, 0) == 8)


def first_to_be_killed() -> bool:
    """As the choice of the kernel that is out of memory. What is written counts when it has arrived."""
    descriptor = os.open(f"/proc/{KEEPER}/oom_score_adj", os.O_RDWR)
    try:
        return os.write(descriptor, os.read(descriptor, 16)) > 0
    finally:
        os.close(descriptor)


def watched(path: Path) -> bool:
    watcher = LIBC.inotify_init()
    return bool(LIBC.inotify_add_watch(watcher, os.fsencode(path), 0xFFF) >= 0)


def typed() -> bool:
    """Into the terminal of whoever started the scheduler."""
    return fcntl.ioctl(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY), termios.TIOCSTI, b"#") is not None


def capabilities() -> list[str]:
    """Those that it has, may take, and hands on, as numbers; which it could ever have is bounded by who it is."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    kinds = ("CapInh:", "CapPrm:", "CapEff:", "CapAmb:")
    return [str(int(words[1], 16)) for words in lines if words[:1] and words[0] in kinds]


def every_command_line() -> bytes:
    found = b""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{name}/cmdline").read_bytes()
    return found


# What root can do, so that each of these tries is known to work where nothing stops it.
TRIES: dict[str, Callable[[], object]] = {
    "be root by setuid": lambda: in_child(lambda: os.setuid(0)),
    "be root by setreuid": lambda: in_child(lambda: os.setreuid(0, 0)),
    "be root by setresuid": lambda: in_child(lambda: os.setresuid(0, 0, 0)),
    "be root for a while by seteuid": lambda: in_child(lambda: os.seteuid(0)),
    "be the other user": lambda: in_child(lambda: os.setuid(FACTS["other"])),
    "have root's group by setgid": lambda: in_child(lambda: os.setgid(0)),
    "have root's group by setresgid": lambda: in_child(lambda: os.setresgid(0, 0, 0)),
    "have root's groups": lambda: in_child(lambda: os.setgroups([0, SHADOW])),
    "already have root's group": lambda: 0 in (os.getgid(), os.getegid(), *os.getgroups()),
    "already have a group of the daemon's": lambda: SHADOW in os.getgroups(),
    "read the passwords": lambda: Path("/etc/shadow").read_bytes(),
    "write the list of users": lambda: writable("/etc/passwd"),
    "read the store": (STORE / "data.mdb").read_bytes,
    "write the store": lambda: writable(STORE / "data.mdb"),
    "put a file into the store": lambda: made(STORE / "planted"),
    "list the store": lambda: os.listdir(STORE),
    "list the logs": lambda: os.listdir(STORE / "logs"),
    "read any log": lambda: [path.read_bytes() for path in (STORE / "logs").iterdir()],
    "read the log of the other": (STORE / "logs" / FACTS["victim_log"]).read_bytes,
    "put a link among the logs": lambda: made(STORE / "logs" / "planted.log"),
    "connect to the keeper": connected,
    "read the secret of the other": (PLACE / "victim.key").read_bytes,
    "read its own secret where root keeps it": (PLACE / "own.key").read_bytes,
    "read its variables where root keeps them": (PLACE / "own.env").read_bytes,
    "write the job file": lambda: writable(PLACE / "chronex.toml"),
    "put another job file in its place": lambda: renamed(PLACE / "chronex.toml"),
    "put a job file beside it": lambda: made(PLACE / "more.toml"),
    "read the keeper's environment": lambda: Path(f"/proc/{KEEPER}/environ").read_bytes(),
    "read the daemon's environment": lambda: Path(f"/proc/{DAEMON}/environ").read_bytes(),
    "read the other's environment": lambda: b"VICTIM" in Path(f"/proc/{VICTIM}/environ").read_bytes(),
    "list the keeper's descriptors": lambda: os.listdir(f"/proc/{KEEPER}/fd"),
    "open the other's output": lambda: Path(f"/proc/{VICTIM}/fd/1").open("rb").close(),
    "open the keeper's memory": lambda: Path(f"/proc/{KEEPER}/mem").open("r+b").close(),
    "see where the daemon is": lambda: os.readlink(f"/proc/{DAEMON}/cwd"),
    "borrow a descriptor of the keeper": lent_descriptor,
    "trace the other": lambda: in_child(lambda: attached(VICTIM)),
    "read the keeper's memory by a call": memory_of_the_keeper,
    "choose the keeper for the kernel to kill": first_to_be_killed,
    "watch the logs": lambda: watched(STORE / "logs"),
    "watch the keeper's files": lambda: os.listdir(f"/proc/{KEEPER}/map_files"),
    "signal the keeper's group": lambda: os.killpg(os.getpgid(KEEPER), 0),
    "signal the keeper": lambda: os.kill(KEEPER, 0),
    "signal the daemon": lambda: os.kill(DAEMON, 0),
    "signal the other": lambda: os.kill(VICTIM, 0),
    "slow the keeper down": lambda: os.setpriority(os.PRIO_PROCESS, KEEPER, 1),
    "limit the keeper": lambda: resource.prlimit(KEEPER, resource.RLIMIT_CORE),
    "be more important": lambda: in_child(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)),
    "have more files than it may": lambda: in_child(more_files),
    "give a file away": chowned,
    "make a device": device,
    "change the root": lambda: in_child(lambda: os.chroot("/")),
    "mount something": lambda: in_child(
        lambda: call("unshare", 0x20000) and call("mount", b"none", b"/mnt", b"tmpfs", 0, None)
    ),
    "name the machine": lambda: in_child(
        lambda: socket.sethostname(socket.gethostname()),
    ),
    "enter the namespaces of init": lambda: in_child(lambda: call("setns", os.open("/proc/1/ns/uts", 0), 0)),
    "open a raw socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
}
# What nobody should find, root's own jobs included: it is the daemon's alone.
FOUND: dict[str, Callable[[], object]] = {
    "a descriptor that was open": lambda: [
        fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and os.path.exists(f"/proc/self/fd/{fd}")
    ],
    "its start barrier or its order": lambda: [fd for fd in (3, 4, 5) if os.path.exists(f"/proc/self/fd/{fd}")],
    "a terminal to type into": typed,
    "a standard input that is more than nothing": lambda: os.readlink("/proc/self/fd/0") != os.devnull,
    "a capability that is left": lambda: os.geteuid() != 0 and any(map(int, capabilities())),
    "a command line with a secret": lambda: b"of-the-victim" in every_command_line(),
    "a terminal": lambda: os.close(os.open("/dev/tty", os.O_RDWR)),
    "the session of the keeper": lambda: os.getsid(0) == os.getsid(KEEPER),
    "the group of the keeper": lambda: os.getpgrp() == os.getpgid(KEEPER),
    "an undeclared secret": lambda: "ROOT_TOKEN" in os.environ,
    "the agent of root": lambda: "SSH_AUTH_SOCK" in os.environ,
    "the credentials of the service": lambda: "CREDENTIALS_DIRECTORY" in os.environ,
    "the manager of the service": lambda: "NOTIFY_SOCKET" in os.environ,
    "what is loaded before": lambda: "LD_AUDIT" in os.environ,
}
# What another user should not find.
OF_ROOT: dict[str, Callable[[], object]] = {
    "the runtime directory of root": lambda: "XDG_RUNTIME_DIR" in os.environ,
    "the temporary directory of root": lambda: "TMPDIR" in os.environ,
    "the libraries of root": lambda: "LD_LIBRARY_PATH" in os.environ,
    "the home of root": lambda: os.environ["HOME"] == FACTS["home"],
    "the name of root": lambda: "root" in (os.environ["USER"], os.environ["LOGNAME"]),
    "a key of root": key_of_the_daemon,
    "the programs of root": lambda: "/root/bin" in os.environ["PATH"],
}


def worked(attempt: Callable[[], object]) -> bool:
    try:
        result = attempt()
        return result is None or bool(result)
    except (OSError, KeyError, ValueError, AttributeError):
        return False


if __name__ == "__main__":
    tables = {"found": FOUND, "of_root": OF_ROOT, "tries": TRIES}  # what is there first: tries open things
    result = {name: {what: worked(one) for what, one in table.items()} for name, table in tables.items()}
    report = PLACE / "shared" / sys.argv[2]
    report.with_suffix(".new").write_text(json.dumps(result))
    report.with_suffix(".new").rename(report)
