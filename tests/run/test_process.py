"""One epoll for a loop, gone with the loop."""

from __future__ import annotations

import asyncio
import gc
import os
import select

import pytest

from chronex.run.process import watcher_of


@pytest.mark.parametrize("epoll", [True, False])
def test_a_callback_comes_as_long_as_there_is_something_to_read(epoll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not epoll:
        monkeypatch.delattr(select, "epoll")

    async def main() -> list[bytes]:
        ours, theirs = os.pipe()
        seen: list[bytes] = []
        watcher = watcher_of(asyncio.get_running_loop())
        watcher.add(ours, lambda: seen.append(os.read(ours, 1)))
        os.write(theirs, b"ab")
        while len(seen) < 2:
            await asyncio.sleep(0)
        watcher.remove(ours)
        watcher.remove(ours)
        os.write(theirs, b"c")
        await asyncio.sleep(0)
        os.close(ours)
        os.close(theirs)
        return seen

    selector = asyncio.SelectorEventLoop if epoll else _loop_without_epoll
    with asyncio.Runner(loop_factory=selector) as runner:
        assert runner.run(main()) == [b"a", b"b"]
    gc.collect()


def _loop_without_epoll() -> asyncio.AbstractEventLoop:
    import selectors

    return asyncio.SelectorEventLoop(selectors.PollSelector())


def test_a_failing_callback_is_told_and_the_others_go_on() -> None:
    async def main() -> list[str]:
        told: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(repr(context["exception"])))
        ours, theirs = os.pipe()
        os.write(theirs, b"x")

        def fail() -> None:
            watcher_of(loop).remove(ours)
            raise ValueError("no")

        watcher_of(loop).add(ours, fail)
        while not told:
            await asyncio.sleep(0)
        os.close(ours)
        os.close(theirs)
        return told

    assert asyncio.run(main()) == ["ValueError('no')"]
