"""Durations: text to milliseconds and back, and the short forms for people."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.text.durations import (
    MAX_DURATION_MS,
    brief_duration,
    countdown,
    elapsed,
    format_duration,
    largest_unit,
    parse_duration,
    rounded_duration,
    suggest_duration,
    time_until,
)

S, M, H, D = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "ms", "canonical"),
    [
        ("500ms", 500, "500ms"),
        ("30s", 30 * S, "30s"),
        ("5m", 5 * M, "5m"),
        ("2h", 2 * H, "2h"),
        ("1d", D, "1d"),
        ("1h30m", 90 * M, "1h30m"),
        ("90m", 90 * M, "1h30m"),
        ("3600s", H, "1h"),
        ("86400000ms", D, "1d"),
        ("36h", 36 * H, "1d12h"),
        ("1500ms", 1500, "1s500ms"),
        ("30m1h", 90 * M, "1h30m"),
        ("1m1m", 2 * M, "2m"),
        ("007m", 7 * M, "7m"),
        ("0s", 0, "0ms"),
        ("0d0ms", 0, "0ms"),
        ("1d1h1m1s1ms", D + H + M + S + 1, "1d1h1m1s1ms"),
        ("1m1ms", M + 1, "1m1ms"),
        ("3659634d", 3_659_634 * D, "3659634d"),
    ],
)
def test_a_duration_has_one_length_and_one_canonical_text(text: str, ms: int, canonical: str) -> None:
    assert parse_duration(text) == ms
    assert format_duration(ms) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "", "30", "m", "1", "h1", "1 h", " 1h", "1h ", "1H", "1M", "1w", "1y", "1.5h", "-1h", "+1h", "1h-2h", "1min", "1e3s",
        "١s", "１s", "1ｓ", "1h\n", "3659635d", "999999999999999999d", "1m" * 51,
    ],
)  # fmt: skip
def test_what_is_not_a_duration_or_outlasts_the_calendar_is_refused(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("30min", "30m"),
        ("30 min", "30m"),
        ("1hour", "1h"),
        ("2 hours 30 mins", "2h30m"),
        ("45SEC", "45s"),
        ("2w", "14d"),
        ("1week", "7d"),
        ("3Days", "3d"),
        ("250msec", "250ms"),
        ("30", "30s"),
        ("1H", "1h"),
        ("5fortnights", None),
        ("", None),
        ("h", None),
        ("1h-2h", None),
        ("1.5h", None),
        ("99999999999", None),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(text: str, meant: str | None) -> None:
    assert suggest_duration(text) == meant


@given(st.integers(0, MAX_DURATION_MS))
@settings(deadline=None)
def test_the_canonical_text_reads_back(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


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
    (M, "1m", "1m00s", "1:00", "1:00", "1m", "in 1m 0s"),
    (62 * S, "1m02s", "1m02s", "1:02", "1:02", "1m", "in 1m 2s"),
    (190 * S, "3m10s", "3m10s", "3:10", "3:10", "3m", "in 3m 10s"),
    (H, "1h", "1h00m", "1h 00m", "1h 00m", "1h", "in 1h 0m"),
    (2 * H + 5 * M, "2h05m", "2h05m", "2h 05m", "2h 05m", "2h", "in 2h 5m"),
    (D - 1, "23h59m", "1d0h", "1d 0h", "23h 59m", "1d", "in 23h 59m"),
    (2 * D + 4 * H, "2d04h", "2d4h", "2d 4h", "2d 4h", "2d", "in 2d 4h"),
    (12 * D, "12d", "12d0h", "12d 0h", "12d 0h", "12d", "in 12d 0h"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_each_style(row: tuple[int, str, str, str, str, str, str]) -> None:
    ms, *expected = row
    styles = (brief_duration, rounded_duration, countdown, elapsed, largest_unit, time_until)
    assert [style(ms) for style in styles] == expected


@pytest.mark.parametrize("style", [countdown, elapsed])
def test_a_running_clock_stops_at_zero(style: Callable[[int], str]) -> None:
    assert style(-5_000) == "0:00"
