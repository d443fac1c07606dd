"""Lines of the log for readers that read, that do not, and that have gone."""

from __future__ import annotations

import fcntl
import io
import os
from collections.abc import Iterator
from typing import NamedTuple, TextIO

import pytest

from chronex.daemon import log_writer as outlet_module
from chronex.daemon.log_writer import MOST_BYTES, Outlet
from tests.daemon.machine import EVERY_SECOND, Machine
from tests.daemon.test_signals import started
from tests.kit.waits import until

SMALLEST_PIPE = 4096


def dropped(count: int) -> str:
    return f"{count} dropped"


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
    with Outlet(pipe.writer, dropped) as outlet:
        for number in range(100):
            outlet.say(f"line {number}")
    pipe.writer.close()
    assert pipe.read_all() == [f"line {number}" for number in range(100)]


def test_a_reader_that_does_not_read_is_never_waited_for(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mebibyte waits for it, what is more is dropped and counted, and leaving takes no longer than is allowed."""
    monkeypatch.setattr(outlet_module, "LAST_LINES_S", 0.05)
    outlet = Outlet(pipe.writer, dropped)
    for _ in range(3 * MOST_BYTES // 1000):
        outlet.say("x" * 999)
    outlet.close()
    received, told, kept = b"", 0, 0
    while kept + told < 3 * MOST_BYTES // 1000:  # now somebody reads
        received += os.read(pipe.reader, 1 << 16)
        lines = received.split(b"\n")[:-1]
        told = sum(int(line.split()[0]) for line in lines if line.endswith(b"dropped"))
        kept = sum(1 for line in lines if line.startswith(b"x"))
    assert kept + told == 3 * MOST_BYTES // 1000
    assert told >= MOST_BYTES // 1000


def test_a_reader_that_has_gone_is_no_trouble(pipe: Pipe) -> None:
    with Outlet(pipe.writer, dropped) as outlet:
        os.close(os.dup(pipe.reader))
        outlet.say("while it is there")
        assert os.read(pipe.reader, 100) == b"while it is there\n"
        reader, lonely = os.pipe()
        os.close(reader)
        os.dup2(lonely, pipe.writer.fileno())
        os.close(lonely)
        outlet.say("to nobody")
    assert outlet.dropped == 1


def test_a_descriptor_that_does_not_wait_is_waited_for(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer.fileno(), False)
    outlet = Outlet(pipe.writer, dropped)
    for number in range(2000):
        outlet.say(f"line {number}")
    received = b""
    while not received.endswith(b"line 1999\n"):
        received += os.read(pipe.reader, 1 << 16)
    outlet.close()
    assert received.decode().splitlines() == [f"line {number}" for number in range(2000)]


def test_without_a_descriptor_lines_are_written_at_once() -> None:
    stream = io.StringIO()
    with Outlet(stream, dropped) as outlet:
        outlet.say("at once")
        assert stream.getvalue() == "at once\n"
    with Outlet(None, dropped) as outlet:
        outlet.say("to nobody at all")


def test_a_daemon_whose_log_nobody_reads_goes_on(machine: Machine) -> None:
    machine.write("".join(f'[jobs.quick{number}]\n{EVERY_SECOND}run = ["true"]\n' for number in range(50)))
    assert machine.chronex("apply").returncode == 0
    daemon = machine.start()
    assert daemon.stderr is not None
    fcntl.fcntl(daemon.stderr, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE)
    # Some 240 lines of 150 bytes, and the pipe takes 4096.
    until(lambda: started(machine) >= 120, "120 starts although nobody reads the log")
    assert daemon.stopped() == 0
