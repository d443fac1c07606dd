"""Lines of the log for readers that read, that do not, and that have gone."""

from __future__ import annotations

import fcntl
import io
import json
import logging
import os
from collections.abc import Iterator
from typing import NamedTuple, TextIO

import pytest

from chronex.daemon import log_handlers
from chronex.daemon.log_handlers import MOST_BYTES, BoundedQueueHandler, DescriptorWriter, log_event, log_to
from tests.daemon.machine import EVERY_SECOND, Machine
from tests.daemon.test_signals import started
from tests.kit.waits import until

SMALLEST_PIPE = 4096


log = logging.getLogger("chronex.tests")


class PlainFormatter(logging.Formatter):
    """The message, and the count of dropped lines as it stands in its field."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        return f"{fields['count']} dropped" if "count" in fields else record.getMessage()


class Pipe(NamedTuple):
    reader: int
    writer: TextIO

    def read_all(self) -> list[str]:
        """To its end, which is where the writer closed it."""
        with os.fdopen(os.dup(self.reader), encoding="utf-8") as reader:
            return reader.read().splitlines()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    found = Pipe(reader, os.fdopen(writer, "w", encoding="utf-8"))
    yield found
    found.writer.close()
    os.close(reader)


def test_lines_come_in_their_order(pipe: Pipe) -> None:
    with log_to(pipe.writer, PlainFormatter()):
        for number in range(100):
            log.info("line %d", number)
    pipe.writer.close()
    assert pipe.read_all() == [f"line {number}" for number in range(100)]


def test_a_reader_that_does_not_read_is_never_waited_for(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mebibyte waits for it, what is more is dropped and counted, and leaving takes no longer than is allowed."""
    monkeypatch.setattr(log_handlers, "LAST_LINES_S", 0.05)
    with log_to(pipe.writer, PlainFormatter()):
        for _ in range(3 * MOST_BYTES // 1000):
            log.info("x" * 999)
    received, dropped, kept = b"", 0, 0
    while kept + dropped < 3 * MOST_BYTES // 1000:  # now the pipe is read
        received += os.read(pipe.reader, 1 << 16)
        lines = received.split(b"\n")[:-1]
        dropped = sum(int(line.split()[0]) for line in lines if line.endswith(b"dropped"))
        kept = sum(1 for line in lines if line.startswith(b"x"))
    assert kept + dropped == 3 * MOST_BYTES // 1000
    assert dropped >= MOST_BYTES // 1000


def test_a_reader_that_has_gone_is_no_trouble(pipe: Pipe) -> None:
    lines = BoundedQueueHandler(PlainFormatter(), "utf-8")
    writer = DescriptorWriter(lines, pipe.writer.fileno())
    writer.start()
    lines.handle(logging.makeLogRecord({"msg": "while it is there"}))
    assert os.read(pipe.reader, 100) == b"while it is there\n"
    reader, lonely = os.pipe()
    os.close(reader)
    os.dup2(lonely, pipe.writer.fileno())
    os.close(lonely)
    lines.handle(logging.makeLogRecord({"msg": "to nobody"}))
    writer.stop()
    assert lines.dropped == 1


def test_a_descriptor_that_does_not_wait_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer.fileno(), False)
    received = b""
    with log_to(pipe.writer, PlainFormatter()):
        for number in range(2000):
            log.info("line %d", number)
        while not received.endswith(b"line 1999\n"):
            received += os.read(pipe.reader, 1 << 16)
    assert received.decode().splitlines() == [f"line {number}" for number in range(2000)]


def test_without_a_descriptor_lines_are_written_at_once() -> None:
    stream = io.StringIO()
    with log_to(stream, PlainFormatter()):
        log.info("at once")
        assert stream.getvalue() == "at once\n"
    with log_to(None, PlainFormatter()):
        log.info("to nobody at all")


def test_a_closed_stream_does_not_stop_work() -> None:
    stream = io.StringIO()
    with log_to(stream, PlainFormatter()):
        stream.close()
        log_event(log, "to a closed stream", {})


def test_both_formats_show_the_same_event() -> None:
    fields = {"job": "a b", "nominal_ms": 0, "exit_code": None, "reason": "\x1b[31m"}
    record = logging.makeLogRecord({"msg": "attempt ended", "created": 1_800_000_000.25, "fields": fields})
    text = '2027-01-15T08:00:00.250Z attempt ended job="a b" nominal=1970-01-01T00:00:00Z reason=\ufffd[31m'
    assert log_handlers.TextFormatter().format(record) == text
    assert json.loads(log_handlers.JsonFormatter().format(record)) == {
        "at": "2027-01-15T08:00:00.250Z",
        "event": "attempt ended",
        **fields,
    }


def test_a_daemon_whose_log_nobody_reads_goes_on(machine: Machine) -> None:
    machine.write("".join(f'[jobs.quick{number}]\n{EVERY_SECOND}run = ["true"]\n' for number in range(50)))
    assert machine.chronex("apply").returncode == 0
    daemon = machine.start()
    assert daemon.stderr is not None
    fcntl.fcntl(daemon.stderr, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    # Some 240 lines of 150 bytes, and the pipe takes 4096.
    until(lambda: started(machine) >= 120, "120 starts although no process reads the log")
    assert daemon.stopped() == 0
