"""Retention: removes history, logs and dead letters beyond their bounds, by an age that no set clock shortens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

from chronex.clock import Clock
from chronex.daemon.periodic_tasks import PeriodicTask
from chronex.engine.commands.dead_letters import bound_dead_letters
from chronex.jobfile import SchedulerSettings
from chronex.run import LogDirectory
from chronex.storage.ports import Store
from chronex.storage.records import Reading, Records
from chronex_store.history_retention import RetentionPolicy, RetentionReport, steps

FREE_SPACE_EVERY_S = 60.0
# At 15/16 the store takes nothing but the ends of running work, so this leaves time to act twice.
MARKS = (0.7, 0.9)


class _Space(Protocol):
    @property
    def ratio(self) -> float: ...


@runtime_checkable
class MeasuredStore(Protocol):
    def space(self) -> _Space:
        """Also releases dead readers, whose snapshots would keep the store from reusing its pages."""
        ...


def free_space_task(store: MeasuredStore, report: Callable[[str, dict[str, Any]], None]) -> PeriodicTask:
    """Reports `StoreRoomLow` when the ratio rises over a mark and `StoreRoomBack` when it is below all of them."""
    over = 0

    async def check() -> None:
        nonlocal over
        ratio = store.space().ratio
        before, over = over, sum(1 for mark in MARKS if ratio >= mark)
        if over > before:
            report("StoreRoomLow", {"used": f"{ratio:.0%}"})
        elif before and not over:
            report("StoreRoomBack", {"used": f"{ratio:.0%}"})

    return PeriodicTask("store", FREE_SPACE_EVERY_S, check)


RETENTION_EVERY_S = 60.0
# A pass reads every job, so passes are rare; the steps of one pass go on minute after minute.
PASS_EVERY_MS = 600_000
STEPS_AT_ONCE = 400
PAUSE_S = 0.005
MOST_SWEPT = 100
OWN_LOGS_EVERY_S = 300.0
_DAY_MS = 86_400_000


class Retention:
    """One pass after the other: history, logs, versions, nodes, journal, keys, dead letters, stray log files."""

    def __init__(
        self,
        store: Store,
        logs: LogDirectory,
        settings: SchedulerSettings,
        clock: Clock,
        age_now: Callable[[], int] | None = None,
    ) -> None:
        """`age_now` is the time by which things are too old; the wall clock where it is not given."""
        self._age_now = age_now or clock.wall_ms
        self._store = store
        self._logs = logs
        self._clock = clock
        self.policy = _policy(settings)
        self._pass: Iterator[RetentionReport] | None = None
        self._next_pass_ms = 0
        self._at_work = threading.Lock()

    def use(self, settings: SchedulerSettings) -> None:
        """From the next pass on, which then comes at once."""
        self.policy, self._next_pass_ms = _policy(settings), 0

    def periodic_task(self) -> PeriodicTask:
        return PeriodicTask("upkeep", RETENTION_EVERY_S, self.do)

    def own_logs_task(self) -> PeriodicTask:
        """On a store that machines share each removes its own old logs, whoever does the rest."""
        return PeriodicTask("own logs", OWN_LOGS_EVERY_S, self._sweep)

    async def _sweep(self) -> None:
        for name in await asyncio.to_thread(self._strays, self._age_now()):
            self._logs.remove(name)

    async def do(self) -> None:
        """Some steps of the pass that is under way, or the first ones of the next."""
        now_ms = self._clock.monotonic_ms()
        if self._pass is None:
            if now_ms < self._next_pass_ms:
                return
            self._pass, self._next_pass_ms = self._steps(self._age_now()), now_ms + PASS_EVERY_MS
        for _ in range(STEPS_AT_ONCE):
            if not await asyncio.to_thread(self._step):
                return
            await asyncio.sleep(PAUSE_S)

    async def whole_pass(self) -> None:
        """Everything that is to go by now."""
        self._pass = self._steps(self._age_now())
        while await asyncio.to_thread(self._step):
            pass

    def _step(self) -> bool:
        """One transaction, then the files that belonged to what it removed; False when the pass is over.

        A crash between the two leaves a file that no record names: the sweep finds it when it is old enough.
        One that took so long that nobody waits for it any more may still be at work in its thread: False then, too.
        """
        if not self._at_work.acquire(blocking=False):
            return False
        try:
            return self._step_alone()
        finally:
            self._at_work.release()

    def _step_alone(self) -> bool:
        report = None if self._pass is None else next(self._pass, None)
        if report is None:
            self._pass = None
            return False
        for name in report.logs:
            self._logs.remove(name)
        return True

    def _steps(self, now_ms: int) -> Iterator[RetentionReport]:
        yield from steps(self._store, self.policy, now_ms)
        while self._store.update(lambda tx: bound_dead_letters(Records(tx, now_ms)), use_reserve=True):
            yield RetentionReport()
        yield RetentionReport(logs=self._strays(now_ms))

    def _strays(self, now_ms: int) -> tuple[str, ...]:
        """Log files older than any kept log may be, but for those of attempts that still run and are only silent."""
        before_ms = now_ms - max(self.policy.log_age_ms or 0, _DAY_MS)
        old = self._logs.untouched_since(before_ms / 1000, MOST_SWEPT)
        if not old:
            return ()
        running = self._store.view(lambda tx: Reading(tx).active_attempts(limit=100_000))
        in_use = {attempt.log_path for attempt in running} | {f"{attempt.id}.log" for attempt in running}
        return tuple(name for name in old if name not in in_use)


def _policy(settings: SchedulerSettings) -> RetentionPolicy:
    history, output = settings.history, settings.logs
    return RetentionPolicy(
        max_count=history.max_count,
        max_age_ms=history.max_age_ms,
        journal_count=history.max_events,
        log_count=output.max_count,
        log_age_ms=output.max_age_ms,
    )
