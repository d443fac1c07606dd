"""Records as bytes: typed, versioned, checksummed.

    version  u8    of the record's shape
    length   u32   of the payload, so that a cut or grown record is always seen
    crc32    u32   over key, version, length and payload, so that a record under another key is seen too
    payload        MessagePack of the struct, defaults left out

CRC-32 finds every error within four neighbouring bytes and misses one in 2**32 of all others, at a fifth of
the cost of a short cryptographic hash; it guards against accidents, not against an owner who edits his store.
"""

from __future__ import annotations

from struct import Struct as Layout
from zlib import crc32

import msgspec
from msgspec.structs import replace

from chronex.errors import DamagedRecordError, NewerRecordError, RecordTooLargeError
from chronex.model.event import Event
from chronex.model.groups import Group
from chronex.model.job import NO_PROGRESS, Job, JobProgress, JobVersion
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import (
    ChannelState,
    Idempotency,
    LogPiece,
    LogRequest,
    Node,
    Notice,
    Quarantined,
    Record,
    Sequence,
    StoreMeta,
    TaskState,
)
from chronex.storage import keys
from chronex.storage.ports import MAX_VALUE_BYTES

RECORD_VERSION = 1
HEADER = Layout(">BII")
_SUMMED = 5  # bytes of the header, version and length, that the checksum covers
_LARGEST_PAYLOAD = MAX_VALUE_BYTES - HEADER.size
_pack_summed = Layout(">BI").pack
_unpack_header = HEADER.unpack_from

TYPES: dict[bytes, type[Record]] = {
    keys.JOB: Job,
    keys.JOB_PROGRESS: JobProgress,
    keys.JOB_VERSION: JobVersion,
    keys.OCCURRENCE: Occurrence,
    keys.RUN: Run,
    keys.ATTEMPT: Attempt,
    keys.EVENT: Event,
    keys.NODE: Node,
    keys.GROUP: Group,
    keys.IDEMPOTENCY: Idempotency,
    keys.TASK_STATE: TaskState,
    keys.STAGED_STATE: TaskState,
    keys.NOTICE: Notice,
    keys.CHANNEL_NOTICE: Notice,
    keys.CHANNEL: ChannelState,
    keys.LOG_PIECE: LogPiece,
    keys.LOG_REQUEST: LogRequest,
    keys.QUARANTINE: Quarantined,
    keys.STORE_META: StoreMeta,
    keys.JOURNAL_HEAD: Sequence,
}
_DECODERS = {tag: msgspec.msgpack.Decoder(kind) for tag, kind in TYPES.items()}
_encode = msgspec.msgpack.Encoder().encode

_MOST_KEPT = 4096
_LARGEST_KEPT = 4096  # bytes: thousands of large definitions would cost more memory than decoding them costs time


class DecodedRows:
    """Rows that were decoded before, each with its bytes: the same bytes need no second decoding.

    A row is always read from the store and compared as a whole, so what another transaction, or another process, has
    written meanwhile is never missed. Kept are values, which no reader changes.
    """

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._rows: dict[bytes, tuple[bytes, Record]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, key: bytes, raw: bytes) -> Record | None:
        kept = self._rows.get(key)
        return kept[1] if kept is not None and kept[0] == raw else None

    def keep(self, key: bytes, raw: bytes, record: Record) -> None:
        if len(raw) > _LARGEST_KEPT:
            return
        if len(self._rows) >= self._most:
            self._rows.clear()  # costs one decoding a row; an order by age would cost something every time
        self._rows[key] = (raw, record)


# Every tick and every end of a run reads the definition of its job, and seldom finds another than the last time.
_definitions = DecodedRows()
# What a tick writes is read when the run has started and when it ends. These records hold numbers and texts alone: a
# definition is not kept when it is written, because it may hold a dict of the caller's.
_written = DecodedRows()
_KEPT_WHEN_WRITTEN = frozenset((JobProgress, Run, Attempt))
_KEPT = {
    keys.JOB: _definitions,
    keys.JOB_PROGRESS: _written,
    keys.RUN: _written,
    keys.ATTEMPT: _written,
}


def encode(key: bytes, record: Record) -> bytes:
    """The bytes to store under `key`; RecordTooLargeError over 64 KiB."""
    kind = type(record)
    if kind is Job:
        record = replace(record, progress=NO_PROGRESS)  # that has a row of its own
    raw = with_header(key, _encode(record))
    if kind in _KEPT_WHEN_WRITTEN:
        _written.keep(key, raw, record)
    return raw


def decode(key: bytes, raw: bytes) -> Record:
    """The record under `key`; DamagedRecordError when it is not exactly what was written there."""
    tag = key[:1]
    kept = _KEPT.get(tag)
    if kept is not None and (found := kept.find(key, raw)) is not None:
        return found
    payload = payload_of(key, raw)
    decoder = _DECODERS.get(key if tag == keys.META else tag)
    if decoder is None:
        raise DamagedRecordError(key, "no such kind of record")
    try:
        record = decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise DamagedRecordError(key, f"does not fit its type: {error}") from error
    if kept is not None:
        kept.keep(key, raw, record)
    return record


def with_header(key: bytes, payload: bytes) -> bytes:
    """The payload as it is stored under `key`; RecordTooLargeError over 64 KiB."""
    size = len(payload)
    if size > _LARGEST_PAYLOAD:
        raise RecordTooLargeError(
            f"a record of {size} bytes is over the limit of {MAX_VALUE_BYTES}; keep large data in files"
        )
    summed = _pack_summed(RECORD_VERSION, size)
    return summed + crc32(payload, crc32(key + summed)).to_bytes(4, "big") + payload


def payload_of(key: bytes, raw: bytes) -> bytes:
    """What was written under `key`, whatever its type; DamagedRecordError when the bytes are not those."""
    if len(raw) < HEADER.size:
        raise DamagedRecordError(key, f"only {len(raw)} bytes")
    version, size, checksum = _unpack_header(raw)
    payload = raw[HEADER.size :]
    if size != len(payload):
        raise DamagedRecordError(key, f"{len(payload)} bytes where {size} were written")
    if checksum != crc32(payload, crc32(key + raw[:_SUMMED])):
        raise DamagedRecordError(key, "the checksum does not match")
    if version != RECORD_VERSION:
        raise NewerRecordError(key, version)
    return payload
