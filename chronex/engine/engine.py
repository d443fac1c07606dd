"""One tick: the engine decides and records what is due in one transaction; only then is anything started."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED, Verdict, admit, barred_now, gives_way, is_held
from chronex.engine.decided_spans import spans_with_latest
from chronex.engine.lifecycle import Lifecycle
from chronex.engine.membership import awake_since, refuse_lost
from chronex.engine.notices import hooks_left, hooks_waiting, note_missed
from chronex.engine.orders import AttemptEnd, Order
from chronex.engine.plan import (
    CATCHING_UP,
    FEW_LISTED,
    MANY_DUE,
    MOST_CATCH_UP,
    MOST_LISTED,
    Chance,
    Limits,
    is_behind,
    is_missed,
    next_of_targets,
    plan_job,
    span_data,
    waits_until,
)
from chronex.engine.retries import waiting_first
from chronex.engine.takeover import IsAlive, IsKept, take_over
from chronex.engine.update.targets import living, make_targets
from chronex.errors import CustomScheduleError, StaleClaimError
from chronex.model.event import Event
from chronex.model.job import Job, JobProgress
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity, Run
from chronex.model.placement import lacking_everywhere
from chronex.model.policies import SHORTEST_PAUSE_MS, OverlapPolicy, RunOn
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, free_text
from chronex.model.records import Node
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.journal import append
from chronex.storage.keys import index_keys, key_of
from chronex.storage.ports import ReadTransaction, Store, Transaction, UpdateFn, ViewFn
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import WHOLE, DueClaim, Scope
from chronex.timing.job_schedule import FAULTY_SCHEDULE_PAUSE_MS, is_known, options_of, schedule_of

BATCH = 500
# Where much is due on one instant, its first commands start while the rest is decided.
FIRST_BATCH = 100
# A job with missed instants brings up to a thousand records; after so many the other jobs wait for the next tick.
MOST_PLANNED = 2_500
# A claim is followed by its start within milliseconds, unless the disk is full or an `on_start` hook takes its time.
SLOW_START_MS = 1_000
_OVER = (OccurrenceState.MISSED, OccurrenceState.SKIPPED)


class Tick(NamedTuple):
    """Orders to carry out, when the next tick is due, and whether more was due than one transaction took."""

    orders: tuple[Order, ...]
    next_ms: int | None
    has_more: bool


class AttemptStart(NamedTuple):
    """An attempt has begun: the process that runs it (None for a Python function), and where its output goes."""

    attempt: Attempt
    process: ProcessIdentity | None
    log_path: str
    at_ms: int
    log_limit: int = 0


class Engine:
    """Decides for one node. Time is an argument; nothing here starts a process or sleeps."""

    def __init__(
        self, store: Store, node: str, slots: int, chance: Chance | None = None,
        *, shortest_pause_ms: int = SHORTEST_PAUSE_MS,
    ) -> None:  # fmt: skip
        self.store, self.node, self.slots = store, node, slots
        self.shortest_pause_ms = shortest_pause_ms  # before a next attempt; tests in real time give less
        # Where machines share the store: the epoch with which this node registered; None where only one uses it.
        self.epoch: int | None = None
        self.stopping = False  # set once: from then on ends are recorded and nothing is started
        # By what jobs choose where they run; None where nobody has said, and then any job may run here.
        self.placement: Callable[[Job], bool] | None = None
        self.has_function: Callable[[str], bool] = lambda target: True
        # Where machines share the store: whether this one has the secret of a source such as "env:PGPASSWORD".
        self.has_secret: Callable[[str], bool] = lambda source: True
        self.lacking_secrets: set[str] = set()  # sources that jobs named and this node has not
        # An update may wait for the store after its time was read. What leaves a queue then starts at the time of the
        # transaction: another update may have queued it meanwhile, and by the time that was read it was not due yet.
        self.read_clock: Callable[[], int] | None = None
        self.left_alone = 0  # how many due records the last tick left to nodes that have their function or schedule
        self.was_draining = False  # as the last tick found it
        self.served_last = ""  # the job whose queue was served last; only fairness depends on it
        self.chance: Chance = chance or Random()  # noqa: S311  jitter spreads load, it guards nothing

    def can_run(self, job: Job) -> bool:
        """Whether the job may run here, and this node has every function that it calls; else it is left to others."""
        if self.placement is not None and not self.placement(job):
            return False
        if not all(self.has_function(target) for target in job.functions):
            return False
        lacking = [] if self.epoch is None else [one for one in job.secret_sources if not self._finds(one)]
        return not lacking

    def _finds(self, source: str) -> bool:
        """Whether this node has the secret of that source; what it lacks is told to the others."""
        if self.has_secret(source):
            self.lacking_secrets.discard(source)
            return True
        self.lacking_secrets.add(source)
        return False

    def tick(self, now_ms: int, awake_since_ms: int) -> Tick:
        """Plan jobs that are due, admit occurrences that are due, and retry runs whose pause is over."""
        return self.store.update(self.tick_update(now_ms, awake_since_ms), scope=self.tick_scope(now_ms))

    def resting(self, now_ms: int) -> ViewFn[Tick | None]:
        """The tick of a store in which nothing is due and nothing can leave its queue, found by reading alone.

        Every start and every end changes the store and wakes the daemon that watches it; a thousand of them must not
        cost a thousand write transactions that write nothing.
        """

        def read(tx: ReadTransaction) -> Tick | None:
            reading = Reading(tx)
            first_ms = reading.next_due_ms()
            if first_ms is not None and first_ms <= now_ms:
                return None
            if next(reading.queued_jobs(), None) is not None and self.free_slots(reading) > 0:
                return None
            return Tick((), first_ms, has_more=False)

        return read

    def free_slots(self, reading: Reading) -> int:
        """One pool for a store of one machine: the child of a dead scheduler takes a slot until it is gone.

        Where machines share the store, each has a pool of its own.
        """
        owner = None if self.epoch is None else self.node
        return self.slots - reading.count_active(self.slots, owner)

    def records(self, tx: Transaction, now_ms: int) -> Records:
        """What a decision of this node reads and writes; FencedError where others have given the node up."""
        records = Records.cached(tx, now_ms)
        if self.epoch is not None:
            refuse_lost(records, self.node, self.epoch)
        return records

    def tick_scope(self, now_ms: int) -> Scope:
        """What a tick is about: of what is due at most what this node can run, so that the others have their share.

        One that counts the running work of all nodes must have the store to itself.
        """
        if self.epoch is None:
            return WHOLE
        begins = not self.was_draining
        due = DueClaim(
            now_ms, self.node, self.slots, beyond=self.left_alone, served_last=self.served_last, begins=begins
        )
        return Scope(due=due)

    def tick_update(self, now_ms: int, awake_since_ms: int, most: int = BATCH) -> UpdateFn[Tick]:
        """One tick as an update of the store: the daemon awaits it, `tick` waits for it."""

        def decide(tx: Transaction) -> Tick:
            records = self.records(tx, now_ms)
            awake_ms = awake_since_ms
            if self.epoch is not None:
                awake_ms = awake_since(records.nodes(), awake_since_ms, now_ms)
            decisions = _Decisions(records, self, awake_ms)
            decisions.own_awake_since_ms = awake_since_ms
            has_more = decisions.take_due(most)
            decisions.start_queued()
            decisions.write()
            return Tick(tuple(decisions.orders), records.next_due_after(now_ms), has_more)

        return decide

    def started(
        self, attempt: Attempt, process: ProcessIdentity | None, log_path: str, now_ms: int, log_limit: int = 0
    ) -> UpdateFn[frozenset[str]]:
        """An update that records who runs the attempt, so that a successor can find it, or see that it is gone."""
        return self.all_started([AttemptStart(attempt, process, log_path, now_ms, log_limit)])

    def all_started(self, starts: Sequence[AttemptStart]) -> UpdateFn[frozenset[str]]:
        """The same for some that began together; it gives the ids of those whose claim was taken away meanwhile.

        A node that stood still (SIGSTOP) between claim and start may have been declared dead, and its claim ended:
        what it holds at the start barrier must then never run.
        """

        def record(tx: Transaction) -> frozenset[str]:
            tx.expect({start.attempt.job for start in starts})
            if self.epoch is not None and starts:
                refuse_lost(Records(tx, starts[0].at_ms), self.node, self.epoch)
            return frozenset(
                start.attempt.id for start in starts if not _record_start(Records(tx, start.at_ms), start)
            )

        return record

    def ended(self, attempt: Attempt, end: AttemptEnd, now_ms: int) -> UpdateFn[tuple[Order, ...]]:
        """An update that records an attempt's end; it gives the orders that follow, none where it came too late."""

        def record(tx: Transaction) -> tuple[Order, ...]:
            tx.expect({attempt.job})
            records = self.records(tx, now_ms)
            decisions = _Decisions(records, self, now_ms)
            try:
                decisions.lifecycle.attempt_ended(attempt, end)
            except StaleClaimError:
                if not records.is_written:
                    raise  # half of a decision must not be kept
                return ()
            decisions.start_queued()
            decisions.write()
            return tuple(decisions.orders)

        return record

    def take_over(
        self, is_alive: IsAlive, now_ms: int, is_kept: IsKept = lambda _attempt: False
    ) -> tuple[tuple[Order, ...], list[Attempt]]:
        """`take_over_update`, waited for."""
        return self.store.update(self.take_over_update(is_alive, now_ms, is_kept), use_reserve=True)

    def take_over_update(
        self, is_alive: IsAlive, now_ms: int, is_kept: IsKept = lambda _attempt: False
    ) -> UpdateFn[tuple[tuple[Order, ...], list[Attempt]]]:
        """Take up what dead nodes left behind and reap what outlived its deadline: orders, and living orphans.

        `is_kept` says whether a keeper has the attempt of this id, or knows how it ended.
        """

        def record(tx: Transaction) -> tuple[tuple[Order, ...], list[Attempt]]:
            records = self.records(tx, now_ms)
            decisions = _Decisions(records, self, now_ms)
            adopted = take_over(records, decisions.lifecycle, self.node, is_alive, is_kept)
            decisions.orders[:0] = hooks_left(records, self.node, self.has_function)
            decisions.start_queued()
            decisions.write()
            return tuple(decisions.orders), adopted

        return record

    def hooks_waiting(self, now_ms: int) -> ViewFn[tuple[bool, bool]]:
        """Whether the next try of a hook is due, and whether any notice waits at all."""
        return lambda tx: hooks_waiting(Reading(tx), self.node, now_ms)

    def hooks_due(self, now_ms: int) -> UpdateFn[tuple[Order, ...]]:
        """An update that gives the orders for hooks whose next try is due."""
        return lambda tx: tuple(hooks_left(Records(tx, now_ms), self.node, self.has_function))


def _record_start(records: Records, start: AttemptStart) -> bool:
    """False where the attempt has ended, or is another node's by now."""
    claimed = start.attempt
    found = records.attempt(claimed.job, claimed.nominal_ms, claimed.task, claimed.number)
    if found is None or found.state is not AttemptState.RUNNING:
        return False
    if (found.owner, found.epoch) != (claimed.owner, claimed.epoch):
        return False
    if start.at_ms - found.created_ms > SLOW_START_MS:
        _count_from_start(records, found, start.at_ms)
    kept = {"log_path": start.log_path, "log_limit": start.log_limit}
    records.put(replace(found, process=start.process, started_ms=start.at_ms, **kept))
    return True


def _count_from_start(records: Records, attempt: Attempt, at_ms: int) -> None:
    """The first start of an occurrence came long after its claim, so its execution timeout counts from here."""
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if occurrence is None or occurrence.deadline_ms is None or occurrence.started_ms is None:
        return
    if all(one.started_ms is None for one in records.attempts(attempt.job, attempt.nominal_ms)):
        records.put(replace(occurrence, deadline_ms=occurrence.deadline_ms + at_ms - occurrence.started_ms))


def _is_cancel(record: JobProgress | Occurrence | Run) -> bool:
    return isinstance(record, Occurrence) and record.state is OccurrenceState.RUNNING


class _Decisions:
    """The decisions of one transaction, in order, sharing what they know of the pool."""

    def __init__(self, records: Records, engine: Engine, awake_since_ms: int) -> None:
        self.records, self.engine, self.awake_since_ms = records, engine, awake_since_ms
        self.own_awake_since_ms = awake_since_ms  # what is for this node alone was missed while it was not awake
        self.orders: list[Order] = []
        self.events: list[Event] = []
        self.lifecycle = Lifecycle(records, engine.node, engine.chance, self.orders, self.events)
        self.lifecycle.shortest_pause_ms = engine.shortest_pause_ms
        self.lifecycle.may_start = not engine.stopping
        self.lifecycle.can_run = engine.can_run
        self.lifecycle.tells_node = engine.epoch is not None
        own = records.node(engine.node) if engine.epoch is not None else None
        self.is_draining = own is not None and own.draining
        if self.is_draining:
            self.lifecycle.may_start = False
        self._free: int | None = None
        self._nodes: list[Node] | None = None
        self.unchanged = 0
        self.planned = 0
        self.listed = MOST_LISTED

    @property
    def free_slots(self) -> int:
        if self._free is None:
            self._free = self.engine.free_slots(self.records)
        return self._free

    def take_due(self, most: int) -> bool:
        """Decide what is due, the earliest first, at most `most` records; True when more may be due.

        What the last tick left to others is read once more beside them, so that it is in the way of nothing.
        """
        left_before = self.engine.left_alone
        most += left_before
        due = self.records.due(self.records.now_ms, most)
        self.listed = FEW_LISTED if len(due) >= MANY_DUE else MOST_LISTED
        for record in due:
            if self.planned >= MOST_PLANNED:
                return True
            if (current := self._still_due(record)) is None:
                continue
            if self.is_draining and not _is_cancel(current):
                self.unchanged += 1  # other nodes begin it
            else:
                self.take(current)
        self.engine.left_alone = self.unchanged
        self.engine.was_draining = self.is_draining
        is_cut = len(due) == most or self.records.has_claimed_most()
        return is_cut and (self.unchanged < len(due) or self.unchanged > left_before)

    def _still_due(self, found: JobProgress | Occurrence | Run) -> JobProgress | Occurrence | Run | None:
        """The record as it is when its turn comes: what was taken before it may have counted, ended or moved it."""
        key = key_of(found)
        current = self.records.get(key, type(found))
        if current is found:
            return found
        is_due = current is not None and index_keys(key, current) == index_keys(key, found)
        return current if is_due else None

    def take(self, record: JobProgress | Occurrence | Run) -> None:
        match record:
            case JobProgress():
                self._plan(record)
            case Occurrence(state=OccurrenceState.RUNNING):
                self._stop(record)
            case Occurrence():
                self._admit(record)
            case Run():
                self._retry(record)

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
        self.planned += len(plan.planned)
        note_missed(self.records, job, plan.planned)
        for occurrence, outcome in plan.planned:
            if job.progress.was_decided(occurrence.nominal_ms) or not self.records.create(occurrence):
                self._emit("OccurrenceAlreadyClaimed", job.id, occurrence.nominal_ms)
            elif not outcome.runs:
                state = OccurrenceState.MISSED if is_missed(outcome) else OccurrenceState.SKIPPED
                self.lifecycle.end_unstarted(occurrence, state, outcome.reason)
            elif occurrence.due_ms <= self.records.now_ms:
                self._admit(occurrence)
        self.lifecycle.decide_waiting_for(job.id)

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
        """By parents, the overlap policy and the pool; where no node can run it (`lacking` says why), it waits."""
        if job.after and not self.lifecycle.followers.lets_start(job, occurrence):
            return
        running, retry_ms = self._in_the_way(job, occurrence)
        replaced = self._replaced_by(job, occurrence)
        waiting = self.records.queued_before(occurrence, MOST_QUEUED + len(replaced) + 1) - len(replaced)
        now, window = self.records.now_ms, options_of(job).window
        free_slots = 0 if lacking else self.free_slots
        answer = admit(job, occurrence, running, waiting, free_slots, now, window, retry_ms)
        if lacking and answer.reason.code is ReasonCode.POOL_FULL:
            answer = answer._replace(reason=Reason(ReasonCode.NO_NODE, lacking))
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
                self._queue(occurrence, answer.reason)
            case Verdict.CANCEL_OTHERS:
                self._queue(occurrence, answer.reason)
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
        if job.overlap is not OverlapPolicy.CANCEL_RUNNING or newcomer.state is not OccurrenceState.PENDING:
            return []
        return [other for other in self.records.queued(job.id) if gives_way(job, other, newcomer)]

    def _in_the_way(self, job: Job, occurrence: Occurrence) -> tuple[list[Occurrence], int | None]:
        """The other occurrences that run, and when the first of them is tried again where it only waits for that."""
        others = [other for other in self.records.active(job.id) if other.nominal_ms != occurrence.nominal_ms]
        running = [other for other in others if not self.lifecycle.preempt_retry(other, occurrence)]
        return waiting_first(self.records, running) if running else ([], None)

    def _start(self, job: Job, occurrence: Occurrence) -> None:
        self.lifecycle.start(job, occurrence)
        self._free = self.free_slots - 1

    def _queue(self, occurrence: Occurrence, reason: Reason) -> None:
        if occurrence.state is OccurrenceState.QUEUED:
            is_released = occurrence.released_ms is not None  # its parents have completed: it waits its turn
            if is_released or (reason.code is ReasonCode.NO_NODE and occurrence.reason != reason):
                self.records.put(replace(occurrence, released_ms=None, reason=reason))
            return
        self.records.advance(occurrence, OccurrenceState.QUEUED, reason=reason)
        self._emit("OccurrenceQueued", occurrence.job, occurrence.nominal_ms, reason)

    def _cancel(self, occurrence: Occurrence) -> None:
        """Kept as a request, like a person's cancel: another node may have to order it, or this one may die."""
        if not self.lifecycle.cancel(occurrence, Reason(ReasonCode.CANCELED_FOR_NEXT)):
            requested = self.records.occurrence(occurrence.job, occurrence.nominal_ms)
            assert requested is not None, "it runs"
            self._stop(requested)

    def start_queued(self) -> None:
        """The oldest of each queue may start, job after job in turn, so that no name comes first for ever."""
        engine = self.engine
        if engine.stopping or self.is_draining:
            return
        if engine.read_clock is not None:
            self.records.now_ms = engine.read_clock()
        for name in self.records.queued_jobs(after=engine.served_last):
            if self.free_slots <= 0:
                return
            job = self.records.job(name)
            if job is None or job.overlap is OverlapPolicy.ALLOW or not self.records.is_active(name):
                self._admit(self.records.queued(name, limit=1)[0])
                engine.served_last = name

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
