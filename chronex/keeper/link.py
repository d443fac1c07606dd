"""A scheduler's connection to one keeper."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Any, TypeVar

from chronex.keeper.messages import (
    Ended,
    FrameReader,
    FrameTooLongError,
    Held,
    Message,
    Recorded,
    Welcome,
    frame,
    socket_path,
)
from chronex.model import ProcessIdentity

T = TypeVar("T")
# A keeper answers at once; one that does not is stopped, or no keeper.
ANSWER_WITHIN_S = 5.0
LEAVE_WITHIN_S = 1.0


class KeeperLostError(Exception):
    """The connection to the keeper broke: it was killed."""


class KeeperSilentError(Exception):
    """The keeper lives, and has not said a word for long: it is stopped, or hangs."""


class KeeperLink(asyncio.Protocol):
    """What the keeper says is put into futures; both are made by whoever asks first, the keeper or the scheduler."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory  # that of its keeper
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._loop = asyncio.get_running_loop()
        self.welcome: asyncio.Future[Welcome] = self._loop.create_future()
        self._held: dict[str, asyncio.Future[Held | Ended]] = {}
        self._ended: dict[str, asyncio.Future[Ended]] = {}
        self.is_lost = False
        self._last_message_s = self._loop.time()  # when it last said something
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._last_message_s = self._loop.time()
        try:
            for message in self._frames.feed(data):
                self._received(message)
        except FrameTooLongError:
            self.close()

    def _received(self, message: Message) -> None:
        if isinstance(message, Held):
            _resolve(self.held(message.attempt_id), message)
        elif isinstance(message, Ended):
            if message.attempt_id in self._held:  # it could not be started, and was never held
                _resolve(self._held[message.attempt_id], message)
            _resolve(self.ended(message.attempt_id), message)
        elif isinstance(message, Welcome):
            for attempt_id in message.running:
                self.ended(attempt_id)
            _resolve(self.welcome, message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._gone.set()
        futures: list[asyncio.Future[Any]] = [self.welcome, *self._held.values(), *self._ended.values()]
        for future in futures:
            if not future.done():
                future.set_exception(KeeperLostError())
                future.exception()  # mostly nobody waits for it

    def send(self, message: Message) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(message))

    def held(self, attempt_id: str) -> asyncio.Future[Held | Ended]:
        """Done once its process waits at the barrier, or could not be started."""
        return self._future(self._held, attempt_id)

    async def held_soon(self, attempt_id: str, within_s: float) -> Held | Ended:
        """The same; KeeperSilentError where the keeper has said nothing at all for so long. Slow is not silent."""
        future, asked = self.held(attempt_id), self._loop.time()

        def check() -> None:
            silent_s = self._loop.time() - max(self._last_message_s, asked)
            if future.done():
                return
            if silent_s < within_s:
                self._loop.call_later(within_s - silent_s, check)
            else:
                future.set_exception(KeeperSilentError())

        timer = self._loop.call_later(within_s, check)
        try:
            return await future
        finally:
            timer.cancel()

    def ended(self, attempt_id: str) -> asyncio.Future[Ended]:
        """Done once it has ended."""
        return self._future(self._ended, attempt_id)

    def _future(self, known: dict[str, asyncio.Future[T]], attempt_id: str) -> asyncio.Future[T]:
        future = known.get(attempt_id)
        if future is None:
            future = known[attempt_id] = self._loop.create_future()
            if self.is_lost:
                future.set_exception(KeeperLostError())
                future.exception()
        return future

    def keeps(self, attempt_id: str) -> bool:
        """It runs there, or its end is known there and not on record."""
        return attempt_id in self._ended

    def may_have(self, attempt_id: str, process: ProcessIdentity) -> bool:
        """The same of this process; which one it is that runs there is known when it has ended."""
        future = self._ended.get(attempt_id)
        if future is None or future.cancelled():
            return False
        is_known = future.done() and future.exception() is None
        return not is_known or future.result().is_of(process)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._ended)

    def recorded(self, attempt_id: str) -> None:
        """Its end is on record: it need not be kept there."""
        if self.keeps(attempt_id):
            self.forget(attempt_id)
            self.send(Recorded(attempt_id))

    def forget(self, attempt_id: str) -> None:
        self._held.pop(attempt_id, None)
        self._ended.pop(attempt_id, None)

    async def leave(self, within_s: float = LEAVE_WITHIN_S) -> None:
        """Say no more, and wait until the keeper has read everything and lets go.

        A keeper that writes to a connection that is closed at once gets an error for it, and does not read what was
        said before: an end that is on record would stay in its file. One that is stopped is not waited for.
        """
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write_eof()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), within_s)
        self.close()
        await asyncio.sleep(0)  # asyncio tells of the loss in its next round

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def _resolve(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)


async def connect(directory: Path, within_s: float = ANSWER_WITHIN_S) -> KeeperLink:
    """OSError where nobody listens there; KeeperLostError or TimeoutError where it does not answer."""
    descriptor = os.open(directory, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)  # one that is stopped may have a full queue of those who want to connect
        try:
            connection.connect(socket_path(descriptor, directory))
        except OSError:
            connection.close()
            raise
    finally:
        os.close(descriptor)
    _, link = await asyncio.get_running_loop().create_unix_connection(lambda: KeeperLink(directory), sock=connection)
    try:
        await asyncio.wait_for(asyncio.shield(link.welcome), within_s)
    except BaseException:
        link.close()
        raise
    return link
