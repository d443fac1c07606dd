"""`chronex store`: copy it into another place; and for a shared one its layout, its soundness and its roles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format
from chronex.cli.output import print_result
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex_store.postgres.pg_address import PostgresAddress

store = typer.Typer(
    help="The store as a whole: copy it, and look after one in a database: migrate, check, roles.",
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


@store.command("migrate")
def migrate(store: StorePath = None, form: Form = "text") -> int:
    """Bring the tables of a database to the newest layout. Exit 1: nodes of an older Chronex work on it still.

    Example: chronex store migrate --store postgresql://chronex@db.example/jobs
    """
    check_format(form)
    return run_migrate(_database(store), form)


@store.command("check")
def check(store: StorePath = None, form: Form = "text") -> int:
    """Check the rows of a database, its server and the way to it. Exit 1: something is wrong.

    Example: chronex store check --store postgresql://chronex@db.example/jobs
    """
    check_format(form)
    return run_check(_database(store), form)


@store.command("roles")
def roles(store: StorePath = None) -> int:
    """Print SQL for its owner: roles for nodes, for those who give commands, and for those who look.

    Example: chronex store roles --store postgresql://chronex@db.example/jobs
    """
    return run_roles(_database(store))


def _database(option: str | None) -> PostgresAddress:
    from chronex.cli.options import store_location

    location = store_location(option)
    if isinstance(location, Path):
        raise UsageError(f"{location} is a directory; this is for a store in a database: `chronex doctor` checks it")
    return location


def run_migrate(address: PostgresAddress, form: str) -> int:
    """0 when the layout is the newest one, 1 when it waits for nodes."""
    from chronex_store.opening import check_client

    check_client(address)
    from chronex_store.postgres.pg_migration import migrate as migrate_tables

    done = migrate_tables(address)
    waits = list(done.waits_for)
    text = f"layout {done.after}" if done.before == done.after else f"layout {done.before} is layout {done.after} now"
    if waits:
        text = f"prepared; restart these with this version, then run it again: {', '.join(waits)}"
    print_result(
        form, lambda: {"before": done.before, "after": done.after, "waits_for": waits}, lambda: [terminal_safe(text)]
    )
    return 1 if waits else 0


def run_check(address: PostgresAddress, form: str) -> int:
    from chronex_store.opening import check_client, open_postgres

    check_client(address)
    from chronex_store.postgres.pg_checks import check as check_store

    with open_postgres(address, create=False) as opened:
        found = check_store(opened)
    lines = [*(f"{name:22} {value}" for name, value in found.facts.items()), *(found.findings or ["it is sound"])]
    print_result(
        form, lambda: {**found.facts, "findings": found.findings}, lambda: [terminal_safe(line) for line in lines]
    )
    return 1 if found.findings else 0


def run_roles(address: PostgresAddress) -> int:
    from chronex.cli.output import print_lines
    from chronex_store.postgres.pg_roles import statements

    print_lines(list(statements(address.schema)))
    return 0


def run_copy(source: str, target: str, form: str) -> int:
    from chronex_store.copying import copy_store
    from chronex_store.opening import read_location

    report = copy_store(read_location(source), read_location(target))
    text = f"copied {report.rows} rows from {report.source} to {report.target}; its logs stayed where they were"
    print_result(
        form, lambda: {"source": report.source, "target": report.target, "rows": report.rows}, lambda: [text]
    )
    return 0
