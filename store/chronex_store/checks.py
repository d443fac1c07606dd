"""What `doctor` looks at inside the file, in a process of its own: a damaged page can crash it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from chronex.clock import SYSTEM_CLOCK
from chronex.errors import ChronexError, DamagedRecordError
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.ports import ReadTransaction, Row
from chronex.storage.records import index_keys
from chronex_store.lmdb_store import LmdbStore
from chronex_store.pages import BusyError, damaged_pages
from chronex_store.places import DATA_FILE

PAGE_OF_ROWS = 2000
SHOWN = 20
WATCH_RATIO, ALARM_RATIO = 0.7, 0.9

Report = Callable[[str, str, str, str], None]


def run_checks(path: str, connection: Connection) -> None:
    """The child's whole life: send findings as they are made, then the figures, then nothing."""

    def report(severity: str, code: str, message: str, advice: str) -> None:
        connection.send(("finding", (severity, code, message, advice)))

    try:
        check_structure(Path(path) / DATA_FILE, report)
        with LmdbStore.open(path, create=False, allow_network=True) as store:
            figures = check_store(store, report)
        connection.send(("figures", figures))
    except ChronexError as error:
        report("error", type(error).__name__, str(error), "")
    except Exception as error:
        report("error", "unreadable", f"the store cannot be read: {error!r}", "restore your last backup")
    connection.send(("done", None))
    connection.close()


def check_structure(data: Path, report: Report) -> None:
    """The pages, before LMDB is trusted with them."""
    try:
        problems = damaged_pages(data)
    except BusyError:
        report("info", "busy", "the pages were not checked, because the store is being written", "")
        return
    for problem in problems[:SHOWN]:
        report("error", "page", f"damaged page: {problem}", "run `chronex restore` with your last backup")


def check_store(store: LmdbStore, report: Report) -> dict[str, Any]:
    env = store.environment().lmdb
    stale = env.reader_check()
    if stale:
        report("info", "readers", f"{stale} readers of dead processes were cleared", "")
    kinds = _check_rows(store, report)
    space = store.space()
    if space.ratio >= ALARM_RATIO:
        report("error", "space", f"the map is {space.ratio:.0%} full", "keep less history, or grow the map")
    elif space.ratio >= WATCH_RATIO:
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


class _Rows:
    """The state of one walk over all rows."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.damaged: list[tuple[str, str]] = []
        self.expected = 0
        self.indexes = 0

    def look(self, tx: ReadTransaction, key: bytes, raw: bytes) -> None:
        self.kinds[chr(key[0])] += 1
        if key[:1] in keys.INDEXES:
            self.indexes += 1
            return
        try:
            wanted = index_keys(key, decode(key, raw))
        except DamagedRecordError as error:
            self.damaged.append(("record", str(error)))
            return
        self.expected += len(wanted)
        for index in wanted:
            if tx.get(index) is None:
                self.damaged.append(("index", f"the record {key!r} is missing from its index {index[:1].decode()}"))

    def look_at_index(self, tx: ReadTransaction, key: bytes, raw: bytes) -> None:
        problem = index_problem(tx, key)
        if problem:
            self.damaged.append(("index", problem))


Look = Callable[[ReadTransaction, bytes, bytes], None]


def _check_rows(store: LmdbStore, report: Report) -> Counter[str]:
    rows = _Rows()
    _walk(store, b"", rows.look)
    # Every record has its entries; as many entries as that leave no room for a wrong one.
    if rows.indexes != rows.expected:
        for tag in keys.INDEXES:
            _walk(store, bytes([tag]), rows.look_at_index)
    _report_rows(rows.damaged, rows.kinds, report)
    return rows.kinds


def _walk(store: LmdbStore, prefix: bytes, look: Look) -> None:
    """Row by row, in short transactions so that a running daemon is not held up."""
    after: bytes | None = None

    def page(tx: ReadTransaction) -> list[Row]:
        rows = tx.scan(prefix, after, PAGE_OF_ROWS)
        for key, raw in rows:
            look(tx, key, raw)
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


def _report_rows(damaged: list[tuple[str, str]], kinds: Counter[str], report: Report) -> None:
    advice = "run `chronex doctor --repair`: the record is put aside, everything else goes on"
    for code, message in damaged[:SHOWN]:
        report("error", code, message, advice)
    if len(damaged) > SHOWN:
        report("error", "more", f"{len(damaged) - SHOWN} more records or index entries are damaged", advice)
    if kinds["Q"]:
        report(
            "warning",
            "quarantine",
            f"{kinds['Q']} damaged records are in quarantine",
            "apply the job file again",
        )
