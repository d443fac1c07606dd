"""The journal to a listener: each event of the specification once, in order, as it is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from chronex.declarative.states import SchedulerEvent
from chronex.declarative.views import moment
from chronex.model.reasons import text_of
from chronex.model.records import Event
from chronex.storage import journal
from chronex.storage.ports import Store

Listener = Callable[[SchedulerEvent], Any]

LIFECYCLE = frozenset(
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
OF_TASKS = frozenset(
    {"TaskRunStarted", "TaskRunCompleted", "TaskRunFailed", "TaskRetryStarted", "TaskRetryPreempted"}
)
# A store that waits in a thread keeps the program from ending for as long as that thread waits.
_LONGEST_WAIT_S = 1.0


class Announcer:
    """Follows the journal of one store for one scheduler. A listener that raises is reported to the event loop."""

    def __init__(self, store: Store, scheduler: str, names: Mapping[str, str], listener: Listener) -> None:
        self._store, self._scheduler, self._names, self._listener = store, scheduler, names, listener
        self._position = store.view(journal.head)
        self._is_closing = False
        self._following = asyncio.get_running_loop().create_task(self._follow(), name="chronex events")

    async def _follow(self) -> None:
        while not self._is_closing:
            seen = self._store.wait(-1, 0)
            self.announce()
            await self._store.wait_async(seen, _LONGEST_WAIT_S)

    def announce(self) -> None:
        """Everything that the journal has beyond what was told."""
        while lines := self._store.view(lambda tx: journal.tail(tx, self._position)):
            for number, event in lines:
                self._position = number
                self._tell(event)

    def _tell(self, event: Event) -> None:
        is_ours = event.name in LIFECYCLE and event.data.get("scheduler") == self._scheduler
        if not is_ours and not (event.name in OF_TASKS and event.job in self._names):
            return
        at = moment(event.at_ms)
        assert at is not None
        try:
            self._listener(SchedulerEvent(event.name, at, self._names.get(event.job, ""), told_data(event)))
        except Exception as problem:
            told = {"message": "a listener of the scheduler failed", "exception": problem}
            asyncio.get_running_loop().call_exception_handler(told)

    async def close(self) -> None:
        """The rest, and no more. A cancellation alone may be lost: asyncio.wait_for of Python 3.11 swallows one that
        comes together with what it waits for."""
        self._is_closing = True
        self._following.cancel()
        await asyncio.wait([self._following])
        self.announce()


def told_data(event: Event) -> dict[str, Any]:
    extra = {
        "attempt": event.attempt,
        "scheduled_at": moment(event.nominal_ms),
        "reason": text_of(event.reason) or None,
    }
    return {**event.data, **{key: value for key, value in extra.items() if value is not None}}
