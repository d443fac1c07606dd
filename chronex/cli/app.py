"""The commands and their options. Each does its work in a module of its own, imported when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="chronex",
    help="Cron you can see, explain and trust.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Dialect = Annotated[str, typer.Option(help="The language of the expression: chronex or posix.", metavar="DIALECT")]
Zone = Annotated[
    str | None, typer.Option("--tz", help="Zone for expressions without TZ= (default: the host's).", metavar="ZONE")
]
Since = Annotated[
    str | None, typer.Option("--from", help="Count from this ISO 8601 time (default: now).", metavar="TIME")
]
Text = Annotated[str, typer.Argument(help="The expression, in quotes.", metavar="EXPR")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)] = False,
) -> None:
    if version:
        show_version()
        raise typer.Exit


@app.command("version")
def show_version() -> None:
    """Show the version.

    Example: chronex version
    """
    from chronex.cli.terminal import out
    from chronex.version import __version__

    out(f"chronex {__version__}")


@app.command()
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


@app.command("next")
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


@app.command()
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


@app.command()
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


@app.command()
def doctor(
    store: StorePath = None,
    form: Form = "text",
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be put right.")] = False,
) -> None:
    """Check a store: format, checksums, indexes, readers, space, permissions. Exit 1: something is wrong.

    Example: chronex doctor --format json
    """
    import os

    from chronex.cli import store_commands
    from chronex.cli.expressions import choose
    from chronex.cli.places import store_path

    choose("--format", form, ("text", "json"))
    raise typer.Exit(store_commands.doctor(store_path(store, os.environ), form, repair))


@app.command()
def backup(
    file: Annotated[str, typer.Argument(help="The file to write.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Write the whole store to one file; safe while a daemon runs.

    Example: chronex backup chronex.backup
    """
    import os
    from pathlib import Path

    from chronex.cli import store_commands
    from chronex.cli.expressions import choose
    from chronex.cli.places import store_path

    choose("--format", form, ("text", "json"))
    raise typer.Exit(store_commands.backup(store_path(store, os.environ), Path(file), form))


@app.command()
def restore(
    file: Annotated[str, typer.Argument(help="A file that backup wrote.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> None:
    """Put a backup in the store's place; what was there is kept beside it. Never over a running daemon.

    Example: chronex restore chronex.backup
    """
    import os
    from pathlib import Path

    from chronex.cli import store_commands
    from chronex.cli.expressions import choose
    from chronex.cli.places import store_path

    choose("--format", form, ("text", "json"))
    raise typer.Exit(store_commands.restore(store_path(store, os.environ), Path(file), form))
