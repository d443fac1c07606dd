"""The two service managers: where each keeps its files, and what it is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chronex.cli.service.units import LABEL, UNIT, Service, launchd_plist, systemd_unit

_LONGEST_ANSWER_S = 30


class Manager(NamedTuple):
    """`start`, `stop` and `ask` are what the manager is told, in order; `ask` exits 0 while the service runs."""

    name: str
    file: Path
    tool: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    ask: tuple[str, ...]

    def content(self, service: Service) -> bytes:
        return launchd_plist(service) if self.name == "launchd" else systemd_unit(service).encode()

    @property
    def is_there(self) -> bool:
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


class Answer(NamedTuple):
    code: int
    text: str


def tell(command: tuple[str, ...]) -> Answer:
    """Say something to the manager and hear its answer, which is never waited for without end."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LONGEST_ANSWER_S, check=False, text=True)  # noqa: S603
    except FileNotFoundError:
        return Answer(127, f"{command[0]} is not installed")
    except subprocess.TimeoutExpired:
        return Answer(124, f"{command[0]} did not answer within {_LONGEST_ANSWER_S} seconds")
    return Answer(done.returncode, (done.stderr.strip() or done.stdout.strip()))
