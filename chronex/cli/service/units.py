"""The files that service managers read, as text. Nothing here touches the machine."""

from __future__ import annotations

import plistlib
from pathlib import Path
from typing import NamedTuple

LABEL = "dev.chronex.scheduler"
UNIT = "chronex.service"
# Longer than the default grace period of a job, so that the manager does not kill what is being wound up.
STOP_SECONDS = 90


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
