"""The short cuts of a single `next` and of `upcoming` give what the plain walk over spans gives, everywhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from chronex.expr.meaning import Cron
from chronex.expr.parser import parse_text
from chronex.timing.calendar import LONGEST_SEARCH_BLOCKS
from chronex.timing.dst import DEFAULT_POLICY, POSIX_POLICY, DstPolicy
from chronex.timing.expression import Expression
from chronex.timing.occurrences import cron_datetimes
from chronex.timing.search import CronSearch
from chronex.timing.zones import LAST_SECOND, Zone, load_zone

# Zones, and dates near which instants are drawn: thirty-minute shifts, missing and doubled midnights, a missing day,
# a doubled day, daylight time suspended for Ramadan, negative daylight time, and none at all.
ZONES: dict[str, tuple[str, ...]] = {
    "UTC": ("2026-03-01", "2100-02-28"),
    "America/New_York": ("2026-03-08", "2026-11-01", "2200-03-09", "1883-11-18"),
    "Australia/Lord_Howe": ("2026-04-05", "2026-10-04"),
    "Pacific/Apia": ("2011-12-30", "2011-09-24", "2021-04-04"),
    "Pacific/Kwajalein": ("1969-10-01", "1993-08-21"),
    "Asia/Manila": ("1844-12-31", "1978-09-21"),
    "Asia/Amman": ("2014-03-28", "2022-02-25", "2013-12-20"),
    "America/Havana": ("2026-03-08", "2025-11-02"),
    "America/Santiago": ("2026-04-05", "2026-09-06"),
    "America/Sao_Paulo": ("2018-11-04", "2019-02-17"),
    "Asia/Beirut": ("2026-03-29", "2026-10-25"),
    "Africa/Casablanca": ("2026-02-15", "2026-03-22"),
    "Europe/Dublin": ("2026-03-29", "2026-10-25"),
    "Asia/Kolkata": ("2026-06-01",),
    "Antarctica/Troll": ("2026-03-29", "2026-10-25"),
}
EXPRESSIONS = (
    "* * * * *", "*/30 * * * *", "0 */2 * * *", "30 2 * * *", "0 0 * * *", "59 23 * * *", "0,30 1,2,3 * * *",
    "30 1-3 * * *", "*/15 1 * * *", "0 0 1 1 *", "0 0 29 2 *", "0 9 * * MON-FRI", "0 0 L * *", "0 0 * * SUN#1",
    "15 0 8 3 *", "*/20 0-1 30 12 *", "45 23 31 12 *", "*/10 1 1 11 SUN", "10,50 59 23 * * *", "0 3 * * SUN",
    "0 2 8 3 *", "30 * 1-7 * *", "0 0 30 2 *", "*/15 * 29 2 *", "*/7 * * * * *",
)  # fmt: skip
POLICIES = (
    DEFAULT_POLICY,
    POSIX_POLICY,
    DstPolicy("end", "both"),
    DstPolicy("skip", "both"),
    DstPolicy("end", "first"),
)


def cron_of(text: str) -> Cron:
    meaning = parse_text(text).meaning
    assert meaning is not None
    assert isinstance(meaning.body, Cron)
    return meaning.body


def seconds_near(zone: str, chooser: random.Random, count: int) -> Iterator[int]:
    for _ in range(count):
        day = datetime.fromisoformat(chooser.choice(ZONES[zone])).replace(tzinfo=UTC)
        away = chooser.choice((3 * 3600, 2 * 86_400, 9 * 86_400, 300 * 86_400))
        moment = day + timedelta(seconds=chooser.randint(-away, away))
        yield int(moment.timestamp()) // 1800 * 1800 if chooser.random() < 0.3 else int(moment.timestamp())


def walked(search: CronSearch, start: int, count: int) -> list[int]:
    """The first instants from `start` on, each by a fresh walk over the spans."""
    found: list[int] = []
    at = search._walk(start)
    while at is not None and len(found) < count:
        found.append(at)
        at = search._walk(at + 1)
    return found


def shown(instant: int, zone: Zone) -> str:
    return datetime.fromtimestamp(instant, zone.tzinfo).isoformat()


@pytest.mark.parametrize("zone_name", ZONES)
def test_bulk_datetimes_and_between_give_what_the_walk_gives(zone_name: str) -> None:
    chooser, zone = random.Random(f"stream {zone_name}"), load_zone(zone_name)
    for text in EXPRESSIONS:
        search = CronSearch(cron_of(text), zone, chooser.choice(POLICIES))
        for start in seconds_near(zone_name, chooser, 4):
            expected = walked(search, start, 60)
            where = f"{text} in {zone_name} from {shown(start, zone)} with {search._policy}"
            assert list(islice(search.between(start, LAST_SECOND), 60)) == expected, where
            streamed = [moment.isoformat() for moment in islice(cron_datetimes(search, start, LAST_SECOND), 60)]
            assert streamed == [shown(at, zone) for at in expected], where
            end = chooser.choice(expected) + chooser.choice((-1, 0, 1)) if expected else start + 1
            expected = [at for at in expected if at <= end]
            assert list(search.between(start, end)) == expected, where
            assert [moment.isoformat() for moment in cron_datetimes(search, start, end)] == [
                shown(at, zone) for at in expected
            ], f"{where} until {shown(end, zone)}"


@pytest.mark.parametrize("zone_name", ZONES)
def test_next_gives_what_the_walk_gives(zone_name: str) -> None:
    chooser, zone = random.Random(f"next {zone_name}"), load_zone(zone_name)
    tz = zone.tzinfo
    for text in EXPRESSIONS:
        meaning = parse_text(text).meaning
        assert meaning is not None
        expression = Expression(meaning, tz=zone_name)
        plain = CronSearch(cron_of(text), zone, DEFAULT_POLICY)
        for second in seconds_near(zone_name, chooser, 25):
            # A wall time as it comes, so also ones that do not exist, with either fold.
            wall = datetime.fromtimestamp(second, UTC).replace(tzinfo=tz, fold=chooser.randint(0, 1))
            wall = wall.replace(microsecond=chooser.choice((0, 0, 1, 999_999)))
            inclusive = chooser.random() < 0.5
            instant = int(wall.astimezone(UTC).replace(microsecond=0).timestamp())
            expected = plain._walk(instant if inclusive and not wall.microsecond else instant + 1)
            found = expression.next(wall, inclusive)
            where = f"{text} after {wall.isoformat()} fold {wall.fold}, inclusive {inclusive}"
            assert expected is not None or found is None, where
            if expected is not None:
                assert found is not None, where
                assert found.isoformat() == shown(expected, zone), where


def test_the_ends_of_the_calendar_are_the_same_by_every_path() -> None:
    for zone_name in ("UTC", "America/New_York", "Pacific/Apia", "Asia/Kolkata"):
        zone = load_zone(zone_name)
        for text in ("*/30 * * * *", "0 0 1 1 *", "59 23 31 12 *"):
            search = CronSearch(cron_of(text), zone, DEFAULT_POLICY)
            start = LAST_SECOND - 3 * 86_400
            expected = walked(search, start, 1000)
            assert list(search.between(start, LAST_SECOND)) == expected
            assert [int(m.timestamp()) for m in cron_datetimes(search, start, LAST_SECOND)] == expected
            meaning = parse_text(text).meaning
            assert meaning is not None
            after = datetime(9999, 12, 31, 23, 59, 59, tzinfo=zone.tzinfo) - timedelta(hours=5)
            found = Expression(meaning, tz=zone_name).next(after)
            rest = [at for at in expected if at > after.timestamp()]
            assert (found.timestamp() if found else None) == (rest[0] if rest else None)


class OddZone(tzinfo):
    """A tzinfo in the manner of pytz: put on a wall time it answers nonsense; only fromutc is right."""

    zone = ZoneInfo("America/New_York")

    def utcoffset(self, dt: datetime | None) -> timedelta:
        return timedelta(hours=-4, minutes=-56)

    def dst(self, dt: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, dt: datetime | None) -> str:
        return "odd"

    def fromutc(self, dt: datetime) -> datetime:
        local = self.zone.fromutc(dt.replace(tzinfo=self.zone))
        offset = local.utcoffset()
        assert offset is not None
        return local.replace(tzinfo=timezone(offset))


def test_a_tzinfo_of_an_unknown_library_is_asked_by_instant_only() -> None:
    meaning = parse_text("30 1-3 * * *").meaning
    assert meaning is not None
    after = datetime(2026, 10, 31, 12, tzinfo=UTC)
    expected = Expression(meaning).upcoming(after, tz="America/New_York", limit=20)
    found = Expression(meaning).upcoming(after, tz=OddZone(), limit=20)
    assert [m.isoformat() for m in found] == [m.isoformat() for m in expected]


@pytest.mark.parametrize("text", ["0 0 30 2 *", "* * 31 4,6,9,11 *"])
@pytest.mark.parametrize("zone_name", ["UTC", "Europe/Paris"])
def test_an_impossible_date_is_given_up_after_forty_years_by_every_path(text: str, zone_name: str) -> None:
    zone = load_zone(zone_name)
    start = datetime(2026, 1, 1, tzinfo=zone.tzinfo)
    for ask in (
        lambda search: search.next_local(start, False),
        lambda search: search.first_from(0),
        lambda search: next(search.between(0, LAST_SECOND), None),
        lambda search: next(cron_datetimes(search, 0, LAST_SECOND), None),
    ):
        search = CronSearch(cron_of(text), zone, DEFAULT_POLICY)
        assert ask(search) is None
        assert len(search.matching_days) <= 2 * (LONGEST_SEARCH_BLOCKS + 2)
