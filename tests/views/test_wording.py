"""Instants and spans in a few characters."""

from __future__ import annotations

import pytest

from chronex.model.policies import RetryPolicy
from chronex.text.durations import brief_duration
from chronex.timing.zones import load_zone
from chronex.views.wording import full, moment, retry_words, upcoming

NOW = 1_794_836_160_000  # Mon 16 Nov 2026 13:36:00 UTC, 14:36 in Berlin
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BERLIN = load_zone("Europe/Berlin")


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0, "0ms"), (34, "34ms"), (300, "0.3s"), (2_049, "2.0s"), (42_000, "42s"), (62_000, "1m02s"), (2 * MINUTE, "2m"),
     (3 * HOUR + 10 * MINUTE, "3h10m"), (2 * DAY + 4 * HOUR + MINUTE, "2d04h"), (400 * DAY, "400d")],
)  # fmt: skip
def test_a_span(ms: int, text: str) -> None:
    assert brief_duration(ms) == text


@pytest.mark.parametrize(
    ("away", "text"),
    [
        (-DAY, "due Sun 14:36"),
        (-2_000, "now"),
        (4_000, "14:36:04 in 4.0s"),
        (24 * MINUTE, "15:00 in 24m"),
        (9 * HOUR, "23:36 in 9h"),
        (10 * HOUR, "Tue 00:36"),
        (6 * DAY, "Sun 14:36"),
        (7 * DAY, "23 Nov 2026"),
    ],
)
def test_what_comes(away: int, text: str) -> None:
    assert upcoming(NOW + away, NOW, BERLIN) == text


def test_the_wall_clock_is_that_of_the_zone_on_that_day() -> None:
    summer = NOW + 150 * DAY
    assert moment(summer, summer + HOUR, BERLIN) == "15:36"
    assert full(NOW, BERLIN) == "Mon 2026-11-16 14:36:00+01:00"
    assert full(summer, BERLIN) == "Thu 2027-04-15 15:36:00+02:00"


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (RetryPolicy(), "never"),
        (RetryPolicy(max=3), "3 times after 30s, x2 up to 10m, jitter 10%"),
        (
            RetryPolicy(max=None, backoff=1.5, max_interval_ms=5 * MINUTE, jitter=0),
            "for ever after 30s, x1.5 up to 5m",
        ),
        (RetryPolicy(max=3, backoff=1, jitter=0), "3 times every 30s"),
        (RetryPolicy(max=3, interval_ms=0, backoff=1, jitter=0.25), "3 times every 1s, jitter 25%"),
        (RetryPolicy(max=1, interval_ms=HOUR), "once after 1h, jitter 10%"),
        (RetryPolicy(max=2, interval_ms=HOUR), "2 times every 1h, jitter 10%"),
        (RetryPolicy(max=2, interval_ms=HOUR, max_interval_ms=MINUTE, backoff=1, jitter=0), "2 times every 1m"),
    ],
)
def test_how_a_task_is_tried_again(policy: RetryPolicy, text: str) -> None:
    assert retry_words(policy) == text
