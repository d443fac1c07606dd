"""Group commit: updates that wait at the same time share one durable commit.

There is no writer thread between a caller and its commit, because handing over costs as much as the work: the
first caller leads, takes everyone who has queued up meanwhile, commits for all, and passes the lead on to the
first who came too late. Only updates of an event loop need a thread of their own to lead for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from itertools import pairwise
from typing import Any

from chronex.errors import StoreClosedError

MAX_BATCH = 1024
GATHER_STEPS = 12
GATHER_SECONDS = 0.00005


class Update:
    """One caller's function on its way through a commit."""

    __slots__ = ("done", "error", "essential", "fn", "future", "lead", "next", "result", "wake", "woken")

    def __init__(self, fn: Callable[[Any], Any], essential: bool, future: asyncio.Future[Any] | None = None) -> None:
        self.fn = fn
        self.essential = essential
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.lead = False
        self.wake: threading.Lock | None = None
        self.woken = False
        self.next: Update | None = None

    def wake_up(self) -> None:
        if self.wake is not None:
            self.woken = True
            self.wake.release()

    def sleep(self) -> None:
        """Until somebody wakes this one, which then wakes the one behind it. Ctrl-C waits for the outcome."""
        interrupt: BaseException | None = None
        try:
            while not self.woken:
                try:
                    assert self.wake is not None
                    self.wake.acquire()
                except BaseException as error:
                    interrupt = error
        finally:
            if self.next is not None:
                self.next.wake_up()
        if interrupt is not None and not self.lead:
            raise interrupt

    def settle(self) -> None:
        """On the loop's own thread: hand the outcome to whoever awaits it."""
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
        self._leading = False
        self._crowd = 0
        self._closing = False
        self._summons = threading.Semaphore(0)
        self._helper: threading.Thread | None = None

    def run(self, update: Update) -> Any:
        """Block until `update` is durable or has failed."""
        wake = update.wake = threading.Lock()
        wake.acquire()
        with self._mutex:
            self._enqueue(update)
            update.lead = not self._leading
            self._leading = True
        if not update.lead:
            update.sleep()
        if not update.done:
            self._lead(update)
        if update.error is not None:
            raise update.error
        return update.result

    def submit(self, update: Update) -> None:
        """Queue an update whose outcome goes to its future; the helper leads when nobody else does."""
        with self._mutex:
            self._enqueue(update)
            if self._leading:
                return
            self._leading = True
            self._summon_helper()

    def close(self) -> None:
        """Refuse what comes, finish what is queued."""
        with self._mutex:
            self._closing = True
            self._idle.wait_for(lambda: not self._leading)
            helper, self._helper = self._helper, None
        if helper is not None:
            self._summons.release()
            helper.join()

    def _enqueue(self, update: Update) -> None:
        if self._closing:
            raise StoreClosedError
        self._queue.append(update)

    def _lead(self, own: Update | None) -> None:
        batch: list[Update] = []

        def take() -> list[Update]:
            with self._mutex:
                while self._queue and len(batch) < MAX_BATCH:
                    batch.append(self._queue.popleft())
            return batch

        try:
            self._gather()  # inside: whoever is interrupted here must not keep the lead
            self._commit(take)
        except Exception as error:
            fail_all(take(), error)
        except BaseException:
            # Interrupted between two steps: nobody may be left waiting, and another leader tries the rest.
            with self._mutex:
                self._queue.extendleft(u for u in reversed(batch) if not u.done and u is not own)
            raise
        finally:
            with self._mutex:
                self._crowd = len(self._queue) + len(batch)
                if own is not None and not own.done:
                    with contextlib.suppress(ValueError):
                        self._queue.remove(own)
                self._pass_on()
            _announce([u for u in batch if u.done and u is not own])

    def _gather(self) -> None:
        """Those whom the last commit served will soon be back; one sync for most beats two for half."""
        for _ in range(GATHER_STEPS):
            if len(self._queue) * 4 >= self._crowd * 3:
                return
            time.sleep(GATHER_SECONDS)

    def _pass_on(self) -> None:
        """With the mutex held: name the next leader, or none."""
        if not self._queue:
            self._leading = False
            self._idle.notify_all()
        elif (first := self._queue[0]).wake is not None:
            first.lead = True
            first.wake_up()
        else:
            self._summon_helper()

    def _summon_helper(self) -> None:
        if self._helper is None:
            self._helper = threading.Thread(target=self._help, name="chronex-store", daemon=True)
            self._helper.start()
        self._summons.release()

    def _help(self) -> None:
        while True:
            self._summons.acquire()
            if self._closing and not self._leading:
                return
            self._lead(None)


def fail_all(updates: Iterable[Update], error: Exception) -> None:
    """Each without an outcome gets its own copy of the error, because each is raised in another thread."""
    for update in updates:
        if not update.done:
            update.error = copy(error)
            update.error.__cause__ = error.__cause__
            update.done = True


def _announce(updates: Iterable[Update]) -> None:
    """Wake each event loop once, and the first of the threads, each of which wakes the next: all at once
    would only fight for the interpreter's lock (31 µs an update instead of 45)."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Update]] = {}
    sleepers: list[Update] = []
    for update in updates:
        if update.wake is not None:
            sleepers.append(update)
        elif update.future is not None:
            by_loop.setdefault(update.future.get_loop(), []).append(update)
    for update, behind in pairwise(sleepers):
        update.next = behind
    if sleepers:
        sleepers[0].wake_up()
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile; nobody listens
            loop.call_soon_threadsafe(_settle_all, group)


def _settle_all(group: list[Update]) -> None:
    for update in group:
        update.settle()
