"""Which seconds are allowed: `only` and `avoid` clauses over the local time of the job's zone."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Protocol, TypedDict

from chronex.errors import NominalTimeError
from chronex.text.instants import EPOCH_ORDINAL
from chronex.timing.zones import Zone

_DAY = 86_400
_LAST_ORDINAL = date.max.toordinal()


class LocalMoment(NamedTuple):
    """What a wall clock and a calendar show; `weekday` counts from Sunday = 0."""

    ordinal: int
    month: int
    day: int
    weekday: int
    minute: int

    @property
    def hour(self) -> int:
        return self.minute // 60


class Clause(Protocol):
    """One kind of clause, with all entries of that kind."""

    @property
    def text(self) -> str: ...

    def holds(self, moment: LocalMoment) -> bool: ...


@dataclass(frozen=True, slots=True)
class FieldClause:
    """Allowed values of one field, as a bit mask."""

    kind: str
    mask: int
    text: str

    def holds(self, moment: LocalMoment) -> bool:
        return bool(self.mask >> _FIELDS[self.kind](moment) & 1)


_FIELDS = {
    "hours": lambda moment: moment.minute // 60,
    "dow": lambda moment: moment.weekday,
    "dom": lambda moment: moment.day,
    "months": lambda moment: moment.month,
    "between": lambda moment: moment.minute,
}


@dataclass(frozen=True, slots=True)
class DateClause:
    """Allowed dates, as ranges of day ordinals in order that neither touch nor overlap."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]
    text: str

    def holds(self, moment: LocalMoment) -> bool:
        place = bisect_right(self.firsts, moment.ordinal) - 1
        return place >= 0 and moment.ordinal <= self.lasts[place]


class ClauseReport(TypedDict):
    """A clause as understood, and how many candidates it rejected."""

    clause: str
    rejected: int


class ConstraintMeta(TypedDict):
    """Every clause with its count; plain data that JSON can carry."""

    only: list[ClauseReport]
    avoid: list[ClauseReport]


@dataclass(frozen=True, slots=True)
class Constraints:
    """All kinds of `only` must hold, and no kind of `avoid` may."""

    only: tuple[Clause, ...]
    avoid: tuple[Clause, ...]

    def __bool__(self) -> bool:
        return bool(self.only or self.avoid)

    def rejecting(self, moment: LocalMoment) -> list[int]:
        """The clauses that reject this moment, counted through `only` and then `avoid`."""
        found = [i for i, clause in enumerate(self.only) if not clause.holds(moment)]
        found += [i for i, clause in enumerate(self.avoid, len(self.only)) if clause.holds(moment)]
        return found

    def report(self, rejected: list[int]) -> ConstraintMeta:
        counts = iter(rejected)
        return {
            "only": [{"clause": c.text, "rejected": next(counts)} for c in self.only],
            "avoid": [{"clause": c.text, "rejected": next(counts)} for c in self.avoid],
        }


def local_moment(zone: Zone, second: int) -> LocalMoment:
    """The local time in `zone` at this UTC second."""
    day = local_date(zone, second)
    minute = (second + zone.offset_at(second)) % _DAY // 60
    return LocalMoment(day.toordinal(), day.month, day.day, day.isoweekday() % 7, minute)


def local_date(zone: Zone, second: int) -> date:
    ordinal = (second + zone.offset_at(second)) // _DAY + EPOCH_ORDINAL
    if not 1 <= ordinal <= _LAST_ORDINAL:
        raise NominalTimeError(f"the local time in {zone.name} leaves the years 1 to 9999")
    return date.fromordinal(ordinal)
