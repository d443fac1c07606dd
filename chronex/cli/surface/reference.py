"""Commands that describe the others: completion and man."""

# Annotations are values here, not text: typer would evaluate each one again at every start.

from typing import Annotated

import typer


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
) -> None:
    """Print a completion script for a shell.

    Example: chronex completion bash
    """
    from chronex.cli.expressions import choose
    from chronex.cli.reference.completion import SHELLS
    from chronex.cli.reference.completion import completion as script_for
    from chronex.cli.reference.tree import program
    from chronex.cli.terminal import out

    choose("SHELL", shell, SHELLS)
    out(script_for(shell, program()).rstrip("\n"))


def man() -> None:
    """Print the manual page, for `chronex man | man -l -`.

    Example: chronex man
    """
    from chronex.cli.reference.manual import manual
    from chronex.cli.reference.tree import program
    from chronex.cli.terminal import out

    out(manual(program()).rstrip("\n"))
