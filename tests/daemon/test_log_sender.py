"""Logs of another machine: head and tail for everybody, the rest where it is requested, and nothing for longer than that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.cli import remote_logs
from chronex.cli.options import UsageError
from chronex.cli.remote_logs import RemoteLog, excerpt_text, followed, whole_log
from chronex.daemon.log_sender import LogSender
from chronex.engine import shared_logs
from chronex.engine.shared_logs import FOLLOW_LASTS_MS, PIECE_BYTES, REQUEST_LASTS_MS, cut_excerpt
from chronex.model.occurrence import Attempt, ProcessIdentity
from chronex.model.records import Node
from chronex.model.states import AttemptState
from chronex.run import LogDirectory
from chronex.storage import keys
from chronex.storage.records import Records
from chronex.testing import FakeClock
from chronex_store import MemoryStore
from tests.kit.machine import START

HERE = "machine-1"
NODE = Node(id="node-1", process=ProcessIdentity(1, "boot", 1), host="db-1", name="db-1", host_id=HERE)


@pytest.mark.parametrize(
    ("size", "shared", "head", "tail", "left_out"),
    [(0, 64, 0, 0, 0), (64, 64, 64, 0, 0), (65, 64, 16, 48, 1), (1_000, 64, 16, 48, 936)],
)
def test_an_excerpt_is_a_quarter_of_the_beginning_and_the_rest_of_the_end(
    size: int, shared: int, head: int, tail: int, left_out: int
) -> None:
    log = bytes(number % 251 for number in range(size))
    found = cut_excerpt(log, shared)
    assert (len(found.head), len(found.tail), found.left_out) == (head, tail, left_out)
    assert log.startswith(found.head)
    assert log.endswith(found.tail)


class _SharedMemory(MemoryStore):
    """Whose clock is a fake one, and on which who waits gives the machine a turn."""

    def __init__(self, there: SenderOnMachine) -> None:
        super().__init__()
        self._there = there

    def now(self) -> int:
        return self._there.clock.wall_ms()

    def wait(self, since: int, timeout: float) -> int:
        return self._there.wait(since, timeout)


class SenderOnMachine:
    """A store, one machine with a log directory, and an attempt that it runs."""

    def __init__(self, directory: Path, shared_bytes: int = 64 * 1024) -> None:
        self._changes = 0
        self.clock = FakeClock(START)
        self.store: Any = _SharedMemory(self)
        self.logs = LogDirectory(directory / "logs")
        self.sender = LogSender(self.store, self.logs, self.clock, HERE, shared_bytes)
        self.attempt = Attempt(
            job="job", nominal_ms=START, task="main", number=1, owner="node-1", created_ms=START, started_ms=START
        )
        name, self._descriptor = self.logs.create(self.attempt.id)
        self.attempt = replace(self.attempt, log_path=name, log_limit=10 << 20)
        self.put(self.attempt)

    def wait(self, since: int, timeout: float) -> int:
        """Whoever waits gives the machine a turn, and time passes."""
        if timeout:
            self.clock.advance(1_000)
            asyncio.run(self.sender.do())
        self._changes += 1
        return self._changes

    def put(self, attempt: Attempt) -> None:
        self.store.update(lambda tx: Records(tx, START).put(attempt))

    def write(self, data: bytes) -> None:
        import os

        os.write(self._descriptor, data)

    def end(self) -> None:
        self.attempt = replace(self.attempt, state=AttemptState.SUCCESS, finished_ms=START + 5_000)
        excerpt = asyncio.run(self.sender.excerpt_of(self.attempt, self.attempt.log_path))
        self.put(self.attempt)
        if excerpt is not None:
            self.store.update(lambda tx: shared_logs.put_excerpt(Records(tx, START), self.attempt, excerpt))

    @property
    def remote(self) -> RemoteLog:
        return RemoteLog(self.attempt, NODE)

    def pieces(self) -> int:
        return len(self.store.view(lambda tx: tx.scan(keys.LOG_PIECE)))


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SenderOnMachine]:
    made = SenderOnMachine(tmp_path)
    monkeypatch.setattr(remote_logs, "SYSTEM_CLOCK", made.clock)
    yield made
    made.logs.close()


def test_a_short_log_can_be_read_anywhere_when_the_attempt_has_ended(there: SenderOnMachine) -> None:
    there.write(b"one\ntwo\n")
    assert excerpt_text(there.store, there.remote) is None
    there.end()
    assert excerpt_text(there.store, there.remote) == b"one\ntwo\n"


def test_of_a_long_log_the_two_ends_are_shown_with_what_is_left_out_and_where_it_lies(there: SenderOnMachine) -> None:
    there.write(b"begin\n" + b"x" * 1_000_000 + b"\nend\n")
    there.end()
    text = excerpt_text(there.store, there.remote)
    assert text is not None
    assert text.startswith(b"begin\n")
    assert text.endswith(b"\nend\n")
    left_out = 1_000_011 - 64 * 1024
    assert f"{left_out / 1024:.0f}KiB left out; the whole log lies on db-1".encode() in text
    assert f"chronex logs --whole {there.attempt.id} fetches all".encode() in text
    assert len(text) < 64 * 1024 + 300


def test_nothing_leaves_the_machine_where_that_was_asked_for(tmp_path: Path) -> None:
    there = SenderOnMachine(tmp_path, shared_bytes=0)
    there.write(b"private\n")
    there.end()
    assert there.pieces() == 0
    there.logs.close()


def test_the_whole_log_is_fetched_and_gone_after_an_hour(there: SenderOnMachine) -> None:
    data = bytes(number % 251 for number in range(11 * PIECE_BYTES + 7))
    there.write(data)
    there.end()
    before = there.pieces()
    assert whole_log(there.store, there.remote) == data
    assert there.pieces() > before
    there.clock.advance(REQUEST_LASTS_MS - 60_000)
    there.wait(0, 1)
    assert whole_log(there.store, there.remote) == data, "what was fetched once is at hand"
    there.clock.advance(REQUEST_LASTS_MS + 60_000)
    there.wait(0, 1)
    assert there.pieces() == before
    assert there.store.view(lambda tx: tx.scan(keys.LOG_REQUEST)) == []


def test_what_a_command_writes_is_followed_until_it_ends(there: SenderOnMachine) -> None:
    found = followed(there.store, there.remote)
    there.write(b"first\n")
    assert next(found) == b"first\n"
    there.write(b"second\n")
    assert next(found) == b"second\n"
    there.write(b"last\n")
    there.end()
    assert b"".join(found) == b"last\n"


def test_what_nobody_follows_any_more_is_not_sent_and_goes_away(there: SenderOnMachine) -> None:
    found = followed(there.store, there.remote)
    there.write(b"first\n")
    next(found)
    del found
    there.clock.advance(FOLLOW_LASTS_MS + 31_000)
    there.write(b"second\n")
    there.wait(0, 1)
    assert there.pieces() == 0


def test_a_command_that_writes_without_end_fills_no_database(there: SenderOnMachine) -> None:
    there.store.update(lambda tx: shared_logs.request_log(Records(tx, START), there.attempt, HERE, whole=False))
    for _ in range(20):
        there.write(b"y" * 200_000)
        there.wait(0, 1)
    assert there.pieces() <= shared_logs.MOST_LIVE_PIECES


def test_a_machine_that_is_away_is_said_to_be(there: SenderOnMachine) -> None:
    there.end()
    asleep = RemoteLog(there.attempt, replace(NODE, host_id="elsewhere", name="db-9"))
    with pytest.raises(UsageError, match="db-9 does not answer"):
        whole_log(there.store, asleep)


def test_too_many_requests_are_refused(there: SenderOnMachine) -> None:
    for number in range(shared_logs.MOST_REQUESTS):
        one = replace(there.attempt, number=number + 2)
        there.store.update(lambda tx, one=one: shared_logs.request_log(Records(tx, START), one, "away", whole=True))
    with pytest.raises(UsageError, match="too many logs"):
        whole_log(there.store, there.remote)
