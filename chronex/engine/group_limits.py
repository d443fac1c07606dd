"""Whether a group has a place for one more run, and who of those that wait goes first: pure functions of values.

Everyone who waits has one place in the order, in whichever lines it stands: the time at which it came, less a minute
for every point of its priority. The order never changes while it waits, and all who wait grow older alike; so a later
one comes first only if it came within so many minutes as it has points more. That is the bound: at most
`MOST_OVERTAKEN_MS` after it came, nobody who comes is served before it in a line that it stands in.

The line of a group is joined when a place in it is found to be lacking, and nobody takes a place that an earlier one
in that line waits for. Who waits holds nothing. The first of all who wait is the first in each of its lines, and is
kept by nobody but those that run: no deadlock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chronex.model.groups import MOST_PRIORITY, StartRate
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.text.instants import rfc3339

# What a point of priority is worth.
POINT_MS = 60_000
# A missed run waits as if it had come so much later: those of now go first, and it does not wait for ever.
CATCH_UP_BEHIND_MS = 3_600_000
MOST_OVERTAKEN_MS = 2 * MOST_PRIORITY * POINT_MS + CATCH_UP_BEHIND_MS

# Chronex's own lines. Nobody keeps a place of them while it waits for a group.
POOL, CATCH_UP, CONDITIONS = "*pool", "*catch-up", "*conditions"
OWN_LINES = (POOL, CATCH_UP, CONDITIONS)


class GroupUse(NamedTuple):
    """What the store says of a group: its limits, the places that are taken and by whom, and its newest starts."""

    name: str
    limit: int | None = None
    rate: StartRate | None = None
    held: int = 0
    holder: Occurrence | None = None
    starts: Sequence[int] = ()

    def with_start(self, weight: int, starter: Occurrence, now_ms: int) -> GroupUse:
        """The same after one more start."""
        starts = () if self.rate is None else kept_starts((*self.starts, now_ms), self.rate, now_ms)
        return self._replace(held=self.held + weight, holder=self.holder or starter, starts=starts)


def order_of(now_ms: int, priority: int, *, is_catch_up: bool) -> int:
    """The place in the order of one that begins to wait now; the smallest goes first."""
    return now_ms - priority * POINT_MS + (CATCH_UP_BEHIND_MS if is_catch_up else 0)


def lacking(use: GroupUse, weight: int, order_ms: int, first_ms: int | None, now_ms: int) -> Reason:
    """Why one with this place in the order cannot have `weight` places of the group now; no reason where it can.

    `first_ms` is the place of the first who stands in the group's line, which may be itself. A group whose limit was
    lowered below what a job weighs gives all of its places, once nobody has any.
    """
    if use.limit is not None and use.held and use.held + weight > use.limit:
        return full(use)
    if first_ms is not None and first_ms < order_ms:
        return Reason(ReasonCode.GROUP_LINE, use.name)
    ready_ms = ready_at(use.rate, use.starts, now_ms)
    if ready_ms > now_ms:
        return Reason(ReasonCode.GROUP_RATE, f"{use.name} has a rate, and starts the next at {rfc3339(ready_ms)}")
    return NO_REASON


def full(use: GroupUse) -> Reason:
    """With the one that has held its places for longest."""
    holder = use.holder
    if holder is None:
        return Reason(ReasonCode.GROUP_FULL, f"{use.name} is full")
    since = rfc3339(holder.started_ms if holder.started_ms is not None else holder.due_ms)
    return Reason(ReasonCode.GROUP_FULL, f"{use.name} is full: {holder.job} since {since}")


def ready_at(rate: StartRate | None, starts: Sequence[int], now_ms: int) -> int:
    """When the rate allows the next start; not later than now where it allows it."""
    if rate is None:
        return now_ms
    recent = kept_starts(starts, rate, now_ms)
    return now_ms if len(recent) < rate.count else recent[-rate.count] + rate.per_ms


def kept_starts(starts: Sequence[int], rate: StartRate, now_ms: int) -> tuple[int, ...]:
    """Those that count still. One that lies further ahead than the window is of a clock that was set back."""
    counted = [start for start in starts if now_ms - rate.per_ms < start <= now_ms + rate.per_ms]
    return tuple(sorted(counted)[-rate.count :])


def from_line(occurrence: Occurrence, places: dict[str, int] | None) -> dict[str, Any]:
    """What a start changes of one that waited, or takes places."""
    changed: dict[str, Any] = {"groups": places} if places else {}
    return {**changed, "lines": (), "order_ms": 0} if occurrence.order_ms else changed
