"""Commits: updates that wait at the same time share one, and readers sleep until the next one of any process.

There is no writer thread between a caller and its commit, because handing over costs as much as the work: the first
caller leads. It takes all updates that have been queued meanwhile, commits them together, and makes the first one
that came too late the next leader. Only updates of an event loop need a thread of their own, the commit thread.

LMDB ends every commit with a write to the meta page of data.mdb, and inotify reports that write after it has taken
effect. So a sleeping reader costs nothing, a writer does nothing for it, and no extra file exists. Watching never
opens data.mdb, which matters: closing it again would drop LMDB's locks of this process. Without inotify (another
system, or its instances used up) a reader polls every 20 ms.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import lmdb

from chronex.clock import Clock
from chronex.errors import StoreClosedError, StoreError, StoreReplacedError
from chronex.storage.scopes import WHOLE, Scope
from chronex_store.transaction import LmdbTransaction

MAX_BATCH = 1024
# How often, and for how long, a leader waits for the callers of the last commit to queue their next update.
GATHER_STEPS = 12
GATHER_SECONDS = 0.00005

# A process stopped inside a write transaction blocks every other writer until it is continued.
_JOB_CONTROL = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}

POLL_SECONDS = 0.02
# How soon to read again for a commit that is written but not yet visible; its process may have died there.
NOT_YET_VISIBLE_SECONDS = 0.002
_IN_MODIFY = 0x2
_IN_ATTRIB = 0x4
_IN_DELETE_SELF = 0x400
_IN_MOVE_SELF = 0x800


class Update:
    """One caller's function on its way through a commit.

    A caller that blocks waits on `wake_lock`; one on an event loop awaits `future`.
    """

    __slots__ = (
        "done",
        "error",
        "fn",
        "future",
        "is_leader",
        "is_woken",
        "result",
        "scope",
        "use_reserve",
        "wake_lock",
        "wake_next",
    )

    def __init__(
        self,
        fn: Callable[[Any], Any],
        use_reserve: bool,
        future: asyncio.Future[Any] | None = None,
        scope: Scope = WHOLE,
    ) -> None:
        self.fn = fn
        self.use_reserve = use_reserve
        self.future = future
        self.scope = scope
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.is_leader = False
        self.wake_lock: threading.Lock | None = None
        self.is_woken = False
        self.wake_next: Update | None = None

    def wake(self) -> None:
        if self.wake_lock is not None:
            self.is_woken = True
            self.wake_lock.release()

    def wait(self) -> None:
        """Block until another thread calls `wake`, then wake the next one. Ctrl-C is raised afterwards."""
        interrupt: BaseException | None = None
        try:
            while not self.is_woken:
                try:
                    assert self.wake_lock is not None
                    self.wake_lock.acquire()
                except BaseException as error:
                    interrupt = error
        finally:
            if self.wake_next is not None:
                self.wake_next.wake()
        if interrupt is not None and not self.is_leader:
            raise interrupt

    def resolve_future(self) -> None:
        """Hand the outcome to the future; called on the thread of its event loop."""
        if self.future is None or self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


Take = Callable[[], list[Update]]
Commit = Callable[[Take], None]


class GroupCommit:
    """The queue of one store. `commit` begins, takes the batch, and leaves an outcome in each update."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._queue: deque[Update] = deque()
        self._has_leader = False
        self._last_size = 0  # the updates of the last commit, and those that were queued when it ended
        self._closing = False
        self._thread_turns = threading.Semaphore(0)
        self._commit_thread: threading.Thread | None = None

    def run(self, update: Update) -> Any:
        """Block until `update` is durable or has failed."""
        wake_lock = update.wake_lock = threading.Lock()
        wake_lock.acquire()
        with self._mutex:
            self._enqueue(update)
            update.is_leader = not self._has_leader
            self._has_leader = True
        if not update.is_leader:
            update.wait()
        if not update.done:
            self._lead(update)
        if update.error is not None:
            raise update.error
        return update.result

    def submit(self, update: Update) -> None:
        """Queue an update whose outcome goes to its future; the commit thread leads when no caller does.

        Where the machine's processes are used up there is no such thread, and this one leads.
        """
        with self._mutex:
            self._enqueue(update)
            if self._has_leader:
                return
            self._has_leader = True
            is_led = self._is_led_by_thread()
        if not is_led:
            self._lead(None)

    def close(self) -> None:
        """Refuse new updates, and finish those that are queued."""
        with self._mutex:
            self._closing = True
            self._idle.wait_for(lambda: not self._has_leader)
            thread, self._commit_thread = self._commit_thread, None
        if thread is not None:
            self._thread_turns.release()
            thread.join()

    def _enqueue(self, update: Update) -> None:
        if self._closing:
            raise StoreClosedError
        self._queue.append(update)

    def _lead(self, own: Update | None) -> None:
        """Commit what is queued, and go on with that as long as nobody else can lead."""
        while self._commit_queued(own):
            own = None

    def _commit_queued(self, own: Update | None) -> bool:
        """As the leader, commit what is queued and name the next leader. `own` is the leader's update, if any.

        True where nobody else can lead what is queued by now.
        """
        batch: list[Update] = []
        goes_on, is_interrupted = False, False

        def take() -> list[Update]:
            with self._mutex:
                while self._queue and len(batch) < MAX_BATCH:
                    batch.append(self._queue.popleft())
            return batch

        try:
            self._gather()  # inside the try: a leader that is interrupted here must not stay the leader
            self._commit(take)
        except Exception as error:
            fail_all(take(), error)
        except BaseException:
            # The leader was interrupted between two steps: the next leader tries the rest, no caller is forgotten.
            is_interrupted = True
            with self._mutex:
                self._queue.extendleft(u for u in reversed(batch) if not u.done and u is not own)
            raise
        finally:
            with self._mutex:
                self._last_size = len(self._queue) + len(batch)
                if own is not None and not own.done:
                    with contextlib.suppress(ValueError):
                        self._queue.remove(own)
                goes_on = not self._has_named_next_leader()
                if goes_on and is_interrupted:  # whoever comes next leads
                    self._has_leader = False
                    self._idle.notify_all()
            _wake_callers([u for u in batch if u.done and u is not own])
        return goes_on

    def _gather(self) -> None:
        """Wait for the callers of the last commit, who soon queue again: one sync for most beats two for half."""
        for _ in range(GATHER_STEPS):
            if len(self._queue) * 4 >= self._last_size * 3:
                return
            time.sleep(GATHER_SECONDS)

    def _has_named_next_leader(self) -> bool:
        """With the mutex held: wake the next leader, or note that there is none. False where there must be one."""
        if not self._queue:
            self._has_leader = False
            self._idle.notify_all()
        elif (first := self._queue[0]).wake_lock is not None:
            first.is_leader = True
            first.wake()
        else:
            return self._is_led_by_thread()
        return True

    def _is_led_by_thread(self) -> bool:
        """Let the commit thread lead once; it is made on first use. False where no thread can be started."""
        if self._commit_thread is None:
            thread = threading.Thread(target=self._run_commit_thread, name="chronex-store", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._commit_thread = thread
        self._thread_turns.release()
        return True

    def _run_commit_thread(self) -> None:
        while True:
            self._thread_turns.acquire()
            if self._closing and not self._has_leader:
                return
            self._lead(None)


def _wake_callers(updates: Iterable[Update]) -> None:
    """Wake each event loop once, and the first of the threads, each of which wakes the next: all at once
    would only fight for the interpreter's lock (31 µs an update instead of 45)."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Update]] = {}
    blocked: list[Update] = []
    for update in updates:
        if update.wake_lock is not None:
            blocked.append(update)
        elif update.future is not None:
            by_loop.setdefault(update.future.get_loop(), []).append(update)
    for update, behind in pairwise(blocked):
        update.wake_next = behind
    if blocked:
        blocked[0].wake()
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile, so nothing awaits the future
            loop.call_soon_threadsafe(_resolve_futures, group)


def _resolve_futures(updates: list[Update]) -> None:
    for update in updates:
        update.resolve_future()


# -- one batch on one LMDB transaction ----------------------------------------------------------------------------


class BatchBrokenError(Exception):
    """LMDB cannot go on with the shared transaction; each update must be tried alone."""

    def __init__(self, error: StoreError) -> None:
        super().__init__(str(error))
        self.error = error


def run_batch(txn: Any, batch: list[Update], keep_reserve: bool) -> bool:
    """Run every update on the shared transaction; True when any of them wrote. Raises BatchBrokenError.

    With `keep_reserve` only updates that may use the reserve add to the store.
    """
    wrote = False
    for update in batch:
        wrote |= _run_one(txn, update, keep_reserve and not update.use_reserve)
    return wrote


def _run_one(txn: Any, update: Update, keep_reserve: bool) -> bool:
    tx = LmdbTransaction(txn, keep_reserve)
    try:
        update.result = update.fn(tx)
        update.error = None
    except KeyboardInterrupt:
        raise  # meant for the leader's thread, not for the update that happened to run
    except BaseException as error:
        update.error = error
        _undo(tx)
    finally:
        tx.end()
    if tx.broken is not None:
        raise BatchBrokenError(tx.broken)
    return bool(tx.undo)


def _undo(tx: LmdbTransaction) -> None:
    if tx.broken is None:
        try:
            tx.roll_back()
        except lmdb.Error as error:
            raise BatchBrokenError(StoreError(f"an update could not be taken back: {error}")) from error


def finish(batch: list[Update]) -> None:
    for update in batch:
        update.done = True


def fail_all(updates: Iterable[Update], error: Exception) -> None:
    """Give each update without an outcome its own copy of the error, because each is raised in another thread."""
    for update in updates:
        if not update.done:
            update.error = copy(error)
            update.error.__cause__ = error.__cause__
            update.done = True


def fail_written(batch: list[Update], error: Exception) -> None:
    """The commit failed: give this error to each update that has no error of its own."""
    for update in batch:
        if update.error is not None:
            update.done = True
    fail_all(batch, error)


# -- Ctrl-Z during a commit ---------------------------------------------------------------------------------------


def has_terminal() -> bool:
    """Whether Ctrl-Z could be pressed for this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError:
        return False
    return True


def hold_job_control() -> bool:
    """Let Ctrl-Z wait until `release_job_control`. Only the main thread's mask matters to a terminal tool."""
    if threading.get_ident() != threading.main_thread().ident:
        return False
    return not signal.pthread_sigmask(signal.SIG_BLOCK, _JOB_CONTROL) & _JOB_CONTROL


def release_job_control() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _JOB_CONTROL)


def watch_file(path: Path) -> int:
    """An inotify descriptor that becomes readable when the file changes; -1 where the system has none to give.

    Raises FileNotFoundError when there is no such file. The file itself is not opened.
    """
    if sys.platform != "linux":
        return -1
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return -1
    mask = _IN_MODIFY | _IN_ATTRIB | _IN_DELETE_SELF | _IN_MOVE_SELF
    if libc.inotify_add_watch(descriptor, os.fsencode(path), mask) < 0:
        is_missing = ctypes.get_errno() == errno.ENOENT
        os.close(descriptor)
        if is_missing:
            raise FileNotFoundError(path)
        return -1
    return descriptor


class FileWatch:
    """One sleeper's watch on the data file. `descriptor` is -1 without inotify, and then the sleeper polls."""

    def __init__(self, path: Path) -> None:
        self.descriptor = watch_file(path)

    def sleep(self, seconds: float, close_signal: int) -> None:
        """Sleep until the file changes, `close_signal` becomes readable, or the time is over."""
        poll = select.poll()
        poll.register(close_signal, select.POLLIN)
        if self.descriptor >= 0:
            poll.register(self.descriptor, select.POLLIN)
        else:
            seconds = min(seconds, POLL_SECONDS)
        poll.poll(max(seconds, 0.0) * 1000)

    def drain(self) -> None:
        if self.descriptor >= 0:
            try:
                os.read(self.descriptor, 65536)
            except BlockingIOError:
                return

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


# A sleeper that is woken has left within milliseconds.
SLEEPERS_LEAVE_WITHIN_S = 2.0


class CommitWatch:
    """All sleepers of one open store. Each has its own watch; idle watches are kept for the next sleeper.

    `counter` returns the number of the commit that a view would see now, and whether that is the newest.
    """

    def __init__(self, path: Path, counter: Callable[[], tuple[int, bool]], clock: Clock) -> None:
        self._path = path
        self._counter = counter
        self._clock = clock
        self._lock = threading.Condition()
        self._idle: list[FileWatch] = []
        self._sleepers = 0
        self._loops: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False
        self._close_signal, self._close_sender = os.pipe()

    def wait(self, since: int, timeout: float) -> int:
        if since < 0 or timeout <= 0:
            return self._counter()[0]
        end = self._clock.monotonic_ms() + timeout * 1000
        with self._watching() as watch:
            while True:
                watch.drain()
                found, is_newest = self._counter()
                left = end - self._clock.monotonic_ms()
                if found != since or left <= 0:
                    return found
                watch.sleep(left / 1000 if is_newest else NOT_YET_VISIBLE_SECONDS, self._close_signal)
                if self._closed:
                    raise StoreClosedError

    async def wait_async(self, since: int, timeout: float) -> int:
        if since < 0 or timeout <= 0:
            return self._counter()[0]
        end = self._clock.monotonic_ms() + timeout * 1000
        changed = asyncio.Event()
        with self._watching() as watch, self._set_on_change(watch, changed):
            while True:
                changed.clear()
                watch.drain()
                found, is_newest = self._counter()
                left = (end - self._clock.monotonic_ms()) / 1000
                if found != since or left <= 0:
                    return found
                if not is_newest:
                    left = NOT_YET_VISIBLE_SECONDS
                await _wait_for_event(changed, left if watch.descriptor >= 0 else min(left, POLL_SECONDS))
                if self._closed:
                    raise StoreClosedError

    def close(self) -> None:
        """Wake every sleeper, and close the descriptors when no thread sleeps on them any more."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.write(self._close_sender, b"!")
            for changed, loop in self._loops.items():
                if not loop.is_closed():
                    loop.call_soon_threadsafe(changed.set)
            # A sleeper on an event loop may be on the thread that closes: it closes its own watch when it wakes.
            # Ctrl-C may strike a sleeper between its count and its sleep, and is then counted for ever.
            self._lock.wait_for(lambda: self._sleepers == len(self._loops), SLEEPERS_LEAVE_WITHIN_S)
            for watch in self._idle:
                watch.close()
            os.close(self._close_signal)
            os.close(self._close_sender)

    @contextmanager
    def _watching(self) -> Iterator[FileWatch]:
        with self._lock:
            if self._closed:
                raise StoreClosedError
            self._sleepers += 1
            idle = self._idle.pop() if self._idle else None
        watch = None
        try:
            watch = idle or self._new_watch()
            yield watch
        finally:
            with self._lock:
                self._sleepers -= 1
                if watch is not None:
                    self._keep(watch)
                self._lock.notify_all()

    def _new_watch(self) -> FileWatch:
        try:
            return FileWatch(self._path)
        except FileNotFoundError as error:
            raise StoreReplacedError from error

    def _keep(self, watch: FileWatch) -> None:
        if self._closed:
            watch.close()
        else:
            self._idle.append(watch)

    @contextmanager
    def _set_on_change(self, watch: FileWatch, changed: asyncio.Event) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loops[changed] = loop
        if watch.descriptor >= 0:
            loop.add_reader(watch.descriptor, changed.set)
        try:
            yield
        finally:
            if watch.descriptor >= 0:
                loop.remove_reader(watch.descriptor)
            with self._lock:
                self._loops.pop(changed, None)


async def _wait_for_event(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
