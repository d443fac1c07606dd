"""`chronex doctor`: is this store sound, and if not, what to do.

LMDB can crash on a damaged page, so everything inside the file is examined in a process of its own. That process
sends its findings one by one; a crash of it is a finding too.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chronex.clock import SYSTEM_CLOCK
from chronex.errors import ChronexError, DamagedRecordError, NewerRecordError, StoreRefusedError
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.ports import ReadTransaction, Row, Store, Transaction
from chronex.storage.records import Records, index_keys
from chronex_store.daemon_lock import is_daemon_alive
from chronex_store.directory_checks import DATA_FILE, prepare_directory
from chronex_store.lmdb_environment import DataFileBusyError, DataFileState, damaged_pages, data_file_state
from chronex_store.lmdb_store import LmdbStore

TIMEOUT_SECONDS = 600
ROWS_PER_TRANSACTION = 2000
MAX_SHOWN = 20
WARNING_RATIO = 0.7
ERROR_RATIO = 0.9
# A record or an index entry can be repaired in the store; anything else needs a backup, or another directory.
REPAIRABLE = {"record", "index", "more", "space"}

# Severity, code, message and advice of one finding.
ReportFinding = Callable[[str, str, str, str], None]


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """One thing that was noticed: `error`, `warning` or `info`, with what to do about it."""

    severity: str
    code: str
    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Everything that was noticed, and the figures of the store where it could be read."""

    store: str
    findings: tuple[StoreFinding, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    daemon: bool = False

    @property
    def is_sound(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def worst(self) -> StoreFinding | None:
        """The first error that `repair` cannot repair."""
        return next((f for f in self.findings if f.severity == "error" and f.code not in REPAIRABLE), None)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "findings": [asdict(f) for f in self.findings], "sound": self.is_sound}


def examine(path: Path, timeout: float = TIMEOUT_SECONDS, *, migrate: bool = False) -> DoctorReport:
    """Check directory, permissions, pages, records and indexes; safe beside a running daemon.

    It changes nothing, unless `migrate` brings a copy of an older format to the current one first.
    """
    try:
        real = prepare_directory(path, create=False)
    except StoreRefusedError as error:
        return DoctorReport(str(path), (StoreFinding("error", type(error).__name__, str(error)),))
    findings, figures = _examine_in_child(real, timeout, migrate)
    return DoctorReport(str(real), tuple(findings), figures, is_daemon_alive(real))


def _examine_in_child(path: Path, timeout: float, migrate: bool) -> tuple[list[StoreFinding], dict[str, Any]]:
    # Spawned, not forked: this process may have threads, or the store open.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=run_checks, args=(str(path), sender, migrate), daemon=True)
    child.start()
    sender.close()
    findings: list[StoreFinding] = []
    figures: dict[str, Any] = {}
    is_done = False
    try:
        while not is_done and receiver.poll(timeout):
            kind, value = receiver.recv()
            if kind == "finding":
                findings.append(StoreFinding(*value))
            elif kind == "figures":
                figures = value
            is_done = kind == "done"
    except EOFError:
        pass
    finally:
        receiver.close()
    _end_child(child, is_done)
    if not is_done:
        message = _crash_message(child.exitcode)
        findings.append(StoreFinding("error", "crash", message, "run `chronex restore` with your last backup"))
    return findings, figures


def _end_child(child: Any, is_done: bool) -> None:
    child.join(10 if is_done else 0.5)
    if child.is_alive():
        child.kill()
        child.join()


def _crash_message(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"reading the store crashed ({signal.Signals(-exit_code).name}): its file is damaged"
    return "reading the store did not come to an end: its file may be damaged"


# -- in the child process -----------------------------------------------------------------------------------------


def run_checks(path: str, connection: Connection, migrate: bool = False) -> None:
    """Send findings as they are made, then the figures, then that it is done."""

    def report(severity: str, code: str, message: str, advice: str) -> None:
        connection.send(("finding", (severity, code, message, advice)))

    try:
        data = Path(path) / DATA_FILE
        if data_file_state(data) is not DataFileState.UNCOMMITTED:  # else nothing was ever there to be damaged
            check_pages(data, report)
        with LmdbStore.open(path, create=False, migrate=migrate, allow_network=True) as store:
            figures = check_store(store, report)
        connection.send(("figures", figures))
    except ChronexError as error:
        report("error", type(error).__name__, str(error), "")
    except Exception as error:
        report("error", "unreadable", f"the store cannot be read: {error!r}", "restore your last backup")
    connection.send(("done", None))
    connection.close()


def check_pages(data: Path, report: ReportFinding) -> None:
    """Check the pages as bytes, before LMDB reads them."""
    try:
        problems = damaged_pages(data)
    except DataFileBusyError:
        report("info", "busy", "the pages were not checked, because the store is being written", "")
        return
    for problem in problems[:MAX_SHOWN]:
        report("error", "page", f"damaged page: {problem}", "run `chronex restore` with your last backup")


def check_store(store: LmdbStore, report: ReportFinding) -> dict[str, Any]:
    """Check readers, records, indexes and space of an open store; returns its figures."""
    env = store.environment().lmdb
    stale = env.reader_check()
    if stale:
        report("info", "readers", f"{stale} readers of dead processes were cleared", "")
    kinds = _check_rows(store, report)
    space = store.space()
    if space.ratio >= ERROR_RATIO:
        report("error", "space", f"the map is {space.ratio:.0%} full", "keep less history, or grow the map")
    elif space.ratio >= WARNING_RATIO:
        report("warning", "space", f"the map is {space.ratio:.0%} full", "keep less history, or grow the map")
    info = env.info()
    return {
        "format": store.environment().meta.format,
        "records": dict(sorted(kinds.items())),
        "readers": max(len(env.readers().strip().splitlines()) - 1, 0),
        "max_readers": info["max_readers"],
        "map_bytes": space.map_bytes,
        "used_bytes": space.used_bytes,
        "file_bytes": space.file_bytes,
        "checked_ms": SYSTEM_CLOCK.wall_ms(),
    }


class _RowChecks:
    """What was found on a walk over all rows."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.damaged: list[tuple[str, str]] = []  # code and message
        self.expected_indexes = 0
        self.found_indexes = 0

    def check_row(self, tx: ReadTransaction, key: bytes, raw: bytes) -> None:
        self.kinds[chr(key[0])] += 1
        if key[:1] in keys.INDEXES:
            self.found_indexes += 1
            if raw:
                self.damaged.append(("index", f"the index entry {key!r} has a value, and none belongs there"))
            return
        try:
            expected = index_keys(key, decode(key, raw))
        except NewerRecordError as error:
            self.damaged.append(("newer", str(error)))
            return
        except DamagedRecordError as error:
            self.damaged.append(("record", str(error)))
            return
        self.expected_indexes += len(expected)
        for index in expected:
            if tx.get(index) is None:
                self.damaged.append(("index", f"the record {key!r} is missing from its index {index[:1].decode()}"))

    def check_index(self, tx: ReadTransaction, key: bytes, raw: bytes) -> None:
        problem = index_problem(tx, key)
        if problem:
            self.damaged.append(("index", problem))


VisitRow = Callable[[ReadTransaction, bytes, bytes], None]


def _check_rows(store: LmdbStore, report: ReportFinding) -> Counter[str]:
    checks = _RowChecks()
    _walk(store, b"", checks.check_row)
    # Every record was found in its indexes. When there are as many entries as that, none of them can be wrong.
    if checks.found_indexes != checks.expected_indexes:
        for tag in keys.INDEXES:
            _walk(store, bytes([tag]), checks.check_index)
    _report_rows(checks.damaged, checks.kinds, report)
    return checks.kinds


def _walk(store: LmdbStore, prefix: bytes, visit: VisitRow) -> None:
    """Visit row by row, in short transactions so that a running daemon is not held up."""
    after: bytes | None = None

    def page(tx: ReadTransaction) -> list[Row]:
        rows = tx.scan(prefix, after, ROWS_PER_TRANSACTION)
        for key, raw in rows:
            visit(tx, key, raw)
        return rows

    while rows := store.view(page):
        after = rows[-1][0]


def index_problem(tx: ReadTransaction, index: bytes) -> str | None:
    """What is wrong with an index entry, judged by its record."""
    key = keys.record_of(index)
    raw = tx.get(key) if key else None
    if raw is None:
        return f"the index entry {index!r} stands for no record"
    try:
        is_right = index in index_keys(key, decode(key, raw))
    except DamagedRecordError:
        return None  # the record itself is reported
    return None if is_right else f"the index entry {index!r} is out of date"


_LEFT_ALONE = "install the Chronex that wrote it; until then it is left as it is, by `chronex doctor --repair` too"


def _report_rows(damaged: list[tuple[str, str]], kinds: Counter[str], report: ReportFinding) -> None:
    advice = "run `chronex doctor --repair`: the record is put aside, everything else goes on"
    for code, message in damaged[:MAX_SHOWN]:
        report("error", code, message, _LEFT_ALONE if code == "newer" else advice)
    if len(damaged) > MAX_SHOWN:
        report("error", "more", f"{len(damaged) - MAX_SHOWN} more records or index entries are damaged", advice)
    if kinds["Q"]:
        message = f"{kinds['Q']} damaged records are in quarantine"
        report("warning", "quarantine", message, "apply the job file again")


# -- repair -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RepairReport:
    """How many records were put into quarantine, and how many index entries were added and removed."""

    quarantined: int = 0
    indexes_added: int = 0
    indexes_removed: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def add(self, other: RepairReport) -> None:
        self.quarantined += other.quarantined
        self.indexes_added += other.indexes_added
        self.indexes_removed += other.indexes_removed


def repair(store: Store) -> RepairReport:
    """Quarantine damaged records and bring the indexes in line with the records, in small transactions."""
    total = RepairReport()
    after: bytes | None = None

    def step(tx: Transaction) -> tuple[bytes | None, RepairReport]:
        rows = tx.scan(b"", after, ROWS_PER_TRANSACTION)
        records = Records(tx, store.now())
        repaired = RepairReport()  # a new one each time, because the store may run this function twice
        for key, raw in rows:
            _repair_row(records, key, raw, repaired)
        return (rows[-1][0] if rows else None), repaired

    while True:
        reached, repaired = store.update(step, use_reserve=True)
        total.add(repaired)
        if reached is None:
            return total
        after = reached


def _repair_row(records: Records, key: bytes, raw: bytes, repaired: RepairReport) -> None:
    if key[:1] in keys.INDEXES:
        if not _is_current(records, key):
            records.tx.delete(key)
            repaired.indexes_removed += 1
        elif raw:
            records.tx.put(key, b"")
            repaired.indexes_added += 1
        return
    try:
        record = decode(key, raw)
    except NewerRecordError:
        return  # whole, and not for this version to judge
    except DamagedRecordError as error:
        records.quarantine(key, raw, error.reason)
        repaired.quarantined += 1
        return
    for index in index_keys(key, record):
        repaired.indexes_added += records.tx.create(index, b"")


def _is_current(records: Records, index: bytes) -> bool:
    key = keys.record_of(index)
    raw = records.tx.get(key) if key else None
    try:
        return raw is not None and index in index_keys(key, decode(key, raw))
    except DamagedRecordError:
        return False
