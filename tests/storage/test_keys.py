"""Keys sort as time and hierarchy do, and never outgrow what a store can hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.errors import ChronexError, InvalidKeyError
from chronex.storage import keys
from chronex.storage.ports import MAX_KEY_BYTES

INSTANTS = st.integers(-(10**14), 10**15)
LONGEST = "x" * 128


@given(INSTANTS, INSTANTS)
def test_instants_sort_as_numbers(a: int, b: int) -> None:
    assert (a < b) == (keys.instant(a) < keys.instant(b))
    assert (a < b) == (keys.occurrence_key("j", a) < keys.occurrence_key("j", b))
    assert keys.instant_of(keys.timed(keys.DUE, a, b"J")) == a


@given(st.integers(1, 2**40), st.integers(1, 2**40))
def test_events_sort_by_number(a: int, b: int) -> None:
    assert (a < b) == (keys.event_key(a) < keys.event_key(b))
    assert keys.sequence_of(keys.event_key(a)) == a


def test_the_longest_names_fit_with_index_and_quarantine() -> None:
    longest = keys.attempt_key(LONGEST, 0, LONGEST, 2**32 - 1)
    assert len(keys.quarantine_key(keys.timed(keys.DUE, 0, longest))) <= MAX_KEY_BYTES
    assert len(keys.task_state_key(LONGEST, LONGEST, "é" * 64)) <= MAX_KEY_BYTES
    assert len(keys.idempotency_key("t" * 10**6)) == 17


def test_one_job_is_never_inside_anothers_prefix() -> None:
    assert not keys.occurrence_key("ab", 0).startswith(keys.within_job(keys.OCCURRENCE, "a"))
    assert keys.occurrence_key("a", 0).startswith(keys.within_job(keys.OCCURRENCE, "a"))


@pytest.mark.parametrize("index", [b"D", b"U", b"Y", b"L", b"H", b"X", b"P"])
def test_an_index_key_names_its_record(index: bytes) -> None:
    record = keys.run_key("j", 5, "t")
    made = keys.timed(index, 9, record) if index in keys.TIMED_INDEXES else index + record
    assert keys.record_of(made) == record


def test_an_entry_of_a_line_or_of_a_holder_names_its_record() -> None:
    record = keys.occurrence_key("j", 5)
    assert keys.record_of(keys.within_line("database") + keys.instant(-9) + record) == record
    assert keys.record_of(keys.within_holding("*catch-up") + record) == record
    assert keys.line_of(keys.within_line("*pool") + keys.instant(1) + record) == "*pool"


def test_tags_are_distinct() -> None:
    tags = [
        value for name, value in vars(keys).items() if name.isupper() and type(value) is bytes and len(value) == 1
    ]
    assert len(tags) == len(set(tags)) == 31


def test_bad_names_are_refused() -> None:
    with pytest.raises(ChronexError):
        keys.job_key("a/b")
    with pytest.raises(InvalidKeyError):
        keys.task_state_key("j", "t", "")
