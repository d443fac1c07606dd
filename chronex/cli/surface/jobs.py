"""Commands on jobs: init, apply, run, list, history."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from pathlib import Path
from typing import Annotated

import typer

from chronex.cli.surface.options import Config, Form, StorePath


def init(
    config: Annotated[str, typer.Option("--config", help="Where to write it.", metavar="FILE")] = "chronex.toml",
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented starter chronex.toml.

    Example: chronex init
    """
    from chronex.cli.init import init as write_starter

    raise typer.Exit(write_starter(Path(config), force))


def run(
    config: Config = None,
    store: StorePath = None,
    headless: Annotated[bool, typer.Option("--headless", help="Without a dashboard (the only way so far).")] = False,
    once: Annotated[bool, typer.Option("--once", help="Run what is due now, wait for it, and stop.")] = False,
    duration: Annotated[str | None, typer.Option("--for", help="Stop after this long.", metavar="DURATION")] = None,
    log_format: Annotated[str, typer.Option(help="text or json.", metavar="FORMAT")] = "text",
) -> None:
    """Apply the job file and run its jobs until stopped. Exit 75: another daemon holds the store.

    Example: chronex run --headless --for 1s
    """
    from chronex.cli.expressions import choose
    from chronex.cli.jobs import run_daemon

    choose("--log-format", log_format, ("text", "json"))
    raise typer.Exit(run_daemon(config, store, once=once, duration=duration, log_format=log_format))


def list_jobs(store: StorePath = None, form: Form = "text") -> None:
    """List the jobs of the store and when each runs next.

    Example: chronex list
    """
    from chronex.cli.expressions import choose
    from chronex.cli.jobs import run_list

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_list(store, form))


def history(
    job: Annotated[str | None, typer.Argument(help="Only this job.", metavar="JOB")] = None,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.", min=1, max=100_000)] = 20,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Show what became of past occurrences, newest first, each with its reason.

    Example: chronex history -n 5
    """
    from chronex.cli.expressions import choose
    from chronex.cli.jobs import run_history

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_history(job, count, store, form))
