"""The sentences of format 1 as codes: the code is right and no word is lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.model.reasons import Reason, ReasonCode, text_of
from chronex.storage import keys
from chronex.storage.codec import decode, payload_of, with_header
from chronex.storage.old_formats import end_reason_of, failure_of, reason_of, reasons_to_codes

C = ReasonCode
# The table of format 1, and what followed each sentence where something did.
BARE = {
    "paused": C.PAUSED,
    "window exceeded": C.WINDOW_EXCEEDED,
    "no start inside its spread window satisfies the constraints": C.UNSCHEDULABLE,
    "an earlier occurrence still waits": C.EARLIER_WAITS,
    "the queue of the job is full": C.QUEUE_FULL,
    "waits for a free place in the pool": C.POOL_FULL,
    "the scheduler was not running": C.DOWN,
    "folded into a later occurrence by the recovery strategy": C.FOLDED,
    "beyond the bounds of the recovery strategy": C.TOO_OLD,
    "only the newest 1000 missed occurrences of a job are made up for": C.TOO_MANY,
    "a later missed occurrence runs instead": C.SUPERSEDED,
    "the execution timeout passed": C.EXECUTION_TIMEOUT,
    "canceled to make room for the next occurrence": C.CANCELED_FOR_NEXT,
    "the scheduler died while it ran": C.OWNER_DIED,
    "the scheduler died before it started": C.NEVER_STARTED,
    "the scheduler was stopped": C.STOPPING,
    "the limit of executions is reached": C.MAX_REACHED,
    "its pause is over": C.PAUSE_OVER,
    "the job was removed": C.JOB_REMOVED,
    "the task was removed": C.TASK_REMOVED,
    "the host is in another time zone": C.ZONE_CHANGED,
    "no run has completed in time": C.LATE,
    "dropped: too many dead letters, or too old": C.DROPPED_BY_LIMIT,
    "canceled": C.CANCELED,
}
WITH_DETAIL = {
    "an earlier occurrence still runs": C.OVERLAP,
    "a new occurrence pre-empted the pending retry": C.PREEMPTED,
    "another task failed first": C.PEER_FAILED,
    "its idempotency key has been executed already": C.IDEMPOTENT,
    "replayed": C.REPLAYED,
    "replaced by a new version": C.REPLACED,
}
BY_SOMEBODY = {"canceled by": C.CANCELED, "dropped by": C.DROPPED, "paused by": C.PAUSED}
ENDS = {
    "exit code 3": C.EXIT_CODE,
    "ended by SIGKILL": C.SIGNAL,
    "ended by signal 77": C.SIGNAL,
    "still running after 2.5 s": C.TIMEOUT,
    "still running after 1e+06 s; it still runs": C.TIMEOUT,
    "ended, and its exit code is not known: its daemon had died": C.UNKNOWN_EXIT,
    "a task failed": C.RUN_FAILED,
    "the execution timeout passed": C.EXECUTION_TIMEOUT,
    "the scheduler died while it ran": C.OWNER_DIED,
    "ValueError: paused by nobody": C.FREE_TEXT,
    "/no/such: no such program (ENOENT)": C.FREE_TEXT,
}
NAMES = st.one_of(
    st.sampled_from(["paused", "main", "replayed", "canceled"]), st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True)
)
WORDS = st.text(min_size=1, max_size=60)
IDS = st.from_regex(r"occ_[0-9a-f]{8}", fullmatch=True)
ASKERS = st.builds("{}@{} ({})".format, NAMES, NAMES, st.sampled_from(["cli", "tui", "api"]))


# A code may be told in better words than those that its sentence had.
NEW_WORDS = {"the scheduler died before it started": "the scheduler was lost before it started"}


@pytest.mark.parametrize(("sentence", "code"), BARE.items())
def test_a_sentence_becomes_its_code(sentence: str, code: ReasonCode) -> None:
    found = reason_of(sentence)
    assert (found.code, text_of(found)) == (code, NEW_WORDS.get(sentence, sentence))


@given(st.sampled_from(sorted(WITH_DETAIL)), st.one_of(IDS, NAMES, WORDS))
def test_what_follows_the_colon_is_the_detail(sentence: str, detail: str) -> None:
    found = reason_of(f"{sentence}: {detail}")
    assert found == Reason(WITH_DETAIL[sentence], detail)
    assert text_of(found) == f"{sentence}: {detail}"


@given(st.sampled_from(sorted(BY_SOMEBODY)), ASKERS, st.one_of(st.just(""), WORDS))
def test_who_asked_and_what_they_said_are_told_apart(sentence: str, by: str, words: str) -> None:
    text = f"{sentence} {by}" + (f": {words}" if words and sentence != "paused by" else "")
    found = reason_of(text)
    assert (found.code, found.by, text_of(found)) == (BY_SOMEBODY[sentence], by, text)


@given(NAMES, st.sampled_from(sorted(ENDS)))
def test_a_failure_is_the_task_and_how_it_ended_whatever_the_task_is_called(task: str, end: str) -> None:
    found = failure_of(f"{task}: {end}")
    assert (found.code, found.by, text_of(found)) == (ENDS[end], task, f"{task}: {end}")
    assert text_of(end_reason_of(end)) == end


@given(st.one_of(st.text(), st.builds("{}{}{}".format, st.sampled_from([*BARE, *WITH_DETAIL, *BY_SOMEBODY, *ENDS]),
                                      st.sampled_from(["", ":", ": ", " ", " by ", ": : "]), st.text())))  # fmt: skip
def test_no_word_is_lost_whatever_a_record_says(sentence: str) -> None:
    for read in (reason_of, end_reason_of, failure_of):
        if sentence:
            assert text_of(read(sentence)) == sentence


# kind of record, its fields in format 1, the reason that they become
RECORDS: list[tuple[bytes, dict[str, Any], Reason]] = [
    (keys.OCCURRENCE, {"state": "failed", "reason": "paused: exit code 1"}, Reason(C.EXIT_CODE, "exit code 1", "paused")),
    (keys.OCCURRENCE, {"state": "skipped", "reason": "paused by ann"}, Reason(C.PAUSED, by="ann")),
    (keys.RUN, {"task": "t", "state": "dlq", "reason": "canceled"}, Reason(C.FREE_TEXT, "canceled")),
    (keys.RUN, {"task": "t", "state": "canceled", "reason": "canceled"}, Reason(C.CANCELED)),
    (keys.ATTEMPT, {"task": "t", "number": 1, "state": "failed", "errno": 2, "reason": "/no: such"}, Reason(C.NOT_STARTED, "/no: such")),
]  # fmt: skip


@pytest.mark.parametrize(("tag", "fields", "reason"), RECORDS)
def test_a_record_is_read_by_its_state(tag: bytes, fields: dict[str, Any], reason: Reason) -> None:
    key = tag + b"any"
    whole = {"job": "j", "nominal_ms": 1, "due_ms": 1, **fields}
    ((_, new),) = reasons_to_codes(key, with_header(key, msgspec.msgpack.encode(whole)))
    assert decode(key, new).reason == reason  # type: ignore[union-attr]


def test_what_is_damaged_or_has_no_reason_stays_byte_for_byte() -> None:
    key = keys.OCCURRENCE + b"any"
    sound = with_header(key, msgspec.msgpack.encode({"job": "j", "nominal_ms": 1, "due_ms": 1}))
    strange = with_header(key, msgspec.msgpack.encode([1, 2]))
    for raw in (sound, strange, b"", sound[:-1], b"\0" * 40):
        assert reasons_to_codes(key, raw) == [(key, raw)]


def test_a_record_at_its_limit_gives_up_the_end_of_its_words_for_the_code() -> None:
    key = keys.EVENT + b"any"
    fields = {"name": "CancelRequested", "at_ms": 1, "reason": "x" * 65_480}
    raw = with_header(key, msgspec.msgpack.encode(fields))
    ((_, new),) = reasons_to_codes(key, raw)
    code, words, _ = msgspec.msgpack.decode(payload_of(key, new))["reason"]
    assert (code, words) == ("free_text", "x" * (65_480 - 64))
