"""`chronex doctor`, `backup` and `restore`: thin functions that print and return an exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chronex.cli.failures import system_sentence
from chronex.cli.terminal import err, inert, out
from chronex.errors import ChronexError

if TYPE_CHECKING:
    from chronex.cli.machine import Check

OK, FAILURE, BAD_INPUT = 0, 1, 2
# What doctor was shown is no store of Chronex, so there is nothing to find fault with.
_NO_STORE = {"StoreRefusedError", "ForeignStoreError"}


def doctor(
    store: Path,
    format: str = "text",  # noqa: A002
    repair: bool = False,
    machine: Callable[[bool], list[Check]] = lambda is_sound: [],
) -> int:
    """Check the store, then the machine, and say what to do; 1 when something is wrong, 2 when there is no store.

    `machine` is told whether the store may be read.
    """
    from chronex_store import doctor as module

    def work() -> int:
        report, mended = module.examine(store), None
        if repair and report.worst is None:
            # Only a store whose pages are whole may be opened in this process.
            mended = _repair(store)
            report = module.examine(store)
        checks = machine(report.worst is None)
        if format == "json":
            _print_json({**report.to_dict(), "repaired": mended, "machine": [check._asdict() for check in checks]})
        else:
            _print_report(report, mended)
            _print_checks(checks)
        if report.worst is not None and report.worst.code in _NO_STORE:
            return BAD_INPUT
        is_well = report.is_sound and not any(check.verdict == "wrong" for check in checks)
        return OK if is_well else FAILURE

    return _guarded(work)


def backup(store: Path, file: Path, format: str = "text") -> int:  # noqa: A002
    """Write the whole store to `file`; safe beside a running daemon."""
    from chronex_store import backup as module

    def work() -> int:
        report = module.backup(store, file)
        if format == "json":
            _print_json(report.to_dict())
        else:
            _print(f"wrote {report.file} ({report.size} bytes)")
        return OK

    return _guarded(work)


def restore(store: Path, file: Path, format: str = "text") -> int:  # noqa: A002
    """Put the backup `file` in the store's place; 75 when a daemon holds the store."""
    from chronex_store import backup as module

    def work() -> int:
        report = module.restore(file, store)
        if format == "json":
            _print_json(report.to_dict())
        else:
            _print(f"restored {report.records} records from {report.file}")
            if report.replaced:
                _print(f"what was there before is in {report.replaced}")
        return OK

    return _guarded(work)


def _repair(store: Path) -> dict[str, Any]:
    from chronex_store import LmdbStore
    from chronex_store import doctor as module

    with LmdbStore.open(store, create=False) as opened:
        return module.repair(opened).to_dict()


def _print_report(report: Any, mended: dict[str, Any] | None) -> None:
    if mended:
        _print("repaired: " + ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in mended.items()))
    for finding in report.findings:
        advice = f"; {finding.advice}" if finding.advice else ""
        _print(f"{finding.severity}: {finding.message}{advice}")
    if report.figures:
        records = sum(report.figures["records"].values())
        used = report.figures["used_bytes"] / report.figures["map_bytes"]
        _print(f"{report.store}: {records} records, {used:.1%} of the map used")
    _print("the store is sound" if report.is_sound else "the store needs attention")


def _print_checks(checks: list[Check]) -> None:
    for check in checks:
        advice = f"; {check.advice}" if check.advice else ""
        _print(f"{check.verdict.value:5} {check.topic}: {check.message}{advice}")


def _guarded(work: Callable[[], int]) -> int:
    """One sentence instead of a traceback."""
    try:
        return work()
    except ChronexError as error:
        err(inert(f"chronex: {error}"))
        return error.exit_code
    except BrokenPipeError:
        raise  # whoever read it has gone, and wants no word of it
    except OSError as error:
        err(inert(f"chronex: {system_sentence(error)}"))
    return FAILURE


def _print_json(value: dict[str, Any]) -> None:
    out(json.dumps(value, indent=2, sort_keys=True))


def _print(text: str) -> None:
    out(inert(text))
