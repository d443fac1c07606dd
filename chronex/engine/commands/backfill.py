"""backfill: run the instants of a span of the past that were never run, or that failed, at their scheduled times.

Nothing is remembered beside the occurrences themselves. Each stands for its instant, so a backfill that was broken
off goes on where it stopped when it is asked for again.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.engine.commands.actor import Actor, record_command
from chronex.engine.commands.names import job_named
from chronex.engine.commands.trigger import Triggered, enter, manual_occurrence
from chronex.errors import CustomScheduleError, NotPossibleError
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.records import Reading, Records
from chronex.timing.job_schedule import moved_from, schedule_of

MOST_INSTANTS = 10_000
_MOST_READ = 1_000_000
_FAILED = (OccurrenceState.FAILED, OccurrenceState.FAILED_STALE)


class BackfillScope(StrEnum):
    """Which instants of the span: those that never ran to an end, those that failed, or all of them."""

    MISSING = "missing"
    FAILED = "failed"
    ALL = "all"


class BackfillPlan(NamedTuple):
    """The scheduled times to run, the oldest first, and how many of the span are left out. Is some of it to come?"""

    job: Job
    instants: tuple[int, ...]
    left_out: int
    is_cut: bool = False


def plan_backfill(
    reading: Reading, name: str, from_ms: int, to_ms: int, scope: BackfillScope, now_ms: int
) -> BackfillPlan:
    """What a backfill of [from, to) would run, also of a time before the job existed; not what runs or waits, and not
    what is to come: that would run once now and once at its time."""
    job = job_named(reading, name)
    if job.follows:
        parents = " and ".join(job.after)
        raise NotPossibleError(f"{job.id} has no schedule: it follows {parents}, and a backfill of that runs it too")
    if targets := reading.targets(job.id):
        raise NotPossibleError(f"{job.id} runs on each node; name one of them, such as {targets[0].id}")
    if from_ms > now_ms:
        raise NotPossibleError("the span is still to come, and its runs start at their time; trigger runs a job now")
    last_ms = min(to_ms - 1, _decided_until(job, now_ms))
    try:
        named = list(islice(schedule_of(job).between(from_ms - 1, last_ms), MOST_INSTANTS + 1))
    except CustomScheduleError as error:
        raise NotPossibleError(str(error)) from None
    if len(named) > MOST_INSTANTS:
        raise NotPossibleError(f"more than {MOST_INSTANTS} instants lie in that span; make it shorter")
    scheduled = [_scheduled(job, instant) for instant in named]
    outcomes = _outcomes(reading, job)
    wanted = tuple(instant for instant in scheduled if _is_wanted(outcomes.get(instant, ()), scope))
    return BackfillPlan(job, wanted, len(scheduled) - len(wanted), is_cut=to_ms - 1 > last_ms)


def _decided_until(job: Job, now_ms: int) -> int:
    """What is due and not decided yet is left to the schedule, as what is to come: the next tick runs it."""
    due_ms, cursor_ms = job.progress.next_ms, job.progress.cursor_ms
    if cursor_ms is None or due_ms is None or due_ms > now_ms:
        return now_ms
    return min(now_ms, cursor_ms)


def _scheduled(job: Job, instant: int) -> int:
    """The time that the tasks of the instant are told: of a moved run the one that it was moved from."""
    moved = moved_from(job, instant)
    return instant if moved is None else moved.nominal_ms


def _outcomes(reading: Reading, job: Job) -> dict[int, list[OccurrenceState]]:
    """The states of all occurrences that stand for a scheduled time."""
    found: dict[int, list[OccurrenceState]] = {}
    for one in reading.occurrences(job.id, limit=_MOST_READ):
        if not one.manual or one.stands_for_ms is not None:
            found.setdefault(one.scheduled_ms, []).append(one.state)
    return found


def _is_wanted(states: list[OccurrenceState] | tuple[OccurrenceState, ...], scope: BackfillScope) -> bool:
    if any(not is_final(state) for state in states):
        return False
    match scope:
        case BackfillScope.ALL:
            return True
        case BackfillScope.FAILED:
            return OccurrenceState.COMPLETED not in states and any(state in _FAILED for state in states)
        case BackfillScope.MISSING:
            return not any(state is OccurrenceState.COMPLETED or state in _FAILED for state in states)


def fill(records: Records, job_id: str, scheduled_ms: int, actor: Actor, reason: str) -> Triggered:
    """Ask for the run of one scheduled time, as a replay asks for it: it waits for its turn and is never dropped.

    The jobs that follow it have their occurrence too, as they would have had at that time.
    """
    job = job_named(records, job_id)
    wanted = replace(
        manual_occurrence(records, job, actor),
        replay_of=occurrence_id(job.id, scheduled_ms),
        stands_for_ms=scheduled_ms,
        asked_for=reason,
        with_children=True,
    )
    data: dict[str, Any] = {"replay_of": wanted.replay_of, "version": wanted.version, "backfill": True}
    record_command(records, "OccurrenceReplayed", actor, job.id, wanted.nominal_ms, reason, data=data)
    return enter(records, job, wanted)


def still_open(reading: Reading, occurrences: list[Occurrence]) -> tuple[list[Occurrence], list[Occurrence]]:
    """Those that have not ended, and those that have, as they are by now."""
    now = [reading.occurrence(one.job, one.nominal_ms) or one for one in occurrences]
    return [one for one in now if not is_final(one.state)], [one for one in now if is_final(one.state)]
