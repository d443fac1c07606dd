"""The events of the journal: what an event holds, and all their names.

A rule in a job file may name these; a test holds the table to what is written.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from chronex.model.reasons import NO_REASON, Reason


class Event(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """One line of the journal; its sequence number is its key."""

    # One of EVENTS.
    name: str
    at_ms: int
    # What it speaks of, as far as it speaks of one job, occurrence, task or attempt.
    job: str = ""
    nominal_ms: int | None = None
    task: str = ""
    attempt: int | None = None
    # Why it happened.
    reason: Reason = NO_REASON
    # Who asked for it, where a person or a program did.
    actor: str = ""
    # What else belongs to this name.
    data: dict[str, Any] = {}


EVENTS: dict[str, str] = {
    "SchedulerStarted": "a scheduler began to work on the store",
    "SchedulerInitializationStarted": "initialize() was called with valid registrations",
    "SchedulerInitializationCompleted": "all tasks are scheduled",
    "SchedulerInitializationFailed": "nothing was scheduled",
    "SchedulerReinitializationStarted": "initialize() was called again",
    "SchedulerStopAsked": "somebody asked a scheduler to stop or to restart",
    "SchedulerStopRequested": "no new start from here on",
    "SchedulerStopped": "it has left; commands that go on are kept for its successor",
    "SchedulerCrashed": "a scheduler was found dead",
    "NodeLost": "a scheduler of another machine has given no sign of life and may change nothing any more",
    "NodeRefused": "a scheduler that was given up came back, was refused, and begins anew under another name",
    "PollingStarted": "the first task was scheduled",
    "PollingStopRequested": "the stop was asked for while tasks were scheduled",
    "PollingStopped": "no task is scheduled, or the stop is over",
    "MachineSlept": "the machine was suspended",
    "ClockStepped": "the clock was set",
    "SchedulerStalled": "the scheduler was stopped or starved for a while",
    "RetentionHeld": "the clock has jumped ahead, and nothing is removed for its age",
    "StoreRoomLow": "the store is nearly full",
    "StoreRoomBack": "the store has free space again",
    "NodeDrained": "a scheduler was asked to begin nothing",
    "NodeUndrained": "a scheduler may begin work again",
    "StoreBack": "the database of the store did not answer for a while, and answers again",
    "StoreWentBack": "the database had lost commits, and what could be was done once more",
    "HookFailed": "a hook of a job failed",
    "ChoreFailed": "a chore of the daemon failed and will be tried again",
    "ScheduleFailed": "a schedule of a program's own could not answer",
    "ConfigurationApplied": "the job file was read again",
    "ConfigurationRejected": "the job file has a mistake; the old one holds",
    "JobNew": "a job was added",
    "JobOverridden": "a job was changed",
    "JobOrphaned": "a job was removed",
    "GroupNew": "a group was added",
    "GroupChanged": "a group has another limit or another rate",
    "GroupRemoved": "a group was removed, and no job is in it",
    "JobPaused": "a job's schedule is held",
    "JobResumed": "a pause is over",
    "JobAnchored": "the clock was set, and an interval counts from another time",
    "JobTriggered": "somebody asked for a run",
    "OccurrenceReplayed": "somebody asked for an occurrence again",
    "CancelRequested": "somebody asked for an occurrence to end",
    "OccurrenceStarted": "an occurrence began",
    "OccurrenceQueued": "an occurrence waits: for overlap, a group, the pool or a condition",
    "OccurrenceCompleted": "all its tasks ended well",
    "OccurrenceFailed": "a task failed for good",
    "OccurrenceCanceled": "it was stopped before its end, or before its start",
    "OccurrenceFailedStale": "it outlived its deadline and was given up",
    "OccurrenceSkipped": "it did not run, for a reason",
    "OccurrenceMissed": "it was due while nothing ran",
    "OccurrencesMissed": "many were due while nothing ran",
    "OccurrenceAlreadyClaimed": "another scheduler was first",
    "TaskRunStarted": "the first attempt of a run began",
    "TaskRetryStarted": "another attempt of a run began",
    "TaskRunCompleted": "an attempt ended well",
    "TaskRunFailed": "an attempt ended badly",
    "TaskRunSkipped": "a run was left out",
    "TaskRunAdopted": "a child that outlived its scheduler has a new one",
    "TaskRetryScheduled": "a run will be tried again",
    "TaskRetryMoved": "the clock was set, and the time of a retry with it",
    "TaskRetryPreempted": "a new occurrence came before the retry",
    "TaskDeadLettered": "a run failed for good",
    "TaskDropped": "a dead letter was dropped",
    "JobLate": "no run has completed in the time that the job is given",
    "JobSlow": "a run takes longer than the job's runs usually do",
    "JobLong": "a run takes longer than `long_after`",
    "NotificationSent": "the notify command or the channel has taken a notice",
    "NotificationFailed": "a notice was given up",
    "NotificationDropped": "a notice was never sent: too many waited, or a person dropped it",
    "NotificationRetried": "a person asked to send again what a channel has not taken",
    "MetricsUnavailable": "the address of the metrics cannot be had",
    "RecordQuarantined": "a damaged record was put aside",
    "Unreadable": "a damaged event",
}  # fmt: skip
