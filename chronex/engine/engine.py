"""One tick: what is due is decided and recorded in one transaction; only then is anything started."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED, Verdict, admit, is_held
from chronex.engine.lifecycle import Progress
from chronex.engine.orders import AttemptEnd, Order
from chronex.engine.place import Chance
from chronex.engine.plan import (
    CATCHING_UP,
    FEW_LISTED,
    MANY_DUE,
    MOST_LISTED,
    MOST_OWED,
    Limits,
    is_behind,
    plan_job,
    told_of,
)
from chronex.engine.takeover import IsAlive, take_over
from chronex.errors import CustomScheduleError, StaleClaimError
from chronex.model.attempt import Attempt, ProcessIdentity
from chronex.model.definition import Job
from chronex.model.event import Event
from chronex.model.occurrence import Occurrence, Run
from chronex.model.policies import OverlapPolicy
from chronex.model.progress import JobProgress
from chronex.model.reasons import NO_REASON, Reason, ReasonCode, free_text
from chronex.model.states import OccurrenceState
from chronex.storage.journal import append
from chronex.storage.keys import index_keys, key_of
from chronex.storage.ports import ReadTransaction, Store, Transaction, UpdateFn
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import FAULTY_SCHEDULE_PAUSE_MS, is_known, options_of, schedule_of

BATCH = 500
# Where much is due on one instant, its first commands start while the rest is decided.
FIRST_BATCH = 100
# A job that slept brings up to a thousand records of its own: after so many the other jobs wait for the next tick.
MOST_PLANNED = 2_500


class Tick(NamedTuple):
    """Orders to carry out, when to look again, and whether more was due than one transaction took."""

    orders: tuple[Order, ...]
    next_ms: int | None
    has_more: bool


class AttemptStart(NamedTuple):
    """An attempt has begun: who runs it (nobody, for a function of ours), and where its output goes."""

    attempt: Attempt
    process: ProcessIdentity | None
    log_path: str
    at_ms: int
    log_limit: int = 0


class Engine:
    """Decides for one node. Time is an argument; nothing here starts a process or sleeps."""

    def __init__(self, store: Store, node: str, places: int, chance: Chance | None = None) -> None:
        self.store, self.node, self.places = store, node, places
        self.stopping = False  # set once: from then on ends are recorded and nothing is started
        self.served_last = ""  # whose queue was served last: a matter of fairness, not of truth
        self.chance: Chance = chance or Random()  # noqa: S311  jitter spreads load, it guards nothing

    def tick(self, now_ms: int, awake_since_ms: int) -> Tick:
        """Plan jobs that are due, admit occurrences that are due, and retry runs whose pause is over."""
        return self.store.update(self.tick_update(now_ms, awake_since_ms))

    def resting(self, now_ms: int) -> Tick | None:
        """The tick of a store in which nothing is due and nothing can leave its queue, told by a look alone.

        Every start and every end is a change of the store, and wakes whoever waits for changes; a thousand of them
        must not cost a thousand write transactions that write nothing.
        """

        def look(tx: ReadTransaction) -> Tick | None:
            reading = Reading(tx)
            first_ms = reading.next_due_ms()
            if first_ms is not None and first_ms <= now_ms:
                return None
            if next(reading.queued_jobs(), None) is not None and reading.count_active(self.places) < self.places:
                return None
            return Tick((), first_ms, has_more=False)

        return self.store.view(look)

    def tick_update(self, now_ms: int, awake_since_ms: int, most: int = BATCH) -> UpdateFn[Tick]:
        """One tick as an update of the store: the daemon awaits it, `tick` waits for it."""

        def decide(tx: Transaction) -> Tick:
            records = Records.cached(tx, now_ms)
            step = _Step(records, self, awake_since_ms)
            has_more = step.take_due(most)
            step.start_queued()
            step.write()
            return Tick(tuple(step.orders), records.next_due_after(now_ms), has_more)

        return decide

    def started(
        self, attempt: Attempt, process: ProcessIdentity | None, log_path: str, now_ms: int, log_limit: int = 0
    ) -> UpdateFn[None]:
        """An update that records who runs the attempt, so that a successor can find it, or see that it is gone."""
        return self.all_started([AttemptStart(attempt, process, log_path, now_ms, log_limit)])

    def all_started(self, starts: Sequence[AttemptStart]) -> UpdateFn[None]:
        """The same for some that began together."""

        def record(tx: Transaction) -> None:
            for start in starts:
                records, claimed = Records(tx, start.at_ms), start.attempt
                found = records.attempt(claimed.job, claimed.nominal_ms, claimed.task, claimed.number)
                if found is not None and found.epoch == claimed.epoch:
                    kept = {"log_path": start.log_path, "log_limit": start.log_limit}
                    records.put(replace(found, process=start.process, started_ms=start.at_ms, **kept))

        return record

    def ended(self, attempt: Attempt, end: AttemptEnd, now_ms: int) -> UpdateFn[tuple[Order, ...]]:
        """An update that records an attempt's end; it gives the orders that follow, none where it came too late."""

        def record(tx: Transaction) -> tuple[Order, ...]:
            records = Records.cached(tx, now_ms)
            step = _Step(records, self, now_ms)
            try:
                step.progress.attempt_ended(attempt, end)
            except StaleClaimError:
                if not records.is_written:
                    raise  # half of a decision must not be kept
                return ()
            step.start_queued()
            step.write()
            return tuple(step.orders)

        return record

    def take_over(self, is_alive: IsAlive, now_ms: int) -> tuple[tuple[Order, ...], list[Attempt]]:
        """Take up what dead nodes left behind and reap what outlived its deadline: orders, and living orphans."""

        def record(tx: Transaction) -> tuple[tuple[Order, ...], list[Attempt]]:
            records = Records.cached(tx, now_ms)
            step = _Step(records, self, now_ms)
            adopted = take_over(records, step.progress, self.node, is_alive)
            step.start_queued()
            step.write()
            return tuple(step.orders), adopted

        return self.store.update(record, use_reserve=True)


class _Step:
    """The decisions of one transaction, in order, sharing what they know of the pool."""

    def __init__(self, records: Records, engine: Engine, awake_since_ms: int) -> None:
        self.records, self.engine, self.awake_since_ms = records, engine, awake_since_ms
        self.orders: list[Order] = []
        self.events: list[Event] = []
        self.progress = Progress(records, engine.node, engine.chance, self.orders, self.events)
        self.progress.may_start = not engine.stopping
        self._free: int | None = None
        self.left_alone = 0
        self.planned = 0
        self.listed = MOST_LISTED

    @property
    def free_places(self) -> int:
        if self._free is None:
            # One pool for the store: the child of a dead scheduler takes a place until it is gone.
            self._free = self.engine.places - self.records.count_active(self.engine.places)
        return self._free

    def take_due(self, most: int) -> bool:
        """Everything that is due, the earliest first, but at most `most` records; True when some may be left."""
        due = self.records.due(self.records.now_ms, most)
        self.listed = FEW_LISTED if len(due) >= MANY_DUE else MOST_LISTED
        for record in due:
            if self.planned >= MOST_PLANNED:
                return True
            if (current := self._still_due(record)) is not None:
                self.take(current)
        return len(due) == most and self.left_alone < most

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
                self.progress.retry_now(record)

    def _stop(self, occurrence: Occurrence) -> None:
        """Somebody asked to cancel it: what runs here is ordered to stop; another node's is left to that node."""
        if occurrence.owner != self.engine.node:
            return
        self.records.put(replace(occurrence, cancel_ms=None))
        self.progress.order_stop(occurrence, occurrence.cancel_reason)

    def _plan(self, progress: JobProgress) -> None:
        job = self.records.job(progress.job)
        if job is None:  # its definition is damaged, and was quarantined just now: nothing is due any more
            self.records.put(replace(progress, next_ms=None))
            return
        if not is_known(job.dialect, job.schedule):
            self.left_alone += 1  # its program will plan it: only that has the schedule
            return
        if job.progress.paused and not job.progress.is_paused_at(self.records.now_ms):
            job = job.progressed(paused=False)
            self._tell("JobResumed", job.id, None, Reason(ReasonCode.PAUSE_OVER))
        try:
            now, awake_since, chance = self.records.now_ms, self.awake_since_ms, self.engine.chance
            plan = plan_job(job, schedule_of(job), now, awake_since, chance, Limits(self._room(job), self.listed))
        except CustomScheduleError as error:
            # The cursor stays: once the schedule answers again, every instant is found.
            self.records.put(replace(job.progress, next_ms=self.records.now_ms + FAULTY_SCHEDULE_PAUSE_MS))
            self._tell("ScheduleFailed", job.id, None, free_text(str(error)))
            return
        self.records.put(replace(job.progress, cursor_ms=plan.cursor_ms, next_ms=plan.next_ms))
        if plan.older is not None:
            self._tell("OccurrencesMissed", job.id, None, plan.older.reason, told_of(plan.older))
        self.planned += len(plan.planned)
        for occurrence, fate in plan.planned:
            if not self.records.create(occurrence):
                self._tell("OccurrenceAlreadyClaimed", job.id, occurrence.nominal_ms)
            elif not fate.runs:
                is_skipped = fate.reason.code is ReasonCode.UNSCHEDULABLE
                state = OccurrenceState.SKIPPED if is_skipped else OccurrenceState.MISSED
                self.progress.end_unstarted(occurrence, state, fate.reason)
            elif occurrence.due_ms <= self.records.now_ms:
                self._admit(occurrence)

    def _room(self, job: Job) -> int:
        """How many more missed runs the job may owe."""
        if job.recovery.strategy not in CATCHING_UP or not is_behind(job, self.awake_since_ms):
            return MOST_OWED
        return MOST_OWED - self.records.count_queued(job.id, MOST_OWED)

    def _admit(self, occurrence: Occurrence) -> None:
        job = self.records.job(occurrence.job)
        if job is None:
            self.progress.end_unstarted(occurrence, OccurrenceState.CANCELED, Reason(ReasonCode.JOB_REMOVED))
            return
        if is_held(job, occurrence, self.records.now_ms):
            paused = Reason(ReasonCode.PAUSED, by=job.progress.paused_by)
            self.progress.end_unstarted(occurrence, OccurrenceState.SKIPPED, paused)
            return
        running = [other for other in self.records.active(job.id) if other.nominal_ms != occurrence.nominal_ms]
        running = [other for other in running if not self.progress.preempt_retry(other, occurrence)]
        waiting = self.records.queued_before(occurrence, MOST_QUEUED + 1)
        now, window = self.records.now_ms, options_of(job).window
        answer = admit(job, occurrence, running, waiting, self.free_places, now, window)
        match answer.verdict:
            case Verdict.START:
                self._start(job, occurrence)
            case Verdict.SKIP:
                self.progress.end_unstarted(occurrence, OccurrenceState.SKIPPED, answer.reason)
            case Verdict.QUEUE:
                self._queue(occurrence, answer.reason)
            case Verdict.CANCEL_OTHERS:
                self._queue(occurrence, answer.reason)
                for other in running:
                    self._cancel(other)

    def _start(self, job: Job, occurrence: Occurrence) -> None:
        self.progress.start(job, occurrence)
        self._free = self.free_places - 1

    def _queue(self, occurrence: Occurrence, reason: Reason) -> None:
        if occurrence.state is OccurrenceState.QUEUED:
            return
        self.records.advance(occurrence, OccurrenceState.QUEUED, reason=reason)
        self._tell("OccurrenceQueued", occurrence.job, occurrence.nominal_ms, reason)

    def _cancel(self, occurrence: Occurrence) -> None:
        """Kept as a wish, like a person's: the order may be another node's to give, or be lost with this one."""
        if not self.progress.cancel(occurrence, Reason(ReasonCode.CANCELED_FOR_NEXT)):
            wished = self.records.occurrence(occurrence.job, occurrence.nominal_ms)
            assert wished is not None, "it runs"
            self._stop(wished)

    def start_queued(self) -> None:
        """The oldest of each queue may start, job after job in turn, so that no name comes first for ever."""
        engine = self.engine
        if engine.stopping:
            return
        for name in self.records.queued_jobs(after=engine.served_last):
            if self.free_places <= 0:
                return
            job = self.records.job(name)
            if job is None or job.overlap is OverlapPolicy.ALLOW or not self.records.is_active(name):
                self._admit(self.records.queued(name, limit=1)[0])
                engine.served_last = name

    def _tell(
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
                data=dict(data or {}),
            )
        )

    def write(self) -> None:
        """Each record once, with its last value; then all that there is to tell, in the order it happened."""
        self.records.write()
        append(self.records.tx, *self.events)
