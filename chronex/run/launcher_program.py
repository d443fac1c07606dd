"""The program that becomes a command as another user, with another umask or priority, or within limits.

It is given to an interpreter of its own, before the command and in its process, so it imports nothing but the
standard library. It has an environment that is empty and descriptors 0 to 4: three of the command's, the start
barrier, and the order. It gives up what it has first, makes sure of that, and then waits at the barrier.

`posix_spawn` can change neither user nor umask, and to fork a process with threads for the sake of a few calls is not
safe.
"""

from __future__ import annotations

# All of them now: where the interpreter is installed, another user may not be let in.
import errno
import grp
import os
import pwd
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` takes longer to load than everything else here
    from typing import NoReturn

BARRIER, ORDER = 3, 4
SHUT = 125
# What could not be done. A refusal is the number of the system's error, negative, and one of these, in 8 bytes each,
# as the barrier program sends it; then what it is about.
DIRECTORY, PROGRAM, USER, GROUP, NOT_ROOT, PRIVILEGES, NICE, LIMITS, FAULT = range(1, 10)
_SAFE_PATH = b"/usr/local/bin:/usr/bin:/bin"
_ROOT_PATH = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# The call that makes a keyring, by machine; systems without keyrings, and containers that forbid them, say so.
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "armv7l": 311, "ppc64le": 271, "s390x": 280}
_NO_KEYRINGS = (errno.ENOSYS, errno.EPERM)
_OF_USERS = (b"_uid.", b"_uid_ses.", b"_persistent.", b".")
_CAPABILITIES = (b"CapInh:", b"CapPrm:", b"CapEff:", b"CapAmb:")


class Account:
    """Who the command will be, as the machine's own list of users has it."""

    def __init__(self, user: str | None, group: str | None) -> None:
        self.uid, self.gid = os.geteuid(), os.getegid()
        self.name, self.home, self.shell = "", "", ""
        self.groups: list[int] | None = None
        if user is not None:
            self._find_user(user)
        if group is not None:
            self._find_group(group)
            self.groups = [self.gid]
        if user is not None:
            self.groups = os.getgrouplist(self.name, self.gid)

    def _find_user(self, user: str) -> None:
        try:
            found = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
        except (KeyError, OverflowError):
            refuse(USER, errno.ENOENT, user)
        self.uid, self.gid, self.name = found.pw_uid, found.pw_gid, found.pw_name
        self.home, self.shell = found.pw_dir or "/", found.pw_shell or "/bin/sh"

    def _find_group(self, group: str) -> None:
        try:
            found = grp.getgrgid(int(group)) if group.isdigit() else grp.getgrnam(group)
        except (KeyError, OverflowError):
            refuse(GROUP, errno.ENOENT, group)
        self.gid = found.gr_gid


def refuse(step: int, number: int, detail: str | bytes = b"") -> NoReturn:
    """Say why there will be no command, and end."""
    said = detail if isinstance(detail, bytes) else detail.encode("utf-8", "replace")
    numbers = (-number).to_bytes(8, "little", signed=True) + step.to_bytes(8, "little", signed=True)
    try:
        os.write(BARRIER, numbers + said[:1000])
    finally:
        os._exit(SHUT)


def become(account: Account) -> None:
    """Be that user for good, in every way that the system knows; or end."""
    if os.geteuid() != 0:
        if account.uid != os.geteuid() or account.gid != os.getegid():
            refuse(NOT_ROOT, errno.EPERM, account.name)
        return
    if account.groups is None:
        return
    try:
        os.fchown(1, account.uid, account.gid)  # else /dev/stdout and /dev/stderr could not be opened
        if account.uid:
            _drop_inheritable()
            _leave_keyring()
        os.setgroups(account.groups)
        if hasattr(os, "setresuid"):
            os.setresgid(account.gid, account.gid, account.gid)
            os.setresuid(account.uid, account.uid, account.uid)
        else:
            os.setgid(account.gid)
            os.setuid(account.uid)
    except OSError as problem:
        refuse(PRIVILEGES, problem.errno or errno.EPERM, account.name)
    if not is_dropped(account):
        refuse(PRIVILEGES, errno.EPERM, account.name)


def is_dropped(account: Account) -> bool:
    """Asked of the system, because a container or a security module may have other ideas."""
    is_that_user = os.getuid() == os.geteuid() == account.uid and os.getgid() == os.getegid() == account.gid
    if not is_that_user or set(os.getgroups()) - {account.gid, *(account.groups or ())}:
        return False
    if not account.uid:
        return True
    try:
        os.setuid(0)
    except PermissionError:
        return not any(_capabilities().values())
    return False


def _capabilities() -> dict[bytes, int]:
    try:
        with open("/proc/self/status", "rb") as status:
            lines = [line.split() for line in status if line.startswith(_CAPABILITIES)]
    except OSError:
        return {}
    return {name: int(value, 16) for name, value in lines}


def _drop_inheritable() -> None:
    """Of all capabilities the inheritable ones stay with a change of user; some containers begin with a few."""
    if not _capabilities().get(b"CapInh:"):
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # version 3, this process
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: twice
    if libc.capget(header, sets) == 0:
        sets[2] = sets[5] = 0
        libc.capset(header, sets)


def _leave_keyring() -> None:
    """Begin with an empty one: whoever has the keyring of a session may read its keys, whatever user that is by now.

    To load what makes the call takes longer than all else here, so it is made only where there is such a keyring.
    """
    number = _KEYCTL.get(os.uname().machine)
    try:
        with open("/proc/keys", "rb") as keys:
            names = [line.split()[8] for line in keys if line.split()[7:8] == [b"keyring"]]
    except (OSError, IndexError):
        names = [b"_ses:"]
    if number is None or all(name.startswith(_OF_USERS) for name in names):
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, 1, None) < 0 and ctypes.get_errno() not in _NO_KEYRINGS:
        raise OSError(ctypes.get_errno(), "a session keyring of its own")


def set_limit(name: str, wanted: int) -> None:
    kind: int = getattr(resource, name)
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY and os.geteuid() != 0:
        wanted = min(wanted, hard)
    try:
        resource.setrlimit(kind, (wanted, wanted))
    except (OSError, ValueError) as problem:
        refuse(LIMITS, getattr(problem, "errno", None) or errno.EPERM, name)


def threads_of(uid: int) -> int:
    """The system counts all threads of a user against the limit, whatever started them."""
    count = 0
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            try:
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
            except OSError:
                continue
    return count


def own_environment(given: dict[bytes, bytes], account: Account) -> dict[bytes, bytes]:
    """HOME, SHELL and PATH are the user's where the job does not say them; who it is, only the system says."""
    if not account.name:
        return given
    name = os.fsencode(account.name)
    theirs = {
        b"HOME": os.fsencode(account.home),
        b"SHELL": os.fsencode(account.shell),
        b"PATH": _SAFE_PATH if account.uid else _ROOT_PATH,
    }
    return {**theirs, **given, b"USER": name, b"LOGNAME": name}


def wait_at_barrier() -> None:
    if not os.read(BARRIER, 1):
        os._exit(SHUT)
    os.set_inheritable(BARRIER, False)


def enter(directory: bytes, account: Account) -> None:
    """Its directory, else the user's home; many users of services have none, and are in / then."""
    try:
        if directory:
            os.chdir(directory)
            return
    except OSError as problem:
        refuse(DIRECTORY, problem.errno or 0, directory)
    if account.name:
        try:
            os.chdir(account.home)
        except OSError:
            os.chdir("/")


def run(argv: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    """As the user that it is by now: found in that user's PATH, with that user's rights."""
    program = argv[0]
    places = [program]
    if b"/" not in program:
        places = [os.path.join(entry or b".", program) for entry in environment.get(b"PATH", b"").split(b":")]
    refused, shown = errno.ENOENT, program
    for place in places:
        try:
            os.execve(place, argv, environment)
        except OSError as problem:
            if problem.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                refuse(PROGRAM, problem.errno or 0, place)
            if problem.errno == errno.EACCES or len(places) == 1:
                refused, shown = problem.errno, place
    refuse(PROGRAM, refused, shown)


def restore_signals() -> None:
    """Those that an interpreter changes for itself. `signal` takes 10 ms to load, the module behind it nothing."""
    signals = __import__("_signal")
    for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ", "SIGINT"):
        if hasattr(signals, name):
            signals.signal(getattr(signals, name), signals.SIG_DFL)


class Order:
    """What to start and how. No value of it can hold a NUL, so that parts it; what is empty is not asked for."""

    def __init__(self, written: bytes) -> None:
        parts = written.split(b"\0")
        head, count = parts[:7], int(parts[8])
        texts = [os.fsdecode(part) or None for part in head]
        self.user, self.group, self.umask = texts[:3]
        self.nice, self.open_files, self.tasks, self.memory = (
            None if text is None else int(text) for text in texts[3:]
        )
        self.directory = parts[7]
        self.argv = parts[9 : 9 + count]
        pairs = (part.partition(b"=") for part in parts[9 + count :] if part)
        self.environment = {name: value for name, _, value in pairs}


def main(written: bytes) -> NoReturn:
    """A fault of this program is no end of the command, which has not begun."""
    try:
        launch(written)
    except Exception as problem:
        refuse(FAULT, 0, f"{type(problem).__name__}: {problem}")


def launch(written: bytes) -> NoReturn:
    order = Order(written)
    account = Account(order.user, order.group)
    if order.nice is not None:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, order.nice)
        except OSError as problem:
            refuse(NICE, problem.errno or 0, str(order.nice))
    if order.open_files is not None:
        set_limit("RLIMIT_NOFILE", order.open_files)
    become(account)
    if order.umask is not None:
        os.umask(int(order.umask, 8))
    wait_at_barrier()
    enter(order.directory, account)
    restore_signals()
    if order.tasks is not None:
        set_limit("RLIMIT_NPROC", threads_of(account.uid) + order.tasks)
    if order.memory is not None:
        set_limit("RLIMIT_DATA" if sys.platform == "linux" else "RLIMIT_AS", order.memory)
    run(order.argv, own_environment(order.environment, account))
