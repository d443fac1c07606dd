"""`chronex service install|uninstall|status`."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Config, StorePath

service = typer.Typer(
    help="Run Chronex as a service of your user: systemd on Linux, launchd on macOS.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")]


@service.command("install")
def install(
    config: Config = None,
    store: StorePath = None,
    dry_run: DryRun = False,
    no_start: Annotated[bool, typer.Option("--no-start", help="Write the file, start nothing.")] = False,
) -> None:
    """Start at login, restart after a failure, with the PATH of this shell.

    Example: chronex service install --dry-run
    """
    from chronex.cli.service import acts

    raise typer.Exit(acts.install(config, store, dry_run=dry_run, no_start=no_start))


@service.command("uninstall")
def uninstall(dry_run: DryRun = False) -> None:
    """Stop it and remove its file; the store and the job file stay.

    Example: chronex service uninstall --dry-run
    """
    from chronex.cli.service import acts

    raise typer.Exit(acts.uninstall(dry_run=dry_run))


@service.command("status")
def status() -> None:
    """Say whether it is installed and running. Exit 1: it is not.

    Example: chronex service status
    """
    from chronex.cli.service import acts

    raise typer.Exit(acts.status())
