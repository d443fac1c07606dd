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

LABEL = "dev.chronex.scheduler"
UNIT = "chronex.service"
# Longer than the default grace period of a job, so that the manager does not kill a daemon that still stops its jobs.
STOP_SECONDS = 90
_TIMEOUT_S = 30


class Service(NamedTuple):
    """What is to be started, and what it must find around it.

    `path` is the PATH of the shell that installed the service: a manager's own is short, and a command that works
    in the shell and not in the service is the oldest complaint about schedulers.
    """

    program: tuple[str, ...]
    job_file: Path
    store: Path
    path: str
    log: Path

    @property
    def command(self) -> tuple[str, ...]:
        return (*self.program, "run", "--headless", "--config", str(self.job_file), "--store", str(self.store))


def systemd_unit(service: Service) -> str:
    """A unit for `systemctl --user`. Exit 75 says that another daemon holds the store: starting again is no help."""
    command = " ".join(_systemd_word(word) for word in service.command)
    return f"""[Unit]
Description=Chronex scheduler

[Service]
Type=exec
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Environment={_systemd_word(f"PATH={service.path}", in_command=False)}
Restart=on-failure
RestartSec=5
RestartPreventExitStatus=2 75
KillMode=mixed
TimeoutStopSec={STOP_SECONDS}

[Install]
WantedBy=default.target
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
            "EnvironmentVariables": {"PATH": service.path},
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 10,
            "ExitTimeOut": STOP_SECONDS,
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

    def content(self, service: Service) -> bytes:
        return launchd_plist(service) if self.name == "launchd" else systemd_unit(service).encode()

    @property
    def is_installed(self) -> bool:
        return shutil.which(self.tool) is not None


def manager_of(home: Path, environ: Mapping[str, str], platform: str = sys.platform) -> Manager:
    return _launchd(home) if platform == "darwin" else _systemd(home, environ)


def _systemd(home: Path, environ: Mapping[str, str]) -> Manager:
    configuration = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    tool = ("systemctl", "--user")
    return Manager(
        name="systemd",
        file=configuration / "systemd" / "user" / UNIT,
        tool=tool[0],
        start=((*tool, "daemon-reload"), (*tool, "enable", UNIT), (*tool, "restart", UNIT)),
        stop=((*tool, "disable", "--now", UNIT),),
        ask=(*tool, "is-active", UNIT),
    )


def _launchd(home: Path) -> Manager:
    file = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain = f"gui/{os.getuid()}"
    return Manager(
        name="launchd",
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


def service_state() -> ManagerAnswer:
    """What the service manager says of the service, in a sentence; code 0 while it runs."""
    manager = manager_of(Path.home(), os.environ)
    name = terminal_safe(str(manager.file))
    if not os.path.lexists(manager.file):
        return ManagerAnswer(1, "not installed; chronex service install sets it up")
    if not manager.is_installed:
        return ManagerAnswer(
            1, f"installed ({name}), but {manager.tool} is not on this machine, so nothing starts it"
        )
    answer = ask_manager(manager.ask)
    if answer.code == 0:
        return ManagerAnswer(0, f"running: {name}")
    first = answer.text.partition("\n")[0] or "stopped"
    return ManagerAnswer(1, f"not running ({terminal_safe(first)}): {name}")
