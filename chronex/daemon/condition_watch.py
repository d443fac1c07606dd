"""Looks whether the conditions of waiting jobs hold, and tells the engine: off the event loop, a few at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from chronex.clock import Clock
from chronex.daemon.attempt_records import request_from_records
from chronex.daemon.periodic_tasks import Faults, words_of
from chronex.engine.engine import Engine
from chronex.engine.group_limits import CONDITIONS
from chronex.errors import StoreError
from chronex.model.job import Job, Task
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.policies import COMMAND, Condition, Found, read_condition
from chronex.run import Cancellation, RunContext
from chronex.run.check_commands import ask_check
from chronex.run.condition_check import CHECK_S, check_condition
from chronex.run.side_threads import NoAnswerError, SideThreads
from chronex.storage.ports import ReadTransaction, Store
from chronex.storage.records import Reading

EVERY_MS = 1_000
# The longer it waits, the less often it is looked at: after a tenth of its wait, between these.
SHORTEST_BETWEEN_MS, LONGEST_BETWEEN_MS = 1_000, 15_000
MOST_WAITING = 500
_MOST_JOBS_AT_ONCE = 8


class _Check(NamedTuple):
    """One that is under way, and how its command is asked to end."""

    task: asyncio.Task[None]
    cancellation: Cancellation


class ConditionWatch:
    """`wake` ends the sleep of the daemon, whose next tick goes by what was found.

    Each job is looked at for itself: a command that takes a minute to say no keeps nobody else waiting.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        run_context: RunContext,
        threads: SideThreads,
        wake: Callable[[], None],
        faults: Faults,
    ) -> None:
        self._store, self._engine, self._run_context = store, engine, run_context
        self._threads, self._wake, self._faults = threads, wake, faults
        self._clock: Clock = run_context.clock
        # Commands may take long, and the others are over at once: they have turns of their own.
        self._turns = {is_command: asyncio.Semaphore(_MOST_JOBS_AT_ONCE) for is_command in (False, True)}
        self._round: asyncio.Task[None] | None = None
        self._checks: dict[str, _Check] = {}  # by job
        self._checked_ms: dict[str, int] = {}  # by job: when, by the monotonic clock

    def begin(self, next_ms: int | None) -> int:
        """Somebody waits: begin a round if none is under way; when the daemon must be awake again."""
        if self._round is None or self._round.done():
            self._round = self._faults.watched(self._check(), "the look for who waits for conditions")
        again_ms = self._clock.wall_ms() + EVERY_MS
        return again_ms if next_ms is None else min(next_ms, again_ms)

    async def has_asked_for_all(self) -> bool:
        """Whether there is an answer for each job that waits, of as many as are looked at."""
        waiting = await self._store.view_async(_waiting)
        return all(job.id in self._engine.found for job, _ in waiting)

    def stop(self) -> None:
        if self._round is not None:
            self._round.cancel()
        for check_of_job in self._checks.values():
            check_of_job.task.cancel()

    async def _check(self) -> None:
        try:
            waiting = await self._store.view_async(_waiting)
        except StoreError:
            return  # it is away: the next round asks again
        names = {job.id for job, _ in waiting}
        for gone in self._checked_ms.keys() - names:
            del self._checked_ms[gone]
            self._engine.found.pop(gone, None)
            if gone in self._checks:
                self._checks[gone].cancellation.request("nobody waits for it any more")
        for job, occurrence in waiting:
            if self._is_due(job, occurrence):
                self._begin_check(job, occurrence)

    def _begin_check(self, job: Job, occurrence: Occurrence) -> None:
        self._checked_ms[job.id] = self._clock.monotonic_ms()
        cancellation = Cancellation()
        task = self._faults.watched(self._check_all_of(job, occurrence, cancellation), f"the conditions of {job.id}")
        self._checks[job.id] = _Check(task, cancellation)

    def _is_due(self, job: Job, occurrence: Occurrence) -> bool:
        if job.id in self._checks:
            return False
        last = self._checked_ms.get(job.id)
        if last is None:
            return True
        waited = self._clock.wall_ms() - occurrence.due_ms
        pause = min(max(waited // 10, SHORTEST_BETWEEN_MS), LONGEST_BETWEEN_MS)
        return self._clock.monotonic_ms() - last >= pause

    async def _check_all_of(self, job: Job, occurrence: Occurrence, cancellation: Cancellation) -> None:
        try:
            lacking = await self._first_lacking(job, occurrence, cancellation)
            if not cancellation.requested:
                self._engine.found[job.id] = Found(not lacking, self._clock.wall_ms(), lacking)
                self._engine.has_news = True
        finally:
            del self._checks[job.id]
        self._wake()

    async def _first_lacking(self, job: Job, occurrence: Occurrence, cancellation: Cancellation) -> str:
        """The first condition that does not hold, and why; empty where all do."""
        for written in job.wait_for:
            try:
                problem = await self._lacking_in_turn(written, job, occurrence, cancellation)
            except Exception as fault:  # whoever waits must not wait without a word
                self._faults.note(f"the look at {written} for {job.id}", fault)
                problem = f"its look failed: {words_of(fault)}"
            if problem or cancellation.requested:
                return f"{written} ({problem})"
        return ""

    async def _lacking_in_turn(
        self, written: str, job: Job, occurrence: Occurrence, cancellation: Cancellation
    ) -> str:
        condition = read_condition(written)
        async with self._turns[condition.kind == COMMAND]:
            return await self._lacking(condition, job, occurrence, cancellation)

    async def _lacking(
        self, condition: Condition, job: Job, occurrence: Occurrence, cancellation: Cancellation
    ) -> str:
        task = job.tasks[0] if job.tasks else Task(name="main")
        if condition.kind == COMMAND:
            return await self._command(condition.what, job, task, occurrence, cancellation)
        try:
            return await self._threads.run(lambda: check_condition(condition, task.directory), CHECK_S + 1)
        except NoAnswerError as error:
            return str(error)

    async def _command(
        self, line: str, job: Job, task: Task, occurrence: Occurrence, cancellation: Cancellation
    ) -> str:
        """Run as the first task's command is: the same user, directory and environment."""
        asked = Attempt(job=job.id, nominal_ms=occurrence.nominal_ms, task=task.name, number=0)
        request = request_from_records(job, task, occurrence, asked)
        request = replace(request, extra_environment=self._run_context.environment)
        answer = await ask_check(line, request, cancellation, self._run_context)
        if answer.exit_code == 0:
            return ""
        return answer.problem or "it gave no answer"


def _waiting(tx: ReadTransaction) -> list[tuple[Job, Occurrence]]:
    """The first of each job that waits for its conditions."""
    reading = Reading(tx)
    first: dict[str, Occurrence] = {}
    for occurrence in reading.in_line(CONDITIONS, MOST_WAITING):
        first.setdefault(occurrence.job, occurrence)
    found = ((reading.job(name), occurrence) for name, occurrence in first.items())
    return [(job, occurrence) for job, occurrence in found if job is not None]
