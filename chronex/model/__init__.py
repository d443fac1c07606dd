"""The nouns of Chronex as frozen values: job, task, occurrence, run, attempt, node, and their states."""

from __future__ import annotations

from chronex.model.event import Event
from chronex.model.job import Call, Counters, Job, JobVersion, Task
from chronex.model.occurrence import (
    Attempt,
    Decision,
    MissedSpan,
    Occurrence,
    ProcessIdentity,
    Run,
    attempt_id,
    occurrence_id,
    run_id,
)
from chronex.model.policies import (
    Cadence,
    CrashCheck,
    CrashPolicy,
    DstSetting,
    FailureStrategy,
    LeftoverPolicy,
    NotifyPolicy,
    OverlapPolicy,
    RecoveryPolicy,
    RecoveryStrategy,
    RetryPolicy,
    SpreadPolicy,
    TaskMode,
)
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.records import Idempotency, Node, Notice, Quarantined, Record, StoreMeta, TaskState
from chronex.model.states import AttemptState, OccurrenceState, RunState, advance

__all__ = [
    "NO_REASON",
    "Attempt",
    "AttemptState",
    "Cadence",
    "Call",
    "Counters",
    "CrashCheck",
    "CrashPolicy",
    "Decision",
    "DstSetting",
    "Event",
    "FailureStrategy",
    "Idempotency",
    "Job",
    "JobVersion",
    "LeftoverPolicy",
    "MissedSpan",
    "Node",
    "Notice",
    "NotifyPolicy",
    "Occurrence",
    "OccurrenceState",
    "OverlapPolicy",
    "ProcessIdentity",
    "Quarantined",
    "Reason",
    "ReasonCode",
    "Record",
    "RecoveryPolicy",
    "RecoveryStrategy",
    "RetryPolicy",
    "Run",
    "RunState",
    "SpreadPolicy",
    "StoreMeta",
    "Task",
    "TaskMode",
    "TaskState",
    "advance",
    "attempt_id",
    "occurrence_id",
    "run_id",
]
