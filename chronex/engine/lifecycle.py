"""The life of an occurrence after its decision: runs, attempts, retries, dead letters, and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from chronex.engine import idempotency, task_state
from chronex.engine.following import Followers
from chronex.engine.group_limits import from_line
from chronex.engine.handed_values import inputs_of
from chronex.engine.notices import note_end, note_on_time, note_start, order_hook
from chronex.engine.orders import NO_INPUTS, AttemptEnd, Cancel, Launch, Order
from chronex.engine.plan import Chance, next_plan_ms
from chronex.engine.retries import has_begun, may_repeat, retry_at, retry_of
from chronex.engine.task_graph import (
    UNDER_WAY,
    goes_on,
    left_out,
    outcome_of,
    outlives_cancel,
    outlives_failure,
    startable,
    stopping_run,
)
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.model.job_parameters import defaults_of
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.policies import SHORTEST_PAUSE_MS, Cadence, OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, free_text
from chronex.model.states import AttemptState, OccurrenceState, RunState, advance, is_final
from chronex.storage.records import Records
from chronex.timing.job_schedule import is_interval, options_of, schedule_of

# A task that takes the scheduler down with it is not tried for ever.
_MOST_CRASHES = 3


class Lifecycle:
    """Moves records along the transition table inside one transaction; it collects orders and events."""

    def __init__(self, records: Records, node: str, chance: Chance, orders: list[Order], events: list[Event]) -> None:
        self.records, self.node, self.chance = records, node, chance
        self.orders, self.events = orders, events
        self.shortest_pause_ms = SHORTEST_PAUSE_MS
        self.may_start = True  # a node that stops starts nothing more, not even the next task
        self.names_node = False  # where machines share the store, each event says which node wrote it
        self.can_run: Callable[[Job], bool] = lambda job: True  # a task whose function this node has not waits

    @property
    def followers(self) -> Followers:
        """What follows other jobs; most jobs follow nothing, and nothing follows them."""
        return Followers(self.records, self.end_unstarted, self.emit)

    def _decide_followers(self, ended: Occurrence) -> None:
        if self.records.has_followers(ended.job):
            self.followers.decide(ended)

    def decide_waiting_for(self, job: str) -> None:
        """The instants of the job were decided, or are others now: who waits for it may wait no longer."""
        if self.records.has_followers(job):
            self.followers.decide_all_waiting(job)

    # -- occurrences -------------------------------------------------------------------------------------

    def start(self, job: Job, occurrence: Occurrence, places: dict[str, int] | None = None) -> bool:
        """Claim the occurrence with its places and start its first task, or all; False where it ended unstarted."""
        limit = options_of(job).max
        if limit is not None and job.progress.counters.fired >= limit and not occurrence.manual:
            self.end_unstarted(occurrence, OccurrenceState.SKIPPED, Reason(ReasonCode.MAX_REACHED))
            return False
        version = self.version_of(occurrence) or job
        now = self.records.now_ms
        tasks = [task for task in version.tasks if not occurrence.only or task.name in occurrence.only]
        if tasks and all(task.idempotency_key for task in tasks):
            holder = idempotency.held_by_others(self.records, version, tasks, occurrence, now)
            if holder:
                self.end_unstarted(occurrence, OccurrenceState.SKIPPED, Reason(ReasonCode.IDEMPOTENT, holder))
                return False
        timeout = version.execution_timeout_ms
        claimed = self.records.advance(
            occurrence,
            OccurrenceState.RUNNING,
            reason=NO_REASON,
            owner=self.node,
            epoch=occurrence.epoch + 1,
            started_ms=now,
            last_run_ms=job.progress.last_run_ms,
            fire_count=job.progress.counters.fired + 1,
            deadline_ms=None if timeout is None else now + timeout,
            released_ms=None,
            wait_until_ms=None,
            parameters=_parameters(version, occurrence),
            **(from_line(occurrence, places) if places or occurrence.order_ms else {}),
        )
        self._count(job.id, last_run_ms=now, fired=1)
        self.emit("OccurrenceStarted", claimed, data=_start_data(version, occurrence, now))
        if job.notify is not None:
            note_start(self.records, job, claimed)
        if not tasks:  # job files and programs are refused without one, and older ones may be stored
            self._finish(claimed, OccurrenceState.FAILED, Reason(ReasonCode.NO_TASKS))
            return True
        runs: dict[str, Run] = {}
        for task in tasks:
            run = runs[task.name] = Run(
                job=job.id,
                nominal_ms=occurrence.nominal_ms,
                task=task.name,
                idempotency_key=idempotency.key_of(version, task, occurrence) if task.idempotency_key else "",
                created_ms=now,
            )
            self.records.create(run)
        self._call_hook(version, claimed, "on_start")
        begun = [self._start_run(version, claimed, task) for task in startable(version, runs)]
        if not all(begun):
            self.continue_or_finish(version, claimed)
        return True

    def end_unstarted(self, occurrence: Occurrence, state: OccurrenceState, reason: Reason, **changes: Any) -> None:
        """End an occurrence that never ran."""
        changes.setdefault("lines", ())
        ended = self.records.advance(occurrence, state, reason=reason, finished_ms=self.records.now_ms, **changes)
        counted = {OccurrenceState.SKIPPED: "skipped", OccurrenceState.MISSED: "missed"}.get(state, "canceled")
        self._count(occurrence.job, **{counted: 1})
        self.emit(f"Occurrence{state.value.capitalize()}", ended, reason)
        self._wake_fixed_delay(occurrence.job)
        self._decide_followers(ended)

    def cancel(self, occurrence: Occurrence, reason: Reason) -> bool:
        """End it where nothing runs; else cancel what waits, and keep the request for its owner or a successor.

        A task that runs `always` still does; asked a second time, it does not either. True when the occurrence has
        ended in this transaction.
        """
        if occurrence.state is not OccurrenceState.RUNNING:
            self.end_unstarted(occurrence, OccurrenceState.CANCELED, reason)
            return True
        version = None if occurrence.cancel_reason else self.version_of(occurrence)
        for run in self.records.runs(occurrence.job, occurrence.nominal_ms):
            if version is None or not outlives_cancel(version, run):
                self._cancel_run(run, reason)
        if self._running_attempts(occurrence):
            self.records.put(replace(occurrence, cancel_reason=reason, cancel_ms=self.records.now_ms))
            return False
        if version is not None and self._leave_rest(version, occurrence):
            self.records.put(replace(occurrence, cancel_reason=reason))
            return False
        self._finish(occurrence, OccurrenceState.CANCELED, reason)
        return True

    def _leave_rest(self, job: Job, occurrence: Occurrence) -> bool:
        """What outlives a cancel is due at once, for a node to begin; False where nothing does."""
        runs = self._runs_by_task(job, occurrence)
        waiting = startable(job, runs)
        for task in waiting:
            self._leave_to_successor(runs[task.name])
        return bool(waiting) or any(run.state is RunState.RETRY for run in runs.values())

    def order_stop(self, occurrence: Occurrence, reason: Reason) -> None:
        self.orders += [Cancel(attempt, reason) for attempt in self._running_attempts(occurrence)]

    def _running_attempts(self, occurrence: Occurrence) -> list[Attempt]:
        attempts = self.records.attempts(occurrence.job, occurrence.nominal_ms)
        return [attempt for attempt in attempts if attempt.state is AttemptState.RUNNING]

    def _finish(
        self,
        occurrence: Occurrence,
        state: OccurrenceState,
        reason: Reason,
        errors: int = 0,
        finished_ms: int | None = None,
    ) -> None:
        over_ms = self.records.now_ms if finished_ms is None else finished_ms
        ended = self.records.advance(occurrence, state, reason=reason, finished_ms=over_ms, errors=errors)
        good = state is OccurrenceState.COMPLETED
        job = self.records.job(occurrence.job)
        if job is not None and (job.notify is not None or job.progress.late_ms is not None):
            note_end(self.records, job, ended)
            note_on_time(self.records, job, ended)
        self.emit(f"Occurrence{_event_word(state)}", ended, reason, data={"errors": errors} if errors else None)
        how = "completed" if good else "canceled" if state is OccurrenceState.CANCELED else "failed"
        self._count(occurrence.job, **{how: 1}, completed_with_errors=1 if errors else 0)
        version = self.version_of(ended)
        if version is not None:
            self._call_hook(version, ended, "on_complete")
        self._wake_fixed_delay(occurrence.job)
        self._decide_followers(ended)

    def _wake_fixed_delay(self, job_id: str) -> None:
        """An interval with a fixed delay counts from the end of its run, or of the occurrence that was skipped."""
        job = self.records.job(job_id)
        if job is None or job.cadence is not Cadence.FIXED_DELAY or not is_interval(job):
            return
        anchored = job.progressed(anchor_ms=self.records.now_ms, cursor_ms=self.records.now_ms)
        self.records.put(
            replace(anchored.progress, next_ms=next_plan_ms(anchored, schedule_of(anchored), self.records.now_ms))
        )

    def reap(self, occurrence: Occurrence) -> None:
        """Give up on an occurrence that outlived its deadline and its grace: its owner hangs or is out of reach."""
        reason, now = Reason(ReasonCode.EXECUTION_TIMEOUT), self.records.now_ms
        version = self.version_of(occurrence)
        for attempt in self.records.attempts(occurrence.job, occurrence.nominal_ms):
            if attempt.state is AttemptState.RUNNING:
                given_up = self.records.advance(attempt, AttemptState.CRASHED, reason=reason, finished_ms=now)
                task_state.drop(self.records, given_up)
        for run in self.records.runs(occurrence.job, occurrence.nominal_ms):
            if run.state in (RunState.RUNNING, RunState.RETRY):
                self._bury(version, occurrence, run, reason)
            else:
                self._cancel_run(run, reason)
        self._finish(occurrence, OccurrenceState.FAILED_STALE, reason)

    def end_overdue_waits(self, occurrence: Occurrence) -> None:
        """Its execution timeout has passed and nothing of it runs: no retry is awaited any more."""
        version = self.version_of(occurrence)
        runs = self.records.runs(occurrence.job, occurrence.nominal_ms)
        if version is None or retry_of(runs) is None:
            return
        for run in runs:
            if run.state is RunState.RETRY:
                self._bury(version, occurrence, run, Reason(ReasonCode.EXECUTION_TIMEOUT))
        self.continue_or_finish(version, occurrence)

    def _bury(self, job: Job | None, occurrence: Occurrence, run: Run, reason: Reason, **changes: Any) -> None:
        """It has failed for good, and becomes a dead letter."""
        task = None if job is None else job.task(run.task)
        ended: dict[str, Any] = {"reason": reason, "next_attempt_ms": None, "finished_ms": self.records.now_ms}
        failed = self.records.advance(run, RunState.FAILED, **{**ended, **changes})
        self.records.advance(failed, RunState.DLQ, environment=_names_given(task, occurrence))
        self.emit("TaskDeadLettered", occurrence, reason, task=run.task, attempt=run.attempts)

    # -- runs --------------------------------------------------------------------------------------------

    def _start_run(self, job: Job, occurrence: Occurrence, task: Task, event: str = "TaskRunStarted") -> bool:
        """False where another run holds the same idempotency key: that is no failure."""
        run = self.records.run(occurrence.job, occurrence.nominal_ms, task.name)
        assert run is not None, "every task of a running occurrence has its run"
        holder = idempotency.take(self.records, run.idempotency_key, task, occurrence) if run.idempotency_key else ""
        if holder:
            reason = Reason(ReasonCode.IDEMPOTENT, holder)
            self._cancel_run(run, reason)
            self.emit("TaskRunSkipped", occurrence, reason, task=task.name)
            return False
        number, now = run.attempts + 1, self.records.now_ms
        claimed = advance(
            run, RunState.CLAIMED, owner=self.node, epoch=occurrence.epoch, next_attempt_ms=None, pause_ms=None
        )
        running = advance(claimed, RunState.RUNNING, attempts=number, started_ms=run.started_ms or now)
        self.records.put(running)
        attempt = Attempt(
            job=occurrence.job,
            nominal_ms=occurrence.nominal_ms,
            task=task.name,
            number=number,
            owner=self.node,
            epoch=occurrence.epoch,
            fence=self._next_fence(occurrence.job),
            created_ms=now,
        )
        self.records.create(attempt)
        data: dict[str, Any] = {"node": self.node}
        if task.needs:
            data["needs"] = [one.name for one in job.tasks if {one.name, one.matrix_of} & set(task.needs)]
        self.emit(event, occurrence, task=task.name, attempt=number, data=data)
        is_alone = len(job.tasks) == 1 and not occurrence.parents
        inputs = NO_INPUTS if is_alone else inputs_of(self.records, job, occurrence, task)
        self.orders.append(Launch(job, occurrence, task, attempt, run.idempotency_key, inputs))
        return True

    def _next_fence(self, job_id: str) -> int:
        progress = self.records.job_progress(job_id)
        if progress is None:
            return 0
        fence = progress.fence + 1
        self.records.put(replace(progress, fence=fence))
        return fence

    def retry_now(self, run: Run) -> None:
        """The pause of a failed run is over."""
        occurrence = self.records.occurrence(run.job, run.nominal_ms)
        version = self.version_of(occurrence) if occurrence is not None else None
        if occurrence is None or version is None or occurrence.state is not OccurrenceState.RUNNING:
            self.records.put(replace(run, next_attempt_ms=None))
            return
        if occurrence.deadline_ms is not None and occurrence.deadline_ms <= self.records.now_ms:
            self._end_late_run(version, occurrence, run)
            return
        task = version.task(run.task)
        if run.state is RunState.RETRY:
            run = self.records.advance(run, RunState.SCHEDULED, next_attempt_ms=None)
        if task is None:
            removed = Reason(ReasonCode.TASK_REMOVED)
            self.records.advance(run, RunState.CANCELED, reason=removed, finished_ms=self.records.now_ms)
            self.continue_or_finish(version, occurrence)
            return
        if occurrence.owner != self.node:
            occurrence = replace(occurrence, owner=self.node, epoch=occurrence.epoch + 1)
            self.records.put(occurrence)
        if not self._start_run(version, occurrence, task, "TaskRetryStarted" if run.attempts else "TaskRunStarted"):
            self.continue_or_finish(version, occurrence)

    def _end_late_run(self, job: Job, occurrence: Occurrence, run: Run) -> None:
        """It was to be tried again, or to start, when the execution timeout had passed."""
        reason = Reason(ReasonCode.EXECUTION_TIMEOUT)
        if run.state is RunState.RETRY:
            self._bury(job, occurrence, run, reason)
        else:
            self._cancel_run(run, reason)
        self.continue_or_finish(job, occurrence)

    def preempt_retry(self, waiting: Occurrence, newcomer: Occurrence) -> bool:
        """With `newest_wins`, one that only waits for a retry gives way to the next of the schedule; True if it did.

        A run that a person asked for takes nothing from another one.
        """
        version = None if newcomer.manual else self.version_of(waiting)
        if version is None:
            return False
        runs = self.records.runs(waiting.job, waiting.nominal_ms)
        if retry_of(runs) is None or any(self._died_with_scheduler(run) for run in runs):
            return False
        retries = [version.task(run.task) for run in runs if run.state is RunState.RETRY]
        if not all(task is None or version.retry_for(task).newest_wins for task in retries):
            return False
        reason = Reason(ReasonCode.PREEMPTED, newcomer.id)
        for run in runs:
            if run.state is RunState.RETRY:
                self.emit("TaskRetryPreempted", waiting, reason, task=run.task)
            self._cancel_run(run, reason)
        self._finish(waiting, OccurrenceState.FAILED, reason)
        return True

    def _died_with_scheduler(self, run: Run) -> bool:
        """Its last attempt died with the scheduler, so the retry repeats that attempt and is not pre-empted."""
        if run.state is not RunState.RETRY:
            return False
        last = self.records.attempt(run.job, run.nominal_ms, run.task, run.attempts)
        return last is not None and last.state is AttemptState.CRASHED

    def _cancel_run(self, run: Run, reason: Reason) -> None:
        if run.state is RunState.RETRY:
            run = self.records.advance(run, RunState.SCHEDULED, next_attempt_ms=None)
        if run.state in (RunState.SCHEDULED, RunState.CLAIMED):
            self.records.advance(run, RunState.CANCELED, reason=reason, finished_ms=self.records.now_ms)

    # -- attempts ----------------------------------------------------------------------------------------

    def attempt_ended(self, attempt: Attempt, end: AttemptEnd) -> None:
        """Record how an attempt ended and continue the occurrence. StaleClaimError when another node ended it."""
        state = AttemptState(end.state)
        ended = self.records.advance(
            attempt,
            state,
            reason=end.reason,
            exit_code=end.exit_code,
            signal=end.signal,
            error=end.error,
            log_bytes=end.log_bytes,
            log_dropped=end.log_dropped,
            usage=end.usage,
            leftovers=end.leftovers,
            errno=end.errno,
            values=end.values or {},
            values_problem=end.values_problem,
            finished_ms=_end_of(attempt, end.finished_ms, self.records.now_ms),
        )
        occurrence = self.records.occurrence(attempt.job, attempt.nominal_ms)
        run = self.records.run(attempt.job, attempt.nominal_ms, attempt.task)
        version = None if occurrence is None else self.version_of(occurrence)
        if occurrence is None or run is None or version is None or is_final(occurrence.state):
            task_state.drop(self.records, ended)
            return
        if end.task_state or self.records.has_staged_state(ended):
            task_state.keep_or_drop(self.records, ended, end.task_state)
        self._end_run(version, occurrence, run, ended, end)
        self.continue_or_finish(version, occurrence)

    def _end_run(self, job: Job, occurrence: Occurrence, run: Run, attempt: Attempt, end: AttemptEnd) -> None:
        now, task = self.records.now_ms, job.task(run.task)
        # It may have ended long before a scheduler could record it.
        over: dict[str, Any] = {"finished_ms": attempt.finished_ms}
        data: dict[str, Any] = {"exit_code": end.exit_code, "state": end.state}
        if attempt.state is AttemptState.SUCCESS:
            self.records.advance(run, RunState.SUCCESS, exit_code=end.exit_code, reason=NO_REASON, error="", **over)
            self.emit("TaskRunCompleted", occurrence, task=run.task, attempt=attempt.number, data=data)
            return
        reason = end.reason or free_text(end.error) or Reason(ReasonCode.RUN_FAILED)
        self.emit("TaskRunFailed", occurrence, reason, task=run.task, attempt=attempt.number, data=data)
        if attempt.state is AttemptState.CANCELED or occurrence.cancel_reason:
            # What was to be canceled gets no further attempt, and does not become a dead letter.
            reason = occurrence.cancel_reason or reason
            self.records.advance(run, RunState.CANCELED, reason=reason, **over)
            return
        can_retry = end.retryable and may_repeat(job, attempt)
        again = self._next_attempt(job, task, run, attempt) if can_retry and task is not None else None
        changes: dict[str, Any] = {"exit_code": end.exit_code, "error": end.error}
        if again is not None and occurrence.deadline_ms is not None and again >= occurrence.deadline_ms:
            again, reason = None, Reason(ReasonCode.EXECUTION_TIMEOUT, "the next attempt would come after it")
        if again is not None:
            self.records.advance(
                run, RunState.RETRY, next_attempt_ms=again, pause_ms=again - now, reason=reason, **changes
            )
            self.emit("TaskRetryScheduled", occurrence, task=run.task, attempt=attempt.number, data={"at_ms": again})
            return
        self._bury(job, occurrence, run, reason, **changes, **over)

    def _next_attempt(self, job: Job, task: Task, run: Run, attempt: Attempt) -> int | None:
        """An attempt that died with its scheduler is repeated at once; one that never began does not count."""
        earlier = self.records.attempts(run.job, run.nominal_ms, run.task)
        crashed = [one for one in earlier if one.state is AttemptState.CRASHED]
        crashes = sum(1 for one in crashed if has_begun(one))
        unstarted = len(crashed) - crashes
        if attempt.state is AttemptState.CRASHED and (not has_begun(attempt) or crashes <= _MOST_CRASHES):
            return self.records.now_ms
        counted = run.attempts - unstarted - min(crashes, _MOST_CRASHES)
        policy = job.retry_for(task)
        return retry_at(policy, counted, self.records.now_ms, self.chance, self.shortest_pause_ms)

    def continue_or_finish(self, job: Job, occurrence: Occurrence) -> None:
        """Start what may begin, wait for what runs, or end the occurrence, by the states of all its runs."""
        while True:
            runs = self._decided_runs(job, occurrence)
            ready = startable(job, runs)
            refused = [task for task in ready if not self._begin(job, occurrence, task, runs[task.name])]
            if not refused:  # one that was is over, and others may have waited for its end
                break
        if ready or any(run.state in UNDER_WAY for run in runs.values()):
            return
        for run in runs.values():  # of a version that is lost, and that needed what the present one does not have
            self._cancel_run(run, Reason(ReasonCode.TASK_REMOVED))
        ended = self._runs_by_task(job, occurrence).values()
        over_ms = _last_end(occurrence, ended, self.records.now_ms)
        self._finish(occurrence, *outcome_of(job, ended), finished_ms=over_ms)

    def _begin(self, job: Job, occurrence: Occurrence, task: Task, run: Run) -> bool:
        """Start it, or leave it to another node; False where it is over instead."""
        if occurrence.deadline_ms is not None and occurrence.deadline_ms <= self.records.now_ms:
            self._cancel_run(run, Reason(ReasonCode.EXECUTION_TIMEOUT))
            return False
        if not self.may_start or not self.can_run(job):
            self._leave_to_successor(run)
            return True
        return self._start_run(job, occurrence, task)

    def _decided_runs(self, job: Job, occurrence: Occurrence) -> dict[str, Run]:
        """The runs, after those are ended that will never begin or that a failure stops."""
        runs = self._runs_by_task(job, occurrence)
        while hopeless := left_out(job, runs):
            for run, reason in hopeless:
                runs[run.task] = self._leave_out(occurrence, run, reason)
        stopper = stopping_run(job, runs)
        if stopper is None:
            return runs
        self._stop_peers(job, occurrence, runs, stopper)
        return self._decided_runs(job, occurrence) if self._has_changed(job, occurrence, runs) else runs

    def _has_changed(self, job: Job, occurrence: Occurrence, runs: dict[str, Run]) -> bool:
        return self._runs_by_task(job, occurrence) != runs

    def _leave_out(self, occurrence: Occurrence, run: Run, reason: Reason) -> Run:
        skipped = self.records.advance(run, RunState.SKIPPED, reason=reason, finished_ms=self.records.now_ms)
        self.emit("TaskRunSkipped", occurrence, reason, task=run.task)
        return skipped

    def _runs_by_task(self, job: Job, occurrence: Occurrence) -> dict[str, Run]:
        """By name where the version says which there are; by a scan where that version is lost."""
        if job.version != occurrence.version:
            return {run.task: run for run in self.records.runs(job.id, occurrence.nominal_ms)}
        found = (self.records.run(job.id, occurrence.nominal_ms, task.name) for task in job.tasks)
        return {run.task: run for run in found if run is not None}

    def _leave_to_successor(self, run: Run) -> None:
        """Make the run due at once, so that the first tick of the next node starts it."""
        self.records.put(replace(run, next_attempt_ms=self.records.now_ms))

    def _stop_peers(self, job: Job, occurrence: Occurrence, runs: dict[str, Run], failed: Run) -> None:
        """Fail fast: peers are canceled, except those that are set to `continue` or are there for a failure.

        Where a run was canceled, by a person, a timeout or a stop, what has not begun begins only if it always does.
        """
        is_canceled = failed.state is RunState.CANCELED
        reason = failed.reason if is_canceled else Reason(ReasonCode.PEER_FAILED, failed.task)
        for run in runs.values():
            begins = outlives_cancel(job, run) if is_canceled else outlives_failure(job, run)
            continues = begins or goes_on(job, run)
            if run.state is RunState.RUNNING and not continues:
                attempt = self.records.attempt(run.job, run.nominal_ms, run.task, run.attempts)
                if attempt is not None and Cancel(attempt, reason) not in self.orders:
                    self.orders.append(Cancel(attempt, reason))
            elif run.state is RunState.RETRY:
                if not continues:
                    self._cancel_run(run, reason)
            elif run.state is RunState.SCHEDULED and not begins:
                self._cancel_run(run, reason)

    def _call_hook(self, job: Job, occurrence: Occurrence, hook: str) -> None:
        work = job.on_start if hook == "on_start" else job.on_complete
        if work is not None:
            self.orders.append(order_hook(self.records, job, occurrence, work, hook, self.node))

    # -- bookkeeping -------------------------------------------------------------------------------------

    def version_of(self, occurrence: Occurrence) -> Job | None:
        return self.records.version_run(occurrence)

    def _count(self, job_id: str, *, last_run_ms: int | None = None, **more: int) -> None:
        job = self.records.job(job_id)
        if job is None:
            return
        now_ms = self.records.now_ms
        progress = job.counted(now_ms, last_run_ms, more)
        self.records.put(progress)
        if progress.paused and not job.progress.is_paused_at(now_ms) and progress.paused_from_ms == now_ms:
            data = {"failures": progress.counters.failures_in_a_row}
            self.events.append(Event(name="JobPaused", at_ms=now_ms, job=job.id, actor=progress.paused_by, data=data))

    def emit(
        self, name: str, occurrence: Occurrence, reason: Reason = NO_REASON, *, task: str = "",
        attempt: int | None = None, data: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.events.append(
            Event(
                name=name,
                at_ms=self.records.now_ms,
                job=occurrence.job,
                nominal_ms=occurrence.nominal_ms,
                task=task,
                attempt=attempt,
                reason=reason,
                data={**(data or {}), "node": self.node} if self.names_node else data or {},
            )
        )


def _parameters(job: Job, occurrence: Occurrence) -> dict[str, str]:
    return {**defaults_of(job.parameters), **occurrence.parameters} if job.parameters else occurrence.parameters


def _names_given(task: Task | None, occurrence: Occurrence) -> tuple[str, ...]:
    """The names of the variables that the task was given, for readers of a dead letter; values may be secrets."""
    own = (*task.env, *task.secrets) if task is not None else ()
    return tuple(sorted({*own, *(f"CHRONEX_PARAM_{name.upper()}" for name in occurrence.parameters)}))


def _start_data(job: Job, occurrence: Occurrence, now_ms: int) -> dict[str, Any]:
    """What verifying a start from the journal takes; ordinary values are left out."""
    data: dict[str, Any] = {"due_ms": occurrence.due_ms, "lag_ms": now_ms - occurrence.due_ms}
    if job.overlap is OverlapPolicy.ALLOW:
        data["overlap"] = job.overlap.value
    if occurrence.state is OccurrenceState.QUEUED and now_ms < occurrence.due_ms:
        data["queued"] = True  # it was due when it was queued; since then the clock was set back
    if occurrence.recovery:
        data["recovery"] = True
    if occurrence.manual or occurrence.replay_of:
        data["manual"] = True
    if occurrence.behind:
        data["behind"] = True
    if occurrence.parents:
        data["parents"] = occurrence.parents
    return data


def _event_word(state: OccurrenceState) -> str:
    return "".join(word.capitalize() for word in state.value.split("_"))


def _last_end(occurrence: Occurrence, runs: Iterable[Run], now_ms: int) -> int | None:
    """When the last of those that had begun was over; None where none had, or the clock was set back since."""
    ends = [run.finished_ms for run in runs if run.started_ms is not None and run.finished_ms is not None]
    last_ms = max(ends, default=None)
    return last_ms if last_ms is not None and (occurrence.started_ms or 0) <= last_ms <= now_ms else None


def _end_of(attempt: Attempt, finished_ms: int | None, now_ms: int) -> int:
    """Its keeper may have seen the end long before a scheduler could record it; a clock may have been set since."""
    began_ms = attempt.created_ms if attempt.started_ms is None else attempt.started_ms
    return now_ms if finished_ms is None or not began_ms <= finished_ms <= now_ms else finished_ms
