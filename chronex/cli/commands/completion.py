"""`chronex completion` and `chronex man`: the command line described by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from chronex.cli.arguments import choose
from chronex.cli.output import out


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
) -> None:
    """Print a completion script for a shell.

    Example: chronex completion bash
    """
    from chronex.cli.command_tree import program
    from chronex.cli.completion_scripts import SHELLS, completion_script

    choose("SHELL", shell, SHELLS)
    out(completion_script(shell, program()).rstrip("\n"))


def man() -> None:
    """Print the manual page, for `chronex man | man -l -`.

    Example: chronex man
    """
    from chronex.cli.command_tree import program
    from chronex.cli.manual_page import manual

    out(manual(program()).rstrip("\n"))
