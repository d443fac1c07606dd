"""What `chronex explain --spread` shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chronex.decision import DecisionError, DistributionError, DistributionParameterError, make_spread
from chronex.decision.preview import histogram, parse_distribution, preview

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uniform", ("uniform", {})),
        ("skewEarly", ("skewEarly", {})),
        ("skewEarly:3", ("skewEarly", {"s": "3"})),
        ("skewLate:s=1.5", ("skewLate", {"s": "1.5"})),
        (" skewLate : shape = 1.5 ", ("skewLate", {"shape": "1.5"})),
        ("normal:mid", ("normal", {"mu": "mid"})),
        ("normal:mid,sigma=10m", ("normal", {"mu": "mid", "sigma": "10m"})),
        ("normal:mu=mid,sigma=10m", ("normal", {"mu": "mid", "sigma": "10m"})),
        ("exponential:2", ("exponential", {"lambda": "2"})),
        ("exponential:lambda=2,dir=early", ("exponential", {"lambda": "2", "dir": "early"})),
    ],
)
def test_the_text_of_a_distribution(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert parse_distribution(text) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", DistributionError),
        ("skewearly:3", DistributionError),
        (":3", DistributionError),
        ("gauss:,", DistributionError),
        ("uniform:3", DistributionParameterError),
        ("uniform:", DistributionParameterError),
        ("skewEarly:", DistributionParameterError),
        ("skewEarly:x", DistributionParameterError),
        ("skewEarly:s=", DistributionParameterError),
        ("skewEarly:s=2,s=3", DistributionParameterError),
        ("skewEarly:2,s=3", DistributionParameterError),
        ("skewEarly:s=2,shape=3", DistributionParameterError),
        ("skewEarly:s=2,", DistributionParameterError),
        ("normal:mu=mid,10m", DistributionParameterError),
        ("normal:mu=mid,sigm=10m", DistributionParameterError),
        ("exponential:lambda=2=3", DistributionParameterError),
    ],
)
def test_a_wrong_distribution_is_a_typed_error(text: str, kind: type[DecisionError]) -> None:
    with pytest.raises(DecisionError) as caught:
        parse_distribution(text)
    assert type(caught.value) is kind
