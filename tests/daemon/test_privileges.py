"""A daemon that runs as root, and a command of it that tries everything: to be somebody else, to read what is not its
own, to plant links, and to find a variable, a descriptor or a group of root's. None of it works.

Each try is also made by a command that may run as root. There it works, so that it is known to be a try.
"""

from __future__ import annotations

import ctypes
import grp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from chronex.run import LogDirectory, RunContext
from tests.kit.processes import end_all
from tests.kit.users import OtherUser, needs_root, two_users
from tests.kit.waits import until
from tests.run.requests import outcome

PYTHON = "/usr/bin/python3"
PROBE = Path(__file__).with_name("privilege_probe.py")
needs_system_python = pytest.mark.skipif(
    not os.path.exists(PYTHON), reason="needs a Python that every user can start: privileges are not tried"
)
JOBS = """
[jobs.victim]
schedule = "@once +1s"
user = "{b}"
run = "echo the words of the victim; exec sleep 1000"
secrets = {{ VICTIM = "file:victim.key" }}

[jobs.probe]
schedule = "@once +1s"
user = "{a}"
run = "until [ -e {place}/facts.json ]; do sleep 0.05; done; exec {python} -I {place}/probe.py {place} of-user"
directory = "{place}/evil"
env_file = "own.env"
secrets = {{ OWN = "file:own.key" }}
limits = {{ open_files = 512, tasks = 200 }}
[jobs.probe.env]
PYTHONPATH = "{place}/evil"
PYTHONHOME = "{place}/evil"
PYTHONSTARTUP = "{place}/evil/sitecustomize.py"
LD_PRELOAD = "{place}/evil/none.so"
BASH_ENV = "{place}/evil/profile"
ENV = "{place}/evil/profile"

[jobs.control]
schedule = "@once +1s"
run = "until [ -e {place}/facts.json ]; do sleep 0.05; done; exec {python} -I {place}/probe.py {place} of-root"
limits = {{ open_files = 512 }}
"""
# Of the daemon's own; nothing of it is for a command.
ENVIRON = {
    "ROOT_TOKEN": "r00t", "SSH_AUTH_SOCK": "/root/agent", "XDG_RUNTIME_DIR": "/run/user/0", "TMPDIR": "/root",
    "LD_LIBRARY_PATH": "/root/lib", "CREDENTIALS_DIRECTORY": "/run/credentials", "NOTIFY_SOCKET": "", "LD_AUDIT": "",
}  # fmt: skip
KEYCTL, ADD_KEY = (250, 248) if os.uname().machine == "x86_64" else (219, 217)
HAS_KEYS = "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall({}, 1, None) < 0)"
TELLS = "import os\nopen('{place}/shared/evil-as-%d' % os.geteuid(), 'w').close()\n"


@pytest.fixture
def users() -> Iterator[tuple[OtherUser, OtherUser]]:
    with two_users() as found:
        yield found


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every user can enter, unlike those of the test runner."""
    found = Path(tempfile.mkdtemp(prefix="chronex-privileges-", dir="/tmp"))
    found.chmod(0o755)
    yield found
    end_all(found / "store")
    shutil.rmtree(found)


def laid_out(place: Path, a: OtherUser, b: OtherUser) -> None:
    (place / "shared").mkdir()
    (place / "shared").chmod(0o1777)
    for name, text in (("victim.key", "of-the-victim"), ("own.key", "of-its-own"), ("own.env", "PLAIN=1\n")):
        (place / name).write_text(text)
        (place / name).chmod(0o600)
    evil = place / "evil"
    evil.mkdir()
    # What an interpreter would load from its directory or from PYTHONPATH, and a shell from ENV.
    for name in ("sitecustomize.py", "os.py", "pwd.py", "grp.py", "resource.py", "encodings.py"):
        (evil / name).write_text(TELLS.replace("{place}", str(place)))
    (evil / "profile").write_text(f"touch {place}/shared/evil-as-$(id -u)\n")
    os.chown(evil, a.uid, a.gid)
    shutil.copy(PROBE, place / "probe.py")
    (place / "chronex.toml").write_text(JOBS.format(a=a.name, b=b.name, place=place, python=PYTHON))


def _victim(uid: int) -> int:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                is_sleep = Path(f"/proc/{name}/cmdline").read_bytes() == b"sleep\x001000\0"
                if is_sleep and os.stat(f"/proc/{name}").st_uid == uid:
                    return int(name)
            except OSError:
                continue
    return 0


def _log_with(place: Path, words: bytes) -> str:
    return next((log.name for log in (place / "store" / "logs").glob("*.log") if words in log.read_bytes()), "")


def has_keys() -> bool:
    """Whether this system lets a process have a keyring; containers often do not."""
    return subprocess.run([PYTHON, "-c", HAS_KEYS.format(KEYCTL)], check=False).returncode == 0


def with_a_key() -> None:
    """In the child: a session keyring of its own with a key in it, as a login has it. Where the system has none, or
    forbids it, there is nothing to find."""
    libc = ctypes.CDLL(None)
    libc.syscall(KEYCTL, 1, b"_ses")
    libc.syscall(ADD_KEY, b"user", b"chronex-probe", b"of-root", 7, -3)


def started_daemon(place: Path, inherited: int) -> subprocess.Popen[bytes]:
    """With groups, a descriptor and variables that a command must not have."""
    shadow = grp.getgrnam("shadow").gr_gid
    command = (sys.executable, "-m", "chronex", "run", "--headless", "--config", "chronex.toml", "--store", "store")
    return subprocess.Popen(
        command,
        cwd=place,
        env={
            **os.environ,
            **ENVIRON,
            "PATH": f"/root/bin:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        extra_groups=[0, shadow],
        pass_fds=(inherited,),
        preexec_fn=with_a_key,  # noqa: PLW1509  two calls of the system, and no thread holds a lock that they need
        stderr=subprocess.DEVNULL,
    )


def reports(place: Path, b: OtherUser) -> dict[str, Any]:
    """What the probe found as a user, and as root."""
    inherited = os.open("/etc/shadow", os.O_RDONLY)
    daemon = started_daemon(place, inherited)
    try:
        victim = until(lambda: _victim(b.uid), "the victim")
        log = until(lambda: _log_with(place, b"the words of the victim"), "the victim's words")
        facts = {
            "daemon": daemon.pid, "victim": victim, "other": b.uid, "shadow": grp.getgrnam("shadow").gr_gid,
            "victim_log": log, "keyctl": KEYCTL, "home": os.environ.get("HOME"),
        }  # fmt: skip
        (place / "facts.new").write_text(json.dumps(facts))
        (place / "facts.new").rename(place / "facts.json")
        found = {}
        for name in ("of-user", "of-root"):
            file = place / "shared" / name
            until(file.exists, f"the report {name}")
            found[name] = json.loads(file.read_text())
        return found
    finally:
        os.close(inherited)
        daemon.terminate()
        daemon.wait()


@needs_root
@needs_system_python
def test_a_command_of_another_user_has_nothing_of_root_and_nothing_of_others(
    users: tuple[OtherUser, OtherUser], place: Path
) -> None:
    a, b = users
    laid_out(place, a, b)
    found = reports(place, b)
    tried, control = found["of-user"], found["of-root"]
    assert {what for table in tried.values() for what, worked in table.items() if worked} == set()
    assert {what for what, worked in control["tries"].items() if not worked} <= CANNOT_HERE
    assert {what for what, worked in control["found"].items() if worked} == set()
    assert control["of_root"]["the home of root"]
    assert control["of_root"]["a key of root"] is has_keys()
    assert sum(map(len, tried.values())) + len(PLANTED) >= 60
    assert sorted(path.name for path in (place / "shared").glob("evil-as-0")) == []


# What root cannot do in every container.
CANNOT_HERE = {"mount something", "enter the namespaces of init", "open a raw socket", "make a device", "name the machine",
               "borrow a descriptor of the keeper", "trace the other", "have more files than it may",
               "read the keeper's memory by a call", "watch the keeper's files"}  # fmt: skip


# -- planted files ------------------------------------------------------------------------------------------------

Plant = Callable[[Path, OtherUser], Path]


def theirs(place: Path, user: OtherUser) -> Path:
    """A directory of the user's."""
    directory = place / "home"
    directory.mkdir()
    os.chown(directory, user.uid, user.gid)
    return directory


def a_link(target: str) -> Plant:
    def plant(place: Path, user: OtherUser) -> Path:
        link = theirs(place, user) / "link"
        link.symlink_to(target)
        os.lchown(link, user.uid, user.gid)
        return link

    return plant


def a_link_in_a_shared_directory(place: Path, user: OtherUser) -> Path:
    (place / "shared").mkdir()
    (place / "shared").chmod(0o1777)
    link = place / "shared" / "link"
    link.symlink_to("/etc/shadow")
    os.lchown(link, user.uid, user.gid)
    return link


def a_linked_directory(place: Path, user: OtherUser) -> Path:
    link = theirs(place, user) / "etc"
    link.symlink_to("/etc")
    return link / "shadow"


def their_own_file(place: Path, user: OtherUser) -> Path:
    file = place / "file"
    file.write_text("A=theirs\n")
    os.chown(file, user.uid, user.gid)
    return file


def roots_file_in_their_directory(place: Path, user: OtherUser) -> Path:
    file = theirs(place, user) / "file"
    file.write_text("A=root\n")
    return file


def written_by(mode: int) -> Plant:
    def plant(place: Path, user: OtherUser) -> Path:
        file = place / "file"
        file.write_text("A=1\n")
        os.chown(file, 0, user.gid)
        file.chmod(mode)
        return file

    return plant


def beside_their_link(place: Path, user: OtherUser) -> Path:
    """By its text the path is /etc/hostname; by the link it is not."""
    (place / "shared").mkdir()
    (place / "shared").chmod(0o1777)
    (theirs(place, user) / "deep").mkdir()
    link = place / "shared" / "link"
    link.symlink_to(place / "home" / "deep")
    os.lchown(link, user.uid, user.gid)
    return Path(f"{link}/../../../etc/hostname")


def a_pipe(place: Path, user: OtherUser) -> Path:
    os.mkfifo(place / "pipe")
    return place / "pipe"


PLANTED: dict[str, Plant] = {
    "a link to the passwords": a_link("/etc/shadow"),
    "a link to the memory of the daemon": a_link("/proc/self/mem"),
    "a link to a device": a_link("/dev/zero"),
    "a link to nothing": a_link("/nowhere"),
    "a link to itself": a_link("link"),
    "a link in a shared directory": a_link_in_a_shared_directory,
    "a directory that is a link": a_linked_directory,
    "a path that leaves their directory": beside_their_link,
    "a file of theirs": their_own_file,
    "a file of root in their directory": roots_file_in_their_directory,
    "a file that their group writes": written_by(0o660),
    "a file that all write": written_by(0o606),
    "a pipe": a_pipe,
}


@needs_root
@pytest.mark.parametrize("case", PLANTED)
async def test_root_reads_nothing_that_was_planted(place: Path, case: str) -> None:
    """Neither as a file of variables nor as a secret; and nothing runs then."""
    user = OtherUser("nobody", 65_534, 65_534, "/")
    path = str(PLANTED[case](place, user))
    ran = place / "ran"
    logs = LogDirectory(place / "logs")
    run_context = RunContext.of_this_process(logs)
    for asked in ({"env_file": (path,)}, {"secrets": ("A",), "secret_sources": {"A": f"file:{path}"}}):
        result = await outcome(run_context, f"env > {ran}", **asked)
        assert result.reason == "not_started", result
        assert not ran.exists()
    logs.close()
