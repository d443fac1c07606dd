"""`chronex simulate`."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Config, Form, Since, StorePath, Zone


def simulate(
    file: Annotated[str | None, typer.Argument(help="The job file (default: as for run).", metavar="FILE")] = None,
    since: Since = None,
    until: Annotated[
        str | None, typer.Option("--to", help="Until this ISO 8601 time (default: four weeks).", metavar="TIME")
    ] = None,
    duration: Annotated[
        list[str] | None,
        typer.Option("--duration", help="How long runs take: JOB=5m, or 5m for all.", metavar="[JOB=]DURATION"),
    ] = None,
    config: Config = None,
    store: StorePath = None,
    tz: Zone = None,
    form: Form = "text",
) -> None:
    """Play the coming days of all jobs through the real planner: crowded hours, runs that will be skipped or late.
    Durations are measured where the store has some. Nothing is started or written.

    Example: chronex simulate --duration 10m
    """
    from chronex.cli.expressions import choose
    from chronex.cli.simulation.command import run_simulate

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_simulate(file or config, since, until, duration or [], store, tz, form))
