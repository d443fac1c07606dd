"""What had to happen against what is recorded. Every finding names its rule, so that a broken engine is known by it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from chronex.engine.plan import lead_ms
from chronex.engine.takeover import STALE_AFTER_MS
from chronex.model.event import Event
from chronex.model.job import Counters, Job
from chronex.model.occurrence import Occurrence, Run
from chronex.model.policies import FailureStrategy, OverlapPolicy, RecoveryStrategy, TaskMode
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState, is_final
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex.testing import SimulatedProcess
from chronex.timing.job_schedule import options_of
from tests.engine.simulator.asked_why import wrong_answers
from tests.engine.simulator.expected_schedule import AfterEnd, Chain, Cron, Expected, FixedRate
from tests.engine.simulator.faulty_machine import FaultyMachine
from tests.engine.simulator.group_rules import places_exceeded, rates_exceeded, turns_not_given
from tests.verify.assertion import broken

MANY = 10_000_000


class Finding(NamedTuple):
    rule: str
    what: str


class History:
    """All that one machine has recorded, by job."""

    def __init__(self, machine: FaultyMachine) -> None:
        self.machine = machine
        self.occurrences: dict[str, list[Occurrence]] = {}
        self.counters: dict[str, Counters] = {}
        self.set_back: list[int] = []  # wall times at which the clock was set back
        self.anchored: dict[str, list[tuple[int, int]]] = defaultdict(list)  # intervals that count from another time
        self.spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.queued: dict[tuple[str, int | None], int] = {}
        self.retries: dict[tuple[str, int | None], list[int]] = defaultdict(list)  # the times of pending retries
        self.is_clock_set = False
        self.order: dict[str, list[Event]] = defaultdict(list)  # what happened to the occurrences of a job
        self.processes: dict[str, list[SimulatedProcess]] = defaultdict(list)
        machine.rows.view(lambda tx: self._read(Reading(tx)))
        for process in machine.processes:
            self.processes[process.job].append(process)

    def _read(self, reading: Reading) -> None:
        for job, _ in self.machine.drawn:
            self.occurrences[job.id] = reading.occurrences(job.id, limit=MANY)[::-1]
            stored = reading.job(job.id)
            self.counters[job.id] = Counters() if stored is None else stored.progress.counters
        self.running_attempts = {attempt.id for attempt in reading.active_attempts(limit=MANY)}
        self.waiting_runs = [run for run in reading.due(MANY**2, limit=MANY) if isinstance(run, Run)]
        self.active_runs = reading.active_runs(limit=MANY)
        for _, event in journal.tail(reading.tx, limit=MANY):
            if event.name == "OccurrencesMissed":
                self.spans[event.job].append((event.data["from_ms"], event.data["to_ms"]))
            elif event.name == "ClockStepped":
                self.is_clock_set = True
                self.set_back += [event.at_ms] if event.data["by_ms"] < 0 else []
            elif event.name == "JobAnchored":
                self.anchored[event.job].append((event.data["anchor_ms"], event.data["cursor_ms"]))
            elif event.name == "OccurrenceQueued":
                self.queued[event.job, event.nominal_ms] = event.at_ms
            elif event.name == "TaskRetryScheduled":
                self.retries[event.job, event.nominal_ms].append(event.data["at_ms"])
            if event.name.startswith("Occurrence"):
                self.order[event.job].append(event)


def check(machine: FaultyMachine) -> list[Finding]:
    history = History(machine)
    found = [Finding("transitions", text) for text in machine.rows.findings]
    found += [Finding("formal model", f"{result.property}: {result.findings[0]}") for result in broken(machine.rows)]
    for rule in RULES:
        found += [Finding(rule.__name__.strip("_"), text) for text in rule(history)]
    for job, expected in machine.drawn:
        for rule_of_job in JOB_RULES:
            found += [
                Finding(rule_of_job.__name__.strip("_"), f"{job.id}: {text}")
                for text in rule_of_job(history, job, expected)
            ]
    return found


# -- instants --------------------------------------------------------------------------------------------------------


def _instants(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Every due instant has exactly one outcome: a record of its own, or inside a span that the journal names."""
    recorded = [occurrence.nominal_ms for occurrence in history.occurrences[job.id]]
    if isinstance(expected, AfterEnd):
        yield from _after_ends(history, job, expected)
    elif isinstance(expected, Chain):
        anew = [*history.set_back, *(anchor for anchor, _ in history.anchored[job.id])]
        yield from _chained(expected, recorded, history.machine.horizon_ms, anew)
    else:
        due = _due(history, job, expected, set(recorded))
        covered = [at for at in due for first, last in history.spans[job.id] if first <= at <= last]
        wanted, found = Counter(due), Counter(recorded + covered)
        lost, extra = sorted(wanted - found), sorted(found - wanted)
        if extra:
            yield f"{extra[:5]} were not expected, or were recorded twice"
        if lost and not _ended_by_max(history, job, lost[0]):
            yield f"no outcome for {lost[:5]} ({len(lost)} in all)"


def _due(history: History, job: Job, expected: Cron | FixedRate, recorded: set[int]) -> list[int]:
    """What must have an outcome, and what is recorded and may have one.

    A spread may decide an instant before it comes. A clock that was set back to before the job was made may come by
    instants from before it, which run, or pass them again in one step, which leaves them out.
    """
    machine = history.machine
    first = min([machine.start_ms, *history.set_back])
    until = max([machine.horizon_ms + lead_ms(job), *recorded])
    anchored = history.anchored[job.id]
    if anchored and isinstance(expected, FixedRate):
        grids = [expected, *(FixedRate(anchor, expected.period) for anchor, _ in anchored)]
        allowed = {at for grid in grids for at in grid.instants(first, until)}
        (_, since), last = anchored[-1], min(machine.horizon_ms, machine.now - 1)
        return sorted({*grids[-1].instants(since, last), *(allowed & recorded)})
    due = expected.instants(first, until)
    return [at for at in due if machine.start_ms < at <= machine.horizon_ms or at in recorded]


def _ended_by_max(history: History, job: Job, first_lost: int) -> bool:
    """After its last permitted start a job is not planned any more."""
    limit = options_of(job).max
    if limit is None:
        return False
    fired = sum(1 for occurrence in history.occurrences[job.id] if occurrence.started_ms is not None)
    return fired == limit and all(o.nominal_ms < first_lost for o in history.occurrences[job.id])


def _after_ends(history: History, job: Job, expected: AfterEnd) -> Iterator[str]:
    anchors = [anchor for anchor, _ in history.anchored[job.id]]
    starts = {expected.anchor, *anchors, *history.set_back, *(o.finished_ms for o in history.occurrences[job.id])}
    last = expected.anchor
    for occurrence in history.occurrences[job.id]:
        if occurrence.nominal_ms - expected.delay not in starts:
            yield f"{occurrence.nominal_ms} follows no end"
        last = occurrence.finished_ms or history.machine.horizon_ms
    if last + expected.delay < history.machine.horizon_ms and last + expected.delay < history.machine.now:
        yield f"nothing has followed the end at {last}"


def _chained(expected: Chain, recorded: list[int], horizon: int, anew: list[int]) -> Iterator[str]:
    """A clock that is set may begin the chain again: then an instant may follow that time, or any other instant."""
    links = [expected.anchor, *recorded]
    for before, after in pairwise(links):
        bases = [*anew, *links] if anew else [before]
        if not any(expected.shortest <= after - base <= expected.longest for base in bases):
            yield f"{after} is {after - before} ms after the one before"
    if horizon - links[-1] > expected.longest:
        yield "the chain has broken off"


# -- outcomes ----------------------------------------------------------------------------------------------------------


def _outcomes(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """What has ended says when and why; what has not ended is under way."""
    wall = history.machine.now
    alive = {run.nominal_ms for run in (*history.active_runs, *history.waiting_runs) if run.job == job.id}
    for occurrence in history.occurrences[job.id]:
        at, state = occurrence.nominal_ms, occurrence.state
        if is_final(state):
            if occurrence.finished_ms is None:
                yield f"{at} is {state} and never ended"
            if not occurrence.reason and state is not OccurrenceState.COMPLETED:
                yield f"{at} is {state} without a reason"
        elif state is OccurrenceState.PENDING and occurrence.due_ms < wall:
            yield f"{at} was due at {occurrence.due_ms} and still waits"
        elif state is OccurrenceState.QUEUED and not occurrence.reason:
            yield f"{at} waits without a reason"
        elif state is OccurrenceState.RUNNING and at not in alive:
            yield f"{at} is said to run and nothing of it does"


def _placement(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Spread, stagger and jitter keep to their bounds, and nothing starts outside its window."""
    options, spread = options_of(job), job.spread
    for occurrence in history.occurrences[job.id]:
        late = occurrence.due_ms - occurrence.nominal_ms - occurrence.jitter_ms
        if not 0 <= occurrence.jitter_ms < max(options.jitter or 0, 1):
            yield f"{occurrence.nominal_ms} has a jitter of {occurrence.jitter_ms}"
        width = spread.duration_ms if spread else 0
        if not -width <= late <= width + (options.stagger or 0):
            yield f"{occurrence.nominal_ms} was placed {late} ms after it"
        started = occurrence.started_ms
        # What waits in a queue was due when it came there, also where the clock is set back before its turn.
        since = history.queued.get((job.id, occurrence.nominal_ms), started)
        if started is not None and since is not None and max(started, since) < occurrence.due_ms:
            yield f"{occurrence.nominal_ms} was started before it was due"
        if options.window is not None and started is not None and started > occurrence.nominal_ms + options.window:
            yield f"{occurrence.nominal_ms} was started outside its window"


def _recovery(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Of the missed instants that could start exactly those run that the strategy lets run."""
    waves: dict[int, list[Occurrence]] = defaultdict(list)
    for occurrence in history.occurrences[job.id]:
        if occurrence.recovery and occurrence.reason.code is not ReasonCode.UNSCHEDULABLE:
            waves[occurrence.created_ms].append(occurrence)
    strategy, count = job.recovery.strategy, job.recovery.max_count
    for wave in (part for whole in waves.values() for part in _by_downtime(whole)):
        kept = [o for o in wave if o.state is not OccurrenceState.MISSED]
        match strategy:
            case RecoveryStrategy.EXECUTE_ALL if len(kept) < len(wave):
                yield f"{len(wave) - len(kept)} of {len(wave)} were not run"
            case RecoveryStrategy.MARK_MISSED if any(o.started_ms is not None for o in kept):
                yield "one was run that had only to be marked"
            case RecoveryStrategy.EXECUTE_LAST | RecoveryStrategy.COMPRESSED if kept != wave[-1:]:
                yield f"{len(kept)} were kept instead of the last of {len(wave)}"
            case RecoveryStrategy.BOUNDED if count is not None and len(kept) > count:
                yield f"{len(kept)} were kept, and {count} allowed"
        if strategy is RecoveryStrategy.COMPRESSED and wave[-1].span_end_ms != wave[-1].nominal_ms:
            yield f"{wave[-1].nominal_ms} does not say what it covers"


def _by_downtime(wave: list[Occurrence]) -> list[list[Occurrence]]:
    """The last of them may have been planned ahead, by its spread, beside the last that was missed: a later downtime
    made it a missed one too, and its strategy holds for it alone."""
    if len(wave) < 2 or wave[-2].state is OccurrenceState.MISSED or wave[-1].due_ms <= wave[-1].created_ms:
        return [wave]
    return [wave[:-1], wave[-1:]]


def _counters(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """What is counted with the job is what its history says."""
    found = history.occurrences[job.id]
    counted = history.counters[job.id]
    state = OccurrenceState
    listed = {
        "fired": [one for one in found if one.started_ms is not None],
        "completed": [one for one in found if one.state is state.COMPLETED],
        "failed": [one for one in found if one.state in (state.FAILED, state.FAILED_STALE)],
        "canceled": [one for one in found if one.state is state.CANCELED],
        "skipped": [one for one in found if one.state is state.SKIPPED],
        "missed": [one for one in found if one.state is state.MISSED],
    }
    for name, ones in listed.items():
        if getattr(counted, name) != len(ones):
            yield f"{getattr(counted, name)} are counted as {name}, and history has {len(ones)}"


def _newest(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Under `cancel_running` one of the schedule waits at most, but for missed ones that have their turn each."""
    if job.overlap is not OverlapPolicy.CANCEL_RUNNING:
        return
    several = job.recovery.strategy in (RecoveryStrategy.EXECUTE_ALL, RecoveryStrategy.BOUNDED)
    in_turn = {one.nominal_ms for one in history.occurrences[job.id] if several and one.recovery}
    waiting: int | None = None
    for event in history.order[job.id]:
        if event.name != "OccurrenceQueued":
            waiting = None if event.nominal_ms == waiting else waiting
        elif event.nominal_ms not in in_turn:
            if waiting is not None:
                yield f"{event.nominal_ms} waits behind {waiting}, which should have given way"
            waiting = event.nominal_ms


def _deadlines(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Nothing begins once the execution timeout has passed, also where a retry waits: none is awaited beyond it.

    It begins with the first process whose start is on record; one whose scheduler died before that never ran.
    """
    timeout = job.execution_timeout_ms
    if timeout is None:
        return
    first: dict[int, int] = {}
    for process in (one for one in history.processes[job.id] if one.is_recorded):
        if process.started_ms >= first.setdefault(process.nominal_ms, process.started_ms) + timeout:
            yield f"{process.nominal_ms} was tried again after its execution timeout"
    for occurrence in history.occurrences[job.id]:
        at, deadline = occurrence.nominal_ms, occurrence.deadline_ms
        if deadline is None or history.is_clock_set:
            continue  # a clock that is set moves the deadline and what waits for it
        if any(retry >= deadline for retry in history.retries[job.id, at]):
            yield f"{at} waits for a retry beyond its execution timeout"
        if occurrence.state is OccurrenceState.RUNNING and deadline + STALE_AFTER_MS < history.machine.now:
            yield f"{at} is under way a minute after its execution timeout"


# -- processes, as the machine saw them --------------------------------------------------------------------------------


def _doubled(history: History) -> Iterator[str]:
    """An attempt is started once, and at most one success of a task is on record."""
    for attempt, times in Counter(process.attempt_id for process in history.machine.processes).items():
        if times > 1:
            yield f"{attempt} was started {times} times"
    successes: Counter[tuple[str, int, str]] = Counter()
    for process in history.machine.processes:
        if process.is_reported and process.state == "success":
            successes[process.job, process.nominal_ms, process.task] += 1
    yield from (f"{run} succeeded {times} times" for run, times in successes.items() if times > 1)


def _strays(history: History) -> Iterator[str]:
    """What lives is recorded as running, and what is recorded as running lives."""
    living = {process.attempt_id for process in history.machine.live.values()}
    yield from (f"{attempt} runs and no record says so" for attempt in sorted(living - history.running_attempts))
    yield from (f"{attempt} is said to run and is gone" for attempt in sorted(history.running_attempts - living))


def _pool(history: History) -> Iterator[str]:
    """Never more occurrences with a process at once than there are slots."""
    moments: list[tuple[int, int, tuple[str, int]]] = []
    for process in history.machine.processes:
        if _ended(process, history.machine) == process.started_ms:
            continue  # killed in the moment of its start
        whose = (process.job, process.nominal_ms)
        moments.append((process.started_ms, 1, whose))
        moments.append((_ended(process, history.machine), -1, whose))
    alive: Counter[tuple[str, int]] = Counter()
    for at, change, whose in sorted(moments):
        alive[whose] += change
        if sum(1 for count in alive.values() if count > 0) > history.machine.slots:
            yield f"more than {history.machine.slots} at once at {at}"
            return
        if alive[whose] <= 0:
            del alive[whose]


def _overlap(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """Two occurrences at once only where that is allowed; two tasks at once only where they are parallel.

    One that waits for its retry is under way too.
    """
    latest: SimulatedProcess | None = None
    over: set[int] = set()  # a later one has begun
    for process in sorted(history.processes[job.id], key=lambda p: p.started_ms):
        if job.overlap is not OverlapPolicy.ALLOW and process.nominal_ms in over:
            yield f"{process.nominal_ms} was tried again after a later one had begun"
        if latest is not None and latest.nominal_ms != process.nominal_ms:
            over.add(latest.nominal_ms)
        if latest is not None and _ended(latest, history.machine) > process.started_ms:
            same = latest.nominal_ms == process.nominal_ms
            if not same and job.overlap is not OverlapPolicy.ALLOW:
                yield f"{process.nominal_ms} began while {latest.nominal_ms} ran"
            if same and (job.mode is TaskMode.SEQUENTIAL or latest.launch.task == process.launch.task):
                yield f"two attempts of {process.nominal_ms} at once"
        if latest is None or _ended(process, history.machine) >= _ended(latest, history.machine):
            latest = process


def _ended(process: SimulatedProcess, machine: FaultyMachine) -> int:
    return machine.clock.boot if process.ended_ms is None else process.ended_ms


def _completion(history: History, job: Job, expected: Expected) -> Iterator[str]:
    """A completed occurrence has a success of every task but its errors, which are of tasks that `continue`; one that
    never started has no process. A success whose end no scheduler saw may be an error too."""
    seen: dict[int, set[str]] = defaultdict(set)
    for process in history.processes[job.id]:
        seen[process.nominal_ms].add(process.task if process.state == "success" else "")
    for occurrence in history.occurrences[job.id]:
        ran = seen.get(occurrence.nominal_ms, set())
        without = [task for task in job.tasks if task.name not in ran]
        is_complete = all(job.failure_for(task) is FailureStrategy.CONTINUE for task in without)
        if occurrence.state is OccurrenceState.COMPLETED and not (is_complete and len(without) <= occurrence.errors):
            yield f"{occurrence.nominal_ms} is completed with {occurrence.errors} errors, and only {sorted(ran)} were"
        if occurrence.started_ms is None and ran:
            yield f"{occurrence.nominal_ms} never started, and a process of it ran"


def _line_order(history: History) -> Iterator[str]:
    """Nobody was overtaken in a line that it stood in, and each has the place that its time and priority give it."""
    yield from history.machine.lines.findings


def _places(history: History) -> Iterator[str]:
    """No group ever gave more places than it has."""
    spans = [(one, job) for job, _ in history.machine.drawn for one in history.occurrences[job.id]]
    yield from places_exceeded(
        history.machine.groups, spans, history.processes, history.machine, history.is_clock_set
    )


def _rates(history: History) -> Iterator[str]:
    """No window of a rate has more starts than it allows."""
    if history.is_clock_set:
        return  # starts are on record by a clock that was not the same throughout
    starts = [(one, job) for job, _ in history.machine.drawn for one in history.occurrences[job.id]]
    yield from rates_exceeded(history.machine.groups, starts)


def _turns(history: History) -> Iterator[str]:
    """Nobody stands in line for what is free: no deadlock, and no turn that is never given."""
    yield from history.machine.rows.view(lambda tx: list(turns_not_given(Reading(tx), history.machine)))


RULES: tuple[Callable[[History], Iterator[str]], ...] = (
    _doubled, _strays, _pool, _line_order, _places, _rates, _turns,
)  # fmt: skip
JOB_RULES: tuple[Callable[[History, Job, Expected], Iterator[str]], ...] = (
    _instants, _outcomes, _placement, _recovery, _counters, _newest, _deadlines, _overlap, _completion, wrong_answers,
)  # fmt: skip
