"""The events of the specification for a listener: each once, in the order of the journal, when it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from chronex.declarative.scheduler_states import utc_datetime
from chronex.model.event import Event
from chronex.model.reasons import text_of
from chronex.storage import journal
from chronex.storage.ports import Store

LIFECYCLE_EVENTS = frozenset(
    {
        "SchedulerInitializationStarted",
        "SchedulerInitializationCompleted",
        "SchedulerInitializationFailed",
        "SchedulerReinitializationStarted",
        "SchedulerStopRequested",
        "SchedulerStopped",
        "PollingStarted",
        "PollingStopRequested",
        "PollingStopped",
    }
)
TASK_EVENTS = frozenset(
    {"TaskRunStarted", "TaskRunCompleted", "TaskRunFailed", "TaskRetryStarted", "TaskRetryPreempted"}
)
# A store that waits in a thread keeps the program from ending for as long as that thread waits.
_MAX_WAIT_S = 1.0


class SchedulerEvent(NamedTuple):
    """One event as a listener gets it: the journal's, with the task's own name. `at` is aware, in UTC."""

    name: str
    at: datetime
    task: str
    data: dict[str, Any]


Listener = Callable[[SchedulerEvent], Any]


class EventFeed:
    """Follows the journal of one store for one scheduler. A listener that raises is reported to the event loop.

    `names` has the name of each task by the id of its job; the scheduler adds to it.
    """

    def __init__(self, store: Store, scheduler: str, names: Mapping[str, str], listener: Listener) -> None:
        self._store = store
        self._scheduler = scheduler
        self._names = names
        self._listener = listener
        self._position = store.view(journal.head)
        self._is_closing = False
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="chronex events")

    async def _follow(self) -> None:
        while not self._is_closing:
            seen = self._store.wait(-1, 0)
            self.deliver()
            await self._store.wait_async(seen, _MAX_WAIT_S)

    def deliver(self) -> None:
        """Hand over every event beyond the last one that was handed over."""
        while lines := self._store.view(lambda tx: journal.tail(tx, self._position)):
            for number, event in lines:
                self._position = number
                self._deliver_one(event)

    def _deliver_one(self, event: Event) -> None:
        is_ours = event.name in LIFECYCLE_EVENTS and event.data.get("scheduler") == self._scheduler
        if not is_ours and not (event.name in TASK_EVENTS and event.job in self._names):
            return
        at = utc_datetime(event.at_ms)
        assert at is not None
        try:
            self._listener(SchedulerEvent(event.name, at, self._names.get(event.job, ""), _event_data(event)))
        except Exception as problem:
            context = {"message": "a listener of the scheduler failed", "exception": problem}
            asyncio.get_running_loop().call_exception_handler(context)

    async def close(self) -> None:
        """Hand over the rest and stop.

        The flag is needed because a cancellation may be lost: asyncio.wait_for of Python 3.11 swallows one that
        comes together with what it waits for.
        """
        self._is_closing = True
        self._following.cancel()
        await asyncio.wait([self._following])
        self.deliver()


def _event_data(event: Event) -> dict[str, Any]:
    extra = {
        "attempt": event.attempt,
        "scheduled_at": utc_datetime(event.nominal_ms),
        "reason": text_of(event.reason) or None,
    }
    return {**event.data, **{key: value for key, value in extra.items() if value is not None}}
