"""Reasons: codes that are compared, and the one module that words them."""

from __future__ import annotations

import msgspec
import pytest

from chronex.model.reasons import (
    ENDS_OF_TASKS,
    NO_REASON,
    Reason,
    ReasonCode,
    free_text,
    of_task,
    short_text,
    shown_text,
    text_of,
    words_beyond,
    words_of,
)
from chronex.run.request import EndReason as EndKind

C = ReasonCode
# reason, in words, in short
WORDED = [
    (NO_REASON, "", ""),
    (Reason(C.PAUSED), "paused", "paused"),
    (Reason(C.PAUSED, by="ann@desk (cli)"), "paused by ann@desk (cli)", "paused by ann@desk (cli)"),
    (
        Reason(C.OVERLAP, "occ_1"),
        "an earlier occurrence still runs: occ_1",
        "an earlier occurrence still runs",
    ),
    (Reason(C.GAVE_WAY, "occ_2"), "a newer occurrence took its place: occ_2", "a newer occurrence took its place"),
    (Reason(C.CANCELED, "too slow", "ann"), "canceled by ann: too slow", "canceled by ann: too slow"),
    (Reason(C.REPLACED, "3"), "replaced by a new version: 3", "replaced by a new version: 3"),
    (Reason(C.DROPPED_BY_LIMIT), "dropped: too many dead letters, or too old", None),
    (Reason(C.TOO_MANY, "70"), "only the newest 70 missed occurrences of a job are made up for", None),
    (Reason(C.EXIT_CODE, "exit code 3"), "exit code 3", "exit 3"),
    (Reason(C.EXIT_CODE, "exit code 3", "main"), "main: exit code 3", "exit 3"),
    (Reason(C.EXCEPTION, "ValueError: no", "paused"), "paused: ValueError: no", "ValueError: no"),
    (Reason(C.EXECUTION_TIMEOUT), "the execution timeout passed", "the execution timeout passed"),
    (Reason(C.EXECUTION_TIMEOUT, by="main"), "main: the execution timeout passed", "the execution timeout passed"),
    (free_text("known"), "known", "known"),
    (free_text(""), "", ""),
]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (Reason(C.OVERLAP, "occ_1"), "an earlier occurrence still runs"),
        (
            Reason(C.RETRY_WAITS, "occ_1 until 2027-01-01T01:00:00Z"),
            "an earlier occurrence waits for its retry until 2027-01-01T01:00:00Z",
        ),
        (Reason(C.PAUSED, by="ann"), "paused by ann"),
        (Reason(C.EXIT_CODE, "exit code 3", "main"), "main: exit code 3"),
    ],
)
def test_a_person_is_told_no_ids(reason: Reason, told: str) -> None:
    assert shown_text(reason) == told


@pytest.mark.parametrize(("reason", "text", "short"), WORDED)
def test_a_reason_in_words(reason: Reason, text: str, short: str | None) -> None:
    assert text_of(reason) == str(reason) == text
    assert short_text(reason) == (text if short is None else short)
    assert bool(reason) == bool(text)


@pytest.mark.parametrize("code", [code for code in C if code is not C.NONE])
def test_every_code_has_words_that_a_sentence_can_go_on_with(code: ReasonCode) -> None:
    text = text_of(Reason(code, "x"))
    assert text[0].islower()
    assert not text.endswith(".")


def test_what_is_counted_together_has_the_same_words() -> None:
    assert words_of(Reason(C.OVERLAP, "occ_1")) == words_of(Reason(C.OVERLAP, "occ_2"))


def test_an_error_that_the_reason_says_already_is_not_said_again() -> None:
    assert words_beyond(Reason(C.EXIT_CODE, "exit code 3"), "exit code 3") == ""
    assert words_beyond(Reason(C.STOPPING), "the scheduler was stopped; it still runs").endswith("it still runs")


def test_a_code_of_a_newer_version_is_read_kept_and_worded_by_its_text() -> None:
    raw = msgspec.msgpack.encode(["moon_is_full", "tonight", "ann"])
    found = msgspec.msgpack.decode(raw, type=Reason)
    assert (found.code, str(found)) == ("moon_is_full", "moon is full by ann: tonight")
    assert msgspec.msgpack.encode(found) == raw


def test_how_the_supervisor_says_that_an_attempt_failed_is_a_code() -> None:
    ends = {kind.value for kind in EndKind} - {"exited", "canceled"}
    assert ends <= {code.value for code in ENDS_OF_TASKS}
    assert "canceled" in set(C)


def test_the_reason_of_an_occurrence_keeps_the_code_of_its_task() -> None:
    assert of_task("main", Reason(C.SIGNAL, "ended by SIGKILL")) == Reason(C.SIGNAL, "ended by SIGKILL", "main")
