"""Dates, date-times and periods of ISO 8601."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.expr.iso8601 import Moment, Period, moment_from_instant, parse_moment, parse_period

EPOCH = datetime(1970, 1, 1)


def wall(text: str) -> int:
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("text", "moment", "canonical"),
    [
        ("2026-06-01", Moment(wall("2026-06-01"), None, is_date=True), "2026-06-01"),
        ("2026-06-01T09:00:00", Moment(wall("2026-06-01T09:00"), None, is_date=False), "2026-06-01T09:00:00"),
        ("2026-06-01T09:00", Moment(wall("2026-06-01T09:00"), None, is_date=False), "2026-06-01T09:00:00"),
        ("2026-06-01T09:00:00Z", Moment(wall("2026-06-01T09:00"), 0, is_date=False), "2026-06-01T09:00:00Z"),
        ("2026-06-01T09:00:00+00:00", Moment(wall("2026-06-01T09:00"), 0, is_date=False), "2026-06-01T09:00:00Z"),
        ("2026-06-01T09:00:00+09:00", Moment(wall("2026-06-01T09:00"), 32_400, is_date=False), "2026-06-01T09:00:00+09:00"),
        ("2026-06-01T09:00:00-03:30", Moment(wall("2026-06-01T09:00"), -12_600, is_date=False), "2026-06-01T09:00:00-03:30"),
        ("2026-06-01T09:00:00.5", Moment(wall("2026-06-01T09:00:00.500"), None, is_date=False), "2026-06-01T09:00:00.5"),
        ("2026-06-01T09:00:00.120Z", Moment(wall("2026-06-01T09:00:00.120"), 0, is_date=False), "2026-06-01T09:00:00.12Z"),
        ("2026-06-01T09:00:00.000", Moment(wall("2026-06-01T09:00"), None, is_date=False), "2026-06-01T09:00:00"),
        ("2024-02-29", Moment(wall("2024-02-29"), None, is_date=True), "2024-02-29"),
        ("0001-01-01", Moment(wall("0001-01-01"), None, is_date=True), "0001-01-01"),
        ("9999-12-31T23:59:59", Moment(wall("9999-12-31T23:59:59"), None, is_date=False), "9999-12-31T23:59:59"),
    ],
)  # fmt: skip
def test_a_moment_keeps_its_wall_time_and_offset(text: str, moment: Moment, canonical: str) -> None:
    assert parse_moment(text) == moment
    assert str(moment) == canonical
    assert parse_moment(canonical) == moment


@pytest.mark.parametrize(
    "text",
    [
        "", "2026", "2026-06", "2026-6-1", "20260601", "2026-02-29", "2026-02-30", "2026-13-01", "2026-00-01", "2026-01-00",
        "0000-01-01", "10000-01-01", "2026-06-01T", "2026-06-01T9:00", "2026-06-01T24:00:00", "2026-06-01T09:60:00",
        "2026-06-01T09:00:60", "2026-06-01 09:00:00", "2026-06-01t09:00:00", "2026-06-01T09:00:00z", "2026-06-01T09:00:00+9:00",
        "2026-06-01T09:00:00+0900", "2026-06-01T09:00:00+24:00", "2026-06-01T09:00:00+09:60", "2026-06-01T09:00:00.",
        "2026-06-01T09:00:00.0001", "２０２６-06-01", "2026-06-01\n", "2026-W01-1",
    ],
)  # fmt: skip
def test_what_is_not_a_moment_or_does_not_exist_is_refused(text: str) -> None:
    assert parse_moment(text) is None


@given(st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)), st.integers(-1439, 1439))
@settings(deadline=None)
def test_a_moment_with_an_offset_is_the_instant_that_datetime_says(when: datetime, minutes: int) -> None:
    aware = when.replace(microsecond=0, tzinfo=timezone(timedelta(minutes=minutes)))
    moment = parse_moment(aware.isoformat())
    assert moment is not None
    assert moment.instant_ms == (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse_moment(str(moment)) == moment


def test_an_instant_is_printed_in_utc() -> None:
    assert str(moment_from_instant(1_750)) == "1970-01-01T00:00:01.75Z"


@pytest.mark.parametrize(
    ("text", "period", "canonical"),
    [
        ("P1M", Period(1, 0, 0), "P1M"),
        ("P1Y", Period(12, 0, 0), "P1Y"),
        ("P18M", Period(18, 0, 0), "P1Y6M"),
        ("P3W", Period(0, 21, 0), "P3W"),
        ("P14D", Period(0, 14, 0), "P2W"),
        ("P10D", Period(0, 10, 0), "P10D"),
        ("P1W1D", Period(0, 8, 0), "P8D"),
        ("PT90M", Period(0, 0, 5_400_000), "PT1H30M"),
        ("PT36H", Period(0, 0, 129_600_000), "PT36H"),
        ("PT0.25S", Period(0, 0, 250), "PT0.25S"),
        ("PT1S", Period(0, 0, 1000), "PT1S"),
        ("P1Y2M3W4DT5H6M7.5S", Period(14, 25, 18_367_500), "P1Y2M25DT5H6M7.5S"),
        ("P0M1D", Period(0, 1, 0), "P1D"),
    ],
)
def test_a_period_has_months_days_and_elapsed_time(text: str, period: Period, canonical: str) -> None:
    assert parse_period(text) == period
    assert str(period) == canonical
    assert parse_period(canonical) == period


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1", "1D", "P1H", "PT1D", "P-1D", "p1d", "P1D ", "P1.5D", "P1M1Y", "P0D", "PT0S", "P999999Y", "PT1.2345S", "P1DT"],
)  # fmt: skip
def test_what_is_not_a_positive_period_is_refused(text: str) -> None:
    assert parse_period(text) is None
