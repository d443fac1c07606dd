"""Carries out the engine's orders: starts attempts, cancels them, runs hooks, and records each start and end.

A start and an end must be recorded, so a full store is tried again until it has free space.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, TypeVar

from msgspec.structs import replace

from chronex.daemon.attempt_records import end_of, log_fields, request_from_records, stopped_before
from chronex.daemon.end_checks import EndChecks
from chronex.daemon.log_handlers import log_event
from chronex.daemon.periodic_tasks import Faults
from chronex.daemon.prestart import Prestart, next_tick_guess
from chronex.daemon.store_writes import StartRecorder, StoreRetry
from chronex.engine import checked_ends
from chronex.engine.checked_ends import check_of
from chronex.engine.engine import SLOW_START_MS, AttemptStart, Engine
from chronex.engine.notices import after_try, hook_failed
from chronex.engine.orders import AttemptEnd, Cancel, Launch, Order, RunHook, StopProcess
from chronex.engine.task_state import task_state
from chronex.errors import StaleClaimError, StoreError
from chronex.failpoints import fail_point
from chronex.jobfile import SchedulerSettings
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import Attempt, Occurrence, run_id
from chronex.model.policies import CrashCheck, StopMode
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, text_of
from chronex.model.records import Excerpt, Notice
from chronex.model.states import AttemptState
from chronex.run import AttemptRequest, AttemptResult, Cancellation, Hooks, RunContext, Started, stop_process
from chronex.run.callables import run_callable
from chronex.run.command_runner import CommandRunner, HeldCommand, OwnChildren
from chronex.run.function_process import run_in_process
from chronex.run.functions import Calls
from chronex.run.hooks import run_hook
from chronex.run.process import is_alive
from chronex.run.side_threads import SideThreads
from chronex.run.supervise import never_started, unknown_exit
from chronex.storage import scopes
from chronex.storage.journal import append
from chronex.storage.ports import Store
from chronex.storage.records import Reading

T = TypeVar("T")
ExcerptOf = Callable[[Attempt, str], Awaitable[Excerpt | None]]
log = logging.getLogger(__name__)
# After a fault of ours an attempt is taken up anew, so many times.
FAULT_PAUSES_S = (1.0, 4.0, 16.0, 60.0)


class StopRequest(Cancellation):
    """The cancellation of one attempt: the engine is given the reason back, the task is shown its words."""

    __slots__ = ("stop_reason",)

    def __init__(self) -> None:
        super().__init__()
        self.stop_reason = NO_REASON

    def stop(self, reason: Reason) -> None:
        """The first reason stays."""
        if not self.requested:
            self.stop_reason = reason
            self.code = reason.code.value
            self.request(text_of(reason))


class Executor:
    """Carries out orders. `on_unrecorded` is called when a start or an end could not be recorded.

    `on_end` gets each attempt that has ended, with its state.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        run_context: RunContext,
        settings: SchedulerSettings,
        on_unrecorded: Callable[[StoreError], None],
        calls: Calls | None = None,
        runner: CommandRunner | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._faults = faults or Faults()
        self.runner = runner or OwnChildren(run_context)
        self.calls = calls or Calls()
        self.store = store
        self.engine = engine
        self.settings = settings
        self.run_context = run_context
        self.clock = run_context.clock
        self._on_unrecorded = on_unrecorded
        self.on_end: Callable[[Attempt, AttemptState], None] = lambda attempt, state: None
        self.is_traced = False  # whether a collector is told of every attempt
        self.excerpt_of: ExcerptOf | None = None  # where machines share the store: what all of them have of a log
        self.on_process_stopped: Callable[[], None] = lambda: None  # one that a hanging node had left running
        self.on_function: Callable[[], None] = lambda: None  # one of this program begins
        self.functions_end_with_us = False  # also those in processes of their own
        self.store_retry = StoreRetry()
        self._stopped_here: set[str] = set()
        self._starts = StartRecorder(store, engine)
        self.prestart = Prestart(
            self.runner, self.clock, partial(next_tick_guess, engine), self._request_of, self._faults
        )
        self._cancellations: dict[str, StopRequest] = {}
        self._deadlines: dict[str, asyncio.TimerHandle] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._commands: dict[str, asyncio.Task[None]] = {}  # those of `_work` that wait for a command
        self._starting: dict[str, asyncio.Task[None]] = {}
        self.on_idle: Callable[[], None] = lambda: None  # called when the last of `_work` is over
        self._stopping = False
        self._leaving = False

    @cached_property
    def threads(self) -> SideThreads:
        return SideThreads()

    @cached_property
    def checks(self) -> EndChecks:  # few jobs have any
        return EndChecks(self.run_context, self.threads)

    def carry_out(self, orders: Iterable[Order]) -> None:
        for order in orders:
            if isinstance(order, Launch):
                request = self._request_of(order)
                self._begin(order, request)
            elif isinstance(order, RunHook):
                self._begin_hook(order)
            elif isinstance(order, StopProcess):
                self._begin_stop(order)
            elif isinstance(order, Cancel) and order.attempt.id in self._cancellations:
                self._cancellations[order.attempt.id].stop(order.reason)

    def adopt(self, orphans: Iterable[Attempt]) -> list[asyncio.Task[None]]:
        """Watch what a dead node left; who leaves already leaves that too. Gives those whose process is over."""
        over = []
        for attempt in () if self._leaving else orphans:
            # Ready to be canceled before its task has had a turn: the next tick may order that at once.
            work = partial(self._watch_orphan, attempt, self._hooks(attempt, attempt.log_limit))
            task = self._spawn(self._seen_through(attempt, work), _named(attempt))
            self._note_command(attempt.id, task)
            over += [task] if attempt.process is None or not is_alive(attempt.process) else []
        return over

    def stop(self, mode: StopMode) -> None:
        """Nothing begins any more. What runs is asked to end, waited for, or left, as `mode` says.

        One that was claimed before and is ordered only now does not begin: it is canceled, or left to our successor.
        """
        self._stopping = True
        self.prestart.discard()
        if mode is StopMode.CANCEL or (mode is StopMode.LEAVE and not self.runner.has_keeper):
            self._stop_all(self._cancellations, ReasonCode.STOPPING)
        elif mode is StopMode.LEAVE:
            self.leave()

    def leave(self) -> None:
        """Commands go on without us, and are taken up by our successor; functions have the grace period."""
        self._leaving = True
        for task in list(self._commands.values()):
            task.cancel()
        interrupt = partial(self._stop_all, self.functions, ReasonCode.INTERRUPTED)
        asyncio.get_running_loop().call_later(self.settings.grace_ms / 1000, interrupt)

    def stop_all_but(self, ours: Collection[str]) -> None:
        """Stop what runs here and is another node's by now; its end will be refused."""
        taken = {name: one for name, one in self._cancellations.items() if name not in ours}
        self._stop_all(taken, ReasonCode.TAKEN_OVER)

    @property
    def functions(self) -> dict[str, StopRequest]:
        """Those of this program that run here."""
        return {name: one for name, one in self._cancellations.items() if name not in self._commands}

    def cut_off_functions(self) -> None:
        """Others may begin them anew by now."""
        self._stop_all(self.functions, ReasonCode.CUT_OFF)

    def _stop_all(self, attempts: Mapping[str, StopRequest], code: ReasonCode) -> None:
        for cancellation in list(attempts.values()):
            cancellation.stop(Reason(code))

    async def finish(self) -> None:
        """Wait until every attempt and hook has ended."""
        while self._work:
            await asyncio.wait(set(self._work))

    def _spawn(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        task = self._faults.watched(work, what)
        self._work.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._work.discard(task)
        if not self._work:
            self.on_idle()

    @property
    def is_idle(self) -> bool:
        """No attempt and no hook is under way, and the end of each is on record, or told as one that cannot be."""
        return not self._work

    def _begin(self, order: Launch, request: AttemptRequest) -> None:
        if self._leaving:  # our successor finds it claimed, and begun by nobody
            return
        work = partial(self._attempt, order, request, self.prestart.take(request))
        task = self._spawn(self._seen_through(order.attempt, work), _named(order.attempt))
        if not isinstance(order.task.run, Call):
            self._note_command(order.attempt.id, task)

    def _note_command(self, attempt_id: str, task: asyncio.Task[None]) -> None:
        self._commands[attempt_id] = task
        task.add_done_callback(lambda _done: self._commands.pop(attempt_id, None))

    def _begin_stop(self, order: StopProcess) -> None:
        if order.attempt.id not in self._stopped_here:  # the next pass of the reaper orders it again
            self._stopped_here.add(order.attempt.id)
            task = self._spawn(self._stop_process(order), f"the stop of {_named(order.attempt)}")
            task.add_done_callback(lambda _done: self._stopped_here.discard(order.attempt.id))

    async def _stop_process(self, order: StopProcess) -> None:
        fields = {**log_fields(order.attempt), "pid": order.process.pid, "node": order.attempt.owner}
        log_event(log, "stopping the process of a node that hangs", fields, logging.WARNING)
        grace_ms = self.settings.grace_ms if order.grace_ms is None else order.grace_ms
        if await stop_process(order.process, grace_ms):
            self.on_process_stopped()
        else:
            log_event(log, "the process could not be stopped", fields, logging.ERROR)

    def _begin_hook(self, order: RunHook) -> None:
        task = self._spawn(self._hook(order), f"{order.report.hook} of {order.job.id}")
        if order.report.hook == "on_start":  # the tasks of its occurrence wait for it
            self._starting[order.occurrence.id] = task
            task.add_done_callback(lambda _done: self._starting.pop(order.occurrence.id, None))

    async def _hook(self, order: RunHook) -> None:
        problem = await run_hook(order.work, order.report, self.run_context, self.calls)
        fail_point("hook ended")
        if problem:
            fields = {"hook": order.report.hook, "occurrence": order.occurrence.id, "try": order.report.call}
            log_event(log, "hook failed", {"job": order.job.id, **fields, "reason": problem}, logging.WARNING)
        # A full store must not stop anything for its sake: it is in the log, and the hook is called once more later.
        with contextlib.suppress(StoreError):
            await self._record_hook_try(order, problem)

    async def _record_hook_try(self, order: RunHook, problem: str) -> None:
        now_ms, notice = self.clock.wall_ms(), order.notice
        if notice is not None:
            update = after_try(notice, problem, now_ms)
            await self.store.update_async(update, use_reserve=True, scope=scopes.of_jobs(notice.job))
        elif problem:
            lost = Notice(
                job=order.job.id, kind=order.report.hook, at_ms=now_ms, nominal_ms=order.occurrence.nominal_ms
            )
            event = hook_failed(lost, problem, now_ms, is_given_up=True)
            await self.store.update_async(lambda tx: append(tx, event), scope=scopes.JOURNAL_ONLY)

    async def _seen_through(self, attempt: Attempt, work: Callable[[], Awaitable[None]]) -> None:
        """After a fault of ours it would be on record as running, and nobody would wait for its end.

        So it is taken up anew, as a successor would do it.
        """
        for pause_s in FAULT_PAUSES_S:
            try:
                return await work()
            except StoreError as error:
                return self._log_unrecorded("what became of it could not be read", attempt, error)
            except Exception as fault:
                self._faults.note(_named(attempt), fault)
            if self._stopping:  # our successor does it
                return None
            await asyncio.sleep(pause_s)
            work = partial(self._take_up_again, attempt)
        return await work()

    async def _take_up_again(self, attempt: Attempt) -> None:
        """Unless it is over, or no longer ours, by what the store says now."""
        key = attempt.job, attempt.nominal_ms, attempt.task, attempt.number
        found = await self._read(lambda reading: reading.attempt(*key))
        before = self._cancellations.get(attempt.id)
        if found is None or found.state is not AttemptState.RUNNING or found.owner != attempt.owner:
            if before is not None:
                self._forget(attempt)
            self.runner.recorded(attempt.id)
            return
        hooks = self._hooks(found, found.log_limit)
        if before is not None and before.requested:
            self._cancellations[attempt.id].stop(before.stop_reason)
        await self._watch_orphan(found, hooks, "its scheduler had a fault")

    async def _read(self, read: Callable[[Reading], T]) -> T:
        """Once the store answers."""
        return await self.store_retry.until_taken(
            lambda: self.store.view_async(lambda tx: read(Reading(tx))), lambda: self._stopping
        )

    async def _attempt(self, launch: Launch, request: AttemptRequest, held: HeldCommand | None) -> None:
        attempt = launch.attempt
        hooks = self._hooks(attempt, request.log_limit, launch.occurrence.deadline_ms)
        if launch.occurrence.id in self._starting:
            await asyncio.wait([self._starting[launch.occurrence.id]])
        work = launch.task.run
        try:
            if isinstance(work, Call):
                state = await self.store.view_async(lambda tx: task_state(tx, attempt.job, attempt.task))
                result = await self._call(request, work.target, hooks, state)
            else:
                result = await self.runner.run(request, hooks, held)
        except StaleClaimError:
            log_event(log, "not started: its claim was taken away", log_fields(attempt), logging.WARNING)
            self._forget(attempt)
            self.runner.recorded(attempt.id)
            return
        except StoreError as error:
            self._log_unrecorded("the start could not be recorded", attempt, error)
            return
        await self._ended(attempt, request, result, launch.job)

    async def _call(
        self, request: AttemptRequest, target: str, hooks: Hooks, state: Mapping[str, str]
    ) -> AttemptResult:
        self.on_function()
        function = self.calls.in_process(target)
        if function is not None:
            ends = self.functions_end_with_us
            return await run_in_process(request, function, hooks, self.run_context, state, ends_with_program=ends)
        return await run_callable(request, self.calls.find(target), hooks, self.run_context, state)

    def _request_of(self, launch: Launch) -> AttemptRequest:
        key = launch.idempotency_key or run_id(launch.occurrence.id, launch.task.name)
        request = self._request(launch.job, launch.task, launch.occurrence, launch.attempt, key)
        if launch.inputs or self.is_traced:
            return replace(request, inputs=launch.inputs, is_traced=self.is_traced)
        return request

    def _request(
        self, job: Job, task: Task, occurrence: Occurrence, attempt: Attempt, key: str = ""
    ) -> AttemptRequest:
        """The attempt with the scheduler's own settings where the job has none."""
        return request_from_records(
            job,
            task,
            occurrence,
            attempt,
            idempotency_key=key,
            grace_ms=self.settings.grace_ms,
            log_limit=self.settings.logs.max_bytes,
            extra_environment=self.run_context.environment,
        )

    async def _watch_orphan(self, attempt: Attempt, hooks: Hooks, why: str = "its scheduler had died") -> None:
        request, job = await self._read(lambda reading: self._orphan_request(reading, attempt))
        log_event(log, "attempt adopted", log_fields(attempt))
        fail_point("adopted")
        if attempt.process is None:  # a function, which died with its scheduler
            result = never_started(unknown_exit(why), self.clock)
        else:
            started = attempt.started_ms or attempt.created_ms
            result = await self.runner.adopt(request, attempt.process, started, attempt.log_path, hooks)
        await self._ended(attempt, request, result, job)

    def _orphan_request(self, reading: Reading, attempt: Attempt) -> tuple[AttemptRequest, Job | None]:
        """What a dead daemon had started, as far as the records still say."""
        occurrence = reading.occurrence(attempt.job, attempt.nominal_ms)
        job = reading.job(attempt.job)
        if occurrence is not None and (job is None or job.version != occurrence.version):
            job = reading.job_version(attempt.job, occurrence.version) or job
        task = job.task(attempt.task) if job is not None else None
        if job is not None and occurrence is not None and task is not None:
            request = self._request(job, task, occurrence, attempt)
            self._set_deadline(occurrence.deadline_ms, attempt)
            # Its log goes on as it began, whatever the settings say now.
            return replace(request, log_limit=attempt.log_limit or request.log_limit), job
        bare = AttemptRequest(
            attempt_id=attempt.id,
            number=attempt.number,
            job=attempt.job,
            task=attempt.task,
            occurrence_id="",
            nominal_ms=attempt.nominal_ms,
            extra_environment=self.run_context.environment,
        )
        return bare, None

    def _set_deadline(self, deadline_ms: int | None, attempt: Attempt) -> int | None:
        """Stop the attempt at the execution timeout of its occurrence, and say how long that is from now.

        The reaper ends those that outlive it.
        """
        if deadline_ms is None:
            return None
        cancellation = self._cancellations[attempt.id]
        left_ms = max(0, deadline_ms - self.clock.wall_ms())
        reason = Reason(ReasonCode.EXECUTION_TIMEOUT)
        end = asyncio.get_running_loop().call_later(left_ms / 1000, cancellation.stop, reason)
        self._deadlines[attempt.id] = end
        return left_ms

    async def _deadline_now(self, attempt: Attempt, deadline_ms: int | None) -> int | None:
        """The start may have moved the deadline, where it came long after its claim."""
        if deadline_ms is None or self.clock.wall_ms() - attempt.created_ms <= SLOW_START_MS:
            return deadline_ms
        found = await self.store.view_async(lambda tx: Reading(tx).occurrence(attempt.job, attempt.nominal_ms))
        return deadline_ms if found is None else found.deadline_ms

    def _hooks(self, attempt: Attempt, limit: int, deadline_ms: int | None = None) -> Hooks:
        """`deadline_ms` holds from the start of the process on: on a full disk that waits for its record."""

        async def record(started: Started) -> int | None:
            start = AttemptStart(attempt, started.process, started.log_name, started.started_ms, limit)
            # A function too: it may take this process down with it at once, and a record without a start says for
            # certain that nothing ran.
            await self.store_retry.until_taken(
                lambda: self._starts.record(start._replace(at_ms=self.clock.wall_ms())), lambda: self._stopping
            )
            left_ms = self._set_deadline(await self._deadline_now(attempt, deadline_ms), attempt)
            # Logged once it is on record: from here on a successor would find the process.
            log_event(log, "attempt started", log_fields(attempt))
            return left_ms

        cancellation = self._cancellations[attempt.id] = StopRequest()
        if self._stopping:
            cancellation.stop(Reason(ReasonCode.STOPPING))
        return Hooks(record, cancellation)

    async def _ended(self, attempt: Attempt, request: AttemptRequest, result: AttemptResult, job: Job | None) -> None:
        end_of = partial(self._end_of, attempt)
        end = end_of(result)
        if result.log.error:
            fields = {**log_fields(attempt), "reason": result.log.error, "bytes": result.log.dropped}
            log_event(log, "output was lost", fields, logging.WARNING)
        if job is not None and isinstance(job.on_crash, CrashCheck) and checked_ends.is_unknown(end):
            if self._leaving:  # the next scheduler finds an end that nobody saw, and asks
                self._forget(attempt)
                return
            end = await self.checks.after_crash(job.on_crash, request, end, self._cancellations[attempt.id], end_of)
        has_checks = job is not None and any(task.check for task in job.tasks)
        if has_checks and (check := check_of(job, attempt.task, end)) is not None:
            fail_point("check due")
            if self._leaving and request.command:  # the next scheduler finds the same end, and asks
                self._forget(attempt)
                return
            cancellation = self._cancellations[attempt.id]
            end = await self.checks.after_success(check, request, end, attempt, cancellation, end_of)
        if self.excerpt_of is not None:
            # With the end rather than after it: whoever reads of the end, to tell it to people, finds the output too.
            end = end._replace(excerpt=await self.excerpt_of(attempt, result.log.name or attempt.log_path))
        self._forget(attempt)
        await self._record_end(attempt, end)

    def _end_of(self, attempt: Attempt, result: AttemptResult) -> AttemptEnd:
        if result.state is not AttemptState.CANCELED:
            return end_of(result, NO_REASON)
        return end_of(result, self._cancellations[attempt.id].stop_reason or stopped_before(result))

    def _forget(self, attempt: Attempt) -> None:
        del self._cancellations[attempt.id]
        if (deadline := self._deadlines.pop(attempt.id, None)) is not None:
            deadline.cancel()

    async def _record_end(self, attempt: Attempt, end: AttemptEnd) -> None:
        reason = "" if end.reason.code is ReasonCode.NONE else text_of(end.reason)
        fields = {**log_fields(attempt), "state": end.state, "exit_code": end.exit_code, "reason": reason}
        log_event(log, "attempt ended", fields)
        self.on_end(attempt, AttemptState(end.state))
        update, scope = self.engine.ended(attempt, end, self.clock.wall_ms()), scopes.of_jobs(attempt.job)
        try:
            orders = await self.store_retry.until_taken(
                lambda: self.store.update_async(update, use_reserve=True, scope=scope), lambda: self._stopping
            )
        except StoreError as error:
            self._log_unrecorded("the end could not be recorded", attempt, error)
            return
        fail_point("end recorded")
        self.runner.recorded(attempt.id)
        self.carry_out(orders)

    def _log_unrecorded(self, event: str, attempt: Attempt, error: StoreError) -> None:
        """The attempt stays recorded as running on this node, which is about to leave: a successor takes it up."""
        log_event(log, event, {**log_fields(attempt), "error": str(error)}, logging.ERROR)
        self._on_unrecorded(error)


def _named(attempt: Attempt) -> str:
    return f"the attempt {attempt.id}"
