"""What the keeper and a scheduler say to each other, and what the keeper writes down: values, one frame each.

A frame is its length in four bytes and a message in MessagePack. Fields are only ever added, with a default. So a
scheduler understands the keeper of an older or newer one, and can see its commands through to their end. Commands are
started by a keeper of the scheduler's own version alone.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from chronex.model import ProcessIdentity
from chronex.run.request import AttemptResult, EndReason
from chronex.run.spawn import PreparedCommand

PROTOCOL = 1
SOCKET_NAME = "socket"
_LENGTH = struct.Struct(">I")
# The arguments and the environment of a command have at most 2 MiB on Linux.
LONGEST_FRAME = 16 * 1024 * 1024


class Start(Struct, frozen=True, tag="start"):
    """Start the command and hold it at its start barrier."""

    command: PreparedCommand


class Open(Struct, frozen=True, tag="open"):
    """Its start is on record: open its barrier. Its occurrence has `deadline_in_ms` left, where it has a deadline."""

    attempt_id: str
    deadline_in_ms: int | None = None
    # By the boot time: past it the barrier stays shut. Others may have given the node up while it stood still.
    until_ms: int | None = None


class Discard(Struct, frozen=True, tag="discard"):
    """It is not needed: its barrier stays shut for good. `keeps_end` where its start may be on record."""

    attempt_id: str
    keeps_end: bool = False


class Stop(Struct, frozen=True, tag="stop"):
    """End it as a cancellation does; `code` and `words` say why, and come back with its end."""

    attempt_id: str
    code: str
    words: str


class Trust(Struct, frozen=True, tag="trust"):
    """What runs here may run until then, by the boot time; from `kill_ms` on nothing may.

    Said again and again by a scheduler that shares its store with other machines. When it falls silent, they take its
    work over some time later, and before that the keeper has ended it.
    """

    stop_ms: int
    kill_ms: int


class Recorded(Struct, frozen=True, tag="recorded"):
    """Its end is on record, so the keeper may forget it."""

    attempt_id: str


class Welcome(Struct, frozen=True, tag="welcome"):
    """The keeper's first words: what runs here. The end of everything else that it keeps follows at once.

    `others` is how many schedulers are connected besides.
    """

    protocol: int
    version: str
    process: ProcessIdentity
    others: int = 0
    running: tuple[str, ...] = ()


class Held(Struct, frozen=True, tag="held"):
    """The process waits at its start barrier."""

    attempt_id: str
    process: ProcessIdentity


class Opened(Struct, frozen=True, tag="opened"):
    """Only in the keeper's file: from here on the command runs, and what the file said of this attempt is over."""

    attempt_id: str
    process: ProcessIdentity


class Ended(Struct, frozen=True, tag="ended"):
    """How it ended. It is said again to every scheduler that connects, until one has recorded it."""

    attempt_id: str
    result: AttemptResult

    def is_of(self, process: ProcessIdentity) -> bool:
        """Whether it is the end of this process.

        A scheduler that died may have had the same attempt held ahead of its instant. That it never began there says
        nothing of the process with which the next one began it.
        """
        if self.result.process is None:
            return self.result.reason is not EndReason.NEVER_STARTED
        return self.result.process == process


Message = Start | Open | Discard | Stop | Trust | Recorded | Welcome | Held | Opened | Ended
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Message)


def frame(message: Message) -> bytes:
    body = _ENCODER.encode(message)
    return _LENGTH.pack(len(body)) + body


class FrameTooLongError(Exception):
    """No message is as long as this: the other side is no keeper."""


class FrameReader:
    """The messages of one connection, as its bytes come in."""

    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Every message that is whole by now; FrameTooLongError where the other side is no keeper."""
        self._received += data
        messages, used = take_frames(bytes(self._received))
        del self._received[:used]
        return messages


class Taken(NamedTuple):
    messages: list[Message]
    used: int  # how many bytes they were; what is left is the beginning of a frame


def take_frames(data: bytes | bytearray | memoryview) -> Taken:
    """Every whole message in `data`. One of a kind that this version does not know is passed over."""
    found: list[Message] = []
    position, view = 0, memoryview(data)
    while len(view) - position >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(view, position)
        if length > LONGEST_FRAME:
            raise FrameTooLongError
        end = position + _LENGTH.size + length
        if end > len(view):
            break
        with contextlib.suppress(msgspec.DecodeError):
            found.append(_DECODER.decode(view[position + _LENGTH.size : end]))
        position = end
    return Taken(found, position)


def socket_path(held: int, directory: Path) -> str:
    """In the keeper's directory, which is private. The path of a socket may have about 100 bytes, and a store may
    lie deeper than that: so it goes through a descriptor of the directory where the system knows such paths."""
    if os.path.isdir("/proc/self/fd"):
        return f"/proc/self/fd/{held}/{SOCKET_NAME}"
    return str(directory / SOCKET_NAME)
