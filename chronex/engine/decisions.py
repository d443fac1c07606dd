"""The decisions of one transaction: plan what is due, admit it, retry, serve those who wait; then write all of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED, Verdict, barred_now, comes_now, gives_way, is_held, window_over_ms
from chronex.engine.group_limits import CONDITIONS
from chronex.engine.lifecycle import Lifecycle
from chronex.engine.lines import Lines, TurnAnswer, Turns, due_by_priority, line_key, places_of
from chronex.engine.notices import MISSED, add_notices, note_missed
from chronex.engine.orders import Order
from chronex.engine.plan import (
    CATCHING_UP,
    FEW_LISTED,
    MANY_DUE,
    MOST_CATCH_UP,
    MOST_LISTED,
    Chance,
    Limits,
    Planned,
    is_behind,
    is_missed,
    next_of_targets,
    plan_job,
    span_data,
    spans_with_latest,
    waits_until,
    was_missed,
)
from chronex.engine.retries import waiting_first
from chronex.engine.update.targets import living, make_targets
from chronex.errors import CustomScheduleError
from chronex.model.event import Event
from chronex.model.groups import CatchUpPace
from chronex.model.job import Job, JobProgress
from chronex.model.occurrence import Occurrence, Run
from chronex.model.placement import lacking_everywhere
from chronex.model.policies import Found, OverlapPolicy, RecoveryStrategy, RunOn
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, free_text
from chronex.model.records import Node
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.journal import append
from chronex.storage.keys import index_keys, key_of
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import FAULTY_SCHEDULE_PAUSE_MS, is_known, options_of, schedule_of

# A job with missed instants brings up to a thousand records; after so many the other jobs wait for the next tick.
MOST_PLANNED = 2_500
# Of the jobs with a queue that does not stand in line a tick looks at so many, and the next ticks at the others.
MOST_POLLED = 100
POLL_AGAIN_MS = 1_000
# The same for those that wait for conditions.
MOST_ASKED = 200
# What one that waits is waiting for, where only its record can tell that.
_CHANGES_WHILE_WAITING = (ReasonCode.NO_NODE, ReasonCode.CONDITION)
_OVER = (OccurrenceState.MISSED, OccurrenceState.SKIPPED)


class DecidingEngine(Protocol):
    """What decisions ask of the engine that makes them, and what they leave there for its next tick."""

    node: str
    slots: int
    chance: Chance
    shortest_pause_ms: int
    epoch: int | None
    stopping: bool
    due_until_ms: int | None
    read_clock: Callable[[], int] | None
    pace: CatchUpPace
    found: dict[str, Found]
    has_news: bool
    awaits_conditions: bool
    asked_last: bytes | None
    left_alone: int
    was_draining: bool
    served_last: str

    @property
    def pool_owner(self) -> str | None: ...

    def can_run(self, job: Job) -> bool: ...

    def free_slots(self, reading: Reading) -> int: ...


def earliest(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)


def _is_cancel(record: JobProgress | Occurrence | Run) -> bool:
    return isinstance(record, Occurrence) and record.state is OccurrenceState.RUNNING


class Decisions:
    """The decisions of one transaction, in order, sharing what they know of the pool."""

    def __init__(self, records: Records, engine: DecidingEngine, awake_since_ms: int) -> None:
        self.records, self.engine, self.awake_since_ms = records, engine, awake_since_ms
        self.own_awake_since_ms = awake_since_ms  # what is for this node alone was missed while it was not awake
        self.orders: list[Order] = []
        self.events: list[Event] = []
        self.lifecycle = Lifecycle(records, engine.node, engine.chance, self.orders, self.events)
        self.lifecycle.shortest_pause_ms = engine.shortest_pause_ms
        self.lifecycle.may_start = not engine.stopping
        self.lifecycle.can_run = engine.can_run
        self.lifecycle.names_node = engine.epoch is not None
        own = records.node(engine.node) if engine.epoch is not None else None
        self.is_draining = own is not None and own.draining
        if self.is_draining:
            self.lifecycle.may_start = False
        self._free: int | None = None
        self.lines = Lines(records, engine.pace, engine.slots, engine.pool_owner, self._can_run)
        self.turns = Turns(records, self.lines, engine.found, lambda: self.free_slots)
        self.is_poll_cut = False
        self._nodes: list[Node] | None = None
        self.unchanged = 0
        self.planned = 0
        self.listed = MOST_LISTED

    @property
    def free_slots(self) -> int:
        if self._free is None:
            self._free = self.engine.free_slots(self.records)
        return self._free

    def _can_run(self, occurrence: Occurrence) -> bool:
        version = self.lifecycle.version_of(occurrence)
        return version is None or self.engine.can_run(version)

    def next_turn_ms(self) -> int | None:
        """When somebody who waits may have a turn, though nothing changes in the store until then."""
        now_ms = self.records.now_ms
        return earliest(self.lines.next_ms(now_ms), now_ms + POLL_AGAIN_MS if self.is_poll_cut else None)

    def take_due(self, most: int) -> bool:
        """Decide what is due, the earliest first, at most `most` records; True when more may be due.

        What the last tick left to others is read once more beside them, so that it is in the way of nothing.
        """
        left_before = self.engine.left_alone
        most += left_before
        due = self.records.due(self.records.now_ms, most)
        self.listed = FEW_LISTED if len(due) >= MANY_DUE else MOST_LISTED
        for record in due_by_priority(self.records, due) if self._may_wait(len(due)) else due:
            if self.planned >= MOST_PLANNED:
                return True
            if (current := self._still_due(record)) is None:
                continue
            if (self.is_draining and not _is_cancel(current)) or self._comes_later(current):
                self.unchanged += 1  # other nodes begin it
            else:
                self.take(current)
        self.engine.left_alone = self.unchanged
        self.engine.was_draining = self.is_draining
        is_cut = len(due) == most or self.records.has_claimed_most()
        return is_cut and (self.unchanged < len(due) or self.unchanged > left_before)

    def _may_wait(self, due: int) -> bool:
        """Whether some of so many may find no place, so that their order matters: most ticks need not ask for it."""
        return due > 1 and (self.engine.epoch is not None or self.records.has_groups() or due > self.free_slots)

    def _still_due(self, found: JobProgress | Occurrence | Run) -> JobProgress | Occurrence | Run | None:
        """The record as it is when its turn comes: what was taken before it may have counted, ended or moved it."""
        key = key_of(found)
        current = self.records.get(key, type(found))
        if current is found:
            return found
        is_due = current is not None and index_keys(key, current) == index_keys(key, found)
        return current if is_due else None

    def _comes_later(self, record: JobProgress | Occurrence | Run) -> bool:
        """Whether it came due only while what is decided here was under way, and follows from nothing of that."""
        until_ms = self.engine.due_until_ms
        if until_ms is None:
            return False
        match record:
            case JobProgress():
                return record.next_ms is not None and record.next_ms > until_ms
            case Run():
                return record.next_attempt_ms is not None and record.next_attempt_ms > until_ms
            case Occurrence(state=OccurrenceState.PENDING):
                return record.due_ms > until_ms and not record.parents and not record.manual
        return False

    def take(self, record: JobProgress | Occurrence | Run) -> None:
        match record:
            case JobProgress():
                self._plan(record)
            case Occurrence(state=OccurrenceState.RUNNING):
                self._stop(record)
            case Occurrence(state=OccurrenceState.PENDING):
                self._come(record)
            case Occurrence():
                self._admit(record)
            case Run():
                self._retry(record)

    def _come(self, occurrence: Occurrence) -> None:
        """The time of one that was planned before has come. Where it came while nobody watched the clock, it was
        missed like the instants of that span, and is made up for at their pace, or not."""
        job = self.records.job(occurrence.job)
        if job is None or not was_missed(occurrence, self._awake_since(job)):
            self._admit(occurrence)
        elif job.recovery.strategy is RecoveryStrategy.MARK_MISSED:
            add_notices(self.records, job, MISSED, occurrence.nominal_ms, Reason(ReasonCode.DOWN), 1)
            self.lifecycle.end_unstarted(occurrence, OccurrenceState.MISSED, Reason(ReasonCode.DOWN), recovery=True)
        else:
            is_compressed = job.recovery.strategy is RecoveryStrategy.COMPRESSED
            span = dict.fromkeys(("span_start_ms", "span_end_ms"), occurrence.nominal_ms) if is_compressed else {}
            missed = replace(occurrence, recovery=True, **span)
            self.records.put(missed)
            self._admit(missed)

    def _retry(self, run: Run) -> None:
        occurrence = self.records.occurrence(run.job, run.nominal_ms)
        version = None if occurrence is None else self.lifecycle.version_of(occurrence)
        if version is not None and not self.engine.can_run(version):
            self.unchanged += 1
            return
        self.lifecycle.retry_now(run)

    def _stop(self, occurrence: Occurrence) -> None:
        """A cancel was requested: order the stop of what runs here; what another node runs, that node stops."""
        if occurrence.owner != self.engine.node:
            return
        self.records.put(replace(occurrence, cancel_ms=None))
        self.lifecycle.order_stop(occurrence, occurrence.cancel_reason)

    def _plan(self, progress: JobProgress) -> None:
        job = self.records.job(progress.job)
        if job is None:  # its definition is damaged and was quarantined just now, so nothing of it is due
            self.records.put(replace(progress, next_ms=None))
            return
        if not is_known(job.dialect, job.schedule):
            self.unchanged += 1  # the program that registered the schedule will plan it
            return
        if self.engine.epoch is not None and job.run_on is RunOn.EACH and not job.target:
            self._plan_targets(job)
            return
        if not self.engine.can_run(job) and not self.nobody_can_run(job):
            self.unchanged += 1  # a node that can run it will plan it
            return
        if job.progress.paused and not job.progress.is_paused_at(self.records.now_ms):
            job = job.progressed(paused=False)
            self._emit("JobResumed", job.id, None, Reason(ReasonCode.PAUSE_OVER))
        try:
            limits = Limits(self._catch_up_limit(job), self.listed)
            awake_since_ms, chance = self._awake_since(job), self.engine.chance
            plan = plan_job(job, schedule_of(job), self.records.now_ms, awake_since_ms, chance, limits)
        except CustomScheduleError as error:
            # The cursor stays: once the schedule answers again, every instant is found.
            self.records.put(replace(job.progress, next_ms=self.records.now_ms + FAULTY_SCHEDULE_PAUSE_MS))
            self._emit("ScheduleFailed", job.id, None, free_text(str(error)))
            return
        moved = {"cursor_ms": plan.cursor_ms, "next_ms": plan.next_ms, "decided_from_ms": plan.decided_from_ms}
        decided = spans_with_latest(job) if plan.is_passed else job.progress.decided
        self.records.put(replace(job.progress, **moved, decided=decided))
        for span in (plan.passed_over, plan.older):
            if span is not None:
                self._emit("OccurrencesMissed", job.id, None, span.reason, span_data(span))
        if job.notify is not None:
            note_missed(self.records, job, plan.planned)
        self._create(job, plan.planned)
        self.lifecycle.decide_waiting_for(job.id)

    def _create(self, job: Job, planned: Sequence[Planned]) -> None:
        """Whoever creates an occurrence owns it; what is due already is admitted, or ended with its reason."""
        self.planned += len(planned)
        for occurrence, outcome in planned:
            if job.progress.was_decided(occurrence.nominal_ms) or not self.records.create(occurrence):
                self._emit("OccurrenceAlreadyClaimed", job.id, occurrence.nominal_ms)
            elif not outcome.runs:
                state = OccurrenceState.MISSED if is_missed(outcome) else OccurrenceState.SKIPPED
                self.lifecycle.end_unstarted(occurrence, state, outcome.reason)
            elif occurrence.due_ms <= self.records.now_ms:
                self._admit(occurrence)

    def _plan_targets(self, job: Job) -> None:
        """A job that runs on each node: those that fit have jobs of their own, which are planned by them."""
        made = make_targets(self.records, job, self.nodes)
        plan = next_of_targets(job, self.records.now_ms)
        self.records.put(replace(job.progress, cursor_ms=plan.cursor_ms, next_ms=plan.next_ms))
        for one in made:
            if one.progress.next_ms is not None and one.progress.next_ms <= self.records.now_ms:
                self._plan(one.progress)

    @property
    def nodes(self) -> list[Node]:
        """All nodes of the store, read once for the transaction."""
        if self._nodes is None:
            self._nodes = self.records.nodes()
        return self._nodes

    def nobody_can_run(self, job: Job) -> str:
        """What no node that lives has, where machines share the store; empty where one can run the job, or may soon.

        The job of one node waits for that node, and its recovery decides when it is back.
        """
        if self.engine.epoch is None or job.target:
            return ""
        return lacking_everywhere(job, living(self.nodes, self.records.now_ms))

    def _awake_since(self, job: Job) -> int:
        """Since when somebody watches the clock for the job: for that of one node, since that node does."""
        return self.own_awake_since_ms if job.target else self.awake_since_ms

    def _catch_up_limit(self, job: Job) -> int:
        """How many more missed runs the job may catch up with."""
        if job.recovery.strategy not in CATCHING_UP or not is_behind(job, self._awake_since(job)):
            return MOST_CATCH_UP
        return MOST_CATCH_UP - self.records.count_queued(job.id, MOST_CATCH_UP)

    def _admit(self, occurrence: Occurrence) -> None:
        job = self.records.job(occurrence.job)
        if job is None:
            self.lifecycle.end_unstarted(occurrence, OccurrenceState.CANCELED, Reason(ReasonCode.JOB_REMOVED))
            return
        if (barred := self._barred(job, occurrence)) is not None:
            self.lifecycle.end_unstarted(occurrence, OccurrenceState.SKIPPED, barred)
            return
        version = self.lifecycle.version_of(occurrence) or job
        can_run = self.engine.can_run(version)
        lacking = "" if can_run else self.nobody_can_run(version)
        if not can_run and not lacking:
            self._leave_to_others(occurrence)
        elif not lacking or (occurrence := self._after_long_waits(job, occurrence)).state not in _OVER:
            self._admit_now(job, occurrence, lacking)

    def _admit_now(self, job: Job, occurrence: Occurrence, lacking: str) -> None:
        """By parents, overlap and what it waits for; where no node can run it (`lacking` says why), it waits."""
        if job.after and not self.lifecycle.followers.lets_start(job, occurrence):
            return
        running, retry_ms = self._in_the_way(job, occurrence)
        replaced = self._replaced_by(job, occurrence)
        waiting = self.records.queued_before(occurrence, MOST_QUEUED + len(replaced) + 1) - len(replaced)
        answer = self.turns.answer(job, occurrence, running, waiting, retry_ms, lacking)
        self._carry_out(job, occurrence, answer, running, replaced)

    def _carry_out(
        self,
        job: Job,
        occurrence: Occurrence,
        given: TurnAnswer,
        running: list[Occurrence],
        replaced: list[Occurrence],
    ) -> None:
        answer = given.admission
        if answer.verdict is not Verdict.SKIP:
            for other in replaced:
                self.lifecycle.end_unstarted(
                    other, OccurrenceState.SKIPPED, Reason(ReasonCode.GAVE_WAY, occurrence.id)
                )
        match answer.verdict:
            case Verdict.START:
                self._start(job, occurrence)
            case Verdict.SKIP:
                self.lifecycle.end_unstarted(occurrence, OccurrenceState.SKIPPED, answer.reason)
            case Verdict.QUEUE:
                self._queue(job, occurrence, answer.reason, given)
            case Verdict.CANCEL_OTHERS:
                self._queue(job, occurrence, answer.reason)
                for other in running:
                    self._cancel(other)

    def _barred(self, job: Job, occurrence: Occurrence) -> Reason | None:
        """A pause or a blackout because of which it is skipped."""
        if is_held(job, occurrence, self.records.now_ms):
            return Reason(ReasonCode.PAUSED, by=job.progress.paused_by)
        return barred_now(job, occurrence, self.records.now_ms)

    def _leave_to_others(self, occurrence: Occurrence) -> None:
        """A node that can run it will start it; where it waited for such a node, it waits for a place there now."""
        self.unchanged += 1
        if occurrence.state is OccurrenceState.QUEUED and occurrence.reason.code is ReasonCode.NO_NODE:
            self.records.put(replace(occurrence, reason=Reason(ReasonCode.POOL_FULL)))

    def _after_long_waits(self, job: Job, occurrence: Occurrence) -> Occurrence:
        """Those that no node could run for as long as the job lets them wait are missed; this one may be of them."""
        for waiting in self.records.queued(job.id):
            until_ms = waits_until(job, waiting)
            if waiting.reason.code is ReasonCode.NO_NODE and until_ms is not None and until_ms <= self.records.now_ms:
                self.lifecycle.end_unstarted(waiting, OccurrenceState.MISSED, waiting.reason)
        return self.records.occurrence(occurrence.job, occurrence.nominal_ms) or occurrence

    def _replaced_by(self, job: Job, newcomer: Occurrence) -> list[Occurrence]:
        """Those in the queue of the job that give way to this one."""
        if job.overlap is not OverlapPolicy.CANCEL_RUNNING or not comes_now(newcomer):
            return []
        return [other for other in self.records.queued(job.id) if gives_way(job, other, newcomer)]

    def _in_the_way(self, job: Job, occurrence: Occurrence) -> tuple[list[Occurrence], int | None]:
        """The other occurrences that run, and when the first of them is tried again where it only waits for that."""
        others = [other for other in self.records.active(job.id) if other.nominal_ms != occurrence.nominal_ms]
        running = [other for other in others if not self.lifecycle.preempt_retry(other, occurrence)]
        return waiting_first(self.records, running) if running else ([], None)

    def _start(self, job: Job, occurrence: Occurrence) -> None:
        places = places_of(job, occurrence)
        free = self.free_slots
        if self.lifecycle.start(job, occurrence, places):
            self.lines.take(occurrence, places)
            self._free = free - 1

    def _queue(self, job: Job, occurrence: Occurrence, reason: Reason, given: TurnAnswer | None = None) -> None:
        wait = None if given is None else given.wait
        until_ms = window_over_ms(occurrence, options_of(job).window)
        lines, order_ms = ((), occurrence.order_ms) if wait is None else (wait.lines, wait.order_ms)
        self.lines.joined(lines)
        if occurrence.state is not OccurrenceState.QUEUED:
            behind = given is not None and given.is_behind
            self.records.advance(
                occurrence,
                OccurrenceState.QUEUED,
                reason=reason,
                lines=lines,
                order_ms=order_ms,
                behind=behind,
                wait_until_ms=until_ms,
            )
            self._emit("OccurrenceQueued", occurrence.job, occurrence.nominal_ms, reason)
            return
        # Where it was released, its parents have completed and it waits its turn.
        is_moved = lines != occurrence.lines or occurrence.released_ms is not None
        kept_reason = reason if is_moved or reason.code in _CHANGES_WHILE_WAITING else occurrence.reason
        placed = {"lines": lines, "order_ms": order_ms, "released_ms": None, "wait_until_ms": until_ms}
        changed = replace(occurrence, reason=kept_reason, **placed)
        if changed != occurrence:
            self.records.put(changed)

    def _cancel(self, occurrence: Occurrence) -> None:
        """Kept as a request, like a person's cancel: another node may have to order it, or this one may die."""
        if not self.lifecycle.cancel(occurrence, Reason(ReasonCode.CANCELED_FOR_NEXT)):
            requested = self.records.occurrence(occurrence.job, occurrence.nominal_ms)
            assert requested is not None, "it runs"
            self._stop(requested)

    def start_queued(self, ended: str = "") -> None:
        """The first of each queue may start, or join a line; then those whose turn it is in their lines.

        The queue of the job that has just `ended` comes first, because there something has changed.
        """
        engine = self.engine
        if engine.stopping or self.is_draining:
            return
        if engine.read_clock is not None:
            self.records.now_ms = engine.read_clock()
        if ended:
            self._start_queue_of(ended)
        for polled, name in enumerate(self.records.queued_jobs(after=engine.served_last)):
            if polled >= MOST_POLLED:
                self.is_poll_cut = True
                break
            if self.free_slots <= 0:
                return
            self._start_queue_of(name)
            engine.served_last = name
        for occurrence in self.lines.heads():
            if self.free_slots <= 0:
                return
            self._admit(occurrence)
            if self._is_over(occurrence):
                self._start_queue_of(occurrence.job)  # who waited for it alone stands in no line yet
            if self.free_slots <= 0:
                return  # before the next is looked for: mostly an end frees one slot, and one start takes it

    def serve_conditions(self) -> None:
        """Those that wait for conditions, some of them at a time: they may go on, go on waiting, or have waited
        enough."""
        engine = self.engine
        engine.has_news = False
        engine.awaits_conditions = CONDITIONS in self.lines.lines()
        if not engine.awaits_conditions or engine.stopping or self.is_draining:
            return
        asked = self.records.in_line(CONDITIONS, MOST_ASKED, engine.asked_last)
        last = asked[-1] if len(asked) == MOST_ASKED else None
        engine.asked_last = None if last is None else line_key(last, CONDITIONS)
        for occurrence in asked:
            self._admit(occurrence)

    def _start_queue_of(self, name: str) -> None:
        """Its first one, unless that stands in line and has its turn there; behind one that is skipped, the next.

        How many a blackout or a window skips must not depend on how often somebody looks.
        """
        # First the queue, which mostly is empty: to count slots, a shared store must be asked.
        while (waiting := next(iter(self.records.queued(name, limit=1)), None)) is not None:
            if waiting.lines or self.free_slots <= 0:
                return
            job = self.records.job(name)
            if job is not None and job.overlap is not OverlapPolicy.ALLOW and self.records.is_active(name):
                return
            self._admit(waiting)
            if not self._is_over(waiting):
                return

    def _is_over(self, asked: Occurrence) -> bool:
        """Whether it had its turn and will not start."""
        left = self.records.occurrence(asked.job, asked.nominal_ms)
        return left is None or is_final(left.state)

    def _emit(
        self,
        name: str,
        job: str,
        nominal_ms: int | None,
        reason: Reason = NO_REASON,
        data: dict[str, int] | None = None,
    ) -> None:
        self.events.append(
            Event(
                name=name,
                at_ms=self.records.now_ms,
                job=job,
                nominal_ms=nominal_ms,
                reason=reason,
                data={**(data or {}), **({} if self.engine.epoch is None else {"node": self.engine.node})},
            )
        )

    def write(self) -> None:
        """Write each record once, with its last value; then the events, in the order they happened."""
        self.records.write()
        append(self.records.tx, *self.events)
