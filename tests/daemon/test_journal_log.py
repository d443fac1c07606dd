"""The log as entries of systemd's journal, read from a socket that the test owns."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.daemon import log_handlers
from chronex.daemon.log_handlers import (
    LONGEST_VALUE,
    JsonFormatter,
    TextFormatter,
    entry_of,
    leads_to_journal,
    log_event,
    log_to,
)

log = logging.getLogger("chronex.tests")


def read_entry(data: bytes) -> dict[str, str]:
    """The protocol, read as its page says: https://systemd.io/JOURNAL_NATIVE_PROTOCOL."""
    fields: dict[str, str] = {}
    while data:
        line, _, data = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(data[:8], "little")
            value, data = data[8 : 8 + size], data[8 + size + 1 :]
        fields[name.decode()] = value.decode()
    return fields


class Journal:
    """A socket in the place of the journal's, and a stream that systemd would have connected."""

    def __init__(self, directory: Path) -> None:
        self.address = str(directory / "socket")
        self.open()
        self.stderr = (directory / "stderr").open("w+")
        found = os.fstat(self.stderr.fileno())
        self.environ = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}

    def open(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address)
        self.socket.settimeout(30)

    def entry(self) -> dict[str, str]:
        return read_entry(self.socket.recv(1 << 20))

    def close(self) -> None:
        self.socket.close()
        Path(self.address).unlink(missing_ok=True)

    def lines(self) -> list[str]:
        return Path(self.stderr.name).read_text().splitlines()


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Journal]:
    found = Journal(tmp_path)
    monkeypatch.setattr(log_handlers, "SOCKET", found.address)
    yield found
    found.close()
    found.stderr.close()


FIELDS = {
    "job": "backup",
    "task": "main",
    "nominal_ms": 1_798_765_200_000,
    "occurrence": "occ_1",
    "attempt": 2,
    "exit_code": None,
    "reason": "two\nlines",
}


def test_every_field_of_an_event_is_one_of_the_entry(journal: Journal) -> None:
    with log_to(journal.stderr, TextFormatter(), journal.environ):
        log_event(log, "attempt ended", FIELDS, logging.WARNING)
        assert journal.entry() == {
            "MESSAGE": 'attempt ended job=backup task=main nominal=2027-01-01T01:00:00Z occurrence=occ_1 attempt=2 reason=two\ufffdlines',
            "PRIORITY": "4",
            "SYSLOG_IDENTIFIER": "chronex",
            "CHRONEX_EVENT": "attempt ended",
            "CHRONEX_JOB": "backup",
            "CHRONEX_TASK": "main",
            "CHRONEX_SCHEDULED_TIME": "2027-01-01T01:00:00Z",
            "CHRONEX_OCCURRENCE": "occ_1",
            "CHRONEX_RUN": "occ_1",
            "CHRONEX_ATTEMPT": "2",
            "CHRONEX_REASON": "two\nlines",
        }  # fmt: skip
    assert journal.lines() == [], "it is told once"


def test_who_asks_for_json_has_it_in_the_message(journal: Journal) -> None:
    with log_to(journal.stderr, JsonFormatter(), journal.environ):
        log_event(log, "metrics served", {"address": "127.0.0.1:1"})
        assert '"event": "metrics served"' in journal.entry()["MESSAGE"]


@pytest.mark.parametrize("hostile", ["x\nPRIORITY=0", "\n_PID=1\n", "a=b\nMESSAGE=forged", "\0\x1b[2J\n"])
def test_no_text_of_a_job_becomes_a_field_of_its_own(hostile: str) -> None:
    record = logging.makeLogRecord({"msg": "m", "levelno": logging.INFO, "fields": {"reason": hostile, "a=b\n": "c"}})
    found = read_entry(entry_of(record, hostile))
    assert (found["MESSAGE"], found["CHRONEX_REASON"], found["PRIORITY"]) == (hostile, hostile, "6")
    assert set(found) == {
        "MESSAGE",
        "PRIORITY",
        "SYSLOG_IDENTIFIER",
        "CHRONEX_EVENT",
        "CHRONEX_REASON",
        "CHRONEX_A_B_",
    }


def test_values_are_cut() -> None:
    record = logging.makeLogRecord({"msg": "m", "levelno": logging.DEBUG, "fields": {"reason": "x" * 100_000}})
    assert len(read_entry(entry_of(record, "m"))["CHRONEX_REASON"]) == LONGEST_VALUE


def test_a_journal_that_is_away_or_full_is_not_waited_for_and_lines_go_to_standard_error(journal: Journal) -> None:
    with log_to(journal.stderr, TextFormatter(), journal.environ):
        journal.close()
        log.info("while it is away")
        journal.open()
        log.info("it is back")
        assert journal.entry()["MESSAGE"].strip() == "it is back"
        for number in range(5_000):  # nobody reads them
            log.info("line %d", number)
    told = journal.lines()
    assert told[0].endswith("while it is away ")
    assert told[-1].endswith("line 4999 ")
    journal.socket.setblocking(False)
    taken = []
    with contextlib.suppress(BlockingIOError):
        while True:
            taken.append(journal.entry()["MESSAGE"].strip())
    assert taken + [line.split("Z ", 1)[1].strip() for line in told[1:]] == [f"line {n}" for n in range(5_000)]


def test_lines_it_is_where_the_stream_is_another_than_systemd_gave(journal: Journal, tmp_path: Path) -> None:
    """A daemon that a shell of a service started with its log in a file has the variable too."""
    with (tmp_path / "elsewhere").open("w") as file:
        assert not leads_to_journal(file.fileno(), journal.environ)
        with log_to(file, TextFormatter(), journal.environ):
            log.info("to the file")
    assert (tmp_path / "elsewhere").read_text().endswith("to the file \n")
    assert not leads_to_journal(journal.stderr.fileno(), {})
