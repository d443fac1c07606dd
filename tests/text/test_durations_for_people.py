"""Durations for people: each style, row by row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chronex.text.durations import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    SECOND_MS,
    brief_duration,
    countdown,
    elapsed,
    largest_unit,
    rounded_duration,
    time_until,
)

ROWS = [
    # ms, brief, rounded, countdown, elapsed, largest unit, time until
    (0, "0ms", "0.0s", "0:00", "0:00", "0s", "in <1s"),
    (40, "40ms", "0.0s", "0:01", "0:00", "1s", "in <1s"),
    (300, "0.3s", "0.3s", "0:01", "0:00", "1s", "in <1s"),
    (9_949, "9.9s", "9.9s", "0:10", "0:09", "10s", "in 9s"),
    (9_950, "9.9s", "10s", "0:10", "0:09", "10s", "in 9s"),
    (12_400, "12s", "12s", "0:13", "0:12", "13s", "in 12s"),
    (42_600, "42s", "43s", "0:43", "0:42", "43s", "in 42s"),
    (59_999, "59s", "1m00s", "1:00", "0:59", "1m", "in 59s"),
    (MINUTE_MS, "1m", "1m00s", "1:00", "1:00", "1m", "in 1m 0s"),
    (62 * SECOND_MS, "1m02s", "1m02s", "1:02", "1:02", "1m", "in 1m 2s"),
    (190 * SECOND_MS, "3m10s", "3m10s", "3:10", "3:10", "3m", "in 3m 10s"),
    (HOUR_MS, "1h", "1h00m", "1h 00m", "1h 00m", "1h", "in 1h 0m"),
    (2 * HOUR_MS + 5 * MINUTE_MS, "2h05m", "2h05m", "2h 05m", "2h 05m", "2h", "in 2h 5m"),
    (DAY_MS - 1, "23h59m", "1d0h", "1d 0h", "23h 59m", "1d", "in 23h 59m"),
    (2 * DAY_MS + 4 * HOUR_MS, "2d04h", "2d4h", "2d 4h", "2d 4h", "2d", "in 2d 4h"),
    (12 * DAY_MS, "12d", "12d0h", "12d 0h", "12d 0h", "12d", "in 12d 0h"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_each_style(row: tuple[int, str, str, str, str, str, str]) -> None:
    ms, *expected = row
    styles = (brief_duration, rounded_duration, countdown, elapsed, largest_unit, time_until)
    assert [style(ms) for style in styles] == expected


@pytest.mark.parametrize("style", [countdown, elapsed])
def test_a_running_clock_stops_at_zero(style: Callable[[int], str]) -> None:
    assert style(-5_000) == "0:00"
