"""A zone under a DST policy, as spans of wall time that the search walks without knowing about DST.

A span maps wall seconds lo..hi to instants. An ordinary span is a stretch between two clock changes; a gap
is a span of its own whose wall seconds all map to one instant, the gap's end.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from chronex.timing.zones import ERA_BITS, ClockChange, Zone

GapRule = Literal["end", "skip"]
OverlapRule = Literal["first", "both", "by-kind"]
_TWO_DAYS = 2 * 86_400


class DstPolicy(NamedTuple):
    """What a wall time that does not exist, or exists twice, stands for."""

    gap: GapRule = "end"
    overlap: OverlapRule = "by-kind"


DEFAULT_POLICY = DstPolicy()
POSIX_POLICY = DstPolicy(gap="skip", overlap="first")


class Span(NamedTuple):
    first: int  # first instant
    low: int  # first and last wall second
    high: int
    shift: int  # instant = wall - shift, unless the span collapses
    collapse: int | None = None  # the one instant of a gap

    def entry(self, bound: int) -> int | None:
        """The first wall second of the span at or after the instant `bound`; None when it lies behind."""
        if self.collapse is not None:
            return self.low if self.collapse >= bound else None
        wall = bound + self.shift
        return max(wall, self.low) if wall <= self.high else None

    def mirrored(self) -> Span:
        """The same span in mirrored time, where t becomes -1 - t."""
        if self.collapse is not None:
            at = -1 - self.collapse
            return Span(at, -1 - self.high, -1 - self.low, 0, at)
        return Span(-1 - (self.high - self.shift), -1 - self.high, -1 - self.low, -self.shift)


class Timeline(NamedTuple):
    """The spans of one era, as columns for bisection. `lows` and `highs` rise with the index."""

    spans: tuple[Span, ...]
    firsts: list[int]
    lows: list[int]
    highs: list[int]


def fires_twice(policy: DstPolicy, *, is_interval: bool) -> bool:
    """Does a wall time that exists twice fire on both passes?"""
    return policy.overlap == "both" or (policy.overlap == "by-kind" and is_interval)


def timeline_of(zone: Zone, policy: DstPolicy, *, is_interval: bool, mirrored: bool, era: int) -> Timeline:
    """The zone's spans in this era; kept with the zone, since they depend on nothing else."""
    both = fires_twice(policy, is_interval=is_interval)
    key = (policy.gap, both, mirrored, era)
    found = zone.timelines.get(key)
    if not isinstance(found, Timeline):
        spans = _spans(zone, policy.gap, both=both, era=-1 - era if mirrored else era)
        if mirrored:
            spans = [span.mirrored() for span in reversed(spans)]
        columns = ([s.first for s in spans], [s.low for s in spans], [s.high for s in spans])
        found = zone.timelines[key] = Timeline(tuple(spans), *columns)
    return found


def _spans(zone: Zone, gap: GapRule, *, both: bool, era: int) -> list[Span]:
    start, end = era << ERA_BITS, ((era + 1) << ERA_BITS) - 1
    changes = zone.changes(start - _TWO_DAYS, end + 1)
    spans: list[Span] = []
    offset = changes[0].before if changes else zone.offset_at(start)
    since, wall_from = start - _TWO_DAYS, None
    for change in changes:
        _append_stretch(spans, since, change.at - 1, offset, wall_from, start, end)
        since, offset, wall_from = change.at, change.after, None
        if change.is_gap and gap == "end":
            _append_gap(spans, change, start)
            since += 1  # the gap's span owns the instant of the change
        elif not change.is_gap and not both:
            wall_from = change.at + change.before  # the second pass is left out
    _append_stretch(spans, since, end, offset, wall_from, start, end)
    return spans


def _append_stretch(
    spans: list[Span], since: int, until: int, offset: int, wall_from: int | None, start: int, end: int
) -> None:
    first, last = max(since, start), min(until, end)
    low = first + offset if wall_from is None else max(first + offset, wall_from)
    high = last + offset
    if low <= high:
        spans.append(Span(low - offset, low, high, offset))


def _append_gap(spans: list[Span], change: ClockChange, start: int) -> None:
    """From the first missing wall second to the first valid one: they all fire at the change itself."""
    if change.at >= start:
        low, high = change.at + change.before, change.at + change.after
        spans.append(Span(change.at, low, high, 0, collapse=change.at))
