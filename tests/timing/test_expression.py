"""The value with its instants: next, previous, upcoming, matches, of every kind."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

import chronex
from tests.kit.work import assert_cheap
from tests.timing.test_zones import Foreign

NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def runs(text: str, start: str, count: int, tz: str | None = None) -> list[str]:
    return [moment.isoformat() for moment in islice(chronex.parse(text, tz=tz).upcoming(at(start)), count)]


def iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


# -- bounds of the question -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "inclusive", "following", "preceding"),
    [
        ("2026-06-15T12:00:00", False, "2026-06-15T12:05:00", "2026-06-15T11:55:00"),
        ("2026-06-15T12:00:00", True, "2026-06-15T12:00:00", "2026-06-15T12:00:00"),
        ("2026-06-15T12:00:00.000001", False, "2026-06-15T12:05:00", "2026-06-15T12:00:00"),
        ("2026-06-15T12:00:00.000001", True, "2026-06-15T12:05:00", "2026-06-15T12:00:00"),
        ("2026-06-15T12:00:00.999999", True, "2026-06-15T12:05:00", "2026-06-15T12:00:00"),
        ("2026-06-15T11:59:59.999999", False, "2026-06-15T12:00:00", "2026-06-15T11:55:00"),
        ("2026-06-15T11:59:59.999999", True, "2026-06-15T12:00:00", "2026-06-15T11:55:00"),
        ("2026-06-15T21:00:00+09:00", True, "2026-06-15T12:00:00", "2026-06-15T12:00:00"),
    ],
)
def test_the_bound_itself_counts_only_when_inclusive(
    start: str, inclusive: bool, following: str, preceding: str
) -> None:
    expression = chronex.parse("*/5 * * * *")
    assert expression.next(at(start), inclusive=inclusive) == at(following)
    assert expression.previous(at(start), inclusive=inclusive) == at(preceding)


def test_matches_looks_at_the_second_and_not_at_its_fraction() -> None:
    expression = chronex.parse("30 0 9 * * *")
    assert expression.matches(at("2026-06-15T09:00:30"))
    assert expression.matches(at("2026-06-15T09:00:30.750"))
    assert not expression.matches(at("2026-06-15T09:00:31"))
    assert not expression.matches(at("2026-06-15T09:01:30"))


def test_what_is_not_a_pattern_matches_nothing() -> None:
    assert not chronex.parse("@every 1h").matches(NOON)
    assert not chronex.parse("@once 2026-06-15T12:00:00Z").matches(NOON)
    assert chronex.parse("R/2026-06-15T12:00:00Z/P1D").matches(NOON)


@pytest.mark.parametrize("call", ["next", "previous", "matches", "upcoming"])
def test_a_naive_datetime_is_refused_with_a_hint(call: str) -> None:
    for text in (
        "* * * * *",
        "@every 5m",
        "@once 2026-01-01T00:00:00Z",
        "R/2026-01-01T00:00/P1D",
        "0 9 * * * {max:3}",
    ):
        with pytest.raises(TypeError, match=r"2026-06-15T12:00:00 has no time zone; .*ZoneInfo"):
            getattr(chronex.parse(text), call)(datetime(2026, 6, 15, 12))


@pytest.mark.parametrize("value", [None, 5, "2026-06-15", date(2026, 6, 15)])
def test_what_is_no_instant_is_a_type_error(value: object) -> None:
    for call in ("next", "previous", "matches", "upcoming"):
        with pytest.raises(TypeError):
            getattr(chronex.parse("* * * * *"), call)(value)


def test_naive_anchors_bounds_and_references_are_refused_too() -> None:
    naive = datetime(2026, 6, 15, 12)
    with pytest.raises(TypeError, match="no time zone"):
        chronex.parse("@every 5m").next(NOON, anchor=naive)
    with pytest.raises(TypeError, match="no time zone"):
        chronex.parse("* * * * *").upcoming(NOON, until=naive)
    with pytest.raises(TypeError, match="no time zone"):
        chronex.parse("@once +5m", reference=naive)


# -- zones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tz", "expected"),
    [
        (None, "2026-06-16T09:00:00+00:00"),
        ("Asia/Seoul", "2026-06-16T09:00:00+09:00"),
        (ZoneInfo("Asia/Seoul"), "2026-06-16T09:00:00+09:00"),
        (timezone(timedelta(hours=9)), "2026-06-16T09:00:00+09:00"),
        (timezone(-timedelta(hours=3, minutes=30)), "2026-06-15T09:00:00-03:30"),
        (UTC, "2026-06-16T09:00:00+00:00"),
        (Foreign("America/New_York"), "2026-06-15T09:00:00-04:00"),
    ],
)
def test_the_zone_of_the_caller_is_a_name_or_a_tzinfo(tz: str | tzinfo | None, expected: str) -> None:
    assert iso(chronex.parse("0 9 * * *").next(NOON, tz=tz)) == expected
    assert iso(chronex.parse("0 9 * * *", tz=tz).next(NOON)) == expected
    assert iso(next(chronex.parse("0 9 * * *").upcoming(NOON, tz=tz))) == expected


def test_the_zone_of_the_expression_comes_before_the_caller_s() -> None:
    expression = chronex.parse("TZ=Asia/Seoul 0 9 * * *", tz="America/New_York")
    assert iso(expression.next(NOON, tz="Europe/Berlin")) == "2026-06-16T09:00:00+09:00"
    assert iso(expression.previous(NOON, tz="Europe/Berlin")) == "2026-06-15T09:00:00+09:00"


def test_the_zone_of_the_question_comes_before_the_one_given_at_parse() -> None:
    expression = chronex.parse("0 9 * * *", tz="America/New_York")
    assert iso(expression.next(NOON)) == "2026-06-15T09:00:00-04:00"
    assert iso(expression.next(NOON, tz="Asia/Seoul")) == "2026-06-16T09:00:00+09:00"
    assert iso(expression.next(NOON)) == "2026-06-15T09:00:00-04:00"


def test_results_are_in_the_zone_whatever_the_zone_of_the_question() -> None:
    expression = chronex.parse("TZ=Asia/Seoul 0 9 * * *")
    for zone in ("UTC", "America/New_York", "Asia/Seoul"):
        found = expression.next(NOON.astimezone(ZoneInfo(zone)))
        assert iso(found) == "2026-06-16T09:00:00+09:00"
        assert found is not None
        assert str(found.tzinfo) == "Asia/Seoul"


def test_an_unknown_zone_of_the_caller_is_an_error_of_ours() -> None:
    with pytest.raises(chronex.UnknownZoneError, match="Asia/Seul"):
        chronex.parse("0 9 * * *", tz="Asia/Seul")
    with pytest.raises(chronex.UnknownZoneError):
        chronex.parse("0 9 * * *").next(NOON, tz="Asia/Seul")


# -- upcoming -------------------------------------------------------------------------------------------------


def test_upcoming_is_lazy_and_bounded_by_limit_until_and_max() -> None:
    expression = chronex.parse("* * * * *")
    endless = expression.upcoming(NOON)
    assert next(endless) == NOON + MINUTE
    assert next(endless) == NOON + 2 * MINUTE
    assert len(list(expression.upcoming(NOON, limit=5))) == 5
    assert list(expression.upcoming(NOON, limit=0)) == []
    assert list(expression.upcoming(NOON, until=NOON + 2 * MINUTE)) == [NOON + MINUTE, NOON + 2 * MINUTE]
    assert list(expression.upcoming(NOON, until=NOON)) == []
    assert list(expression.upcoming(NOON, until=NOON - MINUTE)) == []
    assert list(expression.upcoming(NOON, until=NOON, inclusive=True)) == [NOON]
    assert len(list(chronex.parse("* * * * * {max:3}").upcoming(NOON))) == 3
    assert len(list(chronex.parse("* * * * * {max:3}").upcoming(NOON, limit=2))) == 2
    assert len(list(chronex.parse("@every 1m {max:3}").upcoming(NOON, limit=9))) == 3


def test_next_ignores_max_because_it_has_no_memory() -> None:
    assert chronex.parse("* * * * * {max:1}").next(NOON + timedelta(days=400)) is not None


@pytest.mark.parametrize(
    "text", ["* * * * * *", "*/7 9-17 * * MON-FRI", "0 0 1 1 *", "30 2 * * *", "@every 7m", "R/2026-06-01T00:00/P1D"]
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Pacific/Apia"])
def test_upcoming_is_next_again_and_again(text: str, zone: str) -> None:
    expression = chronex.parse(text, tz=zone)
    listed = list(expression.upcoming(NOON, limit=60))
    moment = NOON
    for found in listed:
        following = expression.next(moment)
        assert following is not None
        assert (following.timestamp(), following.utcoffset(), following.fold) == (
            found.timestamp(),
            found.utcoffset(),
            found.fold,
        )
        moment = following


def test_two_iterators_of_one_expression_do_not_disturb_each_other() -> None:
    expression = chronex.parse("*/30 * * * *", tz="America/New_York")
    start = at("2026-11-01T00:00-04:00")
    alone = list(expression.upcoming(start, limit=12))
    first, second = expression.upcoming(start), expression.upcoming(start - timedelta(days=90))
    mixed = []
    for _ in range(12):
        mixed.append(next(first))
        next(second)
        expression.previous(start - timedelta(days=30))
    assert mixed == alone


def test_threads_share_an_expression() -> None:
    expression = chronex.parse("*/30 * * * *", tz="America/New_York")
    starts = [at("2020-01-01T00:00:00Z") + timedelta(days=11 * n) for n in range(200)]
    expected = [expression.next(start) for start in starts]
    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(lambda _: [expression.next(start) for start in starts], range(8)):
            assert answers == expected


# -- from and until -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tz", "start", "expected"),
    [
        ("0 9 * * * {from:2026-07-01}", None, "2026-06-15T12:00", ["2026-07-01T09:00:00+00:00"]),
        ("0 9 * * * {from:2026-07-01T09:00:00}", None, "2026-06-15T12:00", ["2026-07-01T09:00:00+00:00"]),
        ("0 9 * * * {from:2026-07-01T09:00:01}", None, "2026-06-15T12:00", ["2026-07-02T09:00:00+00:00"]),
        ("0 0 * * * {from:2026-07-01}", "Asia/Seoul", "2026-06-15T12:00", ["2026-07-01T00:00:00+09:00"]),
        ("0 0 * * * {from:2026-07-01T00:00:00Z}", "Asia/Seoul", "2026-06-15T12:00", ["2026-07-02T00:00:00+09:00"]),
        ("0 0 * * * {until:2026-06-16}", None, "2026-06-15T12:00", ["2026-06-16T00:00:00+00:00"]),
        ("59 23 * * * {until:2026-06-16}", None, "2026-06-16T12:00", ["2026-06-16T23:59:00+00:00"]),
        ("0 9 * * * {until:2026-06-16T09:00:00}", None, "2026-06-15T12:00", ["2026-06-16T09:00:00+00:00"]),
        ("0 9 * * * {until:2026-06-16T08:59:59}", None, "2026-06-15T12:00", []),
        ("0 9 * * * {until:2026-06-16T09:00:00+09:00}", None, "2026-06-15T12:00", []),
        # the first instant of a day whose midnight is missing
        ("*/30 * * * * {from:2018-11-04}", "America/Sao_Paulo", "2018-11-01T00:00", ["2018-11-04T01:00:00-02:00", "2018-11-04T01:30:00-02:00"]),
        ("0 0 * * * {from:2018-11-04}", "America/Sao_Paulo", "2018-11-01T00:00", ["2018-11-04T01:00:00-02:00"]),
        # the last instant of a day whose last hour comes twice
        ("30 23,22 * * * {from:2026-04-04T23:00:00, until:2026-04-04}", "America/Santiago", "2026-04-01T00:00", ["2026-04-04T23:30:00-03:00"]),
        ("*/30 23 * * * {from:2026-04-04, until:2026-04-04}", "America/Santiago", "2026-04-01T00:00",
         ["2026-04-04T23:00:00-03:00", "2026-04-04T23:30:00-03:00", "2026-04-04T23:00:00-04:00", "2026-04-04T23:30:00-04:00"]),
        # a moment in a gap is its end, in an overlap its first pass
        ("* * * * * {from:2026-03-08T02:30:00}", "America/New_York", "2026-03-01T00:00", ["2026-03-08T03:00:00-04:00"]),
        ("*/30 * * * * {from:2026-11-01T01:30:00}", "America/New_York", "2026-10-01T00:00", ["2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-05:00"]),
        ("*/30 1 * * * {from:2026-11-01, until:2026-11-01T01:30:00}", "America/New_York", "2026-10-01T00:00", ["2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00"]),
        # a day that never was
        ("0 12 * * * {from:2011-12-30}", "Pacific/Apia", "2011-12-01T00:00", ["2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"]),
        ("0 12 * * * {from:2011-12-29, until:2011-12-30}", "Pacific/Apia", "2011-12-01T00:00", ["2011-12-29T12:00:00-10:00"]),
        # the other kinds
        ("@once 2026-07-01T09:00:00Z {from:2026-07-01T09:00:00Z}", None, "2026-06-15T12:00", ["2026-07-01T09:00:00+00:00"]),
        ("@once 2026-07-01T09:00:00Z {from:2026-07-02}", None, "2026-06-15T12:00", []),
        ("@once 2026-07-01T09:00:00Z {until:2026-06-30}", None, "2026-06-15T12:00", []),
        ("@every 1h {from:2026-07-01}", None, "2026-06-15T12:00", ["2026-07-01T01:00:00+00:00", "2026-07-01T02:00:00+00:00"]),
        ("@every 1h {from:2026-06-01}", None, "2026-06-15T12:00", ["2026-06-15T13:00:00+00:00"]),
        ("@every 1h {until:2026-06-15T13:00:00Z}", None, "2026-06-15T12:00", ["2026-06-15T13:00:00+00:00"]),
        ("@every 2h {until:2026-06-15T13:00:00Z}", None, "2026-06-15T12:00", []),
        ("R/2026-01-01T09:00/P1D {from:2026-07-01, until:2026-07-02}", None, "2026-06-15T12:00", ["2026-07-01T09:00:00+00:00", "2026-07-02T09:00:00+00:00"]),
    ],
)  # fmt: skip
def test_from_and_until_are_both_inclusive(text: str, tz: str | None, start: str, expected: list[str]) -> None:
    whole = runs(text, start, len(expected) + 1, tz)
    assert whole[: len(expected)] == expected
    expression = chronex.parse(text, tz=tz)
    assert iso(expression.next(at(start))) == (expected[0] if expected else None)
    if "until" in text:
        assert whole == expected
    if expected and expression.kind != "interval":
        if "until" in text:
            assert iso(expression.previous(at("2027-01-01"))) == expected[-1]
        if "from" in text:
            assert expression.previous(at(expected[0])) is None


# -- @once ----------------------------------------------------------------------------------------------------


def test_once_fires_once() -> None:
    expression = chronex.parse("@once 2026-06-15T12:00:00Z")
    assert expression.next(NOON - MINUTE) == NOON
    assert expression.next(NOON) is None
    assert expression.next(NOON, inclusive=True) == NOON
    assert expression.previous(NOON) is None
    assert expression.previous(NOON, inclusive=True) == NOON
    assert expression.previous(NOON + MINUTE) == NOON
    assert list(expression.upcoming(NOON - MINUTE)) == [NOON]


@pytest.mark.parametrize(
    ("text", "tz", "expected"),
    [
        ("@once 2026-06-15T12:00:00+09:00", "America/New_York", "2026-06-14T23:00:00-04:00"),
        ("@once 2026-06-15T12:00:00", None, "2026-06-15T12:00:00+00:00"),
        ("@once 2026-06-15T12:00:00", "Asia/Seoul", "2026-06-15T12:00:00+09:00"),
        ("TZ=Asia/Seoul @once 2026-06-15T12:00:00", "America/New_York", "2026-06-15T12:00:00+09:00"),
        ("@once 2026-03-08T02:30:00", "America/New_York", "2026-03-08T03:00:00-04:00"),
        ("@once 2026-11-01T01:30:00", "America/New_York", "2026-11-01T01:30:00-04:00"),
        ("@once 2011-12-30T15:00:00", "Pacific/Apia", "2011-12-31T00:00:00+14:00"),
        ("@once 2026-06-15T12:00:00.5Z", None, "2026-06-15T12:00:00.500000+00:00"),
    ],
)
def test_once_is_read_on_the_wall_of_the_zone(text: str, tz: str | None, expected: str) -> None:
    assert iso(chronex.parse(text, tz=tz).next(at("2000-01-01"))) == expected


# -- @every ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "after", "anchor", "following", "preceding"),
    [
        ("@every 30m", "2026-06-15T12:00", None, "2026-06-15T12:30:00+00:00", "2026-06-15T11:30:00+00:00"),
        ("@every 30m", "2026-06-15T12:00", "2026-06-15T11:50", "2026-06-15T12:20:00+00:00", None),
        ("@every 30m", "2026-06-15T12:20", "2026-06-15T11:50", "2026-06-15T12:50:00+00:00", None),
        (
            "@every 30m",
            "2026-06-15T12:50",
            "2026-06-15T11:50",
            "2026-06-15T13:20:00+00:00",
            "2026-06-15T12:20:00+00:00",
        ),
        ("@every 30m", "2026-06-15T12:00", "2026-06-15T13:00", "2026-06-15T13:30:00+00:00", None),
        ("@every 500ms", "2026-06-15T12:00", "2026-06-15T12:00", "2026-06-15T12:00:00.500000+00:00", None),
        ("@every 1d", "2026-03-07T12:00", "2026-03-07T12:00", "2026-03-08T12:00:00+00:00", None),
    ],
)
def test_every_counts_elapsed_time_from_its_anchor(
    text: str, after: str, anchor: str | None, following: str, preceding: str | None
) -> None:
    expression = chronex.parse(text)
    start = None if anchor is None else at(anchor)
    assert iso(expression.next(at(after), anchor=start)) == following
    assert iso(expression.previous(at(after), anchor=start)) == preceding


def test_every_is_untouched_by_clock_changes() -> None:
    start = at("2026-03-08T00:30-05:00")
    moments = list(chronex.parse("@every 1h", tz="America/New_York").upcoming(start, limit=5))
    assert [m.timestamp() - start.timestamp() for m in moments] == [3600.0 * n for n in range(1, 6)]
    assert iso(moments[1]) == "2026-03-08T03:30:00-04:00"


def test_a_random_interval_comes_from_the_draw_of_the_caller() -> None:
    expression = chronex.parse("@every 1h-2h")
    asked: list[tuple[int, int]] = []

    def draw(low: int, high: int) -> int:
        asked.append((low, high))
        return high

    assert expression.next(NOON, draw=draw) == NOON + timedelta(hours=2)
    assert expression.next(NOON) == NOON + timedelta(hours=1)
    assert asked == [(3_600_000, 7_200_000)]
    bounded = chronex.parse("@every 1h-2h {until:2026-06-15T13:30:00Z}")
    assert bounded.next(NOON, draw=draw) is None


# -- ISO 8601 repeating intervals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tz", "start", "expected"),
    [
        # months are counted from the start and clamped to the end of the month
        ("R/2026-01-31T09:00/P1M", None, "2026-01-01", "01-31T09:00 02-28T09:00 03-31T09:00 04-30T09:00 05-31T09:00"),
        ("R/2024-01-31T09:00/P1M", None, "2024-02-01", "02-29T09:00 03-31T09:00"),
        ("R/2024-02-29T00:00/P1Y", None, "2024-01-01", "2024-02-29T00:00 2025-02-28T00:00 2026-02-28T00:00 2027-02-28T00:00 2028-02-29T00:00"),
        ("R/2026-01-30T09:00/P1M1D", None, "2026-01-01", "01-30T09:00 03-01T09:00 04-01T09:00"),
        ("R/2026-01-01T09:00/P3W", None, "2026-01-01", "01-01T09:00 01-22T09:00 02-12T09:00"),
        ("R/2026-12-31T00:00/P6M", None, "2026-01-01", "2026-12-31T00:00 2027-06-30T00:00 2027-12-31T00:00"),
        # n repetitions after the first
        ("R2/2026-01-01T00:00:00Z/P1D", None, "2025-12-01", "2026-01-01T00:00 2026-01-02T00:00 2026-01-03T00:00 ."),
        ("R0/2026-01-01T00:00:00Z/P1D", None, "2025-12-01", "2026-01-01T00:00 ."),
        ("R2/2026-01-01T00:00:00Z/P1D", None, "2026-01-02", "01-03T00:00 ."),
        # date parts step on the wall, time parts by elapsed time
        ("R/2026-03-07T02:30/P1D", "America/New_York", "2026-03-01", "03-07T02:30-05:00 03-08T03:00-04:00 03-09T02:30-04:00"),
        ("R/2026-03-07T02:30/PT24H", "America/New_York", "2026-03-01", "03-07T02:30-05:00 03-08T03:30-04:00 03-09T03:30-04:00"),
        ("R/2026-10-31T01:30/P1D", "America/New_York", "2026-10-01", "10-31T01:30-04:00 11-01T01:30-04:00 11-02T01:30-05:00"),
        ("R/2026-10-31T01:30/PT24H", "America/New_York", "2026-10-01", "10-31T01:30-04:00 11-01T01:30-04:00 11-02T00:30-05:00"),
        ("R/2026-03-08T01:30/PT30M", "America/New_York", "2026-03-08T05:00", "03-08T01:30-05:00 03-08T03:00-04:00 03-08T03:30-04:00"),
        ("R/2026-02-08T02:30/P1M", "America/New_York", "2026-01-01", "02-08T02:30-05:00 03-08T03:00-04:00 04-08T02:30-04:00"),
        ("R/2011-12-29T10:00/P1D", "Pacific/Apia", "2011-12-01", "2011-12-29T10:00-10:00 2011-12-31T00:00+14:00 2011-12-31T10:00+14:00"),
        ("R/2011-12-29T00:00/P1D", "Pacific/Apia", "2011-12-01", "2011-12-29T00:00-10:00 2011-12-31T00:00+14:00 2012-01-01T00:00+14:00"),
        # a start with an offset is an instant; its wall time is that of the zone
        ("R/2026-03-07T12:00:00Z/P1D", "America/New_York", "2026-03-01", "03-07T07:00-05:00 03-08T07:00-04:00"),
        ("R/2026-01-31T23:00:00Z/P1M", "Asia/Seoul", "2026-01-01", "02-01T08:00+09:00 03-01T08:00+09:00"),
        ("R/2026-01-01T00:00/PT0.25S", None, "2026-01-01", "01-01T00:00:00.250 01-01T00:00:00.500"),
    ],
)  # fmt: skip
def test_a_repeating_interval_counts_from_its_start(text: str, tz: str | None, start: str, expected: str) -> None:
    wanted = [run if run[4:5] == "-" else f"{start[:5]}{run}" for run in expected.split() if run != "."]
    moments = [at(run) for run in wanted]
    expression = chronex.parse(text, tz=tz)
    found = list(islice(expression.upcoming(at(start)), len(moments) + 1))
    assert [(m.timestamp(), m.utcoffset()) for m in found[: len(moments)]] == [
        (m.timestamp(), m.utcoffset()) for m in moments
    ]
    assert (len(found) == len(moments)) is expected.endswith(".")
    for earlier, later in pairwise(moments):
        back = expression.previous(later)
        assert back is not None
        assert back.timestamp() == earlier.timestamp()


def test_a_repeating_interval_has_nothing_before_its_start() -> None:
    expression = chronex.parse("R/2026-01-01T00:00:00Z/P1D")
    assert expression.previous(at("2026-01-01")) is None
    assert expression.previous(at("2026-01-01"), inclusive=True) == at("2026-01-01")
    assert expression.next(at("1990-01-01")) == at("2026-01-01")


# -- the ends of the calendar ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati", "Etc/GMT+12"])
@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "* * * * * *",
        "0 0 * * *",
        "@yearly",
        "@every 1h",
        "R/0001-01-01T00:00:00Z/P1M",
        "R/9999-12-01T00:00/P1D",
        "0 0 29 2 *",
        "@once 9999-12-31T23:59:59",
        "@once 0001-01-01T00:00:00",
    ],
)
def test_the_first_and_last_instants_of_the_calendar_are_an_answer_or_none(zone: str, text: str) -> None:
    expression = chronex.parse(text, tz=zone)
    for moment in (
        datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime(1, 1, 1, 13, tzinfo=UTC), datetime(9999, 12, 31, 9, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=12))), datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ):  # fmt: skip
        for inclusive in (False, True):
            following = expression.next(moment, inclusive=inclusive)
            preceding = expression.previous(moment, inclusive=inclusive)
            assert following is None or following - moment >= timedelta(0)
            assert preceding is None or moment - preceding >= timedelta(0)
        expression.matches(moment)
        list(expression.upcoming(moment, limit=3))


def test_a_question_from_before_the_calendar_is_answered_with_its_first_run() -> None:
    before = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    after = datetime(9999, 12, 31, 23, 59, tzinfo=timezone(-timedelta(hours=12)))
    expression = chronex.parse("0 * * * *")
    expression.next(datetime(1, 1, 2, tzinfo=UTC))
    assert iso(expression.next(before)) == "0001-01-01T00:00:00+00:00"
    assert iso(expression.previous(after)) == "9999-12-31T23:00:00+00:00"
    assert expression.previous(before) is None
    assert expression.next(after) is None


def test_the_last_run_of_the_calendar_is_followed_by_none() -> None:
    expression = chronex.parse("0 0 31 12 *")
    assert iso(expression.next(at("9999-01-01"))) == "9999-12-31T00:00:00+00:00"
    assert expression.next(at("9999-12-31")) is None
    assert list(expression.upcoming(at("9998-01-01"))) == [at("9998-12-31"), at("9999-12-31")]
    assert iso(expression.previous(at("0002-01-01"))) == "0001-12-31T00:00:00+00:00"
    assert expression.previous(at("0001-12-31")) is None


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 4 *", "0 0 31W 2 *", "0 0 L-30 2 *", "0 0 30 2 * {from:2026-01-01}"]
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_what_can_never_fire_is_none_at_little_cost(text: str, zone: str) -> None:
    expression = chronex.parse(text, tz=zone)

    def ask() -> None:
        assert chronex.parse(text, tz=zone).next(NOON) is None
        assert expression.previous(NOON) is None
        assert list(expression.upcoming(NOON)) == []

    ask()
    assert_cheap(ask, 10, f"{text} in {zone}")


# -- the value ------------------------------------------------------------------------------------------------


def test_answers_do_not_depend_on_the_process() -> None:
    """Neither the hash seed nor the TZ variable nor the locale changes an answer."""
    program = (
        "import chronex, datetime as d\n"
        "start = d.datetime(2026, 3, 7, 12, tzinfo=d.UTC)\n"
        "for text in ('TZ=America/New_York 30 2 * * *', '*/7 9-17 * * MON-FRI', '@daily {tag:b+a}', 'R/2026-01-31T09:00/P1M'):\n"
        "    e = chronex.parse(text)\n"
        "    print(e, e.describe(), [m.isoformat() for m in e.upcoming(start, limit=5)], e.previous(start))\n"
    )
    outputs = set()
    for seed, zone, locale in (
        ("0", "UTC", "C"),
        ("1", "Asia/Tokyo", "C.UTF-8"),
        ("2", "America/New_York", "tr_TR.UTF-8"),
    ):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_asking_in_another_order_gives_the_same_answers() -> None:
    moments = [NOON + timedelta(days=97 * n, seconds=31 * n) for n in range(-40, 40)]
    fresh = {m: chronex.parse("*/20 1-3 * * *", tz="America/New_York").next(m) for m in moments}
    shared = chronex.parse("*/20 1-3 * * *", tz="America/New_York")
    for moment in [*reversed(moments), *moments[::3], *moments]:
        assert shared.next(moment) == fresh[moment]


def test_an_expression_can_be_used_as_a_key() -> None:
    table = {chronex.parse("@daily"): 1}
    assert table[chronex.parse("0 0 * * *")] == 1
    assert pickle.loads(pickle.dumps(str(chronex.parse("@daily")))) == "@daily"


# -- @once as a value -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("@once 2027-03-01T09:00:00Z", "2027-03-01T09:00:00+00:00"),
        ("TZ=Asia/Seoul @once 2027-03-01T09:00:00", "2027-03-01T09:00:00+09:00"),
        ("@once +20m", "2027-01-01T00:20:00+00:00"),
        ("@daily", None),
        ("@every 5m", None),
    ],
)
def test_the_instant_of_once_is_a_property(text: str, at: str | None) -> None:
    found = chronex.parse(text, reference=datetime(2027, 1, 1, tzinfo=UTC)).once_at
    assert (None if found is None else found.isoformat()) == at


def test_equal_expressions_are_described_alike() -> None:
    resolved = chronex.parse("@once +20m", reference=datetime(2027, 1, 1, tzinfo=UTC))
    read_again = chronex.parse(str(resolved))
    assert resolved == read_again
    assert resolved.describe() == read_again.describe() == "Once at 2027-01-01 00:20 UTC"
