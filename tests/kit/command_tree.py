"""The commands and options of the program, put together once: Typer needs a second for it, in every worker."""

from __future__ import annotations

from functools import cache

from chronex.cli.reference import CommandInfo, program


@cache
def command_tree() -> CommandInfo:
    return program()
