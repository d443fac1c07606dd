"""`chronex completion`, `chronex man` and `chronex version`: the program described by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from chronex.cli.options import Form, check_format, choose
from chronex.cli.output import out


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
) -> None:
    """Print a completion script for a shell.

    Example: chronex completion bash
    """
    from chronex.cli.reference import SHELLS, completion_script, program

    choose("SHELL", shell, SHELLS)
    out(completion_script(shell, program()).rstrip("\n"))


def man() -> None:
    """Print the manual page, for `chronex man | man -l -`.

    Example: chronex man
    """
    from chronex.cli.reference import manual, program

    out(manual(program()).rstrip("\n"))


def version(form: Form = "text") -> None:
    """Show the version.

    Example: chronex version
    """
    from chronex.version import __version__

    if form == "text":  # scripts ask for the version often, so this path loads nothing else
        out(f"chronex {__version__}")
        return
    import json

    check_format(form)
    out(json.dumps({"version": __version__}))
