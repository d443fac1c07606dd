"""Wall times to instants, over clock changes and under a DST policy.

For a search a zone is a row of spans. A span maps the wall seconds low..high to instants. An ordinary span is an
interval between two clock changes; a gap is a span of its own, whose wall seconds all map to one instant, the gap's
end. The search walks the spans without knowing about DST.

Single wall times (`@once`, `from`, `until`, the start of a repeating interval) are mapped by `wall_to_instant`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from chronex.text.durations import DAY_MS
from chronex.timing.zones import ZONE_BLOCK_BITS, ClockChange, Zone

GapRule = Literal["end", "skip"]
OverlapRule = Literal["first", "both", "by-kind"]
_DAY = 86_400
_TWO_DAYS = 2 * _DAY


class DstPolicy(NamedTuple):
    """What a wall time that does not exist, or exists twice, stands for."""

    gap: GapRule = "end"
    overlap: OverlapRule = "by-kind"


DEFAULT_POLICY = DstPolicy()
POSIX_POLICY = DstPolicy(gap="skip", overlap="first")


def fires_twice(policy: DstPolicy, *, is_interval: bool) -> bool:
    """Does a wall time that exists twice fire on both passes?"""
    return policy.overlap == "both" or (policy.overlap == "by-kind" and is_interval)


# -- a zone as spans ------------------------------------------------------------------------------------------


class WallSpan(NamedTuple):
    """Wall seconds low..high and their instants: wall - shift, or `collapse` for all of them."""

    first: int  # first instant
    low: int  # first and last wall second
    high: int
    shift: int  # instant = wall - shift, unless the span collapses
    collapse: int | None = None  # the one instant of a gap

    def entry(self, bound: int) -> int | None:
        """The first wall second of the span at or after the instant `bound`; None when the span ends before it."""
        if self.collapse is not None:
            return self.low if self.collapse >= bound else None
        wall = bound + self.shift
        return max(wall, self.low) if wall <= self.high else None

    def mirrored(self) -> WallSpan:
        """The same span in mirrored time, where t becomes -1 - t."""
        if self.collapse is not None:
            at = -1 - self.collapse
            return WallSpan(at, -1 - self.high, -1 - self.low, 0, at)
        return WallSpan(-1 - (self.high - self.shift), -1 - self.high, -1 - self.low, -self.shift)


class Timeline(NamedTuple):
    """The spans of one block of zone data, as columns for bisection. `lows` and `highs` rise with the index."""

    spans: tuple[WallSpan, ...]
    firsts: list[int]
    lows: list[int]
    highs: list[int]


def timeline_of(zone: Zone, policy: DstPolicy, *, is_interval: bool, mirrored: bool, block: int) -> Timeline:
    """The zone's spans in this block (zones.py); kept with the zone, since they depend on nothing else."""
    both = fires_twice(policy, is_interval=is_interval)
    key = (policy.gap, both, mirrored, block)
    found = zone.timelines.get(key)
    if not isinstance(found, Timeline):
        spans = _spans(zone, policy.gap, both=both, block=-1 - block if mirrored else block)
        if mirrored:
            spans = [span.mirrored() for span in reversed(spans)]
        columns = ([s.first for s in spans], [s.low for s in spans], [s.high for s in spans])
        found = zone.timelines[key] = Timeline(tuple(spans), *columns)
    return found


def _spans(zone: Zone, gap: GapRule, *, both: bool, block: int) -> list[WallSpan]:
    start, end = block << ZONE_BLOCK_BITS, ((block + 1) << ZONE_BLOCK_BITS) - 1
    changes = zone.changes(start - _TWO_DAYS, end + 1)
    spans: list[WallSpan] = []
    offset = changes[0].before if changes else zone.offset_at(start)
    since, wall_from = start - _TWO_DAYS, None
    for change in changes:
        _append_interval(spans, since, change.at - 1, offset, wall_from, start, end)
        since, offset, wall_from = change.at, change.after, None
        if change.is_gap and gap == "end":
            _append_gap(spans, change, start)
            since += 1  # the gap's span owns the instant of the change
        elif not change.is_gap and not both:
            wall_from = change.at + change.before  # the second pass is left out
    _append_interval(spans, since, end, offset, wall_from, start, end)
    return spans


def _append_interval(
    spans: list[WallSpan], since: int, until: int, offset: int, wall_from: int | None, start: int, end: int
) -> None:
    """The part of since..until that lies in start..end, without the wall seconds before `wall_from`."""
    first, last = max(since, start), min(until, end)
    low = first + offset if wall_from is None else max(first + offset, wall_from)
    high = last + offset
    if low <= high:
        spans.append(WallSpan(low - offset, low, high, offset))


def _append_gap(spans: list[WallSpan], change: ClockChange, start: int) -> None:
    """From the first missing wall second to the first valid one: they all fire at the change itself."""
    if change.at >= start:
        low, high = change.at + change.before, change.at + change.after
        spans.append(WallSpan(change.at, low, high, 0, collapse=change.at))


# -- single wall times ----------------------------------------------------------------------------------------


def wall_to_instant(wall_ms: int, zone: Zone) -> int:
    """The first instant that shows this wall time; for one inside a gap, the gap's end."""
    second, ms = divmod(wall_ms, 1000)
    earlier, later = zone.offset_at(second - _DAY), zone.offset_at(second + _DAY)
    candidates = sorted(second - offset for offset in {earlier, later})
    for instant in candidates:
        if instant + zone.offset_at(instant) == second:
            return instant * 1000 + ms
    return _gap_end(second, zone) * 1000


def _gap_end(wall: int, zone: Zone) -> int:
    for change in zone.changes(wall - _TWO_DAYS, wall + _TWO_DAYS):
        if change.at + change.before <= wall < change.at + change.after:
            return change.at
    return wall - zone.offset_at(wall)


def last_instant_of_day(midnight_wall_ms: int, zone: Zone) -> int:
    """The last millisecond whose local date is that day or earlier, on the second pass where there are two."""
    next_midnight = (midnight_wall_ms + DAY_MS) // 1000
    candidates = [next_midnight - zone.offset_at(next_midnight + shift) for shift in (-_DAY, _DAY)]
    candidates += [c.at for c in zone.changes(next_midnight - _TWO_DAYS, next_midnight + _TWO_DAYS)]
    # The day has ended for good at the latest instant where the wall goes from before midnight to after it.
    ends = [at for at in candidates if _wall(at - 1, zone) < next_midnight <= _wall(at, zone)]
    return max(ends) * 1000 - 1 if ends else (next_midnight - zone.offset_at(next_midnight)) * 1000 - 1


def _wall(second: int, zone: Zone) -> int:
    return second + zone.offset_at(second)
