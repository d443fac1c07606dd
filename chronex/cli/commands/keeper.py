"""`chronex keeper` and `chronex launcher`: what a daemon and its keeper start for themselves; not for people."""

from __future__ import annotations

from typing import Annotated

import typer


def keeper(directory: Annotated[str, typer.Argument()], logs: Annotated[str, typer.Argument()]) -> int:
    """Hold the commands of a daemon, so that they outlive it."""
    from chronex.keeper.keeper_process import main

    main(directory, logs)
    return 0


def launcher() -> int:
    """Become a command as another user or within limits, where there is no interpreter to do it."""
    from chronex.run.launcher import run_order

    run_order()
    return 0
