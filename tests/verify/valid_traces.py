"""Traces that keep every promise; tests/verify/test_mutations.py breaks them one line at a time."""

from __future__ import annotations

JOB = "JobNew a schedule='*/10 * * * *' timezone=UTC overlap=skip recovery=execute_last retry_ms=60000"
JOB += " cursor_ms=10:00:30"

NORMAL = f"""
10:00:30 {JOB}
10:00:30 SchedulerInitializationStarted node=n1
10:00:30 SchedulerInitializationCompleted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:10:05 TaskRunCompleted a@10:10/main#1 state=success
10:10:05 OccurrenceCompleted a@10:10
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00
10:20:00 TaskRunStarted a@10:20/main#1 node=n1
10:20:05 TaskRunFailed a@10:20/main#1 state=failed
10:20:05 TaskRetryScheduled a@10:20/main#1 at_ms=10:21:05
10:21:05 TaskRetryStarted a@10:20/main#2 node=n1
10:21:06 TaskRunCompleted a@10:20/main#2 state=success
10:21:06 OccurrenceCompleted a@10:20
"""

STOP_AND_RESTART = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:10:01 SchedulerStopRequested node=n1
10:10:02 TaskRunFailed a@10:10/main#1 state=canceled
10:10:02 OccurrenceCanceled a@10:10
10:10:02 SchedulerStopped node=n1
10:15:00 SchedulerStarted node=n2
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00
10:20:00 TaskRunStarted a@10:20/main#1 node=n2
10:20:05 TaskRunCompleted a@10:20/main#1 state=success
10:20:05 OccurrenceCompleted a@10:20
"""

CRASH_AND_RESTART = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:15:00 SchedulerStarted node=n2
10:15:00 SchedulerCrashed node=n1
10:15:00 TaskRunFailed a@10:10/main#1 state=crashed
10:15:00 TaskRetryScheduled a@10:10/main#1 at_ms=10:15:00
10:15:00 TaskRetryStarted a@10:10/main#2 node=n2
10:15:05 TaskRunCompleted a@10:10/main#2 state=success
10:15:05 OccurrenceCompleted a@10:10
"""

# No event has the end of the interrupted run; the next due instant starts it again.
CRASH_AND_NEXT_DUE = f"""
10:00:30 {JOB}
10:00:30 SchedulerInitializationStarted node=n1
10:00:30 SchedulerInitializationCompleted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:11:00 SchedulerCrashed node=n1
10:15:00 SchedulerInitializationStarted node=n1
10:15:00 SchedulerInitializationCompleted node=n1
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00
10:20:00 TaskRunStarted a@10:20/main#1 node=n1
10:20:05 TaskRunCompleted a@10:20/main#1 state=success
10:20:05 OccurrenceCompleted a@10:20
"""

ADOPTED = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:15:00 SchedulerStarted node=n2
10:15:00 SchedulerCrashed node=n1
10:15:00 TaskRunAdopted a@10:10/main#1 node=n2
10:16:00 TaskRunCompleted a@10:10/main#1 state=success
10:16:00 OccurrenceCompleted a@10:10
"""

MISSED = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:00:40 SchedulerStopRequested node=n1
10:00:40 SchedulerStopped node=n1
11:05:00 SchedulerStarted node=n2
11:05:00 OccurrencesMissed a from_ms=10:10:00 to_ms=10:30:00
11:05:00 OccurrenceMissed a@10:40
11:05:00 OccurrenceMissed a@10:50
11:05:00 OccurrenceStarted a@11:00 due_ms=11:00:00 recovery=true
11:05:00 TaskRunStarted a@11:00/main#1 node=n2
11:05:05 TaskRunCompleted a@11:00/main#1 state=success
11:05:05 OccurrenceCompleted a@11:00
11:10:00 OccurrenceStarted a@11:10 due_ms=11:10:00
11:10:00 TaskRunStarted a@11:10/main#1 node=n2
11:10:05 TaskRunCompleted a@11:10/main#1 state=success
11:10:05 OccurrenceCompleted a@11:10
"""

PREEMPTED = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:19:30 TaskRunFailed a@10:10/main#1 state=failed
10:19:30 TaskRetryScheduled a@10:10/main#1 at_ms=10:20:30
10:20:00 TaskRetryPreempted a@10:10/main
10:20:00 OccurrenceFailed a@10:10
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00
10:20:00 TaskRunStarted a@10:20/main#1 node=n1
10:20:05 TaskRunCompleted a@10:20/main#1 state=success
10:20:05 OccurrenceCompleted a@10:20
"""

PARALLEL_AND_ALLOWED = """
10:00:30 JobNew a schedule='*/10 * * * *' timezone=UTC overlap=allow recovery=execute_all cursor_ms=10:00:30
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00 overlap=allow
10:10:00 TaskRunStarted a@10:10/one#1 node=n1
10:10:00 TaskRunStarted a@10:10/two#1 node=n1
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00 overlap=allow
10:20:00 TaskRunStarted a@10:20/one#1 node=n1
10:20:05 TaskRunCompleted a@10:20/one#1 state=success
10:20:06 TaskRunCompleted a@10:10/two#1 state=success
10:20:07 TaskRunCompleted a@10:10/one#1 state=success
10:20:07 OccurrenceCompleted a@10:10
10:20:08 OccurrenceCompleted a@10:20
"""

QUEUED_AND_SKIPPED = """
10:00:30 JobNew a schedule='*/10 * * * *' timezone=UTC overlap=queue_one recovery=execute_last cursor_ms=10:00:30
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:20:00 OccurrenceQueued a@10:20
10:30:00 OccurrenceSkipped a@10:30
10:35:00 TaskRunCompleted a@10:10/main#1 state=success
10:35:00 OccurrenceCompleted a@10:10
10:35:00 OccurrenceStarted a@10:20 due_ms=10:20:00
10:35:00 TaskRunStarted a@10:20/main#1 node=n1
10:35:05 TaskRunCompleted a@10:20/main#1 state=success
10:35:05 OccurrenceCompleted a@10:20
"""

REINITIALIZED = f"""
10:00:30 SchedulerInitializationStarted node=n1
10:00:30 SchedulerInitializationFailed node=n1
10:00:40 SchedulerInitializationStarted node=n1
10:00:40 {JOB}
10:00:40 PollingStarted node=n1
10:00:40 SchedulerInitializationCompleted node=n1
10:05:00 SchedulerReinitializationStarted node=n1
10:05:00 JobOrphaned a
10:05:00 SchedulerInitializationCompleted node=n1
10:06:00 SchedulerStopRequested node=n1
10:06:00 SchedulerStopped node=n1
"""

# A run that was asked for, an end in the dead letters, and a pause.
COMMANDED = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:05:00 OccurrenceStarted a@10:05:00.123 due_ms=10:05:00.123 manual=true
10:05:00 TaskRunStarted a@10:05:00.123/main#1 node=n1
10:05:05 TaskRunFailed a@10:05:00.123/main#1 state=failed
10:05:05 TaskDeadLettered a@10:05:00.123/main#1
10:05:05 OccurrenceFailed a@10:05:00.123
10:06:00 JobPaused a actor=me
10:10:00 OccurrenceSkipped a@10:10
10:15:00 JobResumed a actor=me
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00
10:20:00 TaskRunStarted a@10:20/main#1 node=n1
10:20:05 TaskRunCompleted a@10:20/main#1 state=success
10:20:05 OccurrenceCompleted a@10:20
"""

OVERRIDDEN = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:05:00 JobOverridden a schedule='30 * * * *' timezone=UTC overlap=skip recovery=execute_last cursor_ms=10:15:00
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:10:05 TaskRunCompleted a@10:10/main#1 state=success
10:10:05 OccurrenceCompleted a@10:10
10:30:00 OccurrenceStarted a@10:30 due_ms=10:30:00
10:30:00 TaskRunStarted a@10:30/main#1 node=n1
10:30:05 TaskRunCompleted a@10:30/main#1 state=success
10:30:05 OccurrenceCompleted a@10:30
"""

# An edit withdraws what waits, the next one wants it again.
REVIVED = f"""
10:00:30 {JOB}
10:00:30 SchedulerStarted node=n1
10:05:00 OccurrenceCanceled a@10:10
10:05:00 JobOrphaned a
10:06:00 {JOB.replace("10:00:30", "10:06:00")}
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:10:05 TaskRunCompleted a@10:10/main#1 state=success
10:10:05 OccurrenceCompleted a@10:10
"""

# After the crash another run turns out to have done it, under the same idempotency key.
DONE_BY_ANOTHER = "\n".join(
    [
        *CRASH_AND_RESTART.strip().splitlines()[:8],
        "10:15:00 TaskRunSkipped a@10:10/main",
        "10:15:00 OccurrenceCompleted a@10:10",
    ]
)

# The last instant before `until` has come while earlier ones, and one that was skipped between them, wait in the queue.
QUEUED_BEYOND_THE_LAST = """
10:00:30 JobNew a schedule='*/10 * * * * {until:2027-01-04T10:40:00Z}' overlap=queue cursor_ms=10:00:30
10:00:30 SchedulerStarted node=n1
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00 overlap=queue
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:20:00 OccurrenceQueued a@10:20
10:30:00 OccurrenceSkipped a@10:30
10:40:00 OccurrenceQueued a@10:40
10:45:00 TaskRunCompleted a@10:10/main#1 state=success
10:45:00 OccurrenceCompleted a@10:10
10:45:00 OccurrenceStarted a@10:20 due_ms=10:20:00 overlap=queue
10:45:00 TaskRunStarted a@10:20/main#1 node=n1
10:46:00 TaskRunCompleted a@10:20/main#1 state=success
10:46:00 OccurrenceCompleted a@10:20
10:46:00 OccurrenceStarted a@10:40 due_ms=10:40:00 overlap=queue
10:46:00 TaskRunStarted a@10:40/main#1 node=n1
"""

# The clock is set back by an hour while it runs: ten minutes after its end are before its start.
DELAYED_AND_SET_BACK = """
10:00:30 JobNew a schedule='@every 10m' cadence=fixed_delay anchor_ms=10:50:00 overlap=skip recovery=execute_last
10:00:30 SchedulerStarted node=n1
11:00:00 OccurrenceStarted a@11:00 due_ms=11:00:00
11:00:00 TaskRunStarted a@11:00/main#1 node=n1
10:02:00 ClockStepped by_ms=3600000
10:05:00 TaskRunCompleted a@11:00/main#1 state=success
10:05:00 OccurrenceCompleted a@11:00
10:15:00 OccurrenceStarted a@10:15 due_ms=10:15:00
10:15:00 TaskRunStarted a@10:15/main#1 node=n1
"""

# It waits for a place, having been due, when the clock is set back by an hour; its turn comes before it is due again.
QUEUED_AND_SET_BACK = """
10:00:30 JobNew a schedule='0 * * * *' overlap=queue cursor_ms=10:00:30
10:00:30 SchedulerStarted node=n1
11:00:02 OccurrenceQueued a@11:00
10:02:00 ClockStepped by_ms=-3600000
10:05:00 OccurrenceStarted a@11:00 due_ms=11:00:00 queued=true
10:05:00 TaskRunStarted a@11:00/main#1 node=n1
10:06:00 TaskRunCompleted a@11:00/main#1 state=success
10:06:00 OccurrenceCompleted a@11:00
12:00:00 OccurrenceStarted a@12:00 due_ms=12:00:00 overlap=queue
"""

# The clock is set back by an hour between two runs: the next instant by the new time is before the last start.
SET_BACK_BETWEEN = """
10:00:30 JobNew a schedule='*/10 * * * *' cursor_ms=10:50:00 overlap=skip recovery=execute_last
10:00:30 SchedulerStarted node=n1
11:00:00 OccurrenceStarted a@11:00 due_ms=11:00:00
11:00:00 TaskRunStarted a@11:00/main#1 node=n1
11:00:01 TaskRunCompleted a@11:00/main#1 state=success
11:00:01 OccurrenceCompleted a@11:00
10:02:00 ClockStepped by_ms=-3600000
10:10:00 OccurrenceStarted a@10:10 due_ms=10:10:00
10:10:00 TaskRunStarted a@10:10/main#1 node=n1
10:10:01 TaskRunCompleted a@10:10/main#1 state=success
10:10:01 OccurrenceCompleted a@10:10
10:20:00 OccurrenceStarted a@10:20 due_ms=10:20:00
"""

VALID = {
    "set back between": SET_BACK_BETWEEN,
    "queued and set back": QUEUED_AND_SET_BACK,
    "queued beyond the last": QUEUED_BEYOND_THE_LAST,
    "delayed and set back": DELAYED_AND_SET_BACK,
    "done by another": DONE_BY_ANOTHER,
    "overridden": OVERRIDDEN,
    "revived": REVIVED,
    "normal": NORMAL,
    "stop and restart": STOP_AND_RESTART,
    "crash and restart": CRASH_AND_RESTART,
    "crash and next due": CRASH_AND_NEXT_DUE,
    "adopted": ADOPTED,
    "missed": MISSED,
    "preempted": PREEMPTED,
    "parallel and allowed": PARALLEL_AND_ALLOWED,
    "queued and skipped": QUEUED_AND_SKIPPED,
    "reinitialized": REINITIALIZED,
    "commanded": COMMANDED,
}
