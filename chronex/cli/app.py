"""The commands and their options. Each does its work in a module of its own, imported when it runs."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

Function = TypeVar("Function", bound=Callable[..., Any])
COMMANDS: dict[str, Callable[..., Any]] = {}


def command(name: str) -> Callable[[Function], Function]:
    """Put a function into the table of commands."""

    def keep(function: Function) -> Function:
        COMMANDS[name] = function
        return function

    return keep


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The program for these arguments. Building a command costs a millisecond, so only the one asked for is built;
    where none is recognised, all are, for help and for the error message."""
    app = typer.Typer(
        name="chronex",
        help="Cron you can see, explain and trust.",
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(root)
    asked = arguments[0] if arguments else ""
    for name in [asked] if asked in COMMANDS else COMMANDS:
        app.command(name)(COMMANDS[name])
    return app


Dialect = Annotated[str, typer.Option(help="The language of the expression: chronex or posix.", metavar="DIALECT")]
Zone = Annotated[
    str | None, typer.Option("--tz", help="Zone for expressions without TZ= (default: the host's).", metavar="ZONE")
]
Since = Annotated[
    str | None, typer.Option("--from", help="Count from this ISO 8601 time (default: now).", metavar="TIME")
]
Text = Annotated[str, typer.Argument(help="The expression, in quotes.", metavar="EXPR")]


def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        show_version()
        raise typer.Exit


@command("version")
def show_version() -> None:
    """Show the version.

    Example: chronex version
    """
    from chronex.cli.terminal import out
    from chronex.version import __version__

    out(f"chronex {__version__}")


@command("explain")
def explain(
    text: Text,
    count: Annotated[int, typer.Option("-n", "--count", help="How many runs.", min=0, max=1000)] = 10,
    since: Since = None,
    tz: Zone = None,
    identity: Annotated[str | None, typer.Option("--id", help="The job's id, for stagger and spread.")] = None,
    dialect: Dialect = "chronex",
    form: Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")] = "text",
    spread: Annotated[str | None, typer.Option(help="Spread each run over a window of this length.")] = None,
    mode: Annotated[str, typer.Option(help="Where the window lies: after, around or before.")] = "after",
    dist: Annotated[
        str, typer.Option(help="uniform, skewEarly[:S], skewLate[:S], normal[:…], exponential[:…].")
    ] = "uniform",
    seed: Annotated[str, typer.Option(help="How long a choice lasts: stable, daily or weekly.")] = "stable",
    salt: Annotated[str, typer.Option(help="Changes every choice.")] = "",
    only: Annotated[str, typer.Option(help="Clauses that must hold, such as dow=MON-FRI;between=08:00-20:00.")] = "",
    avoid: Annotated[str, typer.Option(help="Clauses that must not hold.")] = "",
) -> None:
    """Say what an expression means, when it fires, and what clock changes do to it.

    Example: chronex explain "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>" -n 3
    """
    from chronex.cli.expressions import run_explain
    from chronex.cli.spread import SpreadOptions

    asked = None if spread is None else SpreadOptions(spread, mode, dist, seed, salt, only, avoid)
    raise typer.Exit(run_explain(text, count, since, tz, identity, dialect, form, asked))


@command("next")
def next_runs(
    text: Text,
    count: Annotated[int, typer.Option("-n", "--count", help="How many instants.", min=1, max=1_000_000)] = 1,
    since: Since = None,
    tz: Zone = None,
    dialect: Dialect = "chronex",
) -> None:
    """Print the next instants, one ISO 8601 time a line, for scripts.

    Example: chronex next "0 9 * * MON-FRI" -n 3 --from 2027-01-01 --tz Europe/Berlin
    """
    from chronex.cli.expressions import run_next

    raise typer.Exit(run_next(text, count, since, tz, dialect))


@command("lint")
def lint(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Expressions; none or - reads one a line from standard input.", metavar="EXPR…"),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="text, json, gcc, github or sarif.", metavar="FORMAT")
    ] = "text",
    fix: Annotated[bool, typer.Option("--fix", help="Print the expressions with every fix applied.")] = False,
    fail_on: Annotated[str, typer.Option(help="Exit 1 from this severity on: warning or error.")] = "warning",
    tz: Zone = None,
    now: Annotated[str | None, typer.Option(help="Judge dates from this ISO 8601 time.", metavar="TIME")] = None,
    dialect: Dialect = "chronex",
) -> None:
    """Find mistakes and surprises in expressions. Exit 0: none, 1: found, 2: bad usage.

    Example: chronex lint "0 0 13 * *" --tz UTC
    """
    from chronex.cli.lint import run_lint

    raise typer.Exit(run_lint(texts or [], form, fix, fail_on, tz, now, dialect))


@command("fmt")
def fmt(
    texts: Annotated[list[str], typer.Argument(help="Expressions, in quotes.", metavar="EXPR…")],
    dialect: Dialect = "chronex",
) -> None:
    """Print expressions in canonical form.

    Example: chronex fmt "0 09 * * mon-fri <jitter:90s>"
    """
    from chronex.cli.expressions import run_fmt

    raise typer.Exit(run_fmt(texts, dialect))


StorePath = Annotated[
    str | None,
    typer.Option(
        "--store", help="The store's directory (default: CHRONEX_STORE, else your state directory).", metavar="DIR"
    ),
]
Form = Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")]


def _store_for(option: str | None, form: str) -> Path:
    """Where the store is, once the format is known to be one."""
    from chronex.cli.expressions import choose
    from chronex.cli.places import store_path

    choose("--format", form, ("text", "json"))
    return store_path(option, os.environ)


@command("doctor")
def doctor(
    store: StorePath = None,
    form: Form = "text",
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be put right.")] = False,
) -> None:
    """Check a store: format, checksums, indexes, readers, space, permissions. Exit 1: something is wrong.

    Example: chronex doctor --format json
    """
    from chronex.cli import store_commands

    raise typer.Exit(store_commands.doctor(_store_for(store, form), form, repair))


@command("backup")
def backup(
    file: Annotated[str, typer.Argument(help="The file to write.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Write the whole store to one file; safe while a daemon runs.

    Example: chronex backup chronex.backup
    """
    from chronex.cli import store_commands

    raise typer.Exit(store_commands.backup(_store_for(store, form), Path(file), form))


@command("restore")
def restore(
    file: Annotated[str, typer.Argument(help="A file that backup wrote.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Put a backup in the store's place; what was there is kept beside it. Never over a running daemon.

    Example: chronex restore chronex.backup
    """
    from chronex.cli import store_commands

    raise typer.Exit(store_commands.restore(_store_for(store, form), Path(file), form))


Config = Annotated[
    str | None,
    typer.Option("--config", help="The job file (default: CHRONEX_CONFIG, else ./chronex.toml).", metavar="FILE"),
]


@command("init")
def init(
    config: Annotated[str, typer.Option("--config", help="Where to write it.", metavar="FILE")] = "chronex.toml",
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented starter chronex.toml.

    Example: chronex init
    """
    from chronex.cli.init import init as write_starter

    raise typer.Exit(write_starter(Path(config), force))


@command("apply")
def apply(
    file: Annotated[str | None, typer.Argument(help="The job file (default: as for run).", metavar="FILE")] = None,
    store: StorePath = None,
) -> None:
    """Bring the jobs of the store to what the job file says. Exit 2: the file has a mistake, nothing changed.

    Example: chronex apply chronex.toml
    """
    from chronex.cli.jobs import run_apply

    raise typer.Exit(run_apply(file, store))


@command("run")
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


@command("list")
def list_jobs(store: StorePath = None, form: Form = "text") -> None:
    """List the jobs of the store and when each runs next.

    Example: chronex list
    """
    from chronex.cli.expressions import choose
    from chronex.cli.jobs import run_list

    choose("--format", form, ("text", "json"))
    raise typer.Exit(run_list(store, form))


@command("history")
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
