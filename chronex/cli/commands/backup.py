"""`chronex backup` and `chronex restore`: the whole store and the logs of its attempts as one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from chronex.cli.options import Form, StorePath, check_format, store_path
from chronex.cli.output import err, print_json, print_lines


def backup(
    file: Annotated[str, typer.Argument(help="The file to write.", metavar="FILE")],
    no_logs: Annotated[bool, typer.Option("--no-logs", help="Leave the logs of attempts out.")] = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Write the whole store and its logs to one file; safe while a daemon runs.

    Example: chronex backup chronex.backup
    """
    check_format(form)
    return run_backup(store_path(store), Path(file), form, with_logs=not no_logs)


def restore(
    file: Annotated[str, typer.Argument(help="A file that backup wrote.", metavar="FILE")],
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Put a backup and its logs in the store's place; what was there is kept beside it. Never over a running daemon.

    Example: chronex restore chronex.backup
    """
    check_format(form)
    return run_restore(store_path(store), Path(file), form)


def run_backup(store: Path, file: Path, form: str = "text", *, with_logs: bool = True) -> int:
    """Write the whole store to `file`; safe beside a running daemon."""
    from chronex_store import backup as store_backup

    report = store_backup.backup(store, file, with_logs=with_logs)
    logs = _logs(report.logs) if with_logs else "without logs"
    line = f"wrote {report.file} ({report.size} bytes, {logs})"
    if form == "json":
        print_json(report.to_dict(), sort_keys=True)
    else:
        print_lines([line])
    return 0


def _logs(count: int) -> str:
    return "no logs" if not count else "1 log" if count == 1 else f"{count} logs"


def run_restore(store: Path, file: Path, form: str = "text") -> int:
    """Put the backup `file` in the store's place; StoreInUseError when a daemon holds the store. 1: a part of it was
    damaged, and is told; the rest was restored."""
    from chronex_store import backup as store_backup

    report = store_backup.restore(file, store)
    if form == "json":
        print_json(report.to_dict(), sort_keys=True)
        return 1 if report.problems else 0
    logs = "the backup has no logs, those that are here stay" if report.logs is None else _logs(report.logs)
    print_lines([f"restored {report.records} records from {report.file}; {logs}"])
    kept = [place for place in (report.replaced, report.replaced_logs) if place]
    if kept:
        print_lines([f"what was there before is in {' and '.join(kept)}"])
    for problem in report.problems:
        err(f"the backup was damaged: {problem}")
    return 1 if report.problems else 0
