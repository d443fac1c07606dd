"""A ledger for one whole decision: records are values until `write`, and each is written once.

A tick moves an occurrence from pending to running, its run from scheduled to running, and counts both in the job.
Written step by step that is ten records; the last value of each is five. Index entries are written at once, so the
questions that are asked of an index (what runs, what waits, what is due) see every step of the decision.
"""

from __future__ import annotations

from typing import cast

from chronex.engine import keys
from chronex.engine.indexes import index_keys, key_of
from chronex.engine.ledger import Ledger, R
from chronex.engine.ports import SCAN_LIMIT, Transaction
from chronex.engine.records import encode
from chronex.model.records import Attempt, Job, Occurrence, Record, Run

_KEPT_AS_VALUES = (Job, Occurrence, Run, Attempt)


class Draft(Ledger):
    """The one writer of its transaction: what it has read or written once is not read again.

    Whoever makes a draft must call `write` before the transaction ends.
    """

    def __init__(self, tx: Transaction, now_ms: int) -> None:
        super().__init__(tx, now_ms)
        self._known: dict[bytes, Record | None] = {}
        self._unwritten: dict[bytes, Record] = {}
        self._any_quarantine: bool | None = None

    @property
    def is_written(self) -> bool:
        return not self._unwritten

    def write(self) -> None:
        """Give every changed record its last value, in the order in which they first changed."""
        for key, record in self._unwritten.items():
            self.tx.put(key, encode(key, record))
        self._unwritten.clear()

    def get(self, key: bytes, kind: type[R]) -> R | None:
        if key in self._known:
            return cast("R | None", self._known[key])
        found = self._known[key] = super().get(key, kind)
        return found

    def scan(
        self, prefix: bytes, kind: type[R], after: bytes | None = None, limit: int = SCAN_LIMIT, reverse: bool = False
    ) -> list[R]:
        self.write()
        return super().scan(prefix, kind, after, limit, reverse)

    def create(self, record: Record) -> bool:
        key = key_of(record)
        if not isinstance(record, _KEPT_AS_VALUES):
            is_created = super().create(record)
            if is_created:
                self._known[key] = record
            return is_created
        if self.get(key, type(record)) is not None or self._is_quarantined(key, record):
            return False
        for index in index_keys(key, record):
            self.tx.put(index, b"")
        self._known[key] = self._unwritten[key] = record
        return True

    def replace_at(self, key: bytes, old: Record | None, new: Record) -> None:
        if not isinstance(new, _KEPT_AS_VALUES):
            super().replace_at(key, old, new)
            self._known[key] = new
            return
        self.move_indexes(key, old, new)
        self._known[key] = self._unwritten[key] = new

    def put_task_state(self, job: str, task: str, name: str, value: str) -> None:
        super().put_task_state(job, task, name, value)
        self._known.pop(keys.task_state_key(job, task, name), None)

    def delete(self, key: bytes) -> bool:
        self.write()
        is_deleted = super().delete(key)
        self._known[key] = None
        return is_deleted

    def quarantine(self, key: bytes, raw: bytes, reason: str) -> None:
        super().quarantine(key, raw, reason)
        self._known[key] = None
        self._any_quarantine = True

    def _is_quarantined(self, key: bytes, record: Record) -> bool:
        """A job may be applied again; a decision that was made once is never made again."""
        if isinstance(record, Job):
            return False
        if self._any_quarantine is None:
            self._any_quarantine = bool(self.tx.scan(keys.QUARANTINE, None, 1))
        return self._any_quarantine and self.tx.get(keys.quarantine_key(key)) is not None

    def _indexed(self, index_key: bytes) -> Record | None:
        known = self._known.get(keys.record_of(index_key))
        return super()._indexed(index_key) if known is None else known

    def _decode(self, key: bytes, raw: bytes) -> Record | None:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = super()._decode(key, raw)
        return known
