"""A record is exactly what was written, or it is damaged and said to be so."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.errors import DamagedRecordError, RecordTooLargeError
from chronex.model import Event, Record, TaskState
from chronex.storage import keys
from chronex.storage.codec import HEADER, TYPES, decode, encode
from chronex.storage.ports import MAX_VALUE_BYTES

from .samples import SAMPLES

KINDS = pytest.mark.parametrize(("key", "record"), SAMPLES, ids=lambda v: type(v).__name__)


def test_there_is_a_sample_of_every_kind() -> None:
    assert {type(record) for _, record in SAMPLES} == set(TYPES.values())


@KINDS
def test_what_is_written_is_read(key: bytes, record: Record) -> None:
    assert decode(key, encode(key, record)) == record


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
