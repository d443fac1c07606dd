"""Starts without the interpreter's lock: what the child is given, what goes on meanwhile, and who gives up."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from chronex.run import Hooks, RunContext, command_start, run_attempt
from chronex.run import spawn as spawn_module
from chronex.run.posix_spawn import Dup2, OpenForReading, SpawnThreads, spawn, spawn_threads
from tests.kit.waits import is_gone, until, until_async
from tests.run.requests import request

ECHO = b"/bin/sh"


def said(argv: tuple[bytes, ...], variables: dict[bytes, bytes], *, new_session: bool = False) -> bytes:
    ours, theirs = os.pipe()
    pid = spawn(argv[0], argv, variables, (Dup2(theirs, 1),), new_session=new_session)
    os.close(theirs)
    with os.fdopen(ours, "rb") as output:
        found = output.read()
    assert os.waitpid(pid, 0)[1] == 0
    return found


@pytest.mark.parametrize(
    "text", [b"", b"plain", b"two words", b'"$HOME" `id`', b"\xff\xfe", b"a\nb", b"=", b"x" * 100_000]
)
def test_arguments_and_variables_arrive_byte_by_byte(text: bytes) -> None:
    script = b'printf "%s|%s" "$1" "$VALUE"'
    assert said((ECHO, b"-c", script, b"sh", text), {b"VALUE": text}) == text + b"|" + text


def test_nothing_else_is_in_its_environment() -> None:
    assert said((b"/usr/bin/env",), {}) == b""
    assert said((b"/usr/bin/env",), {b"A": b"1", b"B": b""}) == b"A=1\nB=\n"


@pytest.mark.parametrize("new_session", [True, False])
def test_it_leads_a_group_or_a_session(new_session: bool) -> None:
    script = b'set -- $(cat /proc/$$/stat); echo "$$ $5 $6"'
    pid, group, session = said((ECHO, b"-c", script), {b"PATH": b"/bin:/usr/bin"}, new_session=new_session).split()
    assert (pid == group, pid == session) == (True, new_session)


@pytest.mark.parametrize(
    ("path", "number"),
    [(b"/no/such/program", errno.ENOENT), (b"/etc/passwd", errno.EACCES), (b"/", errno.EACCES)],
)
def test_what_the_system_refuses_is_an_error_with_its_number(path: bytes, number: int) -> None:
    with pytest.raises(OSError, match=os.strerror(number)) as refused:
        spawn(path, (path,), {}, (), new_session=False)
    assert refused.value.errno == number


def test_too_many_arguments_are_refused_and_not_cut() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.E2BIG)):
        spawn(ECHO, (ECHO, *(b"x" * 100_000 for _ in range(100))), {}, (), new_session=False)


def test_other_threads_go_on_while_the_system_starts_it(tmp_path: Path) -> None:
    """The child waits for a writer before it becomes its program, and the writer is a thread of ours."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    started: list[int] = []
    actions = (OpenForReading(os.fsencode(fifo), 0),)
    waits = threading.Thread(
        target=lambda: started.append(spawn(ECHO, (ECHO, b"-c", b"cat"), {}, actions, new_session=False))
    )
    waits.start()
    os.close(os.open(fifo, os.O_WRONLY))  # would never be reached with the lock held
    waits.join()
    assert os.waitpid(started[0], 0)[1] == 0


# -- threads ---------------------------------------------------------------------------------------------------------


async def test_the_loop_goes_on_and_starts_are_made_in_order() -> None:
    threads, go_on, seen = SpawnThreads(most=1), threading.Event(), list[int]()

    def work(number: int) -> int:
        go_on.wait()
        seen.append(number)
        return number

    waiting = [asyncio.ensure_future(threads.run(lambda n=n: work(n), lambda _: None)) for n in range(5)]  # type: ignore[misc]
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    go_on.set()
    assert await asyncio.gather(*waiting) == seen == [0, 1, 2, 3, 4]


async def test_a_busy_loop_is_woken_once_for_all_that_were_made_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, loop = SpawnThreads(most=2), asyncio.get_running_loop()
    made: list[int] = []
    woken: list[object] = []
    call = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *given: object) -> asyncio.Handle:
        woken.append(callback)
        return call(callback, *given)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    starts = [asyncio.ensure_future(threads.run(partial(abs, -number), made.append)) for number in range(50)]
    await asyncio.sleep(0)  # all of them are queued
    until(lambda: not threads.waiting, "the threads, while the loop is busy here")
    assert await asyncio.gather(*starts) == list(range(50))
    assert len(woken) <= 4, "once for what was made while it was busy, and for those that came at the end of that"


async def test_what_fails_there_fails_here() -> None:
    with pytest.raises(ZeroDivisionError):
        await SpawnThreads().run(lambda: 1 // 0, lambda _: None)


async def test_where_no_thread_can_be_begun_the_loop_starts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads = SpawnThreads()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        assert await threads.run(threading.get_ident, lambda _: None) == threading.get_ident()
    assert await threads.run(threading.get_ident, lambda _: None) != threading.get_ident()


async def test_what_nobody_waits_for_is_given_up() -> None:
    threads, go_on, given_up = SpawnThreads(most=1), threading.Event(), list[str]()

    def work() -> str:
        go_on.wait()
        return "child"

    waiting = asyncio.ensure_future(threads.run(work, given_up.append))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert given_up == []
    go_on.set()
    await until_async(lambda: given_up == ["child"], "it to be given up")


def test_it_is_given_up_where_the_loop_has_ended() -> None:
    threads, go_on, given_up = SpawnThreads(most=1), threading.Event(), threading.Event()

    async def leave() -> None:
        asyncio.ensure_future(threads.run(go_on.wait, lambda _: given_up.set()))  # noqa: RUF006  it outlives the loop
        await asyncio.sleep(0)

    asyncio.run(leave())
    go_on.set()
    assert given_up.wait(30)


def test_it_is_given_up_where_the_loop_ends_before_it_has_heard_of_it() -> None:
    """The thread has answered, and the loop that is to take the answer makes no turn any more."""
    threads, made, given_up = SpawnThreads(most=1), threading.Event(), threading.Event()

    async def leave() -> None:
        asyncio.ensure_future(threads.run(made.set, lambda _: given_up.set()))  # noqa: RUF006  it outlives the loop
        await asyncio.sleep(0)
        made.wait()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(leave())
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert given_up.wait(30)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_made_before", [True, False])
def test_it_is_given_up_where_the_loop_is_closed_under_the_task_that_waits(is_made_before: bool) -> None:
    """Nobody cancels that task, and no other loop asks these threads for anything afterwards."""
    threads, go_on, given_up = SpawnThreads(most=1), threading.Event(), threading.Event()
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda _loop, _context: None)  # that a task is destroyed while it waits is the point
    called: list[object] = []
    call = loop.call_soon_threadsafe

    def seen(callback: Callable[..., object], *given: object) -> asyncio.Handle:
        called.append(callback)
        return call(callback, *given)

    loop.call_soon_threadsafe = seen  # type: ignore[assignment]

    async def leave() -> None:
        asyncio.ensure_future(threads.run(go_on.wait, lambda _: given_up.set()))  # noqa: RUF006  it outlives the loop
        await asyncio.sleep(0)
        asyncio.get_running_loop().stop()  # no further turn: what the thread says is not heard
        if is_made_before:
            go_on.set()
            until(lambda: bool(called), "the thread to call the loop")

    asyncio.ensure_future(leave(), loop=loop)  # noqa: RUF006  the loop is stopped before its end would be asked for
    loop.run_forever()
    loop.close()
    del loop
    go_on.set()
    until(lambda: bool(called), "the thread to call the loop")
    called.clear()

    def is_given_up() -> bool:
        gc.collect()
        return given_up.is_set()

    until(is_given_up, "it to be given up")


async def test_an_attempt_that_is_cancelled_while_it_is_started_leaves_nothing(
    run_context: RunContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, pids = threading.Event(), list[int]()
    real = spawn_module.start

    def slow(*given: object) -> object:
        go_on.wait()
        pids.append(real(*given))  # type: ignore[arg-type]
        return pids[-1]

    monkeypatch.setattr(command_start, "start", slow)
    before = len(os.listdir("/proc/self/fd"))
    attempt = asyncio.ensure_future(run_attempt(request("touch never"), Hooks(), run_context))
    for _ in range(3):
        await asyncio.sleep(0)  # the pace lets it pass, and it waits for its thread
    attempt.cancel()
    with pytest.raises(asyncio.CancelledError):
        await attempt
    go_on.set()
    await until_async(lambda: bool(pids) and is_gone(pids[0]), "the child to be waited for")
    await until_async(lambda: len(os.listdir("/proc/self/fd")) <= before, "its descriptors to be closed")
    assert not os.path.exists("never")


def test_a_forked_process_has_threads_of_its_own() -> None:
    async def start() -> int:
        return await spawn_threads().run(lambda: 7, lambda _: None)

    assert asyncio.run(start()) == 7
    child = os.fork()
    if child == 0:
        os._exit(asyncio.run(asyncio.wait_for(start(), 30)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
