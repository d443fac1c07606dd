"""`chronex doctor`: check the store and the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, store_location
from chronex.cli.output import hinted, print_json, print_lines

if TYPE_CHECKING:
    from chronex.cli.machine_checks import Check
    from chronex_store.postgres.pg_address import PostgresAddress

# The codes of a directory that holds no store of Chronex, so that there is nothing to examine.
_NO_STORE = {"StoreRefusedError", "ForeignStoreError"}


def doctor(
    store: StorePath = None,
    form: Form = "text",
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired.")] = False,
) -> int:
    """Check the store and the machine: records, space, permissions; zone data, clock, service, and whether the
    programs, directories, users, files of variables and secrets that jobs name are there. Exit 1: something is wrong.

    Example: chronex doctor --format json
    """
    from chronex.cli.machine_checks import checks_of

    check_format(form)
    path = store_location(store)
    if not isinstance(path, Path):
        return run_database_doctor(path, form, repair=repair)
    return run_doctor(path, form, repair=repair, machine=lambda is_readable: checks_of(path, is_readable))


def run_database_doctor(address: PostgresAddress, form: str, *, repair: bool) -> int:
    """1 when something is wrong. What cannot be opened is told as every command tells it."""
    from chronex.cli.database_checks import database_checks
    from chronex.cli.machine_checks import CheckVerdict

    if repair:
        raise UsageError("--repair is for a store in a directory; a database is repaired with its own tools")
    checks = database_checks(address)
    if form == "json":
        print_json({"store": address.shown, "machine": [check._asdict() for check in checks]}, sort_keys=True)
    else:
        print_lines(list(_check_lines(checks)))
    return 1 if any(check.verdict is CheckVerdict.WRONG for check in checks) else 0


def run_doctor(
    store: Path,
    form: str = "text",
    *,
    repair: bool = False,
    machine: Callable[[bool], list[Check]] = lambda is_readable: [],
) -> int:
    """Check the store, then the machine, and say what to do; 1 when something is wrong, 2 when there is no store.

    `machine` checks the machine; its argument says whether the store may be read.
    """
    from chronex_store import doctor as store_doctor

    report, repaired = store_doctor.examine(store), None
    if repair and report.worst is None:
        # Only a store whose pages are whole may be opened in this process.
        repaired = _repair(store)
        report = store_doctor.examine(store)
    checks = machine(report.worst is None)
    if form == "json":
        machine_rows = [check._asdict() for check in checks]
        print_json({**report.to_dict(), "repaired": repaired, "machine": machine_rows}, sort_keys=True)
    else:
        print_lines([*_report_lines(report, repaired), *_check_lines(checks)])
    if report.worst is not None and report.worst.code in _NO_STORE:
        return 2
    is_well = report.is_sound and not any(check.verdict == "wrong" for check in checks)
    return 0 if is_well else 1


def _repair(store: Path) -> dict[str, Any]:
    from chronex_store import LmdbStore
    from chronex_store import doctor as store_doctor

    with LmdbStore.open(store, create=False) as opened:
        return store_doctor.repair(opened).to_dict()


def _report_lines(report: Any, repaired: dict[str, Any] | None) -> Iterator[str]:
    if repaired:
        yield "repaired: " + ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in repaired.items())
    for finding in report.findings:
        advice = f"; {finding.advice}" if finding.advice else ""
        yield f"{finding.severity}: {hinted(finding.message + advice)}"
    if report.figures:
        records = sum(report.figures["records"].values())
        used = report.figures["used_bytes"] / report.figures["map_bytes"]
        yield f"{report.store}: {records} records, {used:.1%} of the map used"
    if report.is_sound:
        yield "the store is sound"
    elif report.figures:  # without a store the finding above has said all
        yield "the store needs attention"


def _check_lines(checks: list[Check]) -> Iterator[str]:
    for check in checks:
        advice = f"; {check.advice}" if check.advice else ""
        yield f"{check.verdict.value:5} {check.topic}: {hinted(check.message + advice)}"
