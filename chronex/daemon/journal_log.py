"""The log as entries of systemd's journal: each field of an event becomes one of the entry, to search by.

The journal is spoken to by its own protocol, one datagram an entry, where standard error leads to it. What it does
not take goes to standard error, as everywhere else; nothing waits.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Iterator, Mapping
from typing import Any

from chronex.text.instants import rfc3339

SOCKET = "/run/systemd/journal/socket"
# What systemd says of the stream that it has connected to the journal: its device and its inode.
STREAM_VARIABLE = "JOURNAL_STREAM"
_NOT_IN_A_NAME = re.compile(r"[^A-Z0-9_]", re.ASCII)
_LONGEST_NAME = 64
LONGEST_VALUE = 8_000
MOST_FIELDS = 40
_PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_DEBUG = 7


def leads_to_journal(descriptor: int, environ: Mapping[str, str]) -> bool:
    """Whether this descriptor is the stream that systemd gave; a child of a service has the variable as well."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return environ.get(STREAM_VARIABLE) == f"{found.st_dev}:{found.st_ino}"


class JournalHandler(logging.Handler):
    """Sends each record to the journal, and hands to `otherwise` what that does not take."""

    def __init__(self, message: logging.Formatter, otherwise: logging.Handler, address: str = SOCKET) -> None:
        super().__init__()
        self.setFormatter(message)
        self._otherwise, self._address = otherwise, address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)

    def emit(self, record: logging.LogRecord) -> None:
        """By the address each time: a journal that was restarted has another socket there."""
        try:
            self._socket.sendto(entry_of(record, self.format(record)), self._address)
        except (OSError, ValueError):  # it is away, or busy, or the entry is too large for it
            self._otherwise.emit(record)

    def close(self) -> None:
        self._socket.close()
        super().close()


def entry_of(record: logging.LogRecord, message: str) -> bytes:
    """One entry in the form of the protocol; names of fields are in capitals, behind CHRONEX_."""
    return b"".join(_written(name, value) for name, value in _entry(record, message))


def _entry(record: logging.LogRecord, message: str) -> Iterator[tuple[str, str]]:
    yield "MESSAGE", message
    yield "PRIORITY", str(next((number for level, number in _PRIORITIES if record.levelno >= level), _DEBUG))
    yield "SYSLOG_IDENTIFIER", "chronex"
    yield "CHRONEX_EVENT", record.getMessage()
    fields: dict[str, Any] = getattr(record, "fields", {})
    for name, value in list(fields.items())[:MOST_FIELDS]:
        if value is None or value == "":
            continue
        if name == "nominal_ms":
            yield "CHRONEX_SCHEDULED_TIME", rfc3339(value)
            continue
        yield f"CHRONEX_{_NOT_IN_A_NAME.sub('_', name.upper())}"[:_LONGEST_NAME], str(value)
        if name == "occurrence":  # what people call a run
            yield "CHRONEX_RUN", str(value)


def _written(name: str, value: str) -> bytes:
    """`NAME=value`; a value of several lines has its length before it, so that no line of it is a field."""
    data = value.encode("utf-8", "replace")[:LONGEST_VALUE]
    if b"\n" not in data:
        return b"%s=%s\n" % (name.encode(), data)
    return b"%s\n%s%s\n" % (name.encode(), len(data).to_bytes(8, "little"), data)
