"""What a daemon does when a clock was set or the machine slept: the jobs follow, and the journal says so."""

from __future__ import annotations

from typing import Any, Protocol

from chronex.clock import Clock
from chronex.daemon.wakeups import TOLERANCE_MS, ClockJump
from chronex.engine.clock_steps import begin_where_never_set, follow_clock, follow_shared_clock, newest_sign, rewind
from chronex.storage.ports import Store


class Tell(Protocol):
    def __call__(self, name: str, data: dict[str, Any]) -> None: ...


class ClockFollower:
    """Remembers what the store could not follow yet; until it has, nothing may be decided."""

    def __init__(self, store: Store, clock: Clock, node: str, zone: str, journal: Tell) -> None:
        self._store, self._clock, self._node, self._journal = store, clock, node, journal
        self.zone = zone  # of the job file, for the words of the journal
        self.unfollowed: list[ClockJump] = []

    def note(self, jump: ClockJump, *, is_shared: bool) -> None:
        """That one of several machines slept is nothing to the others."""
        if not is_shared or jump.set_by_ms:
            self.unfollowed.append(jump)

    def follow(self) -> None:
        """The clock of this machine. StoreFullError: what is left is followed by the next call."""
        while self.unfollowed:
            jump, more = self.unfollowed[0], dict[str, Any]()
            if jump.stalled_ms:
                more["stalled_ms"] = jump.stalled_ms
            if jump.set_by_ms:
                followed = follow_clock(self._store, jump.set_by_ms, jump.at_ms, self._node)
                more |= {"retries": followed.retries, "jobs": followed.jobs}
            self._tell(jump, more)
            del self.unfollowed[0]

    async def follow_shared(self) -> None:
        """The clock of the database was set: the jobs follow once, whoever of the nodes comes first."""
        while self.unfollowed:
            jump = self.unfollowed[0]
            followed = await self._store.update_async(follow_shared_clock(jump.set_by_ms, jump.at_ms, self._node))
            del self.unfollowed[0]
            if followed is not None:
                self._tell(jump, {"retries": followed.retries, "jobs": followed.jobs})

    def check_set_back(self) -> None:
        """The clock may have been put right while no scheduler was there to see it."""
        now_ms = self._clock.wall_ms()
        begin_where_never_set(self._store, now_ms)
        ahead_ms = self._store.view(newest_sign) - now_ms
        if ahead_ms > TOLERANCE_MS:
            jobs = rewind(self._store, now_ms)
            self._tell(ClockJump(now_ms, -ahead_ms, 0, 0), {"jobs": jobs}, name="ClockStepped")

    def _tell(self, jump: ClockJump, more: dict[str, Any], name: str = "") -> None:
        fields = {"told": jump.describe(self.zone), "by_ms": jump.by_ms, "slept_ms": jump.slept_ms}
        self._journal(name or jump.name, {**fields, **more})
