"""The threads beside the screen: one follows the store's change counter, one reads, one computes.

Widgets never read the store. They request data and are handed values as messages. A newer request of the same kind
replaces one that still waits, so no queue grows and nothing outdated is computed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from textual.message import Message

from chronex.clock import Clock
from chronex.errors import ChronexError, StoreAwayError, StoreError
from chronex.model.occurrence import ProcessIdentity
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex.views.nodes import NodeRow
from chronex_tui.model.attempt_output import AttemptOutput
from chronex_tui.model.clock_days import ClockDay
from chronex_tui.model.density import BusiestMinute, Heatmap
from chronex_tui.model.lanes import LanesFound
from chronex_tui.model.nodes_table import node_rows
from chronex_tui.model.snapshot import BoardReader, Firing, HistoryReader, JobDetail, RunKey, Snapshot

if TYPE_CHECKING:
    from chronex.views.group_rows import GroupRow
    from chronex.views.job_graph import JobGraph
    from chronex.views.why.answer import WhyAnswer
    from chronex_store.opening import StoreLocation

T = TypeVar("T")
Work = Callable[[], None]
# At most five snapshots a second, however fast the store changes.
SNAPSHOT_PAUSE_S = 0.2
POLL_S = 1.0
# Some changes leave no trace in the journal (a pause that ends, retention), so everything is read again now and then.
REREAD_EVERY_S = 60.0


class Worker:
    """A thread that does one piece of work after the other, of each kind only the newest."""

    def __init__(self, name: str, on_error: Callable[[Exception], None]) -> None:
        self._on_error = on_error
        self._waiting: dict[str, Work] = {}
        self._lock = threading.Condition()
        self._closed = False
        self._is_busy = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, kind: str, work: Work) -> None:
        with self._lock:
            self._waiting.pop(kind, None)
            self._waiting[kind] = work
            self._lock.notify()

    @property
    def is_idle(self) -> bool:
        with self._lock:  # else work that is taken out and not begun would be seen as none
            return not self._waiting and not self._is_busy

    def close(self, *, finishes: bool = False) -> None:
        """What waits is not done any more, unless it `finishes`."""
        with self._lock:
            self._closed = True
            if not finishes:
                self._waiting.clear()
            self._lock.notify()
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                kind = next(iter(self._waiting))
                work = self._waiting.pop(kind)
                self._is_busy = True
            try:
                work()
            except Exception as error:  # a bug in one piece of work must not stop all others
                self._on_error(error)
            finally:
                self._is_busy = False


# -- where the store comes from -------------------------------------------------------------------------------


class StoreSource(Protocol):
    """Opens the store, and lets it go. `path` is where this machine keeps the logs; `shown` names the store."""

    path: Path
    shown: str

    def is_missing(self) -> bool: ...

    def open(self) -> Store: ...

    def release(self, store: Store) -> None: ...


class StoreAt:
    """A store that the dashboard opens for itself and never creates."""

    def __init__(self, location: StoreLocation) -> None:
        from chronex_store.opening import shown_location, state_directory

        self._location = location
        self.path, self.shown = state_directory(location), shown_location(location)

    def is_missing(self) -> bool:
        return isinstance(self._location, Path) and not self._location.exists()

    def open(self) -> Store:
        from chronex_store.opening import open_location

        return open_location(self._location, create=False)

    def release(self, store: Store) -> None:
        store.close()


# -- what arrives ---------------------------------------------------------------------------------------------


class DataArrived(Message):
    """A value from a thread: a snapshot, a history, or one of the classes below."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class JobRead(NamedTuple):
    name: str
    detail: JobDetail | None


class RunRead(NamedTuple):
    key: RunKey
    firing: Firing | None


class NodesRead(NamedTuple):
    """All schedulers of the store, with what they run."""

    nodes: tuple[NodeRow, ...]


class GroupsRead(NamedTuple):
    """All groups, with who holds places and who waits."""

    groups: tuple[GroupRow, ...]


class GraphRead(NamedTuple):
    """The tasks of a job with the states of a run; None where the job is gone."""

    graph: JobGraph | None


class LogRead(NamedTuple):
    """The newest lines of an attempt's output."""

    title: str
    lines: tuple[str, ...]


class WhyRead(NamedTuple):
    """The chain of causes of one or two instants of a job, or why there is none."""

    job: str
    answers: tuple[WhyAnswer, ...]
    problem: str = ""


class OutputRead(NamedTuple):
    """What an attempt has written, for the log screen."""

    output: AttemptOutput


class LanesComputed(NamedTuple):
    found: LanesFound


class ClockChangesComputed(NamedTuple):
    days: tuple[ClockDay, ...]
    unchanging: tuple[str, ...]


class HeatmapCounted(NamedTuple):
    heatmap: Heatmap


class BusiestMinuteFound(NamedTuple):
    """The busiest minute of the coming week, if any two jobs start together."""

    busiest_minute: BusiestMinute | None


class ScheduleExplained(NamedTuple):
    """What `chronex explain` says of a job's schedules, with its colours."""

    job: str
    texts: tuple[str, ...]


class CommandDone(NamedTuple):
    """A command has changed the store, or was refused with a reason."""

    text: str
    is_refused: bool = False
    jobs: tuple[str, ...] = ()


# -- following the store --------------------------------------------------------------------------------------


def _is_alive(process: ProcessIdentity) -> bool:
    """The runner is loaded with the first call, which comes after the first frame is drawn."""
    from chronex.run import is_alive

    return is_alive(process)


class Live:
    """Follows one store. `post` is called from the threads with each new value."""

    def __init__(self, source: StoreSource, clock: Clock, post: Callable[[object], None]) -> None:
        self.source, self.clock, self._post = source, clock, post
        self.reader = Worker("chronex-reader", self._report_failure)
        self.computer = Worker("chronex-computer", self._report_failure)
        self._board = BoardReader(_is_alive, source.shown)
        self._history = HistoryReader()
        self._store: Store | None = None
        self._stop = threading.Event()
        self._wants_history = False
        self._wants_whole_history = False
        self._last = Snapshot(store_path=source.shown)
        self._follower = threading.Thread(target=self._follow, name="chronex-follower", daemon=True)

    def start(self) -> None:
        self._follower.start()

    def close(self) -> None:
        """Release the store; nothing is posted after this."""
        self._stop.set()
        self.reader.close()
        self.computer.close()
        self._release()

    @property
    def is_idle(self) -> bool:
        """Nothing is being read or computed."""
        return self.reader.is_idle and self.computer.is_idle

    @property
    def store(self) -> Store | None:
        """The open store, for commands; None while there is none."""
        return self._store

    # -- requests -----------------------------------------------------------------------------------------

    def request(self, kind: str, read: Callable[[Reading], T], result: Callable[[T], object]) -> None:
        """Read on the reader's thread and post what `result` makes of it."""

        def work() -> None:
            found = self._view(read)
            if found is not None:
                self._send(result(found))

        self.reader.submit(kind, work)

    def request_nodes(self) -> None:
        now = self.clock.wall_ms()
        self.request("nodes", lambda reading: (node_rows(reading, now, _is_alive),), lambda found: NodesRead(*found))

    def request_history(self, *, whole: bool) -> None:
        """From now on follow the ends of all occurrences too; `whole` reads older pages until there are no more."""
        if self._wants_history and (self._wants_whole_history or not whole):
            return
        self._wants_history = True
        self._wants_whole_history = whole
        self.reader.submit("history", self._read_history)

    def read_files(self, kind: str, work: Callable[[], object]) -> None:
        """Read files beside the store on the reader's thread, and post the result."""
        self.reader.submit(kind, lambda: self._send(work()))

    def compute(self, kind: str, work: Callable[[], object]) -> None:
        """Compute on a thread of its own, and post the result."""
        self.computer.submit(kind, lambda: self._send(work()))

    # -- following ----------------------------------------------------------------------------------------

    def _follow(self) -> None:
        seen, silent_s = -2, 0.0
        while not self._stop.is_set():
            store = self._open()
            if store is None:
                self._stop.wait(POLL_S)
                seen = -2
                continue
            try:
                found = store.wait(seen, POLL_S)
            except (StoreError, OSError) as error:
                self._lose(error)
                continue
            silent_s = 0.0 if found != seen else silent_s + POLL_S
            if found != seen or self._has_node_died():
                self._read_all_again()
            elif silent_s >= REREAD_EVERY_S:
                silent_s = 0.0
                self._board.invalidate()
                self._read_all_again()
            seen = found
            self._stop.wait(SNAPSHOT_PAUSE_S)

    def _read_all_again(self) -> None:
        self.reader.submit("board", self._read_board)
        if self._wants_history:
            self.reader.submit("history", self._read_history)

    def _has_node_died(self) -> bool:
        """A daemon that dies writes nothing, so its process is checked."""
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
            is_new = self.source.is_missing() and not self._last.rows
            sentence = "no store yet: chronex apply or chronex run makes one" if is_new else str(error)
            self._report_problem(sentence, is_refused=not is_new)
            return None
        self._board.invalidate()
        return self._store

    def _lose(self, error: Exception) -> None:
        self._release()
        if not self._stop.is_set():
            self._report_problem(f"the store is gone: {error}" if isinstance(error, OSError) else str(error))

    def _release(self) -> None:
        store, self._store = self._store, None
        if store is not None:
            self.source.release(store)

    def _report_failure(self, error: Exception) -> None:
        if isinstance(error, ChronexError):
            self._report_problem(str(error))
        else:
            self._report_problem(f"this should not have happened ({type(error).__name__}: {error})")

    def _report_problem(self, sentence: str, *, is_refused: bool = False) -> None:
        is_there = bool(self._last.rows)
        self._last = replace(self._last, problem=sentence, is_there=is_there, is_refused=is_refused)
        self._send(self._last)

    # -- reading ------------------------------------------------------------------------------------------

    def _view(self, read: Callable[[Reading], T]) -> T | None:
        store = self._store
        if store is None:
            return None
        try:
            return store.view(lambda tx: read(Reading(tx)))
        except StoreAwayError as error:
            # A database that is away: the follower sleeps on beside it, so nobody else would tell.
            if self._last.problem != str(error):
                self._report_problem(str(error))
            return None
        except (StoreError, OSError):
            return None  # the follower meets the same error and reports it

    def _read_board(self) -> None:
        now = self.clock.wall_ms()
        if self._view(self._board.needs_full_read) and not self._read_all_jobs(now):
            return
        found = self._view(lambda reading: self._board.read(reading, now))
        if found is not None:
            self._last = found
            self._send(found)

    def _read_all_jobs(self, now_ms: int) -> bool:
        """Every job, a page in each transaction; False when the store was lost on the way."""
        self._view(self._board.begin_full_read)
        name: str | None = None
        while True:
            page = self._view(self._page_after(name, now_ms))
            if page is None or self._stop.is_set():
                self._board.invalidate()
                return False
            if page[0] is None:
                return True
            name = page[0]

    def _page_after(self, name: str | None, now_ms: int) -> Callable[[Reading], tuple[str | None]]:
        return lambda reading: (self._board.read_page(reading, name, now_ms),)

    def _read_history(self) -> None:
        found = self._view(self._history.read_new)
        if found is not None:
            self._send(found)
            if self._wants_whole_history and not found.is_whole:
                self.reader.submit("older", self._read_older)

    def _read_older(self) -> None:
        """One page, so that other requests come in between; the list is posted now and then, and at the end."""
        found = self._view(self._history.read_older)
        if found is None:
            return
        if found.is_whole or len(found.items) % 20_000 == 0:
            self._send(found)
        if not found.is_whole:
            self.reader.submit("older", self._read_older)

    def _send(self, value: object) -> None:
        if value is not None and not self._stop.is_set():
            self._post(value)
