"""`chronex doctor`: is this store sound, and if not, what to do."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from chronex.errors import DamagedRecordError, StoreRefusedError
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.ports import Store, Transaction
from chronex.storage.records import Ledger, index_keys
from chronex_store.checks import PAGE_OF_ROWS, run_checks
from chronex_store.daemon_lock import is_daemon_alive
from chronex_store.places import prepare_directory

TIMEOUT_SECONDS = 600
# A record or an index entry can be put right in the store; anything else needs a backup, or another place.
MENDABLE = {"record", "index", "more", "space"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was noticed: `error`, `warning` or `info`, with what to do about it."""

    severity: str
    code: str
    message: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Everything that was noticed, and the figures of the store where it could be read."""

    store: str
    findings: tuple[Finding, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)
    daemon: bool = False

    @property
    def is_sound(self) -> bool:
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def worst(self) -> Finding | None:
        """The first error that `repair` cannot mend."""
        return next((f for f in self.findings if f.severity == "error" and f.code not in MENDABLE), None)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "findings": [asdict(f) for f in self.findings], "sound": self.is_sound}


def examine(path: Path, timeout: float = TIMEOUT_SECONDS) -> DoctorReport:
    """Check place, permissions, pages, records and indexes. Changes nothing; safe beside a running daemon."""
    try:
        real = prepare_directory(path, create=False)
    except StoreRefusedError as error:
        return DoctorReport(str(path), (Finding("error", type(error).__name__, str(error)),))
    findings, figures = _in_child(real, timeout)
    return DoctorReport(str(real), tuple(findings), figures, is_daemon_alive(real))


def _in_child(path: Path, timeout: float) -> tuple[list[Finding], dict[str, Any]]:
    # Spawned, not forked: this process may have threads, or the store open.
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=run_checks, args=(str(path), sender), daemon=True)
    child.start()
    sender.close()
    findings: list[Finding] = []
    figures: dict[str, Any] = {}
    is_done = False
    try:
        while not is_done and receiver.poll(timeout):
            kind, value = receiver.recv()
            if kind == "finding":
                findings.append(Finding(*value))
            elif kind == "figures":
                figures = value
            is_done = kind == "done"
    except EOFError:
        pass
    finally:
        receiver.close()
    _end(child, is_done)
    if not is_done:
        findings.append(
            Finding("error", "crash", _why(child.exitcode), "run `chronex restore` with your last backup")
        )
    return findings, figures


def _end(child: Any, is_done: bool) -> None:
    child.join(10 if is_done else 0.5)
    if child.is_alive():
        child.kill()
        child.join()


def _why(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"reading the store crashed ({signal.Signals(-exit_code).name}): its file is damaged"
    return "reading the store did not come to an end: its file may be damaged"


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was put right."""

    quarantined: int = 0
    indexes_added: int = 0
    indexes_removed: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def repair(store: Store) -> RepairReport:
    """Quarantine damaged records and bring the indexes in line with the records, in small steps."""
    counts = [0, 0, 0]
    after: bytes | None = None

    def step(tx: Transaction) -> tuple[bytes | None, list[int]]:
        rows = tx.scan(b"", after, PAGE_OF_ROWS)
        ledger = Ledger(tx, store.now())
        done = [0, 0, 0]
        for key, raw in rows:
            _repair_row(ledger, key, raw, done)
        return (rows[-1][0] if rows else None), done

    while True:
        reached, done = store.update(step, essential=True)
        counts = [a + b for a, b in zip(counts, done, strict=True)]
        if reached is None:
            return RepairReport(*counts)
        after = reached


def _repair_row(ledger: Ledger, key: bytes, raw: bytes, done: list[int]) -> None:
    if key[:1] in keys.INDEXES:
        if not _is_current(ledger, key):
            ledger.tx.delete(key)
            done[2] += 1
        return
    try:
        record = decode(key, raw)
    except DamagedRecordError as error:
        ledger.quarantine(key, raw, error.reason)
        done[0] += 1
        return
    for index in index_keys(key, record):
        done[1] += ledger.tx.create(index, b"")


def _is_current(ledger: Ledger, index: bytes) -> bool:
    key = keys.record_of(index)
    raw = ledger.tx.get(key) if key else None
    try:
        return raw is not None and index in index_keys(key, decode(key, raw))
    except DamagedRecordError:
        return False
