"""Instants: the number, the datetime and the text of one moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import cast
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.text.instants import (
    epoch_ms,
    epoch_parts,
    local_datetime,
    rfc3339,
    rfc3339_in,
    rfc3339_to_milliseconds,
    rfc3339_to_seconds,
    short_utc_offset,
    utc_datetime,
    utc_offset,
)

BERLIN = ZoneInfo("Europe/Berlin")
# 2027-03-28T01:00:00Z: the clocks of Berlin go from 02:00 to 03:00.
SPRING = 1_806_195_600_000
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999  # 0001-01-01T00:00:00.000Z, 9999-12-31T23:59:59.999Z


@given(st.integers(FIRST, LAST))
def test_a_number_survives_the_way_to_a_datetime_and_back(ms: int) -> None:
    assert epoch_ms(utc_datetime(ms)) == ms
    assert datetime.fromisoformat(rfc3339(ms)) == utc_datetime(ms)


def test_a_datetime_is_in_the_zone_that_was_asked_for() -> None:
    assert utc_datetime(SPRING) == datetime(2027, 3, 28, 1, tzinfo=UTC)
    assert str(local_datetime(SPRING - 1, BERLIN)) == "2027-03-28 01:59:59.999000+01:00"
    assert str(local_datetime(SPRING, BERLIN)) == "2027-03-28 03:00:00+02:00"


def test_the_second_pass_of_an_hour_is_told_apart() -> None:
    first_pass = epoch_ms(datetime(2027, 10, 31, 0, 30, tzinfo=UTC))  # 02:30 in Berlin, twice
    assert [local_datetime(first_pass + hour * 3_600_000, BERLIN).fold for hour in (0, 1)] == [0, 1]


@pytest.mark.parametrize("ms", [FIRST - 1, LAST + 1])
def test_there_is_nothing_outside_the_years_1_to_9999(ms: int) -> None:
    with pytest.raises(OverflowError):
        utc_datetime(ms)


@pytest.mark.parametrize(
    ("ms", "text", "in_tokyo", "in_new_york"),
    [
        (FIRST, "0001-01-01T00:00:00Z", "0001-01-01T09:18:59+09:18:59", "0001-01-01T00:00:00-04:56:02"),
        (FIRST - 10**15, "0001-01-01T00:00:00Z", "0001-01-01T09:18:59+09:18:59", "0001-01-01T00:00:00-04:56:02"),
        (LAST - 999, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59+09:00", "9999-12-31T18:59:59-05:00"),
        (LAST - 999 + 10**15, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59+09:00", "9999-12-31T18:59:59-05:00"),
    ],
)
def test_what_no_date_can_name_is_shown_as_the_end_of_the_calendar(
    ms: int, text: str, in_tokyo: str, in_new_york: str
) -> None:
    assert rfc3339_to_seconds(ms) == text
    assert local_datetime(ms, ZoneInfo("Asia/Tokyo")).isoformat(timespec="seconds") == in_tokyo
    assert local_datetime(ms, ZoneInfo("America/New_York")).isoformat(timespec="seconds") == in_new_york


def test_microseconds_are_cut_off_towards_the_past() -> None:
    before = datetime(1969, 12, 31, 23, 59, 59, 999_001, tzinfo=UTC)
    assert epoch_parts(before) == (-1, 999_001)
    assert epoch_ms(before) == -1
    assert epoch_ms(datetime(1970, 1, 1, 0, 0, 0, 1_999, tzinfo=UTC)) == 1


def test_a_datetime_without_a_zone_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match=r"2027-01-01T00:00:00 has no time zone; give it a zone, such as"):
        epoch_ms(datetime(2027, 1, 1))
    with pytest.raises(TypeError, match="an instant is an aware datetime, not str"):
        epoch_ms(cast("datetime", "2027-01-01"))


@pytest.mark.parametrize(
    ("ms", "usual", "to_seconds", "to_milliseconds"),
    [
        (0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        (SPRING, "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00.000Z"),
        (SPRING + 250, "2027-03-28T01:00:00.250Z", "2027-03-28T01:00:00Z", "2027-03-28T01:00:00.250Z"),
        (-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999Z"),
        (FIRST, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
    ],
)
def test_rfc_3339_in_utc(ms: int, usual: str, to_seconds: str, to_milliseconds: str) -> None:
    assert (rfc3339(ms), rfc3339_to_seconds(ms), rfc3339_to_milliseconds(ms)) == (usual, to_seconds, to_milliseconds)


def test_rfc_3339_in_a_zone_has_its_offset() -> None:
    assert rfc3339_in(SPRING, BERLIN) == "2027-03-28T03:00:00+02:00"
    assert rfc3339_in(SPRING + 250, BERLIN) == "2027-03-28T03:00:00.250+02:00"
    assert rfc3339_in(SPRING, UTC) == "2027-03-28T01:00:00+00:00"
    assert rfc3339_in(0, timezone(timedelta(hours=-3, minutes=-30))) == "1969-12-31T20:30:00-03:30"


@pytest.mark.parametrize(
    ("seconds", "usual", "short"),
    [
        (0, "+00:00", "+00"),
        (7200, "+02:00", "+02"),
        (-12_600, "-03:30", "-03:30"),
        (20_700, "+05:45", "+05:45"),
        (3_208, "+00:53:28", "+00:53"),
    ],
)
def test_offsets_from_utc(seconds: int, usual: str, short: str) -> None:
    assert (utc_offset(seconds), short_utc_offset(seconds)) == (usual, short)
