"""Single wall times to instants: for `@once`, `from`, `until` and the starts of repeating intervals."""

from __future__ import annotations

from chronex.timing.zones import Zone

_DAY_MS = 86_400_000
_DAY = 86_400


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
    for change in zone.changes(wall - 2 * _DAY, wall + 2 * _DAY):
        if change.at + change.before <= wall < change.at + change.after:
            return change.at
    return wall - zone.offset_at(wall)


def last_instant_of_day(midnight_wall_ms: int, zone: Zone) -> int:
    """The last millisecond whose local date is that day or earlier, on the second pass where there are two."""
    next_midnight = (midnight_wall_ms + _DAY_MS) // 1000
    candidates = [next_midnight - zone.offset_at(next_midnight + shift) for shift in (-_DAY, _DAY)]
    candidates += [c.at for c in zone.changes(next_midnight - 2 * _DAY, next_midnight + 2 * _DAY)]
    # The day has ended for good at the latest moment where the wall goes from before midnight to after it.
    ends = [at for at in candidates if _wall(at - 1, zone) < next_midnight <= _wall(at, zone)]
    return max(ends) * 1000 - 1 if ends else (next_midnight - zone.offset_at(next_midnight)) * 1000 - 1


def _wall(second: int, zone: Zone) -> int:
    return second + zone.offset_at(second)
