"""The declarative scheduler: a list of registrations becomes a running scheduler (specs/declarative.md).

scheduler = chronex.Scheduler("state")
await scheduler.initialize([("tidy", "0 3 * * *", tidy, timedelta(minutes=5))])
...
await scheduler.stop()
"""

from __future__ import annotations

from chronex.declarative.registrations import Callback, Registration
from chronex.declarative.scheduler import Scheduler, SchedulerEvent
from chronex.declarative.scheduler_errors import SchedulerError
from chronex.declarative.scheduler_states import PollingState, ScheduledTaskState, SchedulerState, TaskStatus

__all__ = [
    "Callback",
    "PollingState",
    "Registration",
    "ScheduledTaskState",
    "Scheduler",
    "SchedulerError",
    "SchedulerEvent",
    "SchedulerState",
    "TaskStatus",
]
