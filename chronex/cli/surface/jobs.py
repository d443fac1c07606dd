"""Commands on jobs: init, apply, run, list, show, history, logs."""

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
    headless: Annotated[
        bool, typer.Option("--headless", help="Without the dashboard, as it is without a terminal.")
    ] = False,
    once: Annotated[
        bool,
        typer.Option("--once", help="Run what is due now, wait, and stop; exit 1 when a run did not succeed."),
    ] = False,
    duration: Annotated[str | None, typer.Option("--for", help="Stop after this long.", metavar="DURATION")] = None,
    log_format: Annotated[str, typer.Option(help="text or json.", metavar="FORMAT")] = "text",
) -> None:
    """Apply the job file and run its jobs until stopped, with the dashboard. Exit 75: another daemon has the store.

    Example: chronex run --headless --for 1s
    """
    from chronex.cli.expressions import choose
    from chronex.cli.jobs import run_daemon

    choose("--log-format", log_format, ("text", "json"))
    if not headless and not once and duration is None:
        from chronex.cli.dashboard import is_wanted, run_with_dashboard

        if is_wanted():
            raise typer.Exit(run_with_dashboard(config, store))
    raise typer.Exit(run_daemon(config, store, once=once, duration=duration, log_format=log_format))


def list_jobs(
    store: StorePath = None,
    form: Annotated[str, typer.Option("--format", help="text, json or names.", metavar="FORMAT")] = "text",
    wanted: Annotated[
        str,
        typer.Option(
            "--filter", help="Only jobs that fit: text, state:failed, tag:etl, next<1h, -not.", metavar="TEXT"
        ),
    ] = "",
) -> None:
    """List the jobs: how each one is, when it runs next, and how its last run ended.

    Example: chronex list --filter "state:failed tag:nightly"
    """
    from chronex.cli.expressions import choose
    from chronex.cli.listing import run_list

    choose("--format", form, ("text", "json", "names"))
    raise typer.Exit(run_list(store, form, wanted))


def show(
    job: Annotated[str, typer.Argument(help="The job.", metavar="JOB")],
    versions: Annotated[bool, typer.Option("--versions", help="Its versions, and what each changed.")] = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Show one job in full: its next runs, its tasks, the policies that hold, and how it has been.

    Example: chronex show backup
    """
    from chronex.cli.expressions import choose
    from chronex.cli.show import run_show

    choose("--format", form, ("text", "json"))
    if versions:
        from chronex.cli.versions import run_versions

        raise typer.Exit(run_versions(job, store, form))
    raise typer.Exit(run_show(job, store, form))


def history(
    job: Annotated[str | None, typer.Argument(help="Only this job.", metavar="JOB")] = None,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.", metavar="N", min=1, max=100_000)] = 20,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only these: failed, missed, …; may be repeated.", metavar="STATE"),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Nothing older: 2h, 3d, or an ISO 8601 time.", metavar="TIME")
    ] = None,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Show what became of past occurrences, newest first, each with its reason.

    Example: chronex history --state failed --since 2d
    """
    from chronex.cli.expressions import choose
    from chronex.cli.history import run_history

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_history(job, count, states or [], since, store, form))


def logs(
    what: Annotated[
        str,
        typer.Argument(
            help="A job (its last run), the id of an occurrence, run or attempt, a beginning of it, or JOB@TIME.",
            metavar="JOB|RUN",
        ),
    ],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the attempt is over.")] = False,
    lines: Annotated[
        int | None, typer.Option("-n", "--lines", help="Only the last lines.", metavar="N", min=0)
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only of this task.", metavar="TASK")] = None,
    attempt: Annotated[
        int | None, typer.Option(help="Only of the attempt with this number.", metavar="N", min=1)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Bytes as they are, escape sequences too.")] = False,
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Show what attempts have written. Control characters are shown as a mark and never reach your terminal.

    Example: chronex logs backup -f
    """
    from chronex.cli.expressions import choose
    from chronex.cli.logs import Asked, run_logs

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_logs(Asked(what, task, attempt, lines, raw), store, form, follow=follow))
