"""A program's jobs on a fake clock: its real functions are called, and nothing is waited for."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from chronex.daemon.attempt_records import request_from_records
from chronex.daemon.job_control import JobControl
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.task_state import task_state
from chronex.model.job import Call, Job
from chronex.model.occurrence import run_id
from chronex.run import Cancellation
from chronex.run.callables import TaskLog, TaskStateBuffer, bound, context_for, described
from chronex.storage.ports import Store
from chronex.testing.clock import SECOND, Instant, span_ms
from chronex.testing.machine import NEW_YEAR, ProcessOutcome, SimulatedMachine, SimulatedProcess
from chronex.text.instants import utc_datetime

if TYPE_CHECKING:
    from chronex.daemon.embedded import EmbeddedEngine


@dataclass
class CalledFunction:
    """One call of a function: with which job, when, and what it raised, changed and logged."""

    job: str
    task: str
    attempt: int
    at: datetime
    error: str = ""
    state_changes: dict[str, str | None] = field(default_factory=dict)
    log: str = ""


class _CallingMachine(SimulatedMachine):
    """Calls functions where a simulated process would be started; commands are scripted as ever."""

    program: SimulatedProgram

    def end_of(self, process: SimulatedProcess) -> AttemptEnd:
        end = process.end()
        called = self.program.calls_by_attempt.get(process.attempt_id)
        if called is None or end.exit_code is None:
            return end
        if called.error:
            return end._replace(exit_code=None, error=called.error)
        return end._replace(exit_code=None, task_state=called.state_changes or None)


class SimulatedProgram(JobControl):
    """The jobs that `engine` declares, and `jobs`, on a machine with a fake clock: `advance(hours=3)` lets it work.

    It has the commands and questions of the engine, which need not be started. A function is called at its instant,
    and takes the time that `takes` has for its job (a second otherwise). Commands end as `outcome` of
    SimulatedMachine says: all of them well.
    """

    def __init__(
        self,
        engine: EmbeddedEngine,
        jobs: Iterable[Job] = (),
        *,
        start: Instant = NEW_YEAR,
        takes: Mapping[str, timedelta] | None = None,
        slots: int = 50,
        seed: int = 0,
    ) -> None:
        self.machine = _CallingMachine(start=start, slots=slots, seed=seed, outcome=self._outcome)
        self.machine.program = self
        super().__init__(engine.program, engine.calls, engine.settings, self.machine.clock)
        self.called: list[CalledFunction] = []
        self.calls_by_attempt: dict[str, CalledFunction] = {}
        self._takes = dict(takes or {})
        self.apply([*engine.declared, *jobs])

    @property
    def store(self) -> Store:
        return self.machine.store

    @property
    def _is_open(self) -> bool:
        return True

    @property
    def now(self) -> datetime:
        return utc_datetime(self.machine.now)

    def advance(self, span: timedelta | None = None, **units: float) -> None:
        """Let time pass and the jobs run: `advance(hours=3)`, `advance(days=1, minutes=5)`."""
        self.machine.run_for(timedelta(**units) if span is None else span)

    def sleep(self, **units: float) -> None:
        """The machine is suspended for so long."""
        self.machine.sleep(timedelta(**units))

    def _outcome(self, launch: Launch) -> ProcessOutcome:
        took = span_ms(self._takes[launch.job.id]) if launch.job.id in self._takes else SECOND
        if not isinstance(launch.task.run, Call):
            return ProcessOutcome(took)
        called = self._call_function(launch, launch.task.run)
        self.called.append(called)
        self.calls_by_attempt[launch.attempt.id] = called
        return ProcessOutcome(took, 1 if called.error else 0)

    def _call_function(self, launch: Launch, call: Call) -> CalledFunction:
        attempt, lines = launch.attempt, _Lines()
        committed = self.store.view(lambda tx: task_state(tx, attempt.job, attempt.task))
        state = TaskStateBuffer(committed)
        key = launch.idempotency_key or run_id(launch.occurrence.id, launch.task.name)
        request = request_from_records(launch.job, launch.task, launch.occurrence, attempt, idempotency_key=key)
        context = context_for(request, self.machine.now, Cancellation(), state, TaskLog(lines))
        called = CalledFunction(attempt.job, attempt.task, attempt.number, self.now)
        try:
            function = self.calls.find(call.target)
            if not callable(function):
                raise LookupError(f"the engine has no function {call.target!r}; add_call it")
            returned = bound(function, context, request)()
            if inspect.isawaitable(returned):
                asyncio.run(_awaited(returned))
        except Exception as problem:
            called.error = described(problem)
        else:
            called.state_changes = state.changes
        called.log = lines.text
        return called


async def _awaited(value: Any) -> None:
    await value


class _Lines:
    def __init__(self) -> None:
        self.text = ""

    def write(self, chunk: bytes, /) -> None:
        self.text += chunk.decode()
