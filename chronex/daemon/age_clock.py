"""The time by which history, logs and dead letters are too old.

What is removed is gone, so a clock that has just jumped a year ahead must not decide it. Ages are counted by the wall
clock as long as that agrees, within a week, with the time that schedulers have seen pass. When it is further ahead,
ages go on from the old time, and the new one holds only after schedulers have run by it for a day.
"""

from __future__ import annotations

from collections.abc import Iterable

from chronex.clock import Clock
from chronex.model.records import Node
from chronex.text.durations import DAY_MS

# A machine that was off for a week is nothing unusual, and a week more or less is no loss to what is kept for months.
MOST_AHEAD_MS = 7 * DAY_MS
PROOF_MS = DAY_MS
_TOLERANCE_MS = 2_000


class AgeClock:
    """`trusted_ms` is the time of ages; `doubt_ms` is how much longer the wall clock must hold to be believed."""

    def __init__(self, clock: Clock, nodes: Iterable[Node] = ()) -> None:
        """Go on from what the scheduler before has written to its node."""
        self._clock = clock
        self._boot_ms = clock.boottime_ms()
        self.doubt_ms = 0
        self.trusted_ms = clock.wall_ms()
        before = max(nodes, key=lambda node: (node.seen_ms, node.doubt_ms), default=None)
        if before is not None:
            self._continue(before)
        self._ahead_ms = clock.wall_ms() - self.trusted_ms

    def _continue(self, before: Node) -> None:
        seen_ms = max(before.seen_ms, before.started_ms, before.stopped_ms or 0)
        if not before.doubt_ms:
            self.trusted_ms = seen_ms
            return
        gap_ms = max(self._clock.wall_ms() - seen_ms, 0)
        self.trusted_ms = before.aged_ms + (gap_ms if gap_ms <= MOST_AHEAD_MS else 0)
        self.doubt_ms = before.doubt_ms

    def now_ms(self) -> int:
        wall_ms, boot_ms = self._clock.wall_ms(), self._clock.boottime_ms()
        elapsed_ms, self._boot_ms = boot_ms - self._boot_ms, boot_ms
        self.trusted_ms += elapsed_ms
        ahead_ms = wall_ms - self.trusted_ms
        if ahead_ms <= MOST_AHEAD_MS:
            self.doubt_ms = 0
        elif not self.doubt_ms or abs(ahead_ms - self._ahead_ms) > _TOLERANCE_MS:
            self.doubt_ms = PROOF_MS
        else:
            self.doubt_ms = max(self.doubt_ms - elapsed_ms, 0)
        if not self.doubt_ms:
            self.trusted_ms = wall_ms
        self._ahead_ms = wall_ms - self.trusted_ms
        return self.trusted_ms
