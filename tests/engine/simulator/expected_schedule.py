"""Which instants must have an outcome, computed without the engine's search: the slow oracle of tests/timing, or plain sums."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from chronex.testing import DAY
from tests.timing import oracle


@dataclass(frozen=True)
class Cron:
    """Five or six fields in a zone, perhaps between two instants."""

    fields: str
    zone: str = "UTC"
    first: int | None = None
    last: int | None = None

    def instants(self, after: int, until: int) -> list[int]:
        low = after if self.first is None else max(after, self.first - 1)
        high = until if self.last is None else min(until, self.last)
        if self.first is not None and self.last is not None:
            return [at for at in _scan(self.fields, self.zone, self.first, self.last) if low < at <= high]
        # Whole days around it, so that the seeds of one start share the scan.
        days = range(low // DAY, high // DAY + 1)
        found = [instant for day in days for instant in _day(self.fields, self.zone, day)]
        return found[bisect_right(found, low) : bisect_right(found, high)]


@lru_cache(maxsize=100_000)
def _day(fields: str, zone: str, day: int) -> tuple[int, ...]:
    return _scan(fields, zone, day * DAY, day * DAY + DAY - 1)


def _scan(fields: str, zone: str, first: int, last: int) -> tuple[int, ...]:
    seconds = oracle.scan(oracle.read(fields), first // 1000, last // 1000, ZoneInfo(zone))
    return tuple(second * 1000 for second in seconds)


@dataclass(frozen=True)
class FixedRate:
    """Every `period` from `anchor`."""

    anchor: int
    period: int

    def instants(self, after: int, until: int) -> list[int]:
        first = self.anchor + self.period * max((after - self.anchor) // self.period + 1, 1)
        return list(range(first, until + 1, self.period))


@dataclass(frozen=True)
class Chain:
    """Each instant follows the one before by a distance within bounds; which one is drawn."""

    anchor: int
    shortest: int
    longest: int


@dataclass(frozen=True)
class AfterEnd:
    """Each instant follows the end of the one before by `delay`."""

    anchor: int
    delay: int


Expected = Cron | FixedRate | Chain | AfterEnd
