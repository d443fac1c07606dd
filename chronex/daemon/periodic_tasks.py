"""What a daemon does beside its ticks: some of it every few seconds, and what becomes of its own mistakes there."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from chronex.clock import Clock
from chronex.daemon.log_handlers import log_event
from chronex.errors import StoreUnavailableError

T = TypeVar("T")
log = logging.getLogger(__name__)
# A task that takes longer is given up and tried again at its next time.
LONGEST_RUN_S = 30.0
# So long is what the store was given to decide waited for at the end.
DECIDED_WITHIN_S = 5.0
ReportFn = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class PeriodicTask:
    """`do` is awaited on the daemon's loop about every `every_s` seconds, so it must not block.

    Work of more than a millisecond belongs into `store.update_async` or an executor.
    """

    name: str
    every_s: float
    do: Callable[[], Awaitable[None]]
    to_the_end: bool = False  # also while the daemon waits for what it drains


class PeriodicTasks:
    """Starts each task when it is due, never twice at once; a failure is reported when it begins and when it ends."""

    def __init__(self, periodic: Iterable[PeriodicTask], clock: Clock, report: ReportFn) -> None:
        self._clock = clock
        self._report = report
        self._due_ms: dict[PeriodicTask, int] = {}
        self._failing: dict[str, str] = {}
        self._busy: dict[PeriodicTask, asyncio.Task[None]] = {}
        self._deciding: set[asyncio.Task[Any]] = set()  # what is given to the store, to be carried out when recorded
        for task in periodic:
            self.add(task)

    def add(self, task: PeriodicTask) -> None:
        """Its first time is one interval from now: what must be done at the start, the daemon does itself."""
        self._due_ms[task] = self._clock.monotonic_ms() + round(task.every_s * 1000)

    def start_due(self) -> None:
        now = self._clock.monotonic_ms()
        for task, due_ms in self._due_ms.items():
            if due_ms <= now and task not in self._busy:
                self._due_ms[task] = now + round(task.every_s * 1000)
                self._busy[task] = asyncio.get_running_loop().create_task(self._run(task))

    def hurry(self, name: str) -> None:
        """Do it now, unless it is under way."""
        for task in self._due_ms:
            if task.name == name:
                self._due_ms[task] = self._clock.monotonic_ms()
        self.start_due()

    def seconds_until_next(self, at_most: float) -> float:
        """How long nothing of this falls due."""
        now = self._clock.monotonic_ms()
        waits = [self._wait(task, (due_ms - now) / 1000) for task, due_ms in self._due_ms.items()]
        return max(0.0, min([at_most, *waits]))

    def _wait(self, task: PeriodicTask, seconds: float) -> float:
        """One that is under way has a next time too, or it would be late by the longest sleep; one that is late
        already because it takes so long is checked again after its interval."""
        return seconds if seconds > 0 or task not in self._busy else task.every_s

    async def stop(self, but: str = "") -> None:
        """Give up what is under way; what it has handed to the store stays.

        Where one is named by `but`, it goes on, with those that do so `to_the_end`, and no other begins any more.
        """
        if but:
            self._due_ms = {task: due_ms for task, due_ms in self._due_ms.items() if _stays(task, but)}
        tasks = [work for task, work in self._busy.items() if not _stays(task, but)]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._deciding:  # our successor takes up what a store that does not answer records after all
            _, late = await asyncio.wait(self._deciding, timeout=DECIDED_WITHIN_S)
            for task in late:
                task.cancel()

    async def to_its_end(self, deciding: Coroutine[Any, Any, T]) -> T:
        """A task is given up after a while, and the store records what it was asked all the same: what was claimed so
        would be on record as running, and nobody would begin it."""
        work = asyncio.get_running_loop().create_task(deciding)
        self._deciding.add(work)
        work.add_done_callback(self._deciding.discard)
        return await asyncio.shield(work)

    async def _run(self, task: PeriodicTask) -> None:
        problem = ""
        try:
            await asyncio.wait_for(task.do(), LONGEST_RUN_S)
        except TimeoutError:
            problem = f"it took longer than {LONGEST_RUN_S:g} s"
        except StoreUnavailableError:
            return  # the loop tells that the store takes nothing, once
        except Exception as error:
            # Whatever it is, scheduling goes on: a full disk, a bad address, a mistake of ours.
            problem = f"{type(error).__name__}: {error}"
        finally:
            del self._busy[task]
        self._report_change(task.name, problem)

    def _report_change(self, name: str, problem: str) -> None:
        before = self._failing.get(name, "")
        if problem == before:
            return
        self._failing[name] = problem
        self._report("ChoreFailed" if problem else "ChoreRecovered", {"chore": name, "reason": problem or before})


def _stays(task: PeriodicTask, but: str) -> bool:
    return bool(but) and (task.name == but or task.to_the_end)


# -- mistakes of Chronex itself, met in work that nobody awaits: told when they are met, and the rest goes on --------
#
# A task takes its exception with it, and whoever waits for what the task was to do would wait without a word.


_MOST_KNOWN = 1_000  # faults of which the last words are kept; some are named by attempts, of which there is no end


class Faults:
    """`on_fault` is given what had the fault, and the fault, each time."""

    def __init__(self) -> None:
        self.on_fault: Callable[[str, str], None] = lambda what, fault: None
        self._last: dict[str, str] = {}  # by what had it

    def note(self, what: str, fault: BaseException) -> None:
        """One that is met again and again, by what is tried again every second, is logged once."""
        words, place = words_of(fault), place_of(fault)
        if self._last.get(what) != words:
            if len(self._last) >= _MOST_KNOWN:
                self._last.clear()
            self._last[what] = words
            fields = {"what": what, "fault": words, "where": place, "so": "the rest goes on"}
            log_event(log, "a fault of Chronex", fields, logging.ERROR)
        self.on_fault(what, words)

    def watched(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        """A task for work that nobody awaits; how it ends is noted where that is a fault."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda done: self._over(done, what))
        return task

    def _over(self, task: asyncio.Task[None], what: str) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None:
            self.note(what, fault)


def words_of(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}" if str(fault) else type(fault).__name__


def place_of(fault: BaseException) -> str:
    """The innermost line of it, for whoever reports it."""
    frames = traceback.extract_tb(fault.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
