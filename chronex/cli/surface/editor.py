"""Commands for files and editors: lint, lsp."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Dialect, Zone


def lint(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, directories or expressions; - reads standard input; none: the files below this directory.",
            metavar="PATH|EXPR…",
        ),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="text, json, gcc, github or sarif.", metavar="FORMAT")
    ] = "text",
    select: Annotated[
        list[str] | None, typer.Option(help="Only these codes or their beginnings (W11,E).", metavar="CODE,…")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(help="Not these codes or their beginnings.", metavar="CODE,…")
    ] = None,
    min_severity: Annotated[
        str, typer.Option(help="Show from info, warning or error on.", metavar="SEVERITY")
    ] = "warning",
    fail_on: Annotated[
        str, typer.Option(help="Exit 1 from info, warning or error on.", metavar="SEVERITY")
    ] = "warning",
    fix: Annotated[bool, typer.Option("--fix", help="Apply every safe fix; all other bytes stay.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what --fix would change.")] = False,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever is found.")] = False,
    stdin_filename: Annotated[
        str | None, typer.Option(help="The name of the file that - reads.", metavar="NAME")
    ] = None,
    as_kind: Annotated[
        str | None,
        typer.Option(
            "--as", help="chronex, crontab, cron.d, github, k8s, systemd, trigger or python.", metavar="KIND"
        ),
    ] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", help="Zone where a file names none (default: the host's).", metavar="ZONE")
    ] = None,
    now: Annotated[str | None, typer.Option(help="Judge dates from this ISO 8601 time.", metavar="TIME")] = None,
    dialect: Dialect = "chronex",
    explain: Annotated[
        str | None, typer.Option(help="Show the page of a rule: what is bad, what is good.", metavar="CODE")
    ] = None,
    list_rules: Annotated[bool, typer.Option("--list-rules", help="List every rule.")] = False,
) -> None:
    """Find mistakes and surprises in job files, crontabs, workflows, CronJobs, timers and expressions.

    Exit 0: nothing found, 1: found, 2: bad usage or a file that cannot be read.

    Example: chronex lint "0 0 13 * *" --tz UTC
    """
    from chronex.cli.lint import LintOptions, run_lint

    options = LintOptions(
        targets=tuple(targets or ()), form=form, select=tuple(select or ()), ignore=tuple(ignore or ()),
        min_severity=min_severity, fail_on=fail_on, fix=fix, diff=diff, exit_zero=exit_zero,
        stdin_filename=stdin_filename, as_kind=as_kind, tz=tz, now=now, dialect=dialect,
        explain=explain, list_rules=list_rules,
    )  # fmt: skip
    raise typer.Exit(run_lint(options))


def lsp(
    tz: Zone = None,
    now: Annotated[
        str | None, typer.Option(help="Pretend that it is this ISO 8601 time.", metavar="TIME", hidden=True)
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Show what the server can do, and exit.")] = False,
) -> None:
    """Serve editors over standard input and output: the findings of lint, hover, hints, completion and fixes.

    Example: chronex lsp --check
    """
    from chronex.cli.lsp import run_lsp

    raise typer.Exit(run_lsp(tz, now, check=check))
