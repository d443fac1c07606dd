"""Durations: text to milliseconds and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.text.durations import MAX_DURATION_MS, format_duration, parse_duration, suggest_duration

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
