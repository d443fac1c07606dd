"""The service managers systemd and launchd: the files that each reads, where they lie, and the commands of each."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chronex.text.terminal import terminal_safe
from chronex_store.postgres.pg_address import is_postgres

LABEL = "dev.chronex.scheduler"
UNIT = "chronex.service"
# Longer than the default grace period of a job, so that the manager does not kill a daemon that still stops its jobs.
# Of a service of the system: a shell's own directories, such as those of root's home, are no part of the machine.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STOP_SECONDS = 90
WATCHDOG_SECONDS = 60
_TIMEOUT_S = 30
_WITH_SUBGROUPS = 254  # the systemd that knows DelegateSubgroup; an older one warns of it


class Service(NamedTuple):
    """What is to be started, and what it must find around it.

    `path` is the PATH of the shell that installed the service, unless it is one of the system: a manager's own is
    short, and a command that works in the shell and not in the service is the oldest complaint about schedulers.
    """

    program: tuple[str, ...]
    job_file: Path | None  # a node of a shared store needs none
    store: str
    path: str
    log: Path
    environment: tuple[tuple[str, str], ...] = ()  # variables beside PATH

    @property
    def command(self) -> tuple[str, ...]:
        config = () if self.job_file is None else ("--config", str(self.job_file))
        return (*self.program, "run", "--headless", *config, "--store", self.store)

    @property
    def variables(self) -> dict[str, str]:
        return {"PATH": self.path, **dict(self.environment)}


def systemd_unit(service: Service, *, is_of_system: bool = False, version: int = 0) -> str:
    """A unit for `systemctl --user`, or for the system. Exit 75 says that another daemon holds the store: starting
    again is no help. Of a database it says that it does not answer now, and there it is.

    Only the daemon itself is stopped (KillMode=process): its commands and their keeper go on, and are taken up by the
    next one. A command that is killed for its memory is no reason to stop the others (OOMPolicy). Nothing that would
    harden the daemon alone is set, because in a unit it would hold for the commands as well. The daemon has a part
    of its control group, so that commands with limits can have others (DelegateSubgroup, where `version` has it).
    """
    command = " ".join(_systemd_word(word) for word in service.command)
    variables = "\n".join(
        f"Environment={_systemd_word(f'{name}={value}', in_command=False)}"
        for name, value in service.variables.items()
    )
    part = "DelegateSubgroup=scheduler\n" if version >= _WITH_SUBGROUPS else ""
    order = "After=time-sync.target network-online.target\nWants=network-online.target\n" if is_of_system else ""
    return f"""[Unit]
Description=Chronex scheduler
{order}
[Service]
Type=notify
NotifyAccess=main
WatchdogSec={WATCHDOG_SECONDS}
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
{variables}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus={"2" if is_postgres(service.store) else "2 75"}
KillMode=process
Delegate=yes
{part}OOMPolicy=continue
TimeoutStopSec={STOP_SECONDS}

[Install]
WantedBy={"multi-user.target" if is_of_system else "default.target"}
"""


def _systemd_word(text: str, *, in_command: bool = True) -> str:
    """One word in systemd's own quoting: `%` starts a specifier, and in a command `$` a variable."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    if in_command:
        escaped = escaped.replace("$", "$$")
    return f'"{escaped}"'


def launchd_plist(service: Service) -> bytes:
    """An agent for `launchctl`. It is started again unless it ended well or may not hold the store."""
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": list(service.command),
            "EnvironmentVariables": service.variables,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": STOP_SECONDS,
            "AbandonProcessGroup": True,  # its commands and their keeper go on
            "ProcessType": "Background",
            "StandardOutPath": str(service.log),
            "StandardErrorPath": str(service.log),
            "Umask": 0o077,
        }
    )


# -- managers -------------------------------------------------------------------------------------------------------


class Manager(NamedTuple):
    """`start`, `stop` and `ask` are commands of the manager, in order; `ask` exits 0 while the service runs."""

    name: str
    file: Path
    tool: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    ask: tuple[str, ...]
    is_of_system: bool = False

    def content(self, service: Service) -> bytes:
        if self.name == "launchd":
            return launchd_plist(service)
        return systemd_unit(service, is_of_system=self.is_of_system, version=systemd_version()).encode()

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.tool) is not None


SYSTEM_UNITS, SYSTEM_AGENTS = Path("/etc/systemd/system"), Path("/Library/LaunchDaemons")


def manager_of(
    home: Path, environ: Mapping[str, str], platform: str = sys.platform, *, is_of_system: bool = False
) -> Manager:
    if platform == "darwin":
        return _launchd(home, is_of_system=is_of_system)
    return _systemd(home, environ, is_of_system=is_of_system)


def _systemd(home: Path, environ: Mapping[str, str], *, is_of_system: bool) -> Manager:
    configuration = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    tool = ("systemctl",) if is_of_system else ("systemctl", "--user")
    return Manager(
        name="systemd",
        is_of_system=is_of_system,
        file=(SYSTEM_UNITS if is_of_system else configuration / "systemd" / "user") / UNIT,
        tool=tool[0],
        start=((*tool, "daemon-reload"), (*tool, "enable", UNIT), (*tool, "restart", UNIT)),
        stop=((*tool, "disable", "--now", UNIT),),
        ask=(*tool, "is-active", UNIT),
    )


def _launchd(home: Path, *, is_of_system: bool) -> Manager:
    file = (SYSTEM_AGENTS if is_of_system else home / "Library" / "LaunchAgents") / f"{LABEL}.plist"
    domain = "system" if is_of_system else f"gui/{os.getuid()}"
    return Manager(
        name="launchd",
        is_of_system=is_of_system,
        file=file,
        tool="launchctl",
        start=(("launchctl", "bootstrap", domain, str(file)),),
        stop=(("launchctl", "bootout", f"{domain}/{LABEL}"),),
        ask=("launchctl", "print", f"{domain}/{LABEL}"),
    )


class ManagerAnswer(NamedTuple):
    code: int
    text: str


def ask_manager(command: tuple[str, ...]) -> ManagerAnswer:
    """Run a command of the manager; its answer is awaited for half a minute at most."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False, text=True)  # noqa: S603
    except FileNotFoundError:
        return ManagerAnswer(127, f"{command[0]} is not installed")
    except subprocess.TimeoutExpired:
        return ManagerAnswer(124, f"{command[0]} did not answer within {_TIMEOUT_S} seconds")
    return ManagerAnswer(done.returncode, (done.stderr.strip() or done.stdout.strip()))


def systemd_version() -> int:
    """`systemd 252 (…)`; 0 where it does not say."""
    words = ask_manager(("systemctl", "--version")).text.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def service_state(*, is_of_system: bool = False) -> ManagerAnswer:
    """What the service manager says of the service, in a sentence; code 0 while it runs."""
    manager = manager_of(Path.home(), os.environ, is_of_system=is_of_system)
    name = terminal_safe(str(manager.file))
    if not os.path.lexists(manager.file):
        option = " --system" if is_of_system else ""
        return ManagerAnswer(1, f"not installed; chronex service install{option} sets it up")
    if not manager.is_installed:
        return ManagerAnswer(
            1, f"installed ({name}), but {manager.tool} is not on this machine, so nothing starts it"
        )
    answer = ask_manager(manager.ask)
    if answer.code == 0:
        return ManagerAnswer(0, f"running: {name}")
    first = answer.text.partition("\n")[0] or "stopped"
    return ManagerAnswer(1, f"not running ({terminal_safe(first)}): {name}")
