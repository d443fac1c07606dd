"""The first second that the clauses `only` and `avoid` leave: up to there no draw can be accepted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from chronex.decision.constraints import Clause, Constraints, FieldClause, LocalMoment
from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.zones import LAST_SECOND, Zone

_DAY = 86_400
_YEAR = 366 * _DAY
# Every shape of a year recurs within so many.
_FURTHEST = 40 * _YEAR
_ALL_MINUTES = (1 << 1_440) - 1
_HOUR = (1 << 60) - 1
_OF_THE_CLOCK = ("hours", "between")


def first_open_second(constraints: Constraints, zone: Zone, from_second: int) -> int | None:
    """The first second from this one on that no clause rejects; None where there is none within forty years."""
    minutes = _open_minutes(constraints)
    if not minutes:
        return None
    for first, last, offset in _steady_spans(zone, from_second, min(from_second + _FURTHEST, LAST_SECOND)):
        wall = _first_open_wall(constraints, minutes, first + offset, last + offset)
        if wall is not None:
            return wall - offset
    return None


def _steady_spans(zone: Zone, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """First and last second of each span without a clock change, and the offset from UTC in it."""
    while first <= last:
        changes = zone.changes(first + 1, min(first + _YEAR, last) + 1)
        end = changes[0].at - 1 if changes else min(first + _YEAR, last)
        yield first, end, zone.offset_at(first)
        first = end + 1


def _first_open_wall(constraints: Constraints, minutes: int, first: int, last: int) -> int | None:
    """On a wall clock that nobody sets, counted as if it showed UTC."""
    for day in range(first // _DAY, last // _DAY + 1):
        if not _is_open_day(constraints, day):
            continue
        since = max(first - day * _DAY, 0) // 60
        if left := minutes >> since:
            minute = since + (left & -left).bit_length() - 1
            wall = max(first, day * _DAY + minute * 60)
            return wall if wall <= last else None
    return None


def _is_open_day(constraints: Constraints, day: int) -> bool:
    of = date.fromordinal(day + EPOCH_ORDINAL)
    moment = LocalMoment(of.toordinal(), of.month, of.day, of.isoweekday() % 7, 0)
    if not all(clause.holds(moment) for clause in constraints.only if not _minutes_of(clause)):
        return False
    return not any(clause.holds(moment) for clause in constraints.avoid if not _minutes_of(clause))


def _open_minutes(constraints: Constraints) -> int:
    """The minutes of a day that the clauses of the clock leave, as a bit mask."""
    found = _ALL_MINUTES
    for clause in constraints.only:
        found &= _minutes_of(clause) or _ALL_MINUTES
    for clause in constraints.avoid:
        found &= ~_minutes_of(clause)
    return found


def _minutes_of(clause: Clause) -> int:
    """Those that a clause of the clock names; 0 for a clause of days."""
    if not isinstance(clause, FieldClause) or clause.kind not in _OF_THE_CLOCK:
        return 0
    if clause.kind == "between":
        return clause.mask
    return sum(_HOUR << 60 * hour for hour in range(24) if clause.mask >> hour & 1)
