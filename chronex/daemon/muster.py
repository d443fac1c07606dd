"""Children that stand at their gates for an instant that has not come yet.

A thousand commands on one instant take most of a second to start, and all of that would come after the instant. So
what is foreseen is started shortly before, and waits: nothing of it runs unless the tick orders exactly that, and
its identity is on record. The gate is the same as every child's, and so is the promise (specs/run.md).
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import NamedTuple

from chronex.engine.clock import Clock
from chronex.engine.orders import Launch
from chronex.run import AttemptRequest, Surroundings
from chronex.run.supervise import Supervision, stand

# How long before an instant the store is asked what it will bring.
LOOK_AHEAD_MS = 1_000
# A lone child stands this long; each further one needs about a third of what is allowed for it here.
LEAD_MS, LEAD_PER_CHILD_MS = 20, 0.8
MOST_STANDING = 1_024
STARTS_PER_TURN = 8
_PATIENCE = 400  # times 5 ms; a gate that is shut ends at once
_DESCRIPTORS_EACH, _DESCRIPTORS_OF_OURS = 3, 128


class _Standing(NamedTuple):
    request: AttemptRequest
    child: Supervision
    at_ms: int


Foresee = Callable[[int, int], list[Launch]]


class Muster:
    """`foresee` tells what an instant will bring, `request_of` what would run."""

    def __init__(
        self, surroundings: Surroundings, foresee: Foresee, request_of: Callable[[Launch], AttemptRequest]
    ) -> None:
        self.surroundings, self.clock = surroundings, surroundings.clock
        self._foresee, self._request_of = foresee, request_of
        self.standing: dict[str, _Standing] = {}
        self._leaving: list[Supervision] = []
        self._at_ms: int | None = None
        self._work: asyncio.Task[None] | None = None

    def prepare(self, at_ms: int | None) -> None:
        """The next instant is `at_ms`. Asked again with the same one, it goes on as it is."""
        if at_ms == self._at_ms:
            return
        self._forget_work()
        self._at_ms = at_ms
        if at_ms is not None and at_ms - self.clock.wall_ms() > LEAD_MS:  # else it is here before anybody could stand
            self._work = asyncio.get_running_loop().create_task(self._call_up(at_ms))

    def take(self, request: AttemptRequest) -> Supervision | None:
        """The child that stands for this attempt, if it would run exactly this, and lives."""
        standing = self.standing.pop(request.attempt_id, None)
        if standing is None:
            return None
        if standing.request == request and standing.child.is_standing:
            return standing.child
        self._send_home(standing.child)
        return None

    def _send_home(self, child: Supervision) -> None:
        child.dismiss()
        self._leaving.append(child)

    async def gone(self) -> None:
        """Until those who were sent home have been reaped: in a program that goes on without us nobody else would."""
        for _ in range(_PATIENCE):
            if all(one.process.is_reaped for one in self._leaving):
                return
            await asyncio.sleep(0.005)

    def dismiss(self, until_ms: int | None = None) -> None:
        """Send those home whose instant has come without an order for them; all of them where no time is given."""
        gone = [name for name, one in self.standing.items() if until_ms is None or one.at_ms <= until_ms]
        for name in gone:
            self._send_home(self.standing.pop(name).child)
        self._leaving = [child for child in self._leaving if not child.process.is_reaped]
        if until_ms is None:
            self._forget_work()

    def _forget_work(self) -> None:
        if self._work is not None:
            self._work.cancel()
        self._work = self._at_ms = None

    async def _call_up(self, at_ms: int) -> None:
        await _sleep_until(at_ms - LOOK_AHEAD_MS, self.clock)
        most = most_standing() - len(self.standing)
        loop = asyncio.get_running_loop()
        try:
            launches = await loop.run_in_executor(None, self._foresee, at_ms, most)
        except Exception:  # a store that is gone, a schedule that fails: the tick meets it too, and tells it
            return
        await _sleep_until(at_ms - LEAD_MS - int(len(launches) * LEAD_PER_CHILD_MS), self.clock)
        for number, launch in enumerate(launches):
            if number % STARTS_PER_TURN == STARTS_PER_TURN - 1:
                await asyncio.sleep(0)
            if self.clock.wall_ms() >= at_ms:
                return
            self._stand(launch, at_ms)

    def _stand(self, launch: Launch, at_ms: int) -> None:
        """Where that is not possible the instant comes without it, and tells why."""
        request = self._request_of(launch)
        if request.attempt_id not in self.standing:
            child = stand(request, self.surroundings)
            if isinstance(child, Supervision):
                self.standing[request.attempt_id] = _Standing(request, child, at_ms)


async def _sleep_until(at_ms: int, clock: Clock) -> None:
    left_ms = at_ms - clock.wall_ms()
    if left_ms > 0:
        await asyncio.sleep(left_ms / 1000)


def most_standing() -> int:
    """Three descriptors each, and never more than half of what this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_STANDING
    return max(0, min(MOST_STANDING, (soft // 2 - _DESCRIPTORS_OF_OURS) // _DESCRIPTORS_EACH))
