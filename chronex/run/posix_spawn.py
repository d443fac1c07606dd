"""posix_spawn without the interpreter's lock, on threads that the event loop does not wait for.

The system lets whoever starts a process wait until that has become its program. `os.posix_spawn` holds the lock of
the interpreter meanwhile, so everything else in this process waits too: of a loop that does nothing but start
commands, 97 of 100 parts are this wait, and the second processor is idle. Called through ctypes, the lock is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import queue
import signal
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")

EVERY_SIGNAL = tuple(int(number) for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})

# Larger than what any C library has for attributes, actions and sets of signals.
_OPAQUE_BYTES = 1024
_SETPGROUP, _SETSIGDEF, _SETSIGMASK = 0x02, 0x04, 0x08
_SETSID = 0x400 if sys.platform == "darwin" else 0x80
_GET_DUMPABLE = 3
# As many starts at once as pay on two processors; each keeps one of them busy for a part of its time.
MOST_THREADS = 4


class Dup2(NamedTuple):
    """In the child, `target` becomes what `source` is here."""

    source: int
    target: int


class OpenForReading(NamedTuple):
    """In the child, `target` becomes this file."""

    path: bytes
    target: int


Action = Dup2 | OpenForReading


def spawn(
    path: bytes,
    argv: Sequence[bytes],
    variables: Mapping[bytes, bytes],
    actions: Sequence[Action],
    *,
    new_session: bool,
) -> int:
    """The pid of a new process that leads a group, or a session, with plain signals; OSError where there is none."""
    library = _library()
    files = ctypes.create_string_buffer(_OPAQUE_BYTES)
    library.check(library.quick.posix_spawn_file_actions_init(files))
    try:
        for action in actions:
            library.check(_add(library, files, action))
        pid = ctypes.c_int()
        entries = [b"%b=%b" % variable for variable in variables.items()]
        attributes = library.attributes(new_session)
        library.check(
            library.slow.posix_spawn(ctypes.byref(pid), path, files, attributes, _texts(argv), _texts(entries))
        )
        return pid.value
    finally:
        library.quick.posix_spawn_file_actions_destroy(files)


def is_dumpable() -> bool:
    """Whether Linux lets others of its user see what this process has open; after a change of user it does not."""
    return bool(_library().quick.prctl(_GET_DUMPABLE, 0, 0, 0, 0) == 1)


def _add(library: _Library, files: ctypes.Array[ctypes.c_char], action: Action) -> int:
    if isinstance(action, Dup2):
        number: int = library.quick.posix_spawn_file_actions_adddup2(files, action.source, action.target)
    else:
        number = library.quick.posix_spawn_file_actions_addopen(files, action.target, action.path, os.O_RDONLY, 0)
    return number


def _texts(texts: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)


class _Library:
    """The C library twice: `quick` keeps the interpreter's lock, which to give up takes longer than such a call."""

    def __init__(self) -> None:
        self.quick, self.slow = ctypes.PyDLL(None), ctypes.CDLL(None)
        self.slow.posix_spawn.argtypes = [ctypes.c_void_p, ctypes.c_char_p, *[ctypes.c_void_p] * 4]
        self._of_group = self._made(_SETPGROUP)
        self._of_session = self._made(_SETSID)

    def attributes(self, new_session: bool) -> ctypes.Array[ctypes.c_char]:
        return self._of_session if new_session else self._of_group

    def check(self, number: int) -> None:
        if number:
            raise OSError(number, os.strerror(number))

    def _made(self, apart: int) -> ctypes.Array[ctypes.c_char]:
        """No signal blocked, none ignored; every process is given the same, so they are made once."""
        made, signals = (ctypes.create_string_buffer(_OPAQUE_BYTES) for _ in range(2))
        self.check(self.quick.posix_spawnattr_init(made))
        self.quick.sigemptyset(signals)
        self.check(self.quick.posix_spawnattr_setsigmask(made, signals))
        for number in EVERY_SIGNAL:
            self.quick.sigaddset(signals, number)
        self.check(self.quick.posix_spawnattr_setsigdefault(made, signals))
        self.check(self.quick.posix_spawnattr_setpgroup(made, 0))
        flags = apart | _SETSIGDEF | _SETSIGMASK
        self.check(self.quick.posix_spawnattr_setflags(made, ctypes.c_short(flags)))
        return made


@lru_cache(maxsize=1)
def _library() -> _Library:
    return _Library()


# -- threads ---------------------------------------------------------------------------------------------------------


class _QueuedStart(Generic[T]):
    """One start, between the loop that wants it and the thread that makes it.

    Either of them may be the last to know: a loop may end, or its task be cancelled, at any moment. So what nobody
    waits for any more is given up by whoever finds that out, and no callback of the loop is needed for it.
    """

    def __init__(self, work: Callable[[], T], give_up: Callable[[T], None], made: _MadeStarts) -> None:
        self._work, self._give_up, self._made_starts = work, give_up, made
        self._answer: asyncio.Future[None] = made.loop.create_future()
        self._lock = threading.Lock()
        self._is_unwanted = False
        self._found: list[T] = []  # what it returned, once it has
        self._error: Exception | None = None

    async def made(self) -> T:
        try:
            await self._answer
        except BaseException:  # the task was cancelled, or its loop was closed under it
            self._abandon()
            raise
        if self._error is not None:
            raise self._error
        return self._found[0]

    def _abandon(self) -> None:
        with self._lock:
            self._is_unwanted = True
            found = list(self._found)
        for one in found:
            self._give_up(one)

    def make(self) -> None:
        """On a thread."""
        try:
            found = self._work()
        except Exception as error:
            self._error = error
        else:
            with self._lock:
                is_unwanted = self._is_unwanted
                self._found.append(found)
            if is_unwanted:
                self._give_up(found)
        self._made_starts.add(self)

    def wake(self) -> None:
        if not self._answer.done():
            self._answer.set_result(None)


class _MadeStarts:
    """The starts of one loop that threads have made: a loop that is busy is woken once for all of them.

    They alone hold it, and it holds them until the loop has heard of them. So where that loop was closed it goes with
    them and with the tasks that waited, which give up what was started.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._made: deque[_QueuedStart[Any]] = deque()
        self._is_called = False

    def add(self, start: _QueuedStart[Any]) -> None:
        """On any thread. Where two of them call the loop, it finds nothing the second time."""
        self._made.append(start)
        if not self._is_called:
            self._is_called = True
            with contextlib.suppress(RuntimeError):  # the loop is closed, and so are the tasks that waited
                self.loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._is_called = False  # before it looks: what is added from here on calls again
        while self._made:
            self._made.popleft().wake()


class SpawnThreads:
    """A few threads that start processes, in the order in which they are asked to; made when they are needed."""

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._most = most
        self._threads = 0
        self._starts: queue.SimpleQueue[_QueuedStart[Any]] = queue.SimpleQueue()
        self._made: Callable[[], _MadeStarts | None] = lambda: None  # those of the loop that asked last

    @property
    def waiting(self) -> int:
        """How many starts no thread has taken yet."""
        return self._starts.qsize()

    async def run(self, work: Callable[[], T], give_up: Callable[[T], None]) -> T:
        """What `work` returns or raises. Where nobody waits for it any more, `give_up` gets what it returns.

        Where the machine's processes are used up, no thread can be begun: the loop itself does it then.
        """
        self._begin_thread()
        if not self._threads:
            return work()
        start = _QueuedStart(work, give_up, self._made_of(asyncio.get_running_loop()))
        self._starts.put(start)
        return await start.made()

    def _made_of(self, loop: asyncio.AbstractEventLoop) -> _MadeStarts:
        made = self._made()
        if made is None or made.loop is not loop:
            made = _MadeStarts(loop)
            self._made = weakref.ref(made)
        return made

    def _begin_thread(self) -> None:
        if self._threads < self._most:
            with contextlib.suppress(RuntimeError):
                threading.Thread(target=self._serve, name="chronex-spawn", daemon=True).start()
                self._threads += 1

    def _serve(self) -> None:
        while True:
            start = self._starts.get()
            start.make()
            del start  # else what it holds lives until the next one


@lru_cache(maxsize=1)
def spawn_threads() -> SpawnThreads:
    """Those of this process, which all its schedulers share."""
    return SpawnThreads()


# The threads are not there in a process that is forked off.
os.register_at_fork(after_in_child=spawn_threads.cache_clear)
