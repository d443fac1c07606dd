"""`chronex import crontab|systemd|k8s`."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer

from chronex.cli.surface.options import Form, Zone


def import_schedules(
    source: Annotated[str, typer.Argument(help="crontab, systemd or k8s.", metavar="SOURCE")],
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files, or - for standard input (default: what this user has).", metavar="PATH…"),
    ] = None,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Where to write; - prints it.", metavar="FILE")
    ] = "chronex.toml",
    check: Annotated[bool, typer.Option("--check", help="Write nothing, tell what would differ.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
    tz: Zone = None,
    now: Annotated[
        str | None, typer.Option(help="Count the five years from this ISO 8601 time.", metavar="TIME")
    ] = None,
    form: Form = "text",
) -> None:
    """Carry schedules over, and prove it: every instant of the next five years that differs is listed with its
    reason. Exit 1: something differs or has no equivalent.

    Example: chronex import k8s - --check
    """
    from chronex.cli.expressions import choose
    from chronex.cli.imports.command import run_import

    choose("--format", form, ("text", "json"))
    choose("SOURCE", source, ("crontab", "systemd", "k8s"))
    raise typer.Exit(run_import(source, paths or [], tz, output, now=now, check=check, force=force, form=form))
