"""The daemon's loop: tick, carry out the orders, sleep until something is due or has changed."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from chronex.daemon.waking import Wakefulness
from chronex.engine import journal, reasons
from chronex.engine.jobfile import SchedulerSettings
from chronex.engine.ledger import Ledger, Reading
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order
from chronex.engine.ports import Store, Transaction
from chronex.engine.tick import Engine
from chronex.errors import StoreError
from chronex.model.records import Attempt, Event, Job, Node, Occurrence, Task
from chronex.model.states import AttemptState
from chronex.run import (
    AttemptRequest,
    AttemptResult,
    Cancellation,
    Hooks,
    Started,
    Surroundings,
    adopt_attempt,
    is_alive,
    run_attempt,
)

# No sleep is longer, so that a clock that was set, or a machine that slept, is noticed within it.
LONGEST_SLEEP_S = 30.0
Tell = Callable[[str, dict[str, Any]], None]


class Daemon:
    """One node at work on a store."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        surroundings: Surroundings,
        node: Node,
        settings: SchedulerSettings,
        tell: Tell,
    ) -> None:
        self.settings = settings
        self.store, self.engine, self.node, self.tell = store, engine, node, tell
        self.surroundings, self.clock = surroundings, surroundings.clock
        self._cancellations: dict[str, Cancellation] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """No new claim from now on; running work is asked to end."""
        self._stopping.set()
        self.engine.stopping = True
        for cancellation in list(self._cancellations.values()):
            cancellation.request(reasons.STOPPING)

    async def run(self, *, once: bool = False) -> None:
        """Until stopped; with `once`, until what is due now has ended."""
        wakefulness = Wakefulness(self.clock)
        self._register()
        self._take_over()
        while not self._stopping.is_set():
            self._notice(wakefulness)
            seen = self.store.wait(-1, 0)
            tick = self.engine.tick(self.clock.wall_ms(), wakefulness.since_ms)
            self._carry_out(tick.orders)
            if tick.has_more:
                await asyncio.sleep(0)
                continue
            if once:
                break
            await self._sleep(tick.next_ms, seen)
        await self._finish()

    def _register(self) -> None:
        self.store.update(lambda tx: Ledger(tx, self.clock.wall_ms()).put(self.node))
        self._journal("SchedulerStarted", {"node": self.node.id})

    def _take_over(self) -> None:
        orders, adopted = self.engine.take_over(is_alive, self.clock.wall_ms())
        for attempt in adopted:
            self._spawn(self._watch_orphan(attempt))
        self._carry_out(orders)

    def _notice(self, wakefulness: Wakefulness) -> None:
        jump = wakefulness.look()
        if jump is None:
            return
        name = "MachineSlept" if jump.slept_ms > 0 else "ClockStepped"
        self._journal(name, {"by_ms": jump.by_ms, "slept_ms": jump.slept_ms})

    def _journal(self, name: str, data: dict[str, Any]) -> None:
        event = Event(name=name, at_ms=self.clock.wall_ms(), data=data)

        def write(tx: Transaction) -> None:
            journal.append(tx, event)

        self.store.update(write)
        self.tell(name, data)

    async def _sleep(self, next_ms: int | None, seen: int) -> None:
        pause = LONGEST_SLEEP_S
        if next_ms is not None:
            pause = min(pause, max(next_ms - self.clock.wall_ms(), 0) / 1000)
        change = asyncio.ensure_future(self.store.wait_async(seen, pause))
        stop = asyncio.ensure_future(self._stopping.wait())
        _, pending = await asyncio.wait({change, stop}, timeout=pause + 0.001, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()

    # -- attempts ----------------------------------------------------------------------------------------

    def _carry_out(self, orders: Iterable[Order]) -> None:
        for order in orders:
            if isinstance(order, Launch):
                self._spawn(self._attempt(order))
            elif isinstance(order, Cancel) and order.attempt.id in self._cancellations:
                self._cancellations[order.attempt.id].request(order.reason)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _attempt(self, launch: Launch) -> None:
        attempt = launch.attempt
        request = self._request(launch.job, launch.task, launch.occurrence, attempt)
        hooks = self._hooks(attempt)
        result = await run_attempt(request, hooks, self.surroundings)
        await self._ended(attempt, result, hooks.cancellation)

    def _request(self, job: Job, task: Task, occurrence: Occurrence, attempt: Attempt) -> AttemptRequest:
        """The attempt with the scheduler's own settings where the job has none."""
        request = AttemptRequest.of(job, task, occurrence, attempt)
        grace = self.settings.grace_ms if job.grace_ms is None else job.grace_ms
        return dataclasses.replace(request, grace_ms=grace, log_limit=self.settings.logs.max_bytes)

    async def _watch_orphan(self, attempt: Attempt) -> None:
        request = self.store.view(lambda tx: self._orphan_request(Reading(tx), attempt))
        assert attempt.process is not None, "only a known process is adopted"
        hooks = self._hooks(attempt)
        self.tell("attempt adopted", _names(attempt))
        started = attempt.started_ms or attempt.created_ms
        result = await adopt_attempt(request, attempt.process, started, attempt.log_path, hooks, self.surroundings)
        await self._ended(attempt, result, hooks.cancellation)

    def _orphan_request(self, reading: Reading, attempt: Attempt) -> AttemptRequest:
        """What a dead daemon had started, as far as the records still tell."""
        job, occurrence = reading.job(attempt.job), reading.occurrence(attempt.job, attempt.nominal_ms)
        task = job.task(attempt.task) if job is not None else None
        if job is not None and occurrence is not None and task is not None:
            return self._request(job, task, occurrence, attempt)
        return AttemptRequest(
            attempt_id=attempt.id,
            number=attempt.number,
            job=attempt.job,
            task=attempt.task,
            occurrence_id="",
            nominal_ms=attempt.nominal_ms,
        )

    def _hooks(self, attempt: Attempt) -> Hooks:
        async def record(started: Started) -> None:
            if started.process is not None:
                update = self.engine.started(attempt, started.process, started.log_name, started.started_ms)
                await self.store.update_async(update, essential=True)
                # Told when it is on record: from here on a successor would find the process.
                self.tell("attempt started", _names(attempt))

        cancellation = self._cancellations[attempt.id] = Cancellation()
        if self._stopping.is_set():
            cancellation.request(reasons.STOPPING)
        return Hooks(record, cancellation)

    async def _ended(self, attempt: Attempt, result: AttemptResult, cancellation: Cancellation) -> None:
        self._cancellations.pop(attempt.id, None)
        end = _end_of(result, cancellation.reason)
        self.tell(
            "attempt ended", {**_names(attempt), "state": end.state, "exit_code": end.exit_code, "reason": end.reason}
        )
        update = self.engine.ended(attempt, end, self.clock.wall_ms())
        try:
            orders = await self.store.update_async(update, essential=True)
        except StoreError as error:
            # The attempt stays recorded as running by a node that will be gone: a successor takes it up.
            self.tell("the end could not be recorded", {**_names(attempt), "error": str(error)})
            self.stop()
            return
        if not self._stopping.is_set():
            self._carry_out(orders)

    async def _finish(self) -> None:
        """Everything that runs is seen to its end; then the node says goodbye."""
        if not self._stopping.is_set():  # only what was due now was asked for, but all of it: its later tasks too
            await self._until_idle()
        self._journal("SchedulerStopRequested", {"node": self.node.id})
        await self._until_idle()
        gone = replace(self.node, stopped_ms=self.clock.wall_ms())
        self.store.update(lambda tx: Ledger(tx, self.clock.wall_ms()).put(gone), essential=True)
        self._journal("SchedulerStopped", {"node": self.node.id})

    async def _until_idle(self) -> None:
        while self._work:
            await asyncio.wait(set(self._work))


def _names(attempt: Attempt) -> dict[str, Any]:
    return {"job": attempt.job, "task": attempt.task, "nominal_ms": attempt.nominal_ms, "attempt": attempt.number}


def _end_of(result: AttemptResult, cancel_reason: str) -> AttemptEnd:
    """The end in words for people. Stopped because its occurrence ran out of time, an attempt has timed out."""
    end = result.as_end()
    if result.state is not AttemptState.CANCELED:
        return end._replace(reason=result.error)
    if cancel_reason == reasons.EXECUTION_TIMEOUT:
        return end._replace(state=AttemptState.TIMEOUT, reason=cancel_reason, retryable=False)
    return end._replace(reason=cancel_reason or result.error)
