"""Commands that watch and ask: why, status."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Form, StorePath


def why(
    job: Annotated[str, typer.Argument(help="The job.", metavar="JOB")],
    time: Annotated[
        str | None,
        typer.Argument(
            help="An ISO 8601 time or HH:MM in the job's zone, -2h, +1d, or an occurrence's id.", metavar="TIME"
        ),
    ] = None,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Say why a job ran, ran late, failed, or did not run at a time; without TIME: the last run and the next.

    Example: chronex why backup 03:00
    """
    from chronex.cli.expressions import choose
    from chronex.cli.why import run_why

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_why(job, time, store, form))


def status(
    store: StorePath = None,
    form: Form = "text",
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and show every change.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when something needs attention.")] = False,
) -> None:
    """Show on one screen whether a scheduler runs, what runs and comes next, and what needs attention.

    Example: chronex status
    """
    from chronex.cli.expressions import choose
    from chronex.cli.status import run_status

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_status(store, form, watch=watch, check=check))
