"""A scheduler's side of the connection, against a keeper that does what this test tells it to."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from chronex.keeper.link import KeeperLink, connect
from chronex.keeper.messages import PROTOCOL, Ended, Recorded, Welcome, frame, take_frames
from chronex.model import AttemptState, ProcessIdentity
from chronex.run.request import AttemptResult, EndReason

ENDED = AttemptResult(state=AttemptState.SUCCESS, reason=EndReason.EXITED)
PROCESS = ProcessIdentity(pid=1, boot_id="boot", start_time=1)


async def connected(directory: Path) -> tuple[socket.socket, KeeperLink]:
    """The keeper's end of a connection, which this test reads and writes when it likes; and the scheduler's."""
    directory.mkdir()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(directory / "socket"))
    listener.listen()
    loop = asyncio.get_running_loop()

    def welcome() -> socket.socket:
        keeper, _ = listener.accept()
        keeper.sendall(frame(Welcome(PROTOCOL, "1", PROCESS)))
        return keeper

    accepted = loop.run_in_executor(None, welcome)
    link = await connect(directory)
    listener.close()
    return await accepted, link


async def test_a_scheduler_that_leaves_is_heard_to_its_last_word_by_a_keeper_that_speaks_meanwhile(
    tmp_path: Path,
) -> None:
    """A keeper that writes to a connection that is gone reads nothing of it any more, and keeps an end for nobody."""
    keeper, link = await connected(tmp_path / "k")
    link.send(Recorded("first"))
    leaving = asyncio.ensure_future(link.leave())
    await asyncio.sleep(0)  # it has gone as far as it goes before the keeper answers
    with keeper:
        keeper.sendall(frame(Ended("second", ENDED)))
        assert take_frames(keeper.recv(4096)).messages == [Recorded("first")]
        assert keeper.recv(4096) == b""
    await leaving
    assert link.is_lost


async def test_a_keeper_that_does_not_answer_holds_nobody_up(tmp_path: Path) -> None:
    keeper, link = await connected(tmp_path / "k")
    await link.leave(within_s=0.01)
    assert link.is_lost
    keeper.close()
