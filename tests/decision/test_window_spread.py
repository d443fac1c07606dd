"""A spread for many nominal instants: what `chronex explain --spread` shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chronex.decision import make_spread
from chronex.decision.decide import histogram, preview

DAY = 86_400_000
NOMINALS = [1_772_323_200_000 + day * DAY for day in range(200)]


def test_a_preview_is_the_decision_of_each_instant() -> None:
    spread = make_spread(identity="a", window_duration=timedelta(hours=2), only="dow=MON-FRI")
    results = preview(spread, NOMINALS[:7])
    assert [r.nominal_time for r in results] == [datetime.fromtimestamp(at / 1000, UTC) for at in NOMINALS[:7]]
    assert [r.unschedulable for r in results] == [True, False, False, False, False, False, True]
    assert results[0].constraint_meta["only"] == [{"clause": "dow=MON-FRI", "rejected": 64}]


def test_a_histogram_counts_every_start_once() -> None:
    spread = make_spread(identity="a", window_duration=timedelta(hours=2), distribution="skewEarly")
    counts = histogram(spread, NOMINALS, 10)
    assert sum(counts) == 200
    assert counts[0] > 40 > 4 * counts[-1] / 3


def test_an_unschedulable_period_is_in_no_bin() -> None:
    spread = make_spread(identity="a", window_duration=timedelta(hours=1), only="hours=5")
    assert histogram(spread, NOMINALS, 4) == [0, 0, 0, 0]


def test_without_a_window_everything_is_in_the_first_bin() -> None:
    assert histogram(make_spread(identity="a"), NOMINALS, 4) == [200, 0, 0, 0]


def test_a_histogram_needs_a_bin() -> None:
    with pytest.raises(ValueError, match="at least one bin"):
        histogram(make_spread(identity="a"), NOMINALS, 0)
