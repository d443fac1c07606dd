"""`chronex keeper`: what a daemon starts to hold its commands; not for people."""

from __future__ import annotations

from typing import Annotated

import typer


def keeper(directory: Annotated[str, typer.Argument()], logs: Annotated[str, typer.Argument()]) -> int:
    """Hold the commands of a daemon, so that they outlive it."""
    from chronex.keeper.keeper_process import main

    main(directory, logs)
    return 0
