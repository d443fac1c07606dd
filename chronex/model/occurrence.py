"""One firing of a job, and its tasks within it."""

from __future__ import annotations

from msgspec import Struct

from chronex.model.ids import occurrence_id, run_id
from chronex.model.reasons import NO_REASON, Reason
from chronex.model.states import OccurrenceState, RunState


class Decision(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Why the occurrence starts where it does inside its window."""

    # The version of the algorithm that decided.
    algorithm: int
    # What the draw was seeded with, for whoever wants to repeat it.
    seed_hash: str = ""
    # The window of the spread.
    window_start_ms: int | None = None
    window_end_ms: int | None = None
    # Where in the window it starts; None where no start satisfied the constraints.
    chosen_ms: int | None = None
    # What the stagger added.
    stagger_ms: int = 0
    # How many draws the constraints took.
    attempts: int = 0
    # Why no start could be chosen, in the decision core's own words.
    reason: str = ""


class MissedSpan(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Missed instants that were too many for a record each. With `is_more` there are more than `count`."""

    from_ms: int
    to_ms: int
    count: int
    is_more: bool = False
    # Why none of them ran.
    reason: Reason = NO_REASON


class Occurrence(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One firing of a job, known by its nominal time."""

    # The id of the job, and the instant that its schedule names: together the key.
    job: str
    nominal_ms: int
    # When it may start: the nominal time after spread, stagger and jitter.
    due_ms: int
    # What was drawn for it once, when it was planned.
    jitter_ms: int = 0
    # How spread and stagger placed it; None where the job has neither.
    decision: Decision | None = None
    state: OccurrenceState = OccurrenceState.PENDING
    # Why it is in that state.
    reason: Reason = NO_REASON
    # The version of the job that it runs.
    version: int = 1
    # The node that runs it, and a number that grows with every change of owner: a stale owner cannot write.
    owner: str = ""
    epoch: int = 0
    # It was due while no scheduler ran, and the recovery strategy runs it now.
    recovery: bool = False
    # A person or a program asked for it.
    manual: bool = False
    # Who asked for it.
    triggered_by: str = ""
    # What was given with the request; commands find it as CHRONEX_PARAM_*.
    parameters: dict[str, str] = {}
    # What a compressed run covers.
    span_start_ms: int | None = None
    span_end_ms: int | None = None
    # Missed instants right before this one that have no records of their own.
    older: MissedSpan | None = None
    # When the occurrence before this one started.
    last_run_ms: int | None = None
    # The id of the occurrence that a replay repeats, and the scheduled time that its tasks are given.
    replay_of: str = ""
    stands_for_ms: int | None = None
    # The tasks that run, where not all of them do.
    only: tuple[str, ...] = ()
    # Why a running occurrence is to be stopped; until its owner has ordered that, `cancel_ms` keeps it due.
    cancel_reason: Reason = NO_REASON
    cancel_ms: int | None = None
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None
    # When its execution timeout passes.
    deadline_ms: int | None = None

    @property
    def id(self) -> str:
        return occurrence_id(self.job, self.nominal_ms)

    @property
    def scheduled_ms(self) -> int:
        """The time that its tasks are given."""
        return self.nominal_ms if self.stands_for_ms is None else self.stands_for_ms


class Run(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One task within one occurrence."""

    # The occurrence it belongs to, and the name of its task: together the key.
    job: str
    nominal_ms: int
    task: str
    state: RunState = RunState.SCHEDULED
    # Why it is in that state.
    reason: Reason = NO_REASON
    # The node that claimed it, and a number that grows with every claim.
    owner: str = ""
    epoch: int = 0
    # How many attempts it has had.
    attempts: int = 0
    # When a scheduled or retried run may be claimed.
    next_attempt_ms: int | None = None
    # The key that it holds over all its attempts; empty where its task has none.
    idempotency_key: str = ""
    # How its last attempt ended.
    exit_code: int | None = None
    error: str = ""
    # The names, never the values, of the variables that a dead letter was given.
    environment: tuple[str, ...] = ()
    created_ms: int = 0
    started_ms: int | None = None
    finished_ms: int | None = None

    @property
    def id(self) -> str:
        return run_id(occurrence_id(self.job, self.nominal_ms), self.task)
