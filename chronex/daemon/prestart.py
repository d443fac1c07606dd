"""Starts commands shortly before their instant and holds them at their start barrier: the normal path of a command.

`next_tick_guess` reads from the store what the next tick will most likely order. Nothing is decided here: until the
instant comes a job may be paused, changed or taken by another scheduler. Only the tick's own orders count, and a held
child that is not ordered is discarded without having run anything.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from msgspec.structs import replace

from chronex.clock import Clock
from chronex.daemon.fault_log import Faults
from chronex.engine import idempotency
from chronex.engine.engine import Engine
from chronex.engine.orders import Launch
from chronex.engine.plan import Chance, plan_job
from chronex.engine.task_graph import startable
from chronex.errors import CustomScheduleError
from chronex.model.job import Call, Job, JobProgress
from chronex.model.job_parameters import defaults_of
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.policies import OverlapPolicy
from chronex.model.states import OccurrenceState
from chronex.run import AttemptRequest
from chronex.run.command_runner import CommandRunner, HeldCommand
from chronex.run.request import NotStarted
from chronex.storage.records import Reading
from chronex.timing.job_schedule import is_known, schedule_of


def next_tick_guess(engine: Engine, at_ms: int, most: int) -> list[Launch]:
    """What the engine will most likely order at `at_ms`. Nothing is written."""
    if engine.stopping:
        return []
    return engine.store.view(lambda tx: _guess(Reading(tx), at_ms, engine.slots, Random(0), most))  # noqa: S311


def _guess(reading: Reading, at_ms: int, slots: int, chance: Chance, most: int) -> list[Launch]:
    """The commands that begin at `at_ms` if nothing changes, as many as the pool has free slots."""
    free = min(most, slots - reading.count_active(slots))
    found: list[Launch] = []
    for record in reading.due(at_ms, most):
        job, occurrence = _planned(reading, record, at_ms, chance)
        if job is None or occurrence is None or not _is_free(reading, job, occurrence, at_ms):
            continue
        found += _launches(job, occurrence)
        if len(found) >= free:
            break
    return found[: max(free, 0)]


def _planned(reading: Reading, record: object, at_ms: int, chance: Chance) -> tuple[Job | None, Occurrence | None]:
    if isinstance(record, Occurrence) and record.state is OccurrenceState.PENDING:
        return reading.job(record.job), record
    job = reading.job(record.job) if isinstance(record, JobProgress) else None
    if job is None or not is_known(job.dialect, job.schedule):
        return None, None
    try:
        plan = plan_job(job, schedule_of(job), at_ms, awake_since_ms=0, chance=chance)
    except CustomScheduleError:
        return None, None
    due = [one.occurrence for one in plan.planned if one.outcome.runs and one.occurrence.due_ms <= at_ms]
    return job, due[0] if len(due) == 1 else None


def _is_free(reading: Reading, job: Job, occurrence: Occurrence, at_ms: int) -> bool:
    """No other occurrence blocks it now, and nothing must be done before its command begins."""
    if not job.enabled or job.progress.is_paused_at(at_ms) or job.on_start is not None:
        return False
    if job.after:  # what it is given, and whether it starts at all, is known when those have ended
        return False
    if occurrence.version != job.version or occurrence.overrides is not None:
        return False
    return job.overlap is OverlapPolicy.ALLOW or not reading.is_active(job.id)


def _launches(job: Job, occurrence: Occurrence) -> Iterator[Launch]:
    tasks = [task for task in job.tasks if not occurrence.only or task.name in occurrence.only]
    fired = job.progress.counters.fired + 1
    given = occurrence.parameters
    parameters = {**defaults_of(job.parameters), **given} if job.parameters else given
    claimed = replace(occurrence, last_run_ms=job.progress.last_run_ms, fire_count=fired, parameters=parameters)
    runs = {task.name: Run(job=job.id, nominal_ms=occurrence.nominal_ms, task=task.name) for task in tasks}
    begun = startable(job, runs)
    for fence, task in enumerate(begun, start=job.progress.fence + 1):
        if not isinstance(task.run, Call):
            attempt = Attempt(
                job=job.id,
                nominal_ms=occurrence.nominal_ms,
                task=task.name,
                number=1,
                epoch=occurrence.epoch + 1,
                fence=fence,
            )
            key = idempotency.key_of(job, task, claimed) if task.idempotency_key else ""
            yield Launch(job, claimed, task, attempt, key)


# How long before an instant the store is read for the guess.
GUESS_AHEAD_MS = 1_000
# A lone child is held this long; each further one needs about a third of what is allowed for it here.
LEAD_MS, LEAD_PER_CHILD_MS = 20, 0.8
MOST_HELD = 1_024
STARTS_PER_TURN = 8
_REAP_TRIES = 400  # times 5 ms; a child whose barrier is shut exits at once
_DESCRIPTORS_EACH, _DESCRIPTORS_OF_OURS = 3, 128


class HeldChild(NamedTuple):
    """A command that waits at its barrier for its instant."""

    request: AttemptRequest
    child: HeldCommand
    at_ms: int


Guess = Callable[[int, int], list[Launch]]


class Prestart:
    """`guess` returns the launches of an instant, `request_of` what each would run."""

    def __init__(
        self,
        runner: CommandRunner,
        clock: Clock,
        guess: Guess,
        request_of: Callable[[Launch], AttemptRequest],
        faults: Faults | None = None,
    ) -> None:
        self._faults = faults or Faults()
        self.runner = runner
        self.clock = clock
        self._guess = guess
        self._request_of = request_of
        self.held: dict[str, HeldChild] = {}
        self._discarded: list[HeldCommand] = []
        self._at_ms: int | None = None
        self._work: asyncio.Task[None] | None = None

    def prepare(self, at_ms: int | None) -> None:
        """The next instant is `at_ms`. Asked again with the same one, it goes on as it is."""
        if at_ms == self._at_ms:
            return
        self._forget_work()
        self._at_ms = at_ms
        if (
            at_ms is not None and at_ms - self.clock.wall_ms() > LEAD_MS
        ):  # else the instant comes before a child could be held
            self._work = self._faults.watched(self._prestart_all(at_ms), "commands that are held for their instant")

    def take(self, request: AttemptRequest) -> HeldCommand | None:
        """The child that is held for this attempt, if it would run exactly this request and is alive."""
        held = self.held.pop(request.attempt_id, None)
        if held is None:
            return None
        if held.request == request and held.child.is_held:
            return held.child
        self._discard_child(held.child)
        return None

    def _discard_child(self, child: HeldCommand) -> None:
        child.discard()
        self._discarded.append(child)

    async def wait_reaped(self) -> None:
        """Wait until discarded children are reaped: in a program that embeds the engine nothing else reaps them."""
        for _ in range(_REAP_TRIES):
            if all(one.is_gone for one in self._discarded):
                return
            await asyncio.sleep(0.005)

    def discard(self, until_ms: int | None = None) -> None:
        """Discard children whose instant has come without an order for them; all of them where no time is given."""
        gone = [name for name, one in self.held.items() if until_ms is None or one.at_ms <= until_ms]
        for name in gone:
            self._discard_child(self.held.pop(name).child)
        self._discarded = [child for child in self._discarded if not child.is_gone]
        if until_ms is None:
            self._forget_work()

    def _forget_work(self) -> None:
        if self._work is not None:
            self._work.cancel()
        self._work = self._at_ms = None

    async def _prestart_all(self, at_ms: int) -> None:
        await _sleep_until(at_ms - GUESS_AHEAD_MS, self.clock)
        most = most_held() - len(self.held)
        loop = asyncio.get_running_loop()
        try:
            launches = await loop.run_in_executor(None, self._guess, at_ms, most)
        except Exception:  # a store that is gone, a schedule that fails: the tick meets it too, and reports it
            return
        await _sleep_until(at_ms - LEAD_MS - int(len(launches) * LEAD_PER_CHILD_MS), self.clock)
        for number, launch in enumerate(launches):
            if number % STARTS_PER_TURN == STARTS_PER_TURN - 1:
                await asyncio.sleep(0)
            if self.clock.wall_ms() >= at_ms:
                return
            self._hold(launch, at_ms)

    def _hold(self, launch: Launch, at_ms: int) -> None:
        """Where the child cannot be started now, the tick starts it and reports why it cannot."""
        request = self._request_of(launch)
        if request.attempt_id not in self.held:
            child = self.runner.hold(request)
            if not isinstance(child, NotStarted):
                self.held[request.attempt_id] = HeldChild(request, child, at_ms)


async def _sleep_until(at_ms: int, clock: Clock) -> None:
    left_ms = at_ms - clock.wall_ms()
    if left_ms > 0:
        await asyncio.sleep(left_ms / 1000)


def most_held() -> int:
    """Three descriptors each, and never more than half of what this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_HELD
    return max(0, min(MOST_HELD, (soft // 2 - _DESCRIPTORS_OF_OURS) // _DESCRIPTORS_EACH))
