"""`chronex backup` and `chronex restore`: the whole store as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chronex.cli.options import Form, StorePath, check_format, store_path
from chronex.cli.output import print_json, print_lines


def backup(
    file: Annotated[str, typer.Argument(help="The file to write.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Write the whole store to one file; safe while a daemon runs.

    Example: chronex backup chronex.backup
    """
    check_format(form)
    return run_backup(store_path(store), Path(file), form)


def restore(
    file: Annotated[str, typer.Argument(help="A file that backup wrote.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Put a backup in the store's place; what was there is kept beside it. Never over a running daemon.

    Example: chronex restore chronex.backup
    """
    check_format(form)
    return run_restore(store_path(store), Path(file), form)


def run_backup(store: Path, file: Path, form: str = "text") -> int:
    """Write the whole store to `file`; safe beside a running daemon."""
    from chronex_store import backup as store_backup

    report = store_backup.backup(store, file)
    if form == "json":
        print_json(report.to_dict(), sort_keys=True)
    else:
        print_lines([f"wrote {report.file} ({report.size} bytes)"])
    return 0


def run_restore(store: Path, file: Path, form: str = "text") -> int:
    """Put the backup `file` in the store's place; StoreInUseError when a daemon holds the store."""
    from chronex_store import backup as store_backup

    report = store_backup.restore(file, store)
    if form == "json":
        print_json(report.to_dict(), sort_keys=True)
        return 0
    print_lines([f"restored {report.records} records from {report.file}"])
    if report.replaced:
        print_lines([f"what was there before is in {report.replaced}"])
    return 0
