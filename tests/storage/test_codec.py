"""A record is exactly what was written, or it is damaged and said to be so."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from chronex.errors import DamagedRecordError, RecordTooLargeError
from chronex.model import Event, Job, Record, TaskState
from chronex.model.job import NO_PROGRESS
from chronex.storage import keys
from chronex.storage.codec import HEADER, TYPES, DecodedRows, decode, encode, payload_of
from chronex.storage.ports import MAX_VALUE_BYTES

from .samples import JOB, SAMPLES

KINDS = pytest.mark.parametrize(("key", "record"), SAMPLES, ids=lambda v: type(v).__name__)


def test_there_is_a_sample_of_every_kind() -> None:
    assert {type(record) for _, record in SAMPLES} == set(TYPES.values())


@KINDS
def test_what_is_written_is_read(key: bytes, record: Record) -> None:
    raw = encode(key, record)
    assert decode(key, raw) == record
    kind = TYPES[key if key[:1] == keys.META else key[:1]]
    assert msgspec.msgpack.decode(payload_of(key, raw), type=kind) == record  # not what the codec has kept of it


@KINDS
def test_every_flipped_byte_is_found(key: bytes, record: Record) -> None:
    raw = encode(key, record)
    chance = random.Random(len(raw))
    for position in range(len(raw)):
        for flip in (1, 0x80, 0xFF, chance.randrange(1, 256)):
            damaged = bytearray(raw)
            damaged[position] ^= flip
            with pytest.raises(DamagedRecordError):
                decode(key, bytes(damaged))


@KINDS
def test_every_cut_and_every_growth_is_found(key: bytes, record: Record) -> None:
    raw = encode(key, record)
    for length in range(len(raw)):
        with pytest.raises(DamagedRecordError):
            decode(key, raw[:length])
    for extra in (b"\0", b"\xff", raw):
        with pytest.raises(DamagedRecordError):
            decode(key, raw + extra)


@KINDS
def test_a_record_under_another_key_is_found(key: bytes, record: Record) -> None:
    with pytest.raises(DamagedRecordError):
        decode(key + b"x", encode(key, record))


def test_a_record_of_another_version_or_type_is_not_guessed_at() -> None:
    key = keys.job_key("j")
    foreign = encode(key, TaskState(value="x"))
    with pytest.raises(DamagedRecordError, match="does not fit its type"):
        decode(key, foreign)
    with pytest.raises(DamagedRecordError, match="no such kind"):
        decode(b"?x", encode(b"?x", TaskState(value="x")))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_never_a_record(raw: bytes) -> None:
    with pytest.raises(DamagedRecordError):
        decode(keys.job_key("j"), raw)


def test_a_record_over_the_limit_is_refused_before_it_is_written() -> None:
    key = keys.event_key(1)
    largest = MAX_VALUE_BYTES - HEADER.size - len(msgspec.msgpack.encode(Event(name="", at_ms=0))) - 4
    assert len(encode(key, Event(name="x" * largest, at_ms=0))) <= MAX_VALUE_BYTES
    with pytest.raises(RecordTooLargeError):
        encode(key, Event(name="x" * MAX_VALUE_BYTES, at_ms=0))


def test_the_same_bytes_are_decoded_once_and_other_bytes_again() -> None:
    key, changed = keys.job_key(JOB.id), replace(JOB, schedule="0 4 * * *")
    raw, other = encode(key, JOB), encode(key, changed)
    first = decode(key, raw)
    assert decode(key, bytes(bytearray(raw))) is first
    assert decode(key, other) == replace(changed, progress=NO_PROGRESS)
    assert decode(key, raw) == first


def test_a_definition_that_is_written_is_not_shared_with_its_writer() -> None:
    key, metadata = keys.job_key("shared"), {"a": "1"}
    raw = encode(key, replace(JOB, id="shared", metadata=metadata))
    metadata["a"] = "2"
    found = decode(key, raw)
    assert isinstance(found, Job)
    assert found.metadata == {"a": "1"}


def test_a_damaged_row_is_found_though_the_sound_one_was_decoded_before() -> None:
    key = keys.job_key(JOB.id)
    raw = encode(key, JOB)
    decode(key, raw)
    with pytest.raises(DamagedRecordError):
        decode(key, raw[:-1] + bytes([raw[-1] ^ 1]))


def test_only_so_many_decoded_rows_are_kept() -> None:
    rows = DecodedRows(most=3)
    for number in range(10):
        key = b"J%d" % number
        rows.keep(key, b"raw", JOB)
        assert rows.find(key, b"raw") is JOB
        assert rows.find(key, b"other") is None
        assert len(rows) <= 3


def test_a_large_row_is_decoded_each_time() -> None:
    rows = DecodedRows()
    rows.keep(b"J", b"r" * 5_000, JOB)
    assert len(rows) == 0
