"""The typed face of a transaction: records in, records out, indexes and quarantine kept right on the way.

Everything that writes a record goes through here, so an index can only be wrong if bytes were damaged, and
`chronex doctor` computes the same index keys to find that out.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from chronex.errors import DamagedRecordError, NewerRecordError, StaleClaimError
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import Quarantined, Record
from chronex.model.states import State, advance
from chronex.storage import keys
from chronex.storage.codec import HEADER, encode
from chronex.storage.journal import append
from chronex.storage.keys import INDEXED, index_keys, key_of
from chronex.storage.ports import MAX_VALUE_BYTES, Transaction
from chronex.storage.reading import EVERYTHING, Reading, RecordCache, pages

__all__ = ["EVERYTHING", "Reading", "Records", "index_keys", "key_of", "pages"]

Claimed = TypeVar("Claimed", Occurrence, Run, Attempt)
# What was decided once must never be decided again; a job may be applied again.
DECISIONS = (Occurrence, Run, Attempt)
_WRITTEN_ONCE = frozenset((Job, JobProgress, Occurrence, Run, Attempt))
_KEPT_RAW = MAX_VALUE_BYTES - HEADER.size - 1024


class Records(Reading):
    """Typed reads and writes of one update. A damaged record that is met is quarantined on the spot; one of a newer
    version ends the update, because it must be neither removed nor written over.

    Without a cache every write reaches the transaction at once. `Records.cached` is for a whole decision: a tick
    moves an occurrence from pending to running, its run from scheduled to running, and counts both in the job.
    Written step by step that is ten records; the last value of each is five. So records are values until `write`,
    which its owner must call before the transaction ends. Index entries are written at once, so the questions that
    are asked of an index (what runs, what waits) see every step of the decision. Only those of what is due wait for
    `write` too: nobody asks for them in the midst of a decision, and what begins at once is due for no time at all.
    """

    def __init__(self, tx: Transaction, now_ms: int, cache: RecordCache | None = None) -> None:
        super().__init__(tx, cache)
        self.tx: Transaction = tx
        self.now_ms = now_ms

    @classmethod
    def cached(cls, tx: Transaction, now_ms: int) -> Records:
        """The one writer of its transaction: what it has read or written once is not read again."""
        return cls(tx, now_ms, RecordCache())

    @property
    def is_written(self) -> bool:
        return self.cache is None or not (self.cache.changed or self.cache.due)

    def write(self) -> None:
        """Give every changed record its last value, in the order in which they first changed."""
        cache, tx = self.cache, self.tx
        if cache is None:
            return
        for key, record in cache.changed.items():
            tx.put(key, encode(key, record))
        cache.changed.clear()
        for index, is_due in cache.due.items():
            if is_due:
                tx.put(index, b"")
            else:
                tx.delete(index)
        cache.due.clear()

    def _write_changed(self) -> None:
        self.write()

    def create(self, record: Record) -> bool:
        """Write a record that must not exist yet; False where one does, damaged or not.

        A quarantined occurrence has been decided once, whatever its outcome was: it is never decided again.
        """
        if isinstance(record, Job):
            if self.job(record.id) is not None:
                return False
            self.put(record)  # over what is left of one whose definition or progress was damaged
            return True
        key, kind, cache = key_of(record), type(record), self.cache
        if cache is None and kind in DECISIONS and self._is_quarantined(key):
            return False
        if cache is not None and kind in _WRITTEN_ONCE:
            if self.get(key, kind) is not None or self._is_quarantined(key):
                return False
            cache.changed[key] = record
        elif not self.tx.create(key, encode(key, record)):
            return False
        if cache is not None:
            cache.keep(key, record)
        for index in index_keys(key, record):
            self._add_entry(index)
        return True

    def _is_quarantined(self, key: bytes) -> bool:
        cache = self.cache
        if cache is not None:
            if cache.has_quarantine is None:
                cache.has_quarantine = bool(self.tx.scan(keys.QUARANTINE, None, 1))
            if not cache.has_quarantine:
                return False
        return self.tx.get(keys.quarantine_key(key)) is not None

    def put(self, record: Record) -> None:
        """Write a record over what was there, and its index entries over the old ones. A job is two rows."""
        key = key_of(record)
        old = self.get(key, type(record))
        if isinstance(record, Job):
            self.put(replace(record.progress, job=record.id))
            if isinstance(old, Job) and old == replace(record, progress=old.progress):
                return  # only its progress is another
        self.replace_at(key, old, record)

    def replace_at(self, key: bytes, old: Record | None, new: Record) -> None:
        """Write `new` under `key`, where `old` is what is there."""
        self.move_indexes(key, old, new)
        cache = self.cache
        if cache is not None:
            cache.keep(key, new)
            if type(new) in _WRITTEN_ONCE:
                cache.changed[key] = new
                return
        self.tx.put(key, encode(key, new))

    def put_at(self, key: bytes, record: Record) -> None:
        """Write a record whose key does not follow from it alone, and that has no index entries."""
        if self.cache is not None:
            self.cache.keep(key, record)
        self.tx.put(key, encode(key, record))

    def move_indexes(self, key: bytes, old: Record | None, new: Record) -> None:
        """Make the index entries of what was under `key` those of what is to be there."""
        if type(old) is JobProgress and type(new) is JobProgress and old.next_ms == new.next_ms:
            return  # every outcome is counted in the progress of its job, and no index stands for a count
        find = INDEXED.get(type(new))
        if find is None:
            return
        before = () if old is None else find(key, old)
        after = find(key, new)
        if before == after:
            return
        for index in before:
            if index not in after:
                self._remove_entry(index)
        for index in after:
            if index not in before:
                self._add_entry(index)

    def _add_entry(self, index: bytes) -> None:
        cache, tag = self.cache, index[:1]
        if cache is None:
            self.tx.put(index, b"")
        elif tag != keys.DUE:
            cache.empty[tag] = False
            self.tx.put(index, b"")
        elif cache.due.get(index) is False:
            del cache.due[index]
        else:
            cache.due[index] = True

    def _remove_entry(self, index: bytes) -> None:
        cache = self.cache
        if cache is None or index[:1] != keys.DUE:
            self.tx.delete(index)
        elif cache.due.get(index):
            del cache.due[index]
        else:
            cache.due[index] = False

    def delete(self, key: bytes) -> bool:
        """Remove a record and its index entries."""
        self.write()
        raw = self.tx.get(key)
        record = self._decode(key, raw) if raw is not None else None
        if record is not None:
            for index in index_keys(key, record):
                self.tx.delete(index)
        if self.cache is not None:
            self.cache.remove(key)
        return self.tx.delete(key)

    def delete_job(self, job: str) -> None:
        """Remove a job's definition and its progress."""
        self.delete(keys.job_key(job))
        self.delete(keys.job_progress_key(job))

    def advance(self, record: Claimed, destination: State, *, held_by: str | None = None, **changes: Any) -> Claimed:
        """Move a record along the transition table, if it is still what the caller believes it to be.

        `record` is what the caller decided on: its state and epoch must still stand in the store, and its
        owner must be `held_by` where one is given; StaleClaimError otherwise.
        """
        key = key_of(record)
        found = self.get(key, type(record))
        if found is None or found.state is not record.state or found.epoch != record.epoch:
            raise StaleClaimError(f"{record.id} is no longer {record.state} with epoch {record.epoch}")
        if held_by is not None and found.owner != held_by:
            raise StaleClaimError(f"{record.id} belongs to {found.owner or 'nobody'}, not to {held_by}")
        moved = advance(found, destination, **changes)
        self.replace_at(key, found, moved)
        return moved

    def quarantine(self, key: bytes, raw: bytes, reason: str) -> None:
        """Put a damaged record out of everyone's way, kept as it was found."""
        at = keys.quarantine_key(key)
        record = Quarantined(reason=reason, at_ms=self.now_ms, raw=raw[:_KEPT_RAW], size=len(raw))
        self.tx.put(at, encode(at, record))
        self.tx.delete(key)
        if self.cache is not None:
            self.cache.remove(key)
            self.cache.has_quarantine = True

    def _on_damage(self, key: bytes, raw: bytes, error: DamagedRecordError) -> None:
        if isinstance(error, NewerRecordError):
            raise error  # the whole decision is left to a Chronex that knows what it says
        self.quarantine(key, raw, error.reason)
        data = {"key": error.key.hex(), "reason": error.reason}
        append(self.tx, Event(name="RecordQuarantined", at_ms=self.now_ms, data=data))

    def _on_stray_index(self, index_key: bytes) -> None:
        self.tx.delete(index_key)
