"""The command that holds the journal to the formal model."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Config, Form, StorePath


def verify(
    store: StorePath = None,
    config: Config = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Report only what broke at or after this time.", metavar="TIME")
    ] = None,
    job: Annotated[str | None, typer.Option("--job", help="Only this job.", metavar="JOB")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on with the journal as it grows.")] = False,
    form: Form = "text",
) -> None:
    """Check the journal against the formal model and your own properties. Exit 1: a property is violated.

    Example: chronex verify --format json
    """
    from chronex.cli.expressions import choose
    from chronex.cli.verify import run_verify

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_verify(store, config, since=since, job=job, watch=watch, form=form))
