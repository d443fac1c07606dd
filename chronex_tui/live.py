"""The threads beside the screen: one follows the store's change counter, one reads, one counts.

Widgets never query. They ask, and are handed values; a question that was overtaken by a newer one of its
kind is never answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from chronex.clock import Clock
from chronex.errors import ChronexError, StoreError
from chronex.model.records import ProcessIdentity
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex_tui.model.reading import BoardReader, HistoryReader
from chronex_tui.model.snapshot import Snapshot

T = TypeVar("T")
Work = Callable[[], None]
# At most five snapshots a second, however fast the store changes.
LEAST_PAUSE_S = 0.2
LOOK_AGAIN_S = 1.0
# What changes without a trace (a pause that ends, retention) is found by reading everything again now and then.
REREAD_EVERY_S = 60.0


def _is_alive(process: ProcessIdentity) -> bool:
    """Loaded with the first look, which is after the first paint."""
    from chronex.run import is_alive

    return is_alive(process)


class Desk:
    """A thread that does one piece of work after the other, of each kind only the newest."""

    def __init__(self, name: str, broken: Callable[[Exception], None]) -> None:
        self._broken = broken
        self._waiting: dict[str, Work] = {}
        self._lock = threading.Condition()
        self._closed = self._is_busy = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def ask(self, kind: str, work: Work) -> None:
        with self._lock:
            self._waiting.pop(kind, None)
            self._waiting[kind] = work
            self._lock.notify()

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._is_busy

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._waiting.clear()
            self._lock.notify()
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                kind = next(iter(self._waiting))
                work = self._waiting.pop(kind)
                self._is_busy = True
            try:
                work()
            except Exception as error:  # a mistake of ours in one answer must not end all others
                self._broken(error)
            finally:
                self._is_busy = False


class Source(Protocol):
    """Where the store comes from: opened here, or shared with an engine of the same process."""

    path: Path

    def open(self) -> Store: ...

    def let_go(self, store: Store) -> None: ...


class StoreAt:
    """A store that this dashboard opens for itself, and never makes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> Store:
        from chronex_store import LmdbStore

        return LmdbStore.open(self.path, create=False)

    def let_go(self, store: Store) -> None:
        store.close()


class SharedStore:
    """A store that somebody else of this process opened and will close."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store, self.path = store, path

    def open(self) -> Store:
        return self._store

    def let_go(self, store: Store) -> None:
        """It is not ours."""


class Live:
    """Follows one store. `post` is called from the reader's thread with each new value."""

    def __init__(self, source: Source, clock: Clock, post: Callable[[object], None]) -> None:
        self.source, self.clock, self._post = source, clock, post
        self.desk = Desk("chronex-reader", self._broke)
        self.figures = Desk("chronex-figures", self._broke)
        self._board = BoardReader(_is_alive, str(source.path))
        self._history = HistoryReader()
        self._store: Store | None = None
        self._stop = threading.Event()
        self._wants_history = self._wants_whole = False
        self._last = Snapshot(place=str(source.path))
        self._follower = threading.Thread(target=self._follow, name="chronex-follower", daemon=True)

    def start(self) -> None:
        self._follower.start()

    def close(self) -> None:
        """Let go of the store; nothing is posted after this."""
        self._stop.set()
        self.desk.close()
        self.figures.close()
        self._release()

    @property
    def is_idle(self) -> bool:
        """Nothing is being read or counted."""
        return self.desk.is_idle and self.figures.is_idle

    @property
    def store(self) -> Store | None:
        """The open store, for actions; None while there is none."""
        return self._store

    # -- asking -------------------------------------------------------------------------------------------

    def ask(self, kind: str, read: Callable[[Reading], T], answer: Callable[[T], object]) -> None:
        """Read on the reader's thread and post what `answer` makes of it."""

        def work() -> None:
            found = self._view(read)
            if found is not None:
                self._send(answer(found))

        self.desk.ask(kind, work)

    def ask_history(self, *, whole: bool) -> None:
        """From now on the ends of all occurrences are followed too; `whole` reads older pages until there is none."""
        if self._wants_history and (self._wants_whole or not whole):
            return
        self._wants_history, self._wants_whole = True, whole
        self.desk.ask("history", self._read_history)

    def look(self, kind: str, work: Callable[[], object]) -> None:
        """Read files beside the store on the reader's thread, and post the result."""
        self.desk.ask(kind, lambda: self._send(work()))

    def compute(self, kind: str, work: Callable[[], object]) -> None:
        """Count beside the screen and post the result."""
        self.figures.ask(kind, lambda: self._send(work()))

    # -- following ----------------------------------------------------------------------------------------

    def _follow(self) -> None:
        seen, silent_s = -2, 0.0
        while not self._stop.is_set():
            store = self._open()
            if store is None:
                self._stop.wait(LOOK_AGAIN_S)
                seen = -2
                continue
            try:
                found = store.wait(seen, LOOK_AGAIN_S)
            except (StoreError, OSError) as error:
                self._lose(error)
                continue
            silent_s = 0.0 if found != seen else silent_s + LOOK_AGAIN_S
            if found != seen or self._life_changed():
                self._ask_all()
            elif silent_s >= REREAD_EVERY_S:
                silent_s = 0.0
                self._board.forget()
                self._ask_all()
            seen = found
            self._stop.wait(LEAST_PAUSE_S)

    def _ask_all(self) -> None:
        self.desk.ask("board", self._read_board)
        if self._wants_history:
            self.desk.ask("history", self._read_history)

    def _life_changed(self) -> bool:
        """A daemon that dies writes nothing, so its life is asked for."""
        summary = self._last.summary
        if summary is None:
            return False
        return any(listed.is_alive and not _is_alive(listed.node.process) for listed in summary.nodes)

    def _open(self) -> Store | None:
        if self._store is not None:
            return self._store
        try:
            self._store = self.source.open()
        except (ChronexError, OSError) as error:
            is_new = not self.source.path.exists() and not self._last.rows
            self._tell("no store yet: chronex apply or chronex run makes one" if is_new else str(error))
            return None
        self._board.forget()
        return self._store

    def _lose(self, error: Exception) -> None:
        self._release()
        if not self._stop.is_set():
            self._tell(f"the store is gone: {error}" if isinstance(error, OSError) else str(error))

    def _release(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            self.source.let_go(store)

    def _broke(self, error: Exception) -> None:
        if isinstance(error, ChronexError):
            self._tell(str(error))
        else:
            self._tell(f"this should not have happened ({type(error).__name__}: {error})")

    def _tell(self, sentence: str) -> None:
        self._last = replace(self._last, trouble=sentence, is_there=bool(self._last.rows))
        self._send(self._last)

    # -- reading ------------------------------------------------------------------------------------------

    def _view(self, read: Callable[[Reading], T]) -> T | None:
        store = self._store
        if store is None:
            return None
        try:
            return store.view(lambda tx: read(Reading(tx)))
        except (StoreError, OSError):
            return None  # the follower meets the same trouble, and tells it

    def _read_board(self) -> None:
        now = self.clock.wall_ms()
        if self._view(self._board.is_lost) and not self._read_all(now):
            return
        found = self._view(lambda reading: self._board.read(reading, now))
        if found is not None:
            self._last = found
            self._send(found)

    def _read_all(self, now_ms: int) -> bool:
        """Every job, a page in each transaction; False when the store was lost on the way."""
        self._view(self._board.begin)
        name: str | None = None
        while True:
            page = self._view(self._page(name, now_ms))
            if page is None or self._stop.is_set():
                self._board.forget()
                return False
            if page[0] is None:
                return True
            name = page[0]

    def _page(self, after: str | None, now_ms: int) -> Callable[[Reading], tuple[str | None]]:
        return lambda reading: (self._board.read_page(reading, after, now_ms),)

    def _read_history(self) -> None:
        found = self._view(self._history.read_new)
        if found is not None:
            self._send(found)
            if self._wants_whole and not found.is_whole:
                self.desk.ask("older", self._read_older)

    def _read_older(self) -> None:
        """A page at a time, so that other questions come in between; the whole is posted at the end."""
        found = self._view(self._history.read_older)
        if found is None:
            return
        if found.is_whole or len(found.items) % 20_000 == 0:
            self._send(found)
        if not found.is_whole:
            self.desk.ask("older", self._read_older)

    def _send(self, value: object) -> None:
        if value is not None and not self._stop.is_set():
            self._post(value)
