"""The keepers of a store, seen from a scheduler: its own, which it starts, and those that dead schedulers left.

Each keeper has a directory below the store, with its lock, held while it lives, its socket, and its file of ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from chronex.failpoints import KEEPER_VARIABLE, VARIABLE
from chronex.keeper.ends_file import PASSING, read_ends
from chronex.keeper.keeper_process import ERRORS_NAME, LOCK_NAME, READY
from chronex.keeper.link import ANSWER_WITHIN_S, KeeperLink, KeeperLostError, connect
from chronex.keeper.messages import Ended, Opened, Trust
from chronex.model import ProcessIdentity
from chronex.run.process import is_readable_within

log = logging.getLogger(__name__)

DIRECTORY = "keepers"
_SHORT_LIFE_S, _LONGEST_PAUSE_S = 10.0, 30.0
# On a machine that is busy beyond measure a start takes seconds, and slow is not dead.
READY_WITHIN_S = 60.0
# A keeper that is killed as it begins says nothing of the next one.
# A machine that lets none begin is not asked for ever.
_TRIES = 3
_KILLED = "it was killed as it began"
# One that is frozen must not hold up a scheduler that begins: it is asked again while its commands are waited for.
_ANSWER_WITHIN_S = 1.0
# A heartbeat that takes longer comes from a node that others have given up.
_HEARTBEAT_WITHIN_S = 15.0
# asyncio, hashlib and msgspec work without these, a fifth of the keeper's memory and a tenth of its start otherwise.
_BOOTSTRAP = (
    "import sys; sys.modules.update(dict.fromkeys(('ssl', '_hashlib', 'typing_extensions'))); "
    "sys.path[:0] = sys.argv[3:]; "
    "from chronex.keeper.keeper_process import main; main(sys.argv[1], sys.argv[2])"
)
# A one-file program unpacks itself into a directory that goes with it: what outlives it must unpack its own.
UNPACKED_ANEW = {"PYINSTALLER_RESET_ENVIRONMENT": "1"}
# What a service manager told the daemon is not for whoever outlives it.
_STORE_VARIABLE = "CHRONEX_STORE"
_OF_SCHEDULER = frozenset({VARIABLE, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID"})


class KeeperNotStartedError(Exception):
    """Why there is no keeper; commands are then children of the scheduler, and lose their exit codes with it."""


class KeeperRefusedError(KeeperNotStartedError):
    """The same where another try would find the same: the system, or the keeper itself, says why."""


@dataclass(slots=True)
class DeadKeeper:
    """A directory whose keeper is gone: ends that were written and not recorded."""

    directory: Path
    ends: dict[str, Ended] = field(default_factory=dict)


class Keepers:
    """`name` is that of this scheduler's node: its keeper's directory is called after it.

    With `starts_at_once` its keeper is there before the first command is due; a program may have functions alone.
    """

    def __init__(self, store: Path, logs: Path, name: str, *, starts_at_once: bool = False) -> None:
        self.starts_at_once = starts_at_once
        self._parent = store / DIRECTORY
        self._logs = logs
        self._name = name
        self._number = 0
        self._begun: float | None = None  # when the last keeper was started, by the clock of the loop
        self._short_lives = 0  # how many in a row
        self.own_link: KeeperLink | None = None  # for new commands; None before the first, lost where it was killed
        self._own_directory: Path | None = None
        self._starting: asyncio.Task[KeeperLink] | None = None
        self.others: dict[Path, KeeperLink] = {}  # what schedulers left that are gone, and their keepers hold
        self.dead: dict[Path, DeadKeeper] = {}  # the same where the keeper is gone too
        self._stuck: set[Path] = set()  # keepers that live and do not answer
        self._trust: Trust | None = None
        self.open_until_ms: int | None = None  # by the boot time: past it no barrier may be opened
        self._short_from_ms = 0  # by the boot time: from then on a heartbeat is waited for first
        self.on_short_trust: Callable[[], None] = lambda: None  # a heartbeat is wanted sooner than it would come
        self._trusted_anew = asyncio.Event()
        self._refused = ""  # why the last try was in vain
        self._refused_until = 0.0  # by the clock of the loop
        self._closing = asyncio.Event()
        self._leaving: set[asyncio.Task[None]] = set()
        self._discovering = asyncio.Lock()  # whoever waits for it finds what was seen, not the middle of a look

    # -- its own -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start the keeper in the background, so that it is there when the first command is due."""
        if self._starting is None and (self.own_link is None or self.own_link.is_lost):
            self._own_directory = None  # the last one was killed: what it wrote is looked at from now on
            self._starting = asyncio.get_running_loop().create_task(self._start_anew())
            self._starting.add_done_callback(self._started)

    def _started(self, task: asyncio.Task[KeeperLink]) -> None:
        self._starting = None
        if not task.cancelled() and task.exception() is None:
            self.own_link = task.result()

    async def _start_anew(self) -> KeeperLink:
        """At once; after a keeper that did not live for long, or could not begin, only after a pause that grows."""
        now = asyncio.get_running_loop().time()
        is_short = self._begun is not None and now - self._begun < _SHORT_LIFE_S
        self._short_lives = self._short_lives + 1 if is_short else 0
        if self._short_lives > 1:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), min(_LONGEST_PAUSE_S, 0.5 * 2**self._short_lives))
        self._begun = asyncio.get_running_loop().time()
        for tries_left in range(_TRIES, 0, -1):
            try:
                return await self._start()
            except KeeperRefusedError:
                raise
            except KeeperNotStartedError:
                if tries_left == 1:
                    raise
        raise AssertionError

    async def own(self) -> KeeperLink:
        """The keeper for new commands; a new one where the last was killed.

        Where the system refuses to have one it is asked again from time to time, and no command waits for that.
        """
        if self.own_link is not None and not self.own_link.is_lost:
            return self.own_link
        if self._starting is None and asyncio.get_running_loop().time() < self._refused_until:
            raise KeeperRefusedError(self._refused)
        self.begin()
        assert self._starting is not None
        return await asyncio.shield(self._starting)

    def give_up(self, link: KeeperLink) -> None:
        """Our own keeper does not answer: what it has is its own, and new commands go to another one."""
        if self.own_link is link and not link.is_lost:
            log.warning("a keeper does not answer, and another one is started for new commands: %s", link.directory)
            self.others[link.directory], self.own_link, self._own_directory = link, None, None

    @property
    def ready(self) -> KeeperLink | None:
        """The same where it is there now."""
        return None if self.own_link is None or self.own_link.is_lost else self.own_link

    async def _start(self) -> KeeperLink:
        if self._closing.is_set():
            raise KeeperRefusedError("its scheduler ends")
        self._number += 1
        directory = self._own_directory = self._parent / f"{self._name}.{self._number}"
        try:
            directory.mkdir(mode=0o700, parents=True)
            self._parent.chmod(0o700)
            await asyncio.get_running_loop().run_in_executor(None, start_keeper, directory, self._logs)
            link = await _first_link(directory)
        except (OSError, RuntimeError, KeeperNotStartedError) as problem:  # RuntimeError: no thread can be started
            # It never had a command. Should it come to life after all, it finds no place, and ends.
            shutil.rmtree(directory, ignore_errors=True)
            if isinstance(problem, KeeperNotStartedError):
                raise
            self._refused, self._refused_until = str(problem), asyncio.get_running_loop().time() + _SHORT_LIFE_S
            raise KeeperRefusedError(self._refused) from problem
        if self._trust is not None:
            link.send(self._trust)
        return link

    # -- those of others -----------------------------------------------------------------------------------------

    def found(self) -> list[Path]:
        """The directory of every keeper. Its node was on record before: whoever is asked afterwards knows of it."""
        try:
            return [self._parent / name for name in os.listdir(self._parent)]
        except OSError:
            return []

    async def discover(self, is_ours: Callable[[str], bool], found: Collection[Path] | None = None) -> None:
        """Find what schedulers left that are gone. `is_ours` says whether the node of this name is one of them.

        `found` are the directories as they were before that was known: one of a node that came later is not there.
        """
        async with self._discovering:
            await self._discover(is_ours, self.found() if found is None else found)

    async def _discover(self, is_ours: Callable[[str], bool], found: Collection[Path]) -> None:
        lost = {directory for directory, link in self.others.items() if link.is_lost}
        wanted = {directory for directory in found if self._must_visit(directory, is_ours)}
        await asyncio.gather(*map(self._visit, lost | wanted))

    def _must_visit(self, directory: Path, is_ours: Callable[[str], bool]) -> bool:
        if directory in self.others or directory in self.dead:
            return False
        node = directory.name.rpartition(".")[0]
        return self._is_lost(directory) if node == self._name else is_ours(node)

    def _is_lost(self, directory: Path) -> bool:
        """One of our own that was killed; not the one that is about to begin, to which nobody can connect yet."""
        is_needed = self.ready is not None or self._starting is not None
        return directory != self._own_directory or not is_needed

    async def visit_lost(self) -> None:
        """Those that were killed while we were connected, our own too: what had they written?"""
        await self.discover(lambda _node: False)

    async def visit_stuck(self) -> None:
        """Ask again those that did not answer."""
        async with self._discovering:
            await asyncio.gather(*map(self._visit, list(self._stuck)))

    async def _visit(self, directory: Path) -> None:
        try:
            link = await connect(directory, _ANSWER_WITHIN_S)
        except (OSError, TimeoutError, KeeperLostError):
            words: Mapping[str, Opened | Ended] | None = None
            with contextlib.suppress(OSError):  # that will pass: it is asked again
                # Before its file is read: one that is gone writes no more.
                words = None if is_alive(directory) else read_ends(directory)
            self._forget(directory)
            if words is None:  # it is stopped, slow, or about to begin or to end: its commands are its own
                self._stuck.add(directory)
            else:
                ends = {name: word for name, word in words.items() if isinstance(word, Ended)}
                self.dead[directory] = DeadKeeper(directory, ends)
            return
        self._forget(directory)
        self.others[directory] = link

    def _forget(self, directory: Path) -> None:
        """What was known of it before; until then that holds."""
        self._stuck.discard(directory)
        self.others.pop(directory, None)

    def keeps(self, attempt_id: str) -> bool:
        """Somebody but our own keeper has it, or knows its end, or may do so."""
        is_known = any(link.keeps(attempt_id) for link in self.others.values()) or any(
            attempt_id in dead.ends for dead in self.dead.values()
        )
        return is_known or bool(self._stuck)

    def is_stuck(self, attempt_id: str, process: ProcessIdentity, directory: Path | None = None) -> bool:
        """Nobody who answers has it, and a keeper lives that does not: it is stopped, slow, or just about to end.

        `directory` is that of its keeper, where that is known; else each of them may have it. Their files do not say:
        a keeper may have yet to read that a barrier is to be opened, and a full disk may not take what it writes.
        """
        may_have_it = bool(self._stuck) if directory is None else directory in self._stuck
        return (
            may_have_it
            and self.link_of(attempt_id, process) is None
            and self.end_from_file(attempt_id, process) is None
        )

    def link_of(self, attempt_id: str, process: ProcessIdentity) -> KeeperLink | None:
        """The living keeper that has it, as far as can be said while it runs."""
        links = (*self.others.values(), *([self.ready] if self.ready is not None else []))
        return next((link for link in links if link.may_have(attempt_id, process)), None)

    def end_from_file(self, attempt_id: str, process: ProcessIdentity) -> Ended | None:
        """How it ended, by the file of a keeper that is gone."""
        words = (dead.ends[attempt_id] for dead in self.dead.values() if attempt_id in dead.ends)
        return next((ended for ended in words if ended.is_of(process)), None)

    def tidy(self, is_needed: Callable[[str], bool]) -> None:
        """Let go of ends that nobody waits for, of keepers without any, and of the directories of dead ones."""
        for directory, link in list(self.others.items()):
            if link.is_lost:  # what it wrote is looked at first
                continue
            for attempt_id in link.ids:
                if not is_needed(attempt_id):
                    link.recorded(attempt_id)
            if not link.ids:
                self._leave(link)
                del self.others[directory]
        for directory, dead in list(self.dead.items()):
            dead.ends = {name: end for name, end in dead.ends.items() if is_needed(name)}
            if not dead.ends:
                shutil.rmtree(directory, ignore_errors=True)
                del self.dead[directory]

    def trust(self, trust: Trust, open_until_ms: int, short_from_ms: int) -> None:
        """Tell every keeper of this machine until when its commands may run."""
        self._trust, self.open_until_ms, self._short_from_ms = trust, open_until_ms, short_from_ms
        self._trusted_anew.set()
        for link in (self.own_link, *self.others.values()):
            if link is not None and not link.is_lost:
                link.send(trust)

    async def await_trust(self, boottime_ms: int) -> None:
        """Until a barrier may be opened for long enough: where little is left of that, for the next heartbeat.

        On a busy machine the barrier would be reached too late, its command would be begun anew, and that again, by a
        machine that has more to do for it.
        """
        if boottime_ms < self._short_from_ms:
            return
        self._trusted_anew.clear()
        self.on_short_trust()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._trusted_anew.wait(), _HEARTBEAT_WITHIN_S)

    async def close(self) -> None:
        """Let go; what runs goes on, and the keepers stay as long as something does."""
        self._closing.set()
        if self._starting is not None:  # one that nobody connects to would wait for a while
            await asyncio.wait([self._starting])
        for link in (self.own_link, *self.others.values()):
            if link is not None:
                self._leave(link)
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _leave(self, link: KeeperLink) -> None:
        task = asyncio.get_running_loop().create_task(link.leave())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


class KeeperFacts(NamedTuple):
    """What lies in the directory of one keeper: how many commands it has, how many ends are not on record."""

    directory: Path
    is_alive: bool
    commands: int
    ends: int
    errors: str
    stopped_pid: int | None = None  # its process, where that was stopped by a signal


def keepers_of(store: Path, running: Collection[str]) -> list[KeeperFacts]:
    """Every keeper of a store, living or not; `running` are the attempts that have no end on record."""
    places = sorted((store / DIRECTORY).glob("*.*"))
    return [_facts(place, running) for place in places if not _begins_or_ends(place)]


def _begins_or_ends(directory: Path) -> bool:
    """It has no lock yet, or none any more, and nothing to say."""
    try:
        return LOCK_NAME not in (names := os.listdir(directory)) and not _has_errors(directory, names)
    except OSError:
        return True


def _has_errors(directory: Path, names: list[str]) -> bool:
    return ERRORS_NAME in names and (directory / ERRORS_NAME).stat().st_size > 0


def _facts(directory: Path, running: Collection[str]) -> KeeperFacts:
    try:
        words = {name: word for name, word in read_ends(directory).items() if name in running}
    except OSError:
        words = {}
    ends = sum(isinstance(word, Ended) for word in words.values())
    lives = is_alive(directory)
    stopped_pid = _stopped_pid(directory) if lives else None
    return KeeperFacts(directory, lives, len(words) - ends, ends, _errors(directory), stopped_pid)


def _stopped_pid(directory: Path) -> int | None:
    """The process that holds the lock, where a signal has stopped it (SIGSTOP, a debugger). Linux alone tells."""
    try:
        inode = f":{os.stat(directory / LOCK_NAME).st_ino}"
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        holders = [int(line.split()[4]) for line in lines if line.split()[5].endswith(inode)]
        states = [Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2][1] for pid in holders]
    except (OSError, ValueError, IndexError):
        return None
    return next((pid for pid, state in zip(holders, states, strict=True) if state in "Tt"), None)


def _errors(directory: Path) -> str:
    try:
        return (directory / ERRORS_NAME).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


async def _first_link(directory: Path) -> KeeperLink:
    """To a keeper that listened a moment ago, and has nothing to do but to answer."""
    try:
        return await connect(directory, READY_WITHIN_S)
    except TimeoutError as problem:
        raise OSError("it does not answer") from problem
    except (OSError, KeeperLostError) as problem:
        raise KeeperNotStartedError(_KILLED) from problem


def start_keeper(directory: Path, logs: Path) -> None:
    """Returns when the keeper listens. OSError says why it does not; KeeperNotStartedError where nobody says so.

    Takes some 50 ms: not for the event loop.
    """
    with open(directory / ERRORS_NAME, "ab") as errors:
        process = subprocess.Popen(  # noqa: S603
            keeper_command(directory, logs),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env=keeper_environment(os.environ),
        )
    assert process.stdout is not None
    with process.stdout as output:
        is_there = is_readable_within(output.fileno(), READY_WITHIN_S)
        said = output.readline() if is_there else b"it did not begin in time"
    try:
        process.wait(ANSWER_WITHIN_S)  # the keeper itself is its child by now
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if said == READY:
        return
    why = said.decode("utf-8", "replace").strip() or _errors(directory).rpartition("\n")[2]
    if not why:
        raise KeeperNotStartedError(_KILLED)
    raise OSError(why)


def keeper_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what is for us alone: whoever may look at the keeper need not see the way to our database."""
    kept = {name: value for name, value in environ.items() if name not in _OF_SCHEDULER and not name.startswith("PG")}
    if "://" in kept.get(_STORE_VARIABLE, ""):
        del kept[_STORE_VARIABLE]
    if getattr(sys, "frozen", False):
        kept.update(UNPACKED_ANEW)
    return {**kept, VARIABLE: kept[KEEPER_VARIABLE]} if KEEPER_VARIABLE in kept else kept


def keeper_command(directory: Path, logs: Path) -> list[str]:
    if getattr(sys, "frozen", False):
        return [sys.executable, "keeper", str(directory), str(logs)]
    if "python" not in Path(sys.executable).name.lower():
        raise OSError(f"{sys.executable or 'this program'} is no Python interpreter")
    places = [os.path.abspath(place) for place in sys.path]
    return [sys.executable, "-I", "-S", "-c", _BOOTSTRAP, str(directory), str(logs), *places]


def is_alive(directory: Path) -> bool:
    """A keeper holds its lock as long as it lives. Where the system does not let us look, it may."""
    try:
        descriptor = os.open(directory / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as problem:
        return problem.errno in PASSING
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False
