"""Groups: what some jobs share, such as a database, how many of their runs may use it at once, and how often."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

# A start keeps its time for as long as the window of the rate: so many numbers fit a row, and are read quickly.
MOST_STARTS = 1_000
# A point is worth a minute of waiting (chronex/engine/group_limits.py).
MOST_PRIORITY = 100
# Places of a group; a job takes as many as it weighs.
MOST_PLACES = 10_000


class StartRate(Struct, frozen=True, gc=False):
    """At most `count` starts in any `per_ms` milliseconds."""

    count: int
    per_ms: int


class GroupSettings(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a job file says of a group; None leaves it without that limit."""

    name: str
    limit: int | None = None
    rate: StartRate | None = None


class Group(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """The row of a group. Whoever decides about the group reads this row first, and so it can be locked.

    Who holds places and who stands in line are entries of their own (chronex/storage/keys.py): a row that listed them
    would grow with them.
    """

    # Of [groups.NAME]; a name that begins with a star is one of Chronex's own.
    name: str
    limit: int | None = None
    rate: StartRate | None = None
    # Grows by one with every change of the two above.
    version: int = 1
    # Who applied it last, from which file, and when.
    source: str = ""
    updated_by: str = ""
    updated_ms: int = 0
    # When its newest starts were, the earliest first; kept where there is a rate.
    starts: tuple[int, ...] = ()

    @property
    def settings(self) -> GroupSettings:
        return GroupSettings(self.name, self.limit, self.rate)


class CatchUpPace(NamedTuple):
    """How missed runs are made up for: at most `share` of the slots, and one start in every `spacing_ms`."""

    spacing_ms: int = 500
    share: float = 0.5

    def places(self, slots: int) -> int:
        return max(1, int(slots * self.share))

    @property
    def rate(self) -> StartRate | None:
        return StartRate(1, self.spacing_ms) if self.spacing_ms else None
