"""Commands on a store as a whole: doctor, backup, restore."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

import os
from pathlib import Path
from typing import Annotated

import typer

from chronex.cli.surface.options import Form, StorePath


def _store_for(option: str | None, form: str) -> Path:
    """Where the store is, once the format is known to be one."""
    from chronex.cli.expressions import choose
    from chronex.cli.places import store_path

    choose("--format", form, ("text", "json"))
    return store_path(option, os.environ)


def doctor(
    store: StorePath = None,
    form: Form = "text",
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be put right.")] = False,
) -> None:
    """Check the store and the machine: records, space, permissions; zone data, clock, service, and whether the
    programs that jobs name are found. Exit 1: something is wrong.

    Example: chronex doctor --format json
    """
    from chronex.cli import store_commands
    from chronex.cli.machine.asking import checks_of

    place = _store_for(store, form)
    raise typer.Exit(store_commands.doctor(place, form, repair, lambda is_sound: checks_of(place, is_sound)))


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
