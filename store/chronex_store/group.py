"""Group commit: updates that wait at the same time share one durable commit.

There is no writer thread between a caller and its commit, because handing over costs as much as the work: the
first caller leads, takes everyone who has queued up meanwhile, commits for all, and passes the lead on to the
first who came too late. Only updates of an event loop need a thread of their own to lead for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable
from copy import copy
from typing import Any

from chronex.errors import StoreClosedError

MAX_BATCH = 1024


class Update:
    """One caller's function on its way through a commit."""

    __slots__ = ("done", "error", "essential", "fn", "future", "lead", "result", "wake")

    def __init__(
        self, fn: Callable[[Any], Any], essential: bool, future: asyncio.Future[Any] | None = None
    ) -> None:
        self.fn = fn
        self.essential = essential
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        self.lead = False
        self.wake: threading.Lock | None = None

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
            try:
                wake.acquire()
            except BaseException:
                self._abandon(update)
                raise
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
                if own is not None and not own.done:
                    with contextlib.suppress(ValueError):
                        self._queue.remove(own)
                self._pass_on()
            _announce([u for u in batch if u.done and u is not own])

    def _pass_on(self) -> None:
        """With the mutex held: name the next leader, or none."""
        if not self._queue:
            self._leading = False
            self._idle.notify_all()
        elif (first := self._queue[0]).wake is not None:
            first.lead = True
            first.wake.release()
        else:
            self._summon_helper()

    def _abandon(self, update: Update) -> None:
        """Its caller was interrupted while it waited."""
        with self._mutex:
            if update.lead and not update.done:
                self._queue.remove(update)
                self._pass_on()
            elif update in self._queue:
                self._queue.remove(update)

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
    """Each that has no outcome yet gets its own copy of the error, because each is raised in another thread."""
    for update in updates:
        if not update.done:
            update.error = copy(error)
            update.error.__cause__ = error.__cause__
            update.done = True


def _announce(updates: Iterable[Update]) -> None:
    """Wake the threads one by one and each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Update]] = {}
    for update in updates:
        if update.wake is not None:
            update.wake.release()
        elif update.future is not None:
            by_loop.setdefault(update.future.get_loop(), []).append(update)
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile; nobody listens
            loop.call_soon_threadsafe(_settle_all, group)


def _settle_all(group: list[Update]) -> None:
    for update in group:
        update.settle()
