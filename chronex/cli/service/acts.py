"""install, uninstall and status, with every step said."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from chronex.cli.arguments import UsageError
from chronex.cli.init import make_directories, write_file
from chronex.cli.places import job_file_path, store_path
from chronex.cli.service.managers import Answer, Manager, manager_of, tell
from chronex.cli.service.units import Service
from chronex.cli.terminal import err, inert, out


def install(config: str | None, store: str | None, *, dry_run: bool, no_start: bool) -> int:
    """Write the unit and start it. Repeating it brings the unit up to date."""
    job_file = job_file_path(config, os.environ).absolute()
    if not job_file.is_file():
        raise UsageError(f"no job file at {inert(str(job_file))}; chronex init --config writes a starter there")
    service = Service(
        program=program(),
        job_file=job_file,
        store=store_path(store, os.environ).absolute(),
        path=os.environ.get("PATH", os.defpath),
        log=store_path(store, os.environ).absolute().parent / "service.log",
    )
    manager = manager_of(Path.home(), os.environ)
    if dry_run:
        out(f"# {inert(str(manager.file))}")
        out(manager.content(service).decode().rstrip())
        return 0
    _write_unit(manager, service)
    if no_start:
        return 0
    return _carry_out(manager, manager.start, "started")


def program() -> tuple[str, ...]:
    """How this very program is started again: the frozen file, or this interpreter with the module."""
    if getattr(sys, "frozen", False):
        return (sys.executable,)
    return (sys.executable, "-m", "chronex")


def _write_unit(manager: Manager, service: Service) -> None:
    try:
        make_directories(manager.file.parent)
        make_directories(service.log.parent)
        write_file(manager.file, manager.content(service), replace=True)
    except OSError as error:
        raise UsageError(f"cannot write {inert(str(manager.file))}: {error.strerror}") from None
    out(f"wrote {inert(str(manager.file))}")


def _carry_out(manager: Manager, commands: tuple[tuple[str, ...], ...], done: str) -> int:
    """Each command shown as it is given; 1 at the first that is refused, with the manager's own words."""
    for command in commands:
        out(f"$ {shlex.join(command)}")
        answer = tell(command)
        if answer.code != 0:
            err(f"chronex: {manager.tool} refused: {inert(answer.text) or f'exit code {answer.code}'}")
            err("the file is in place; run the commands above yourself once the service manager answers")
            return 1
    out(f"{done}; see it with: chronex service status")
    if manager.name == "systemd":
        out("to keep it running while you are logged out: loginctl enable-linger")
    return 0


def uninstall(*, dry_run: bool) -> int:
    """Stop the service and remove its file. The store and the job file stay."""
    manager = manager_of(Path.home(), os.environ)
    name = inert(str(manager.file))
    if not os.path.lexists(manager.file):
        out(f"nothing to do: no service at {name}")
        return 0
    if dry_run:
        out(f"would stop the service and remove {name}")
        return 0
    for command in manager.stop:
        answer = tell(command)
        if answer.code != 0:
            err(f"chronex: {shlex.join(command)}: {inert(answer.text) or f'exit code {answer.code}'}")
    manager.file.unlink()
    out(f"removed {name}; the store and the job file are untouched")
    return 0


def status() -> int:
    """0: it runs; 1: it does not, or is not installed."""
    answer = sentence()
    out(answer.text)
    return answer.code


def sentence() -> Answer:
    """What the service manager says of us; code 0 while the service runs."""
    manager = manager_of(Path.home(), os.environ)
    name = inert(str(manager.file))
    if not os.path.lexists(manager.file):
        return Answer(1, "not installed; chronex service install sets it up")
    if not manager.is_there:
        return Answer(1, f"installed ({name}), but {manager.tool} is not on this machine, so nothing starts it")
    answer = tell(manager.ask)
    if answer.code == 0:
        return Answer(0, f"running: {name}")
    first = answer.text.partition("\n")[0] or "stopped"
    return Answer(1, f"not running ({inert(first)}): {name}")
