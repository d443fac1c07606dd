"""`chronex service install|uninstall|status`: the scheduler as a service of the current user, or of the system."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Config, StorePath, UsageError, is_named, job_file_path, store_location
from chronex.cli.output import err, out
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.service_units import Manager, Service
    from chronex_store.opening import StoreLocation

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
    from chronex.cli.service_units import SYSTEM_PATH, Service, manager_of

    location = store_location(store)
    job_file: Path | None = job_file_path(config).absolute()
    if job_file is not None and not (job_file.is_file() or job_file.is_dir()):
        if isinstance(location, Path) or is_named(config):
            raise UsageError(
                f"no job file at {terminal_safe(str(job_file))}; chronex init --config writes a starter there"
            )
        job_file = None  # apply brings the jobs of a shared store
    service = Service(
        program=program(),
        job_file=job_file,
        store=_named_store(location),
        path=SYSTEM_PATH if system else os.environ.get("PATH", os.defpath),
        log=_log_of(location),
        environment=(
            *_zone(os.environ, system=system),
            *(() if isinstance(location, Path) else _of_node(os.environ)),
        ),
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


def _zone(environ: Mapping[str, str], *, system: bool) -> tuple[tuple[str, str], ...]:
    """The TZ of this shell, in which its commands show the schedules: without it the service would read those that
    name no zone in another one. A service of the system is the machine's, and a login's zone is not."""
    from chronex.clock import wall_ms
    from chronex.timing.zones import host_zone, machine_zone, show_one_time, utc_zone

    shell, machine, now_s = host_zone().zone, machine_zone() or utc_zone(), wall_ms() // 1000
    if "TZ" not in environ or show_one_time(shell, machine, now_s, now_s + _A_YEAR_S):
        return ()
    if not system:
        return (("TZ", environ["TZ"]),)
    err(
        f"TZ is {shell.name} in this shell, and the service has the machine's zone, {machine.name}: schedules that "
        f'name none are read there; timezone = "{shell.name}" under [scheduler] of the job file keeps them'
    )
    return ()


_A_YEAR_S = 366 * 86_400
# What tells a node of a shared store who it is, and where its password lies; never the password itself.
_NODE_VARIABLES = ("CHRONEX_NODE", "CHRONEX_STATE_DIR", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE", "PGSSLROOTCERT")


def _of_node(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, environ[name]) for name in _NODE_VARIABLES if environ.get(name))


def _named_store(location: StoreLocation) -> str:
    """As the command of the service names it: everybody can read the command of a process."""
    if isinstance(location, Path):
        return str(location.absolute())
    if location.parameters.get("password"):
        raise UsageError(
            "the address of the store has a password, and everybody could read it in the command of the service; "
            "put it into ~/.pgpass, and leave it out of --store and CHRONEX_STORE"
        )
    return location.shown


def _log_of(location: StoreLocation) -> Path:
    from chronex_store.opening import state_directory

    if isinstance(location, Path):
        return location.absolute().parent / "service.log"
    return state_directory(location).absolute() / "service.log"


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
