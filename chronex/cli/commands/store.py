"""`chronex store copy`: the whole store into another place."""

from __future__ import annotations

from typing import Annotated

import typer

from chronex.cli.options import Form, check_format
from chronex.cli.output import print_result

store = typer.Typer(
    help="The store as a whole: copy it from a directory into a database, or back.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Source = Annotated[str, typer.Argument(help="The store to copy: a directory, or postgresql://…", metavar="FROM")]
Target = Annotated[str, typer.Argument(help="Where nothing is yet: a directory, or postgresql://…", metavar="TO")]


@store.command("copy")
def copy(source: Source, target: Target, form: Form = "text") -> int:
    """Copy jobs, history and journal. Nothing may run there; logs stay where they are.

    Example: chronex store copy ./store postgresql://chronex@db.example/jobs
    """
    check_format(form)
    return run_copy(source, target, form)


@store.callback()
def _only_groups() -> None:
    """A group with one command stays a group."""


def run_copy(source: str, target: str, form: str) -> int:
    from chronex_store.copying import copy_store
    from chronex_store.opening import read_place

    report = copy_store(read_place(source), read_place(target))
    told = f"copied {report.rows} rows from {report.source} to {report.target}; its logs stayed where they were"
    print_result(
        form, lambda: {"source": report.source, "target": report.target, "rows": report.rows}, lambda: [told]
    )
    return 0
