"""What `list`, `show`, `status` and the dashboard show of jobs: one snapshot, read into plain values.

A row is light, because all jobs have one; a detail reads the history of a single job. Nothing here writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from chronex.engine.membership import seems_alive
from chronex.engine.retries import retry_wait
from chronex.engine.usual import RunUsage, Usual, usage_of, usual_of
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity, Run
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.records import Node
from chronex.model.states import OccurrenceState, RunState, is_final
from chronex.storage import keys
from chronex.storage.records import Reading, pages
from chronex.timing.calendar_schedule import MovedFrom
from chronex.timing.job_schedule import runs_at_start
from chronex.views.coming_runs import (
    ForecastRun,
    RunSearch,
    counts_from_ends,
    may_wait_for,
    runs_left,
)
from chronex.views.group_rows import waits_for
from chronex.views.known_runs import KnownRuns, beside_records, coming_runs, known_runs, left_by_max

# Behind so many occurrences that have not ended the last one that has is found mostly.
_OPEN_MOSTLY = 8
_ALL_JOBS = 1_000_000


class Situation(StrEnum):
    """The one word a job's row begins with; where several hold, the first of this list."""

    RUNNING = "running"
    RETRYING = "retrying"
    QUEUED = "queued"
    DISABLED = "disabled"
    PAUSED = "paused"
    FAILED = "failed"
    DONE = "done"
    OK = "ok"
    WAITING = "waiting"


MEANING = {
    Situation.RUNNING: "a task runs",
    Situation.RETRYING: "a task failed and waits for its next attempt",
    Situation.QUEUED: "due, and waits for its turn",
    Situation.DISABLED: "switched off in the job file",
    Situation.PAUSED: "its runs are skipped until it is resumed",
    Situation.FAILED: "its last run failed",
    Situation.DONE: "has no further run",
    Situation.OK: "its last run went well",
    Situation.WAITING: "has not run yet",
}
GLYPHS = {
    Situation.RUNNING: "▶",
    Situation.RETRYING: "↻",
    Situation.QUEUED: "◔",
    Situation.DISABLED: "◌",
    Situation.PAUSED: "‖",
    Situation.FAILED: "✖",
    Situation.DONE: "◼",
    Situation.OK: "●",
    Situation.WAITING: "○",
}


class NextRun(NamedTuple):
    """`is_drawn`: the occurrence is on record; else its jitter is not drawn yet and `due_ms` is the earliest."""

    nominal_ms: int
    due_ms: int
    is_drawn: bool = False
    moved: MovedFrom | None = None  # the time that it stands for, and the calendar that moved it


class Outcome(NamedTuple):
    """How one occurrence ended; the duration is None where it never started."""

    nominal_ms: int
    state: OccurrenceState
    reason: Reason
    started_ms: int | None
    finished_ms: int | None
    recovery: bool
    manual: bool
    errors: int = 0
    node: str = ""  # that ran it last

    @property
    def duration_ms(self) -> int | None:
        if self.started_ms is None or self.finished_ms is None:
            return None
        return self.finished_ms - self.started_ms

    @property
    def is_good(self) -> bool:
        return self.state is OccurrenceState.COMPLETED


class Retry(NamedTuple):
    """A task waits for attempt number `attempt` of at most `most` (None: no end)."""

    nominal_ms: int
    task: str
    attempt: int
    most: int | None
    at_ms: int
    reason: Reason


class Row(NamedTuple):
    """A job in one line."""

    job: Job
    situation: Situation
    is_paused: bool
    is_running: bool
    next: NextRun | None
    last: Outcome | None
    running_since_ms: int | None
    retry: Retry | None
    queued: int
    drawn: tuple[ForecastRun, ...] = ()  # on record, or missed: they will start when it is their time
    ahead: Job | None = None  # the job as it is once what it missed is decided, where it missed something
    not_before_ms: int | None = None  # where no next run was found up to here, and what comes then was not looked at

    @property
    def is_enabled(self) -> bool:
        return self.job.enabled

    @property
    def is_active(self) -> bool:
        """It is enabled, not paused, and has a run to come."""
        may_run = self.next is not None or self.not_before_ms is not None
        return self.job.enabled and not self.is_paused and may_run

    @property
    def without_last(self) -> str:
        """What to say where no run has ended: one that runs, or is to be tried again, has begun all the same."""
        return "none over yet" if self.is_running or self.retry is not None else "never ran"


class NodeStatus(NamedTuple):
    """A scheduler process, and whether it is alive."""

    node: Node
    is_alive: bool


class Summary(NamedTuple):
    """The store as a whole. `slots` is the size of the pool of the living nodes, 0 without one."""

    jobs: int
    counts: dict[Situation, int]
    running: int
    queued: int
    dead_letters: int
    slots: int
    nodes: tuple[NodeStatus, ...]

    @property
    def daemon(self) -> Node | None:
        """The living node that was started last."""
        living = [listed.node for listed in self.nodes if listed.is_alive]
        return max(living, key=lambda node: node.started_ms, default=None)


IsAlive = Callable[[ProcessIdentity], bool]


# Where the indexes have what is queued: for its own job, in lines, and for the jobs that it is after.
_WAITING = (keys.QUEUED + keys.OCCURRENCE, keys.IN_LINE + keys.OCCURRENCE, keys.PARKED + keys.OCCURRENCE)


class _Open:
    """What is not over, of all jobs, by the keys of the indexes: its cost grows with what is open only."""

    def __init__(self, reading: Reading, job: str | None = None) -> None:
        self.reading = reading
        self.running = self._firings(keys.ACTIVE + keys.OCCURRENCE, job)
        self.trying = self._firings(keys.ACTIVE + keys.ATTEMPT, job)
        self.queued = self._firings(keys.QUEUED + keys.OCCURRENCE, job)
        for name, instants in self._firings(keys.IN_LINE + keys.OCCURRENCE, job).items():
            self.queued[name] = sorted((*self.queued[name], *instants))
        for name, waiting in self._firings(keys.PARKED + keys.OCCURRENCE, job).items():
            self.queued[name] += waiting
        self.pending: dict[str, list[int]] = defaultdict(list)
        self.retrying: dict[str, list[bytes]] = defaultdict(list)
        for rows in pages(reading.tx, keys.DUE):
            for index, _ in rows:  # most of them are the plans of jobs: 10,000 jobs were a third of a snapshot
                if keys.kind_in(index) != keys.JOB_PROGRESS:
                    self._take_due(keys.record_of(index), job)

    def _firings(self, prefix: bytes, job: str | None) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        wanted = prefix if job is None else keys.within_job(prefix, job)
        for rows in pages(self.reading.tx, wanted):
            for index, _ in rows:
                name, nominal = keys.firing_of(keys.record_of(index))
                found[name].append(nominal)
        return found

    def _take_due(self, record: bytes, job: str | None) -> None:
        name, nominal = keys.firing_of(record)
        if job is not None and name != job:
            return
        if record[:1] == keys.OCCURRENCE:
            if nominal not in self.queued.get(name, ()):  # one that waits for a parent is due when its window ends
                self.pending[name].append(nominal)
        else:
            self.retrying[name].append(record)


def rows_of(reading: Reading, now_ms: int, jobs: Iterable[Job] | None = None) -> list[Row]:
    """The rows of these jobs; where none are named, of every job of the store, by name."""
    going = _Open(reading)
    wanted = reading.jobs(limit=_ALL_JOBS) if jobs is None else jobs
    return [_row(reading, job, going, now_ms) for job in wanted]


def row_of(reading: Reading, job: Job, now_ms: int) -> Row:
    return _row(reading, job, _Open(reading, job.id), now_ms)


def summary_of(reading: Reading, rows: Iterable[Row], is_alive: IsAlive, now_ms: int) -> Summary:
    counts = Counter(row.situation for row in rows)
    nodes = tuple(NodeStatus(n, seems_alive(n, now_ms, is_alive)) for n in reading.nodes())
    living = [listed.node for listed in nodes if listed.is_alive]
    return Summary(
        jobs=sum(counts.values()),
        counts={situation: counts[situation] for situation in Situation},
        running=_count(reading, keys.ACTIVE + keys.OCCURRENCE),
        queued=sum(_count(reading, prefix) for prefix in _WAITING),
        dead_letters=_count(reading, keys.DEAD_LETTER),
        slots=sum(node.places for node in living),
        nodes=nodes,
    )


def _count(reading: Reading, prefix: bytes) -> int:
    return sum(len(rows) for rows in pages(reading.tx, prefix))


def _row(reading: Reading, job: Job, going: _Open, now_ms: int) -> Row:
    running = going.running.get(job.id, ())
    retry = _first_retry(reading, job, going.retrying.get(job.id, ()))
    waits = retry_wait(reading, job, now_ms) if retry is not None else None
    skipped_until = None if waits is None else waits.skips_until_ms
    newest = _newest(reading, job)
    known = _known(reading, job, going, newest, now_ms, skipped_until)
    search = RunSearch()
    upcoming = next(coming_runs(known, now_ms, skipped_until, search), None)
    if runs_left(job) is not None:
        known = known._replace(runs=left_by_max(known, now_ms, skipped_until))
    queued = len(going.queued.get(job.id, ()))
    is_paused = job.progress.is_paused_at(now_ms)
    if running and (retry is None or going.trying.get(job.id)):
        situation = Situation.RUNNING
    elif retry is not None:
        situation = Situation.RETRYING
    elif queued:
        situation = Situation.QUEUED
    else:
        may_run = upcoming is not None or search.stopped_ms is not None
        situation = _at_rest(job, has_next=may_run, is_paused=is_paused)
    return Row(
        job=job,
        situation=situation,
        is_paused=is_paused,
        is_running=bool(running),
        next=_shown(upcoming),
        last=_last_of(reading, job, newest),
        running_since_ms=_since(reading, job.id, running) if running else None,
        retry=retry,
        queued=queued,
        drawn=tuple(known.runs),
        ahead=known.job if known.job is not job else None,
        not_before_ms=search.stopped_ms if upcoming is None else None,
    )


def counts_from_its_run(row: Row) -> bool:
    """Is its next instant known when the run has ended that goes on, waits for a retry, or for its turn?"""
    is_open = row.is_running or row.retry is not None or row.queued > 0
    return is_open and row.job.enabled and counts_from_ends(row.job) and runs_left(row.ahead or row.job) != 0


def _at_rest(job: Job, *, has_next: bool, is_paused: bool) -> Situation:
    if not job.enabled:
        return Situation.DISABLED
    if is_paused:
        return Situation.PAUSED
    if job.progress.counters.failures_in_a_row:
        return Situation.FAILED
    if not has_next and not job.follows and not runs_at_start(job):
        return Situation.DONE
    return Situation.OK if job.progress.counters.completed else Situation.WAITING


def _since(reading: Reading, job: str, running: Iterable[int]) -> int | None:
    found = [reading.occurrence(job, nominal) for nominal in running]
    return min((o.started_ms for o in found if o is not None and o.started_ms is not None), default=None)


def _known(
    reading: Reading, job: Job, going: _Open, newest: list[Occurrence], now_ms: int, skipped_until_ms: int | None
) -> KnownRuns:
    recorded = _recorded(reading, job, going.pending.get(job.id, ()))
    queued = _recorded(reading, job, going.queued.get(job.id, ())) if runs_left(job) is not None else []
    beside = _beside_all(reading, job, (*recorded, *newest))
    return known_runs(beside, recorded, now_ms, skipped_until_ms, queued)


def _recorded(reading: Reading, job: Job, nominals: Iterable[int]) -> list[Occurrence]:
    found = (reading.occurrence(job.id, nominal) for nominal in nominals)
    return [one for one in found if one is not None]


def _shown(run: ForecastRun | None) -> NextRun | None:
    return None if run is None else NextRun(run.nominal_ms, run.due_ms, run.latest_ms == run.due_ms, run.moved)


def last_outcome(reading: Reading, job: Job) -> Outcome | None:
    return _last_of(reading, job, _newest(reading, job))


def _newest(reading: Reading, job: Job) -> list[Occurrence]:
    """The newest occurrence of a job of which one has ended."""
    counters = job.progress.counters
    if not (counters.completed or counters.failed or counters.skipped or counters.missed or counters.canceled):
        return []
    return reading.occurrences(job.id, limit=1)


def _last_of(reading: Reading, job: Job, newest: list[Occurrence]) -> Outcome | None:
    """Behind everything that runs, waits in a queue or is to come."""
    ended, most = None, _OPEN_MOSTLY
    while newest and (ended := next((one for one in newest if is_final(one.state)), None)) is None:
        newest = reading.occurrences(job.id, newest[-1].nominal_ms, most)
        most *= 2
    return None if ended is None else outcome_of(ended)


def _beside_all(reading: Reading, job: Job, recorded: Iterable[Occurrence]) -> Job:
    """See `beside_records`; most jobs have no record behind their cursor, and one look at the newest says so."""
    beside = beside_records(job, recorded)
    return job if beside is job else beside_records(job, reading.occurrences(job.id))


def outcome_of(occurrence: Occurrence) -> Outcome:
    return Outcome(
        nominal_ms=occurrence.nominal_ms,
        state=occurrence.state,
        reason=occurrence.reason,
        started_ms=occurrence.started_ms,
        finished_ms=occurrence.finished_ms,
        recovery=occurrence.recovery,
        manual=occurrence.manual,
        errors=occurrence.errors,
        node=occurrence.owner,
    )


def _first_retry(reading: Reading, job: Job, runs: Iterable[bytes]) -> Retry | None:
    if not runs:
        return None
    found = [run for key in runs if (run := reading.get(key, Run)) is not None]
    return min((retry_of(job, run) for run in found if run.state is RunState.RETRY), key=_at, default=None)


def _at(retry: Retry) -> int:
    return retry.at_ms


def retry_of(job: Job, run: Run) -> Retry:
    task = job.task(run.task)
    most = None if task is None else job.retry_for(task).max
    return Retry(
        nominal_ms=run.nominal_ms,
        task=run.task,
        attempt=run.attempts + 1,
        most=None if most is None else max(most, run.attempts) + 1,
        at_ms=run.next_attempt_ms or 0,
        reason=run.reason,
    )


OUTCOMES = 20
UPCOMING = 5
_BAD = (OccurrenceState.FAILED, OccurrenceState.FAILED_STALE)


class Running(NamedTuple):
    """An occurrence that has begun, and the attempts of it that run at this moment."""

    occurrence: Occurrence
    attempts: tuple[Attempt, ...]


class Detail(NamedTuple):
    """`last_problem` is the newest failure among the outcomes, which are newest first."""

    row: Row
    upcoming: tuple[NextRun, ...]
    running: tuple[Running, ...]
    queued: tuple[Occurrence, ...]
    retries: tuple[Retry, ...]
    outcomes: tuple[Outcome, ...]
    last_problem: Outcome | None
    # Only `with_usage` finds these: what runs usually take, and what the newest outcome that ran took.
    usual: Usual | None = None
    last_usage: RunUsage | None = None
    # What the first of those that are queued waits for now.
    waits_for: Reason = NO_REASON
    # What may hold up its coming runs.
    may_wait: tuple[str, ...] = ()
    # The earlier one that is not over, where the job's overlap policy lets no coming run start beside it.
    not_over: Occurrence | None = None

    @property
    def job(self) -> Job:
        return self.row.job


def detail_of(reading: Reading, job: Job, now_ms: int, upcoming: int = UPCOMING) -> Detail:
    ended = [o for o in reading.occurrences(job.id, limit=OUTCOMES * 2) if is_final(o.state)]
    outcomes = tuple(outcome_of(occurrence) for occurrence in ended[:OUTCOMES])
    running = tuple(_running(reading, occurrence) for occurrence in reading.active(job.id))
    queued = tuple(reading.waiting(job.id))
    past = any(one.recovery for one in (*queued, *(each.occurrence for each in running)))
    return Detail(
        row=row_of(reading, job, now_ms),
        upcoming=tuple(upcoming_runs(reading, job, now_ms, upcoming)),
        running=running,
        queued=queued,
        retries=tuple(retry for one in running for retry in _retries(reading, job, one.occurrence)),
        outcomes=outcomes,
        last_problem=next((outcome for outcome in outcomes if outcome.state in _BAD), None),
        waits_for=waits_for(reading, queued[0], now_ms) if queued else NO_REASON,
        may_wait=(*may_wait_for(job), *(("the runs that it missed",) if past else ())),
        not_over=None if past else _in_the_way(job, running, reading.queued(job.id, 1)),
    )


def _in_the_way(job: Job, running: Sequence[Running], queued: Sequence[Occurrence]) -> Occurrence | None:
    """A newer one gives a waiting retry up where `newest_wins`, and waits or is skipped while one is tried. One that
    waits for its turn is in the way as one that runs is; what waits for another job is not."""
    gives_up = any(job.retry_for(task).newest_wins for task in job.tasks)
    beside = [one.occurrence for one in running if one.attempts or not gives_up]
    match job.overlap:
        case OverlapPolicy.ALLOW:
            return None
        case OverlapPolicy.CANCEL_RUNNING:  # which takes the place of what waits, too
            return next(iter(beside), None)
        case OverlapPolicy.QUEUE_ONE:
            return next(iter((*queued, *beside)), None)
        case _:
            return next(iter((*beside, *queued)), None)


def with_usage(reading: Reading, detail: Detail) -> Detail:
    """The same with what its runs take: that reads the attempts of many of them."""
    ran = next((one for one in detail.outcomes if one.started_ms is not None), None)
    last = None if ran is None else usage_of(reading.attempts(detail.job.id, ran.nominal_ms))
    return detail._replace(usual=usual_of(reading, detail.job.id), last_usage=last)


def upcoming_runs(reading: Reading, job: Job, now_ms: int, count: int) -> list[NextRun]:
    """The next `count` runs that will start, on record or not, in the order in which they do."""
    waits = retry_wait(reading, job, now_ms)
    skipped_until = None if waits is None else waits.skips_until_ms
    newest = reading.occurrences(job.id, limit=1)
    known = _known(reading, job, _Open(reading, job.id), newest, now_ms, skipped_until)
    found = islice(coming_runs(known, now_ms, skipped_until), count)
    return [shown for run in found if (shown := _shown(run)) is not None]


def _running(reading: Reading, occurrence: Occurrence) -> Running:
    attempts = reading.active_attempts(occurrence.job)
    return Running(occurrence, tuple(a for a in attempts if a.nominal_ms == occurrence.nominal_ms))


def _retries(reading: Reading, job: Job, occurrence: Occurrence) -> list[Retry]:
    runs = reading.runs(occurrence.job, occurrence.nominal_ms)
    return [retry_of(job, run) for run in runs if run.state is RunState.RETRY]


# Which Python functions of a job no scheduler has: such a job waits for the program that registers them.


def lacking_functions(job: Job, nodes: Iterable[Node]) -> tuple[str, ...]:
    """The functions for want of which none of these nodes can run the job; empty where one of them can."""
    if not job.functions:
        return ()
    nodes = list(nodes)
    if any(all(node.can_call(target) for target in job.functions) for node in nodes):
        return ()
    nowhere = [target for target in job.functions if not any(node.can_call(target) for node in nodes)]
    return tuple(nowhere) or job.functions


def unstopped(reading: Reading) -> list[Node]:
    """The nodes that have not left in good order. Of one that was killed, only its machine could say more."""
    return [node for node in reading.nodes() if node.stopped_ms is None]


def named(functions: Iterable[str]) -> str:
    return ", ".join(repr(target) for target in functions)
