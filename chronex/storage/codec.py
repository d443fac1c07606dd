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

from chronex.errors import DamagedRecordError, RecordTooLargeError
from chronex.model.event import Event
from chronex.model.job import NO_PROGRESS, Job, JobProgress, JobVersion
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.records import Idempotency, Node, Notice, Quarantined, Record, Sequence, StoreMeta, TaskState
from chronex.storage import keys
from chronex.storage.ports import MAX_VALUE_BYTES

RECORD_VERSION = 1
HEADER = Layout(">BII")
_SUMMED = Layout(">BI")

TYPES: dict[bytes, type[Record]] = {
    keys.JOB: Job,
    keys.JOB_PROGRESS: JobProgress,
    keys.JOB_VERSION: JobVersion,
    keys.OCCURRENCE: Occurrence,
    keys.RUN: Run,
    keys.ATTEMPT: Attempt,
    keys.EVENT: Event,
    keys.NODE: Node,
    keys.IDEMPOTENCY: Idempotency,
    keys.TASK_STATE: TaskState,
    keys.STAGED_STATE: TaskState,
    keys.NOTICE: Notice,
    keys.QUARANTINE: Quarantined,
    keys.STORE_META: StoreMeta,
    keys.JOURNAL_HEAD: Sequence,
}
_DECODERS = {tag: msgspec.msgpack.Decoder(kind) for tag, kind in TYPES.items()}
_encode = msgspec.msgpack.Encoder().encode


def encode(key: bytes, record: Record) -> bytes:
    """The bytes to store under `key`; RecordTooLargeError over 64 KiB."""
    if isinstance(record, Job):
        record = replace(record, progress=NO_PROGRESS)  # that has a row of its own
    return with_header(key, _encode(record))


def decode(key: bytes, raw: bytes) -> Record:
    """The record under `key`; DamagedRecordError when it is not exactly what was written there."""
    return _typed(key, payload_of(key, raw))


def with_header(key: bytes, payload: bytes) -> bytes:
    """The payload as it is stored under `key`; RecordTooLargeError over 64 KiB."""
    size = len(payload)
    if size + HEADER.size > MAX_VALUE_BYTES:
        raise RecordTooLargeError(
            f"a record of {size} bytes is over the limit of {MAX_VALUE_BYTES}; keep large data in files"
        )
    return HEADER.pack(RECORD_VERSION, size, _checksum(key, RECORD_VERSION, payload)) + payload


def payload_of(key: bytes, raw: bytes) -> bytes:
    """What was written under `key`, whatever its type; DamagedRecordError when the bytes are not those."""
    if len(raw) < HEADER.size:
        raise DamagedRecordError(key, f"only {len(raw)} bytes")
    version, size, checksum = HEADER.unpack_from(raw)
    payload = raw[HEADER.size :]
    if size != len(payload):
        raise DamagedRecordError(key, f"{len(payload)} bytes where {size} were written")
    if checksum != _checksum(key, version, payload):
        raise DamagedRecordError(key, "the checksum does not match")
    if version != RECORD_VERSION:
        raise DamagedRecordError(key, f"version {version} is not known")
    return payload


def _typed(key: bytes, payload: bytes) -> Record:
    decoder = _DECODERS.get(key if key[:1] == keys.META else key[:1])
    if decoder is None:
        raise DamagedRecordError(key, "no such kind of record")
    try:
        return decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise DamagedRecordError(key, f"does not fit its type: {error}") from error


def _checksum(key: bytes, version: int, payload: bytes) -> int:
    return crc32(payload, crc32(key + _SUMMED.pack(version, len(payload))))
