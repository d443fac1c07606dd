"""`chronex init`: a commented job file to start from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from chronex.cli.options import UsageError
from chronex.cli.output import out
from chronex.text.terminal import terminal_safe


def init(
    config: Annotated[str, typer.Option("--config", help="Where to write it.", metavar="FILE")] = "chronex.toml",
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> int:
    """Write a commented starter chronex.toml.

    Example: chronex init
    """
    return run_init(Path(config), force)


def run_init(path: Path, force: bool) -> int:
    """Write the starter file. An existing file stays as it is unless `force`; then it is replaced as a whole."""
    import shlex

    from chronex.jobfile import STARTER
    from chronex.text.files import make_private_directories, write_private_file

    name = terminal_safe(str(path))
    if not force and os.path.lexists(path):
        raise UsageError(f"{name} is there already; --force replaces it, or choose another --config")
    if os.path.isdir(path):
        inside = terminal_safe(str(path / "chronex.toml"))
        raise UsageError(f"{name} is a directory; name the file itself, such as {inside}")
    try:
        make_private_directories(path.parent)
        write_private_file(path, STARTER.encode(), replace=force)
    except FileExistsError:
        raise UsageError(f"{name} is there already; --force replaces it, or choose another --config") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"cannot write {name}: {reason}; choose another place with --config") from None
    out(f"wrote {name} with one job; start it with: chronex run --config {shlex.quote(name)}")
    return 0
