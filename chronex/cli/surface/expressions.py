"""Commands on expressions: version, explain, next, fmt."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Dialect, Form, Since, Text, Zone


def show_version(form: Form = "text") -> None:
    """Show the version.

    Example: chronex version
    """
    from chronex.cli.terminal import out
    from chronex.version import __version__

    if form == "text":  # the shortest way: what is asked a thousand times a day by scripts
        out(f"chronex {__version__}")
        return
    import json

    from chronex.cli.expressions import choose

    choose("--format", form, ("text", "json"))
    out(json.dumps({"version": __version__}))


def explain(
    text: Text,
    count: Annotated[int, typer.Option("-n", "--count", help="How many runs.", metavar="N", min=0, max=1000)] = 10,
    since: Since = None,
    tz: Zone = None,
    identity: Annotated[
        str | None, typer.Option("--id", help="The job's name, for stagger and spread.", metavar="JOB")
    ] = None,
    dialect: Dialect = "chronex",
    form: Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")] = "text",
    spread: Annotated[
        str | None, typer.Option(help="Spread each run over a window of this length.", metavar="DURATION")
    ] = None,
    mode: Annotated[
        str, typer.Option(help="Where the window lies: after, around or before.", metavar="MODE")
    ] = "after",
    dist: Annotated[
        str, typer.Option(help="uniform, skewEarly[:S], skewLate[:S], normal[:…], exponential[:…].", metavar="NAME")
    ] = "uniform",
    seed: Annotated[
        str, typer.Option(help="How long a choice lasts: stable, daily or weekly.", metavar="SEED")
    ] = "stable",
    salt: Annotated[str, typer.Option(help="Changes every choice.", metavar="TEXT")] = "",
    only: Annotated[
        str, typer.Option(help="Clauses that must hold, such as dow=MON-FRI;between=08:00-20:00.", metavar="CLAUSES")
    ] = "",
    avoid: Annotated[str, typer.Option(help="Clauses that must not hold.", metavar="CLAUSES")] = "",
) -> None:
    """Say what an expression means, when it fires, and what clock changes do to it.

    Example: chronex explain "TZ=Asia/Seoul 0 9 * * MON-FRI <jitter:30s>" -n 3
    """
    from chronex.cli.expressions import run_explain
    from chronex.cli.spread import SpreadOptions

    asked = None if spread is None else SpreadOptions(spread, mode, dist, seed, salt, only, avoid)
    raise typer.Exit(run_explain(text, count, since, tz, identity, dialect, form, asked))


def next_runs(
    text: Text,
    count: Annotated[
        int, typer.Option("-n", "--count", help="How many instants.", metavar="N", min=1, max=1_000_000)
    ] = 1,
    since: Since = None,
    tz: Zone = None,
    dialect: Dialect = "chronex",
    form: Annotated[str, typer.Option("--format", help="text or json.", metavar="FORMAT")] = "text",
) -> None:
    """Print the next instants, one ISO 8601 time a line or a list of them in JSON, for scripts.

    Example: chronex next "0 9 * * MON-FRI" -n 3 --from 2027-01-01 --tz Europe/Berlin
    """
    from chronex.cli.expressions import run_next

    raise typer.Exit(run_next(text, count, since, tz, dialect, form))


def fmt(
    texts: Annotated[list[str], typer.Argument(help="Expressions, in quotes.", metavar="EXPR…")],
    dialect: Dialect = "chronex",
    form: Form = "text",
) -> None:
    """Print expressions in canonical form.

    Example: chronex fmt "0 09 * * mon-fri <jitter:90s>"
    """
    from chronex.cli.expressions import run_fmt

    raise typer.Exit(run_fmt(texts, dialect, form))
