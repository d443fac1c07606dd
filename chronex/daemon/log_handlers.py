"""The daemon's log: stdlib loggers under `chronex`, structured fields, and a writer that never blocks the scheduler.

Every module logs to `logging.getLogger(__name__)`. A program that embeds the engine adds handlers of its own to the
logger `chronex`; only `chronex run` installs one here (`log_to`). The fields of an event are in `record.fields`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import re
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from typing import Any, TextIO

from chronex.text.instants import rfc3339
from chronex.text.terminal import terminal_safe

ROOT_LOGGER = logging.getLogger("chronex")
# Without a handler Python would print warnings to standard error, into the terminal of a dashboard for example.
ROOT_LOGGER.addHandler(logging.NullHandler())

# This much may wait for a slow reader: a screen that was stopped with Ctrl-S, a pager, a pipe that is not emptied.
MOST_BYTES = 1 << 20
# A daemon that leaves waits this long for its last lines to be written.
LAST_LINES_S = 1.0
_TOGETHER_S = 0.01  # lines of so long are written together


def log_event(log: logging.Logger, event: str, fields: Mapping[str, Any], level: int = logging.INFO) -> None:
    """One event with its fields. A handler that fails must not stop work: its pipe may be closed, its disk full.

    The record names no line of source: to find one takes longer than to log the event, and it would be one of these.
    """
    if log.isEnabledFor(level):
        record = log.makeRecord(log.name, level, __file__, 0, event, (), None, extra={"fields": dict(fields)})
        with contextlib.suppress(OSError, ValueError):  # ValueError: the stream was closed
            log.handle(record)


# -- formats -------------------------------------------------------------------------------------------------


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `at`, `event`, then the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        event = {"at": _instant(record), "event": record.getMessage()}
        return json.dumps(event | _fields(record), default=str)


class TextFormatter(logging.Formatter):
    """One line for people: instant, event, then `name=value` for each field that has a value."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{_instant(record)} {self.without_time(record)}"

    def without_time(self, record: logging.LogRecord) -> str:
        fields = _fields(record).items()
        shown = " ".join(_name_and_value(name, value) for name, value in fields if value not in (None, ""))
        return terminal_safe(f"{record.getMessage()} {shown}")


class UntimedFormatter(TextFormatter):
    """For a journal, which has the time itself."""

    def format(self, record: logging.LogRecord) -> str:
        return self.without_time(record)


FORMATTERS: dict[str, type[logging.Formatter]] = {"json": JsonFormatter, "text": TextFormatter}


def _instant(record: logging.LogRecord) -> str:
    return rfc3339(int(record.created * 1000))


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


def _name_and_value(name: str, value: Any) -> str:
    if name == "nominal_ms":
        return f"nominal={rfc3339(value)}"
    text = str(value)
    return f"{name}={json.dumps(text) if ' ' in text else text}"


# -- writing without waiting ---------------------------------------------------------------------------------


class BoundedQueueHandler(QueueHandler):
    """Formats each record and queues it. Beyond MOST_BYTES records are dropped and counted; nothing waits here."""

    def __init__(self, formatter: logging.Formatter, encoding: str) -> None:
        self.prepared: queue.SimpleQueue[Any] = queue.SimpleQueue()
        super().__init__(self.prepared)
        self.setFormatter(formatter)
        self.encoding = encoding
        self.dropped = 0
        self._waiting_bytes = 0
        self._counting = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        """A record that cannot be formatted is dropped: the default complains on standard error, which may block."""
        try:
            self.enqueue(self.prepare(record))
        except Exception:
            self.count_dropped(1)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """The record with its line, encoded. A character that the encoding lacks becomes a question mark."""
        record.line = self.format(record).encode(self.encoding, "replace") + b"\n"
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        line = _line_of(record)
        with self._counting:
            if self._waiting_bytes + len(line) > MOST_BYTES:
                self.dropped += 1
                return
            self._waiting_bytes += len(line)
        self.queue.put_nowait(record)

    def taken(self, count: int) -> int:
        """So many bytes have left the queue; returns how many lines were dropped, and counts from zero again."""
        with self._counting:
            self._waiting_bytes -= count
            dropped, self.dropped = self.dropped, 0
        return dropped

    def count_dropped(self, count: int) -> None:
        with self._counting:
            self.dropped += count


def _line_of(prepared: logging.LogRecord) -> bytes:
    line: bytes = prepared.__dict__["line"]
    return line


class DescriptorWriter(QueueListener):
    """A daemon thread that writes the queued lines to a descriptor, and the number of dropped lines among them.

    It writes to the descriptor and not to the stream: a thread that waits inside a stream holds the stream's lock,
    and the interpreter could not exit. For the same reason it is no handler: `logging.shutdown` takes their locks.
    """

    def __init__(self, lines: BoundedQueueHandler, descriptor: int) -> None:
        super().__init__(lines.prepared)
        self._lines = lines
        self._descriptor = descriptor

    def handle(self, record: logging.LogRecord) -> None:
        """Write the line and all that come within a moment.

        Whoever logs need not wake this thread for each of a thousand lines, and lose the interpreter to it.
        """
        time.sleep(_TOGETHER_S)
        lines = [_line_of(record), *self._waiting()]
        dropped = self._lines.taken(sum(map(len, lines)))
        if dropped:
            lines.append(self._dropped_line(dropped))
        try:
            self._write(b"".join(lines))
        except OSError:  # the reader has gone, or the disk is full; it may have free space again
            self._lines.count_dropped(dropped + len(lines) - bool(dropped))

    def _waiting(self) -> Iterator[bytes]:
        with contextlib.suppress(queue.Empty):
            while True:
                record = self._lines.prepared.get_nowait()
                if record is None:  # the end: it is put back for whoever waits for it
                    self.enqueue_sentinel()
                    return
                yield _line_of(record)

    def _dropped_line(self, count: int) -> bytes:
        record = logging.makeLogRecord({"msg": "log lines dropped", "fields": {"count": count}})
        return _line_of(self._lines.prepare(record))

    def _write(self, line: bytes) -> None:
        while line:
            try:
                line = line[os.write(self._descriptor, line) :]
            except BlockingIOError:  # another program that shares the descriptor made it non-blocking
                select.select([], [self._descriptor], [])

    def stop(self) -> None:
        """Lines that wait may still be written for a moment; a reader that does not read gets no longer."""
        if self._thread is not None:
            self.enqueue_sentinel()
            self._thread.join(LAST_LINES_S)
            self._thread = None


class _ImmediateHandler(logging.Handler):
    """For a stream without a descriptor, such as a test's. `log_event` takes what a closed stream raises."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        self._stream.write(self.format(record) + "\n")


@contextmanager
def log_to(
    stream: TextIO | None, formatter: logging.Formatter, environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Write what is logged below `chronex` to `stream`; None where the program was started without standard error.

    Where `environ` says that the stream leads to systemd's journal, that gets entries with fields instead of lines.
    """
    writer: DescriptorWriter | None = None
    handler: logging.Handler = logging.NullHandler()
    descriptor = _descriptor_of(stream)
    if descriptor is not None:
        handler = lines = BoundedQueueHandler(formatter, getattr(stream, "encoding", None) or "ascii")
        writer = DescriptorWriter(lines, descriptor)
        writer.start()
        if environ is not None and "JOURNAL_STREAM" in environ:  # a service of systemd, or a child of one
            handler = _journal_handler(formatter, lines, descriptor, environ)
    elif stream is not None:
        handler = _ImmediateHandler(stream)
        handler.setFormatter(formatter)
    level, propagates = ROOT_LOGGER.level, ROOT_LOGGER.propagate
    ROOT_LOGGER.addHandler(handler)
    ROOT_LOGGER.setLevel(logging.INFO)
    ROOT_LOGGER.propagate = False
    try:
        yield
    finally:
        ROOT_LOGGER.removeHandler(handler)
        ROOT_LOGGER.setLevel(level)
        ROOT_LOGGER.propagate = propagates
        handler.close()
        if writer is not None:
            writer.stop()


def _journal_handler(
    formatter: logging.Formatter, lines: logging.Handler, descriptor: int, environ: Mapping[str, str]
) -> logging.Handler:
    """For entries of the journal, where the descriptor leads there; else the one for lines."""
    if not leads_to_journal(descriptor, environ):
        return lines
    message = UntimedFormatter() if isinstance(formatter, TextFormatter) else formatter
    return JournalHandler(message, lines, SOCKET)


def _descriptor_of(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except OSError:
        return None


# The log as entries of systemd's journal: each field of an event becomes one of the entry, to search by.
#
# The journal is spoken to by its own protocol, one datagram an entry, where standard error leads to it. What it
# does not take goes to standard error, as everywhere else; nothing waits.

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
