"""Instants in few characters."""

from __future__ import annotations

import pytest

from chronex.model.reasons import Reason, ReasonCode, short_text
from chronex.text.durations import countdown, elapsed, largest_unit, rounded_duration
from chronex_tui.model.display import stamp
from tests.tui.examples import DAY, HOME, HOUR, MINUTE, NOW


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(0, "0:00"), (1, "0:01"), (190_000, "3:10"), (HOUR, "1h 00m"), (26 * HOUR, "1d 2h"), (-5, "0:00")],
)
def test_a_countdown_ends_at_the_instant(ms: int, expected: str) -> None:
    assert countdown(ms) == expected


@pytest.mark.parametrize(
    ("ms", "expected"), [(300, "0.3s"), (9_949, "9.9s"), (12_000, "12s"), (62_000, "1m02s"), (7_500_000, "2h05m")]
)
def test_a_duration_in_few_characters(ms: int, expected: str) -> None:
    assert rounded_duration(ms) == expected


def test_other_words_of_time() -> None:
    assert (largest_unit(240_000), largest_unit(50_000), largest_unit(3 * HOUR)) == ("4m", "50s", "3h")
    assert elapsed(59_999) == "0:59"
    assert stamp(NOW + 4 * MINUTE, NOW, HOME) == "15:00:04"
    assert stamp(NOW // MINUTE * MINUTE + 13 * HOUR, NOW, HOME) == "Mon 03:56"
    assert stamp(NOW + 400 * DAY, NOW, HOME) == "20 Dec 2027"
    assert short_text(Reason(ReasonCode.EXIT_CODE, "exit code 1", "main")) == "exit 1"
    assert short_text(Reason(ReasonCode.OVERLAP, "occ_1")) == "an earlier occurrence still runs: occ_1"
