"""The declarative scheduler: registrations in, a scheduler that keeps its promises out (specs/declarative.md).

scheduler = chronex.Scheduler("state")
await scheduler.initialize([("tidy", "0 3 * * *", tidy, timedelta(minutes=5))])
...
await scheduler.stop()
"""

from __future__ import annotations

from chronex.declarative.errors import SchedulerError
from chronex.declarative.registrations import Callback, Registration
from chronex.declarative.scheduler import Scheduler
from chronex.declarative.states import PollingState, SchedulerEvent, SchedulerState, TaskState, TaskStatus

__all__ = [
    "Callback",
    "PollingState",
    "Registration",
    "Scheduler",
    "SchedulerError",
    "SchedulerEvent",
    "SchedulerState",
    "TaskState",
    "TaskStatus",
]
