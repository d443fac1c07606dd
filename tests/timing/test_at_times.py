"""Times as people say them to at(1), worked out by hand for a Tuesday at 13:00 in Berlin."""

from __future__ import annotations

from datetime import datetime

import pytest

from chronex.timing.at_times import read_at_time
from chronex.timing.zones import load_zone

BERLIN = load_zone("Europe/Berlin")
NOW = datetime(2026, 11, 17, 13, 0, 5, tzinfo=BERLIN.tzinfo)
NOW_MS = int(NOW.timestamp() * 1000)
TIMES = {
    "now + 2h": "2026-11-17T15:00:05+01:00",
    "now + 90 minutes": "2026-11-17T14:30:05+01:00",
    "now+1h30m": "2026-11-17T14:30:05+01:00",
    "+20m": "2026-11-17T13:20:05+01:00",
    "in 2 days": "2026-11-19T13:00:05+01:00",
    "14:30": "2026-11-17T14:30:00+01:00",
    "1430": "2026-11-17T14:30:00+01:00",
    "9:15": "2026-11-18T09:15:00+01:00",
    "13:00": "2026-11-18T13:00:00+01:00",
    "2:30pm": "2026-11-17T14:30:00+01:00",
    "12am": "2026-11-18T00:00:00+01:00",
    "noon": "2026-11-18T12:00:00+01:00",
    "midnight": "2026-11-18T00:00:00+01:00",
    "tomorrow": "2026-11-18T13:00:05+01:00",
    "tomorrow 09:00": "2026-11-18T09:00:00+01:00",
    "09:00 tomorrow": "2026-11-18T09:00:00+01:00",
    "today 23:59": "2026-11-17T23:59:00+01:00",
    "monday 08:00": "2026-11-23T08:00:00+01:00",
    "tue noon": "2026-11-24T12:00:00+01:00",
    "2027-07-01 10:00": "2027-07-01T10:00:00+02:00",
    "2027-07-01T10:00": "2027-07-01T10:00:00+02:00",
    "2027-07-01T10:00:00Z": "2027-07-01T12:00:00+02:00",
    "2027-03-27 02:30 + 2 days": "2027-03-29T02:30:00+02:00",
    "2027-10-31 02:30": "2027-10-31T02:30:00+02:00",
    "TOMORROW  9AM": "2026-11-18T09:00:00+01:00",
}


@pytest.mark.parametrize("words", TIMES)
def test_words_mean_what_they_mean_to_at(words: str) -> None:
    found = read_at_time(words, NOW_MS, BERLIN)
    assert found.problem == ""
    assert found.ms == datetime.fromisoformat(TIMES[words]).timestamp() * 1000


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "not understood"), ("soon", "not understood"), ("25:00", "not understood"), ("13pm", "not understood"),
        ("tomorrow tomorrow", "not understood"), ("now + soon", "the distance is not understood"),
        ("now", "has passed"), ("today 09:00", "has passed"), ("2020-01-01T00:00:00Z", "has passed"),
        ("2027-03-28 02:30", "the clock skips 02:30 on 2027-03-28 in Europe/Berlin; say 03:30"),
        ("now + 999999 weeks", "beyond the calendar"), ("9999-12-31 23:00 + 2 days", "beyond the calendar"),
        ("9999-12-31 23:00 + 2h", "beyond the calendar"), ("0001-01-01 00:00", "beyond the calendar"),
        ("0001-01-01T00:00:00+14:00", "beyond the calendar"), ("9999-12-31T23:00:00-14:00", "beyond the calendar"),
    ],
)  # fmt: skip
def test_what_is_no_time_says_so(words: str, problem: str) -> None:
    assert problem in read_at_time(words, NOW_MS, BERLIN).problem
