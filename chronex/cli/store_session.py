"""An open store as commands use it: a read, or a change in the name of the user who runs the command."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from chronex.cli.options import UsageError, store_location
from chronex.cli.output import JobZones, err, paint
from chronex.clock import wall_ms
from chronex.engine.commands import Actor
from chronex.engine.membership import seems_alive
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState, is_final
from chronex.run import boot_id, is_alive
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import WHOLE, Scope
from chronex.text.terminal import terminal_safe
from chronex.timing.zones import Zone
from chronex.views.nodes import Watch, watch_of
from chronex.views.troubles import Trouble, start_command, store_troubles, worst_first
from chronex_store.daemon_lock import is_daemon_alive, lock_holder
from chronex_store.opening import OpenedStore, StoreLocation, host_identity, open_location, state_directory

T = TypeVar("T")
# A daemon takes up a command within milliseconds; a command that does not wait for the end gives it this long.
_DAEMON_ANSWERS_MS = 2_000
_POLL_S = 1.0


@contextmanager
def open_store(option: str | None, *, interrupted: int = 130) -> Iterator[OpenedStore]:
    """A store that must exist: a name that leads nowhere is a mistake, and reading never creates a store.

    Ctrl-C ends the command with the exit code `interrupted`.
    """
    with open_location(store_location(option), create=False) as store, _ended_by_ctrl_c(interrupted):
        yield store


@contextmanager
def _ended_by_ctrl_c(code: int) -> Iterator[None]:
    """The process ends where it stands: a transaction is whole or not at all.

    An exception could come between taking a lock of the store and noting it, and closing the store would then wait
    for that lock for ever.
    """
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def noting_ctrl_c() -> Iterator[threading.Event]:
    """For a command that has something to say at its end: Ctrl-C is noted, and comes between no two steps."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, lambda *_: asked.set())
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def read_store(option: str | None, fn: Callable[[Reading], T]) -> T:
    with open_store(option) as store:
        return store.view(lambda tx: fn(Reading(tx)))


def read_store_now(option: str | None, fn: Callable[[Reading, int], T]) -> tuple[T, int]:
    """The same with the time of the store, and that time: one clock for all who work on it."""
    with open_store(option) as store:
        now_ms = store.now()
        return store.view(lambda tx: fn(Reading(tx), now_ms)), now_ms


def store_now(option: str | None) -> int:
    """The store's own time; that of this machine where there is no store yet."""
    location = store_location(option)
    if isinstance(location, Path) and not location.exists():
        return wall_ms()
    with open_location(location, create=False) as store:
        return store.now()


@contextmanager
def open_session(option: str | None) -> Iterator[StoreSession]:
    with open_store(option) as store:
        yield StoreSession(store_location(option), store)


class StoreSession:
    """An open store, and the actor in whose name it is changed."""

    def __init__(self, location: StoreLocation, store: OpenedStore) -> None:
        self.location = location
        self.store = store
        self.actor = Actor.of_this_process("cli")

    @property
    def has_daemon(self) -> bool:
        if isinstance(self.location, Path):
            return is_daemon_alive(self.location)
        from chronex.run.process import is_alive

        now_ms = self.store.now()
        return self.read(lambda reading: any(seems_alive(node, now_ms, is_alive) for node in reading.nodes()))

    @property
    def daemon_pid(self) -> int | None:
        """The daemon of this machine that works on the store; a program with an engine of its own is none."""
        if isinstance(self.location, Path):
            holder = lock_holder(self.location)
            return holder.pid if holder is not None and self.has_daemon else None
        from chronex.run.process import is_alive

        here = host_identity(state_directory(self.location), create=False)
        nodes = self.read(lambda reading: reading.nodes())
        ours = [node for node in nodes if node.host_id == here and not node.program]
        living = [node for node in ours if node.stopped_ms is None and is_alive(node.process)]
        return max(living, key=lambda node: node.started_ms).process.pid if living else None

    def change(self, fn: Callable[[Records], T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        """One command in one transaction, at the store's time; `use_reserve` ones end work and need no free disk."""
        return self.store.update(lambda tx: fn(Records(tx, self.store.now())), use_reserve=use_reserve, scope=scope)

    def read(self, fn: Callable[[Reading], T]) -> T:
        return self.store.view(lambda tx: fn(Reading(tx)))

    def zone_of(self, job: str, version: int | None = None) -> Zone:
        return self.read(lambda reading: JobZones(reading).of(job, version))

    def occurrence(self, known: Occurrence) -> Occurrence:
        """The occurrence as it is by now."""
        return self.read(lambda reading: reading.occurrence(known.job, known.nominal_ms)) or known

    def follow(self, occurrence: Occurrence, *, to_the_end: bool) -> Occurrence:
        """The occurrence when it has ended, or as soon as its state is known; no longer than a daemon lives."""
        deadline_ms = self.store.now() + _DAEMON_ANSWERS_MS
        while True:
            seen = self.store.wait(-1, 0)
            has_daemon = self.has_daemon  # read first, so that what a daemon did before it ended is seen below
            occurrence = self.occurrence(occurrence)
            is_known = not to_the_end and occurrence.state is not OccurrenceState.PENDING
            is_late = not to_the_end and self.store.now() >= deadline_ms
            if is_final(occurrence.state) or is_known or is_late or not has_daemon:
                return occurrence
            self.store.wait(seen, _POLL_S)

    def warn_without_daemon(self, consequence: str) -> None:
        if not self.has_daemon:
            start = self.read(start_command)
            err(terminal_safe(f"no daemon runs on this store: {consequence}; start one with: {start}"))


def confirmed(question: str, *, is_sure: bool) -> bool:
    """Ask on a terminal; a script must say --yes."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise UsageError("nothing was done: say --yes to do this without being asked")
    err(f"{terminal_safe(question)} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# A word on standard error where what was shown is not the whole story: no scheduler runs, or nobody hears.

_MOST_SHOWN = 3


def troubles_of(reading: Reading, now_ms: int) -> list[Trouble]:
    return worst_first(store_troubles(reading, now_ms, is_alive, has_jobs=bool(reading.jobs(limit=1))))


def store_watch(reading: Reading, now_ms: int) -> Watch:
    """Who looks after the store, as seen from this machine."""
    return watch_of(reading, now_ms, is_alive, boot_id())


def print_troubles(found: list[Trouble]) -> None:
    for one in found[:_MOST_SHOWN]:
        err(paint(terminal_safe(f"needs attention: {one.sentence}"), "red" if one.severity == "error" else "yellow"))
    if len(found) > _MOST_SHOWN:
        err(f"and {len(found) - _MOST_SHOWN} more: chronex status")
