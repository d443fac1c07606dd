"""`chronex service install|uninstall|status`: the scheduler as a service of the current user, or of the system."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Config, StorePath, UsageError, job_file_path, store_path
from chronex.cli.output import err, out
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.service_units import Manager, Service

service = typer.Typer(
    help="Run Chronex as a service of your user: systemd on Linux, launchd on macOS.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
System = Annotated[
    bool, typer.Option("--system", help="A service of the system, which starts with the machine; as root.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")]


@service.command("install")
def install(
    config: Config = None,
    store: StorePath = None,
    dry_run: DryRun = False,
    no_start: Annotated[bool, typer.Option("--no-start", help="Write the file, start nothing.")] = False,
    system: System = False,
) -> int:
    """Start at login (with --system: with the machine), restart after a failure, with the PATH of this shell.

    Example: chronex service install --dry-run
    """
    return run_install(config, store, dry_run=dry_run, no_start=no_start, system=system)


@service.command("uninstall")
def uninstall(dry_run: DryRun = False, system: System = False) -> int:
    """Stop it and remove its file; the store and the job file stay.

    Example: chronex service uninstall --dry-run
    """
    return run_uninstall(dry_run=dry_run, system=system)


@service.command("status")
def service_status(system: System = False) -> int:
    """Say whether it is installed and running. Exit 1: it is not.

    Example: chronex service status
    """
    return run_status(system=system)


def run_install(config: str | None, store: str | None, *, dry_run: bool, no_start: bool, system: bool = False) -> int:
    """Write the unit and start it. Repeating it brings the unit up to date."""
    from chronex.cli.service_units import Service, manager_of

    job_file = job_file_path(config).absolute()
    if not job_file.is_file():
        raise UsageError(
            f"no job file at {terminal_safe(str(job_file))}; chronex init --config writes a starter there"
        )
    service = Service(
        program=program(),
        job_file=job_file,
        store=store_path(store).absolute(),
        path=os.environ.get("PATH", os.defpath),
        log=store_path(store).absolute().parent / "service.log",
    )
    manager = manager_of(Path.home(), os.environ, is_of_system=system)
    if dry_run:
        out(f"# {terminal_safe(str(manager.file))}")
        out(manager.content(service).decode().rstrip())
        return 0
    _write_unit(manager, service)
    if no_start:
        return 0
    return _run_commands(manager, manager.start, "started")


def program() -> tuple[str, ...]:
    """How this program is started again: the frozen file, or this interpreter with the module."""
    if getattr(sys, "frozen", False):
        return (sys.executable,)
    return (sys.executable, "-m", "chronex")


def _write_unit(manager: Manager, service: Service) -> None:
    from chronex.text.files import make_private_directories, write_private_file

    try:
        make_private_directories(manager.file.parent)
        make_private_directories(service.log.parent)
        write_private_file(manager.file, manager.content(service), replace=True)
    except OSError as error:
        raise UsageError(f"cannot write {terminal_safe(str(manager.file))}: {error.strerror}") from None
    out(f"wrote {terminal_safe(str(manager.file))}")


def _run_commands(manager: Manager, commands: tuple[tuple[str, ...], ...], done: str) -> int:
    """Print each command and run it; 1 at the first that is refused, with the message of the manager."""
    import shlex

    from chronex.cli.service_units import ask_manager

    for command in commands:
        out(f"$ {shlex.join(command)}")
        answer = ask_manager(command)
        if answer.code != 0:
            err(f"chronex: {manager.tool} refused: {terminal_safe(answer.text) or f'exit code {answer.code}'}")
            err("the file is in place; run the commands above yourself once the service manager answers")
            return 1
    out(f"{done}; see it with: chronex service status{' --system' if manager.is_of_system else ''}")
    if manager.name == "systemd" and not manager.is_of_system:
        out("to keep it running while you are logged out: loginctl enable-linger")
    return 0


def run_uninstall(*, dry_run: bool, system: bool = False) -> int:
    """Stop the service and remove its file. The store and the job file stay."""
    import shlex

    from chronex.cli.service_units import ask_manager, manager_of

    manager = manager_of(Path.home(), os.environ, is_of_system=system)
    name = terminal_safe(str(manager.file))
    if not os.path.lexists(manager.file):
        out(f"nothing to do: no service at {name}")
        return 0
    if dry_run:
        out(f"would stop the service and remove {name}")
        return 0
    for command in manager.stop:
        answer = ask_manager(command)
        if answer.code != 0:
            err(f"chronex: {shlex.join(command)}: {terminal_safe(answer.text) or f'exit code {answer.code}'}")
    manager.file.unlink()
    out(f"removed {name}; the store and the job file are untouched")
    return 0


def run_status(*, system: bool = False) -> int:
    """0: it runs; 1: it does not, or is not installed."""
    from chronex.cli.service_units import service_state

    answer = service_state(is_of_system=system)
    out(answer.text)
    return answer.code
