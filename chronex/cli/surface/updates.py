"""apply: change what runs, or see what a change would do."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Config, Form, StorePath


def apply(
    file: Annotated[
        str | None,
        typer.Argument(help="A job file, or trigger definitions in JSON (default: as for run).", metavar="FILE"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would do to the coming days.")] = False,
    policy: Annotated[
        str, typer.Option(help="When edits take effect: immediate, graceful or windowed.", metavar="POLICY")
    ] = "immediate",
    window: Annotated[
        str | None, typer.Option(help="How far windowed reaches (default: 30d).", metavar="DURATION")
    ] = None,
    days: Annotated[int, typer.Option(help="How many days --dry-run looks ahead.", metavar="N", min=1, max=366)] = 7,
    fail_if_fires_now: Annotated[
        bool, typer.Option("--fail-if-fires-now", help="Change nothing and exit 1 if an edit would start a run.")
    ] = False,
    basis: Annotated[
        int | None,
        typer.Option(help="Refuse if jobs were changed since the --dry-run that said this.", metavar="NUMBER"),
    ] = None,
    rollback: Annotated[
        tuple[str, int] | None,
        typer.Option(help="Give a job an earlier version's definition.", metavar="JOB VERSION"),
    ] = None,
    config: Config = None,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Bring the jobs of the store to what the job file says. Exit 2: the file has a mistake, nothing changed.

    Example: chronex apply chronex.toml --dry-run
    """
    from chronex.cli.apply import Asked, run_apply, run_rollback
    from chronex.cli.expressions import choose

    choose("--format", form, ("text", "json"))
    choose("--policy", policy, ("immediate", "graceful", "windowed"))
    if rollback is not None:
        raise typer.Exit(run_rollback(*rollback, store, form))
    raise typer.Exit(
        run_apply(Asked(file or config, dry_run, policy, window, days, fail_if_fires_now, basis, store, form))
    )
