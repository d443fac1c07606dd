"""Frames between keeper and scheduler: whole ones are read, pieces wait, and what is newer is passed over."""

from __future__ import annotations

import struct

import msgspec
import pytest

from chronex.keeper.messages import (
    LONGEST_FRAME,
    Discard,
    Ended,
    FrameTooLongError,
    Held,
    Message,
    Open,
    Opened,
    Recorded,
    Start,
    Stop,
    Welcome,
    frame,
    take_frames,
)
from chronex.model import AttemptState, LeftoverPolicy, ProcessIdentity
from chronex.model.occurrence import Usage
from chronex.run.attempt_log import LogSummary
from chronex.run.request import AttemptResult, CommandRules, EndReason
from chronex.run.spawn import Invocation, PreparedCommand

PROCESS = ProcessIdentity(77, "boot", 123_456, 77)
RULES = CommandRules(
    attempt_id="attempt_1",
    timeout_ms=5_000,
    success_codes=(0, 3),
    retry_codes=(75,),
    leftovers=LeftoverPolicy.KILL,
    marks=frozenset({b"CHRONEX_ATTEMPT=attempt_1", b"CHRONEX_STORE=/\xff/not text"}),
)
COMMAND = PreparedCommand(
    RULES, Invocation(b"/bin/echo", (b"echo", b"\xff\x00"[:1]), b"/tmp"), {b"A": b"\xfe", b"": b""}, (b"s3cr\xe9t",)
)
RESULT = AttemptResult(
    state=AttemptState.CANCELED,
    reason=EndReason.CANCELED,
    error="enough",
    signal=15,
    process=PROCESS,
    started_ms=1,
    finished_ms=2,
    duration_ms=1,
    log=LogSummary("attempt_1.log", 5, 1, ""),
    leftovers=(PROCESS,),
    leftovers_killed=1,
    stop_code="stopping",
    usage=Usage(10, 2_048, 1, 2),
)
MESSAGES: list[Message] = [
    Start(COMMAND),
    Open("attempt_1", 60_000),
    Open("attempt_1"),
    Discard("attempt_1", keeps_end=True),
    Stop("attempt_1", "canceled", "enough"),
    Recorded("attempt_1"),
    Welcome(1, "1.0", PROCESS, 1, ("attempt_1",)),
    Held("attempt_1", PROCESS),
    Opened("attempt_1", PROCESS),
    Ended("attempt_1", RESULT),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
def test_a_message_comes_out_as_it_went_in(message: Message) -> None:
    data = frame(message)
    assert take_frames(data) == ([message], len(data))


@pytest.mark.parametrize("cut", [1, 3, 4, 5, 20])
def test_the_beginning_of_a_frame_waits_for_the_rest(cut: int) -> None:
    first, second = frame(MESSAGES[1]), frame(MESSAGES[0])
    assert take_frames(first + second[:cut]) == ([MESSAGES[1]], len(first))
    assert take_frames(first + second) == ([MESSAGES[1], MESSAGES[0]], len(first + second))


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param({"type": "from the future", "x": 1}, id="a kind that is not known"),
        pytest.param({"type": "held", "attempt_id": 5}, id="a field of another type"),
        pytest.param([1, 2], id="no message at all"),
    ],
)
def test_what_this_version_does_not_know_is_passed_over(newer: object) -> None:
    data = framed(msgspec.msgpack.encode(newer)) + frame(MESSAGES[5])
    assert take_frames(data) == ([MESSAGES[5]], len(data))


def test_a_field_that_is_added_later_does_not_disturb() -> None:
    body = msgspec.msgpack.encode({"type": "recorded", "attempt_id": "attempt_1", "added": [1]})
    assert take_frames(framed(body)).messages == [Recorded("attempt_1")]


def test_a_length_that_no_message_has_is_refused() -> None:
    with pytest.raises(FrameTooLongError):
        take_frames(struct.pack(">I", LONGEST_FRAME + 1))
