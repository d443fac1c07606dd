"""`run --once`: when it has run what was due and what follows from that, what it leaves, and how it ended."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from chronex.daemon.condition_watch import ConditionWatch
from chronex.daemon.executor import Executor
from chronex.daemon.log_handlers import log_event
from chronex.engine.engine import Engine
from chronex.errors import StoreError
from chronex.model.occurrence import Attempt
from chronex.model.reasons import text_of
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.run.environment import instant_text
from chronex.storage.records import Reading

log = logging.getLogger(__name__)


async def has_run_all(engine: Engine, executor: Executor, conditions: Callable[[], ConditionWatch]) -> bool:
    """Whether nothing runs, and who waits for a condition has had an answer. The next call asks again."""
    if not executor.is_idle or not engine.awaits_conditions:
        return executor.is_idle
    with contextlib.suppress(StoreError):  # it is away
        if not await conditions().has_asked_for_all():
            return False
    return not engine.has_news  # what was found while that was read is for the next tick


# At the end of `run --once` the log names so many that wait.
MOST_LEFT_NAMED = 20


class OnceEnds:
    """How `run --once` ended: the occurrences of which an attempt ended, and those that are left to the next call."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, int], None] = {}

    def note(self, attempt: Attempt, _state: AttemptState) -> None:
        self._noted[attempt.job, attempt.nominal_ms] = None

    def any_failed(self, reading: Reading) -> bool:
        """Has one not completed? One that completed with errors has, and the log says so."""
        found = [reading.occurrence(job, nominal_ms) for job, nominal_ms in self._noted]
        for one in found:
            if one is not None and one.errors:
                fields = {"job": one.job, "occurrence": one.id, "errors": one.errors, "reason": text_of(one.reason)}
                log_event(log, "completed with errors", fields, logging.WARNING)
        return any(one is None or one.state is not OccurrenceState.COMPLETED for one in found)

    def any_left(self, reading: Reading) -> bool:
        """Is a retry due later? The log says so, and who waits for a condition, a rate, a window or anything else."""
        runs = (run for one in reading.active() for run in reading.runs(one.job, one.nominal_ms))
        retries = [run for run in runs if run.state is RunState.RETRY]
        left = [(run.job, run.nominal_ms, run.task, "waits for its next attempt") for run in retries]
        left += [(one.job, one.nominal_ms, "", text_of(one.reason)) for one in reading.waiting(limit=MOST_LEFT_NAMED)]
        for job, nominal_ms, task, why in left[:MOST_LEFT_NAMED]:
            fields = {
                "job": job,
                **({"task": task} if task else {}),
                "nominal": instant_text(nominal_ms),
                "reason": why,
            }
            log_event(log, "left for the next call", fields)
        return bool(retries)
