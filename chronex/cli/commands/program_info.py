"""`chronex completion`, `chronex man` and `chronex version`: the program described by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from chronex.cli.options import Form, StorePath, check_format, choose
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


def names(kind: Annotated[str, typer.Argument()], store: StorePath = None) -> int:
    """What completion scripts call: the names of one kind, one on each line."""
    from chronex.cli.completion_values import KINDS, names_of, names_without_store
    from chronex.cli.store_session import read_store
    from chronex.text.terminal import terminal_safe

    choose("KIND", kind, KINDS)
    known = names_without_store(kind)
    for name in read_store(store, names_of(kind)) if known is None else known:
        out(terminal_safe(name))
    return 0


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
