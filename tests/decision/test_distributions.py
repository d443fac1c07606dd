"""The shape of each distribution, with fixed seeds, against its distribution function; and their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from math import exp, sqrt
from statistics import NormalDist

import pytest

from chronex.decision import DecisionError, DistributionError, DistributionParameterError, make_spread
from chronex.decision.distributions import make_distribution, parse_distribution
from chronex.decision.seed import UNIT, SplitMix64

HOUR = timedelta(hours=1)
DRAWS = 2_000
WINDOW = 7_200
NOMINAL = 1_800

# sqrt(n) * D of Kolmogorov and Smirnov is above 1.95 once in a thousand samples; the seeds here are fixed.
KS_BOUND = 1.95


def skew_early(s: float) -> Callable[[float], float]:
    return lambda x: x ** (1 / s)


def skew_late(s: float) -> Callable[[float], float]:
    return lambda x: 1 - (1 - x) ** (1 / s)


def exponential_early(rate: float) -> Callable[[float], float]:
    return lambda x: (1 - exp(-rate * x)) / (1 - exp(-rate))


def exponential_late(rate: float) -> Callable[[float], float]:
    return lambda x: 1 - exponential_early(rate)(1 - x)


def normal(mu: float, sigma: float) -> Callable[[float], float]:
    curve = NormalDist(mu, sigma)
    return lambda x: (curve.cdf(x) - curve.cdf(0)) / (curve.cdf(1) - curve.cdf(0))


SHAPES: list[tuple[str, dict[str, str], Callable[[float], float]]] = [
    ("uniform", {}, lambda x: x),
    ("skewEarly", {}, skew_early(2)),
    ("skewEarly", {"s": "3.5"}, skew_early(3.5)),
    ("skewEarly", {"s": "0.25"}, skew_early(0.25)),
    ("skewLate", {}, skew_late(2)),
    ("skewLate", {"s": "1.5"}, skew_late(1.5)),
    ("exponential", {}, exponential_early(1)),
    ("exponential", {"lambda": "0.5"}, exponential_early(0.5)),
    ("exponential", {"lambda": "8", "dir": "late"}, exponential_late(8)),
    ("normal", {}, normal(1 / 2, 1 / 6)),
    ("normal", {"mu": "nominal"}, normal(NOMINAL / WINDOW, 1 / 6)),
    ("normal", {"mu": "start", "sigma": "30m"}, normal(0, 1 / 4)),
    ("normal", {"mu": "mid", "sigma": "20m"}, normal(1 / 2, 1 / 6)),
    ("normal", {"mu": "end", "sigma": "4h"}, normal(1, 2)),
]
SHAPE_IDS = [" ".join([name, *params.values()]) for name, params, _ in SHAPES]


@pytest.mark.parametrize(("name", "params", "cdf"), SHAPES, ids=SHAPE_IDS)
def test_draws_follow_the_distribution_function(
    name: str, params: dict[str, str], cdf: Callable[[float], float]
) -> None:
    offset_of = make_distribution(name, params).sampler(WINDOW, NOMINAL)
    generator = SplitMix64(20260301)
    counts = Counter(offset_of(generator.next_unit()) for _ in range(DRAWS))
    distance, below = 0.0, 0
    for second in sorted(counts):
        distance = max(distance, abs(cdf(second / (WINDOW + 1)) - below / DRAWS))
        below += counts[second]
        distance = max(distance, abs(cdf((second + 1) / (WINDOW + 1)) - below / DRAWS))
    assert sqrt(DRAWS) * distance < KS_BOUND


def test_many_jobs_spread_evenly_over_their_window() -> None:
    """Chi-square over 20 bins, one draw from each of 4000 seeds: 19 degrees of freedom, 43.8 at p = 0.001."""
    counts = [0] * 20
    for job in range(4_000):
        decision = make_spread(identity=f"job-{job}", window_duration=HOUR).decide_at(1_772_323_200_000)
        assert decision.chosen is not None
        counts[(decision.chosen - decision.window_start) * 20 // 3_601] += 1
    assert sum((count - 200) ** 2 / 200 for count in counts) < 43.8


def test_successive_days_of_one_job_spread_evenly_over_their_window() -> None:
    counts = [0] * 20
    spread = make_spread(identity="one", window_duration=HOUR, seed_strategy="daily")
    for day in range(4_000):
        decision = spread.decide_at(1_772_323_200_000 + day * 86_400_000)
        assert decision.chosen is not None
        counts[(decision.chosen - decision.window_start) * 20 // 3_601] += 1
    assert sum((count - 200) ** 2 / 200 for count in counts) < 43.8


@pytest.mark.parametrize(("name", "params", "cdf"), SHAPES, ids=SHAPE_IDS)
def test_a_larger_draw_is_never_earlier_and_both_ends_stay_inside(
    name: str, params: dict[str, str], cdf: Callable[[float], float]
) -> None:
    for seconds in (1, 2, 59, WINDOW, 10**9):
        offset_of = make_distribution(name, params).sampler(seconds, seconds // 4)
        draws = [0, 1, 2, UNIT // 1000, *range(UNIT // 50, UNIT, UNIT // 50), UNIT - 2, UNIT - 1]
        found = [offset_of(u) for u in draws]
        assert found == sorted(found)
        assert found[0] == 0
        assert found[-1] <= seconds


@pytest.mark.parametrize("s", ["1", "1.0", "1.000"])
@pytest.mark.parametrize("name", ["skewEarly", "skewLate"])
def test_a_skew_of_one_is_uniform(name: str, s: str) -> None:
    uniform = make_distribution("uniform", {}).sampler(WINDOW, 0)
    skew = make_distribution(name, {"s": s})
    assert skew.params == {"s": "1"}
    generator = SplitMix64(1)
    for _ in range(200):
        u = generator.next_unit()
        # 1 - (1 - U) is U exactly, so even the mirror image agrees to the second.
        assert skew.sampler(WINDOW, 0)(u) == uniform(u)


def test_parameters_are_shown_as_understood() -> None:

    shown = [
        ("skewEarly", {"shape": 2.5}, {"s": "2.5"}),
        ("skewLate", {"s": Decimal("3.10")}, {"s": "3.1"}),
        ("skewLate", {"s": 1e-7}, {"s": "0.0000001"}),
        ("normal", {"sigma": timedelta(minutes=90)}, {"mu": "mid", "sigma": "1h30m"}),
        ("normal", {"sigma": 90}, {"mu": "mid", "sigma": "1m30s"}),
        ("normal", {"sigma": 0.0005}, {"mu": "mid", "sigma": "0.0005"}),
        ("normal", {"sigma": "1500ms", "mu": "mid"}, {"mu": "mid", "sigma": "1s500ms"}),
        ("normal", {}, {"mu": "mid", "sigma": "window/6"}),
        ("exponential", {}, {"lambda": "1", "dir": "early"}),
    ]
    for name, given, expected in shown:
        made = make_distribution(name, given)
        assert made.params == expected
        assert make_distribution(name, made.params) == made


@pytest.mark.parametrize(
    ("mode", "middle"), [("after", "mid"), ("before", "mid"), ("around", "nominal"), ("center", "nominal")]
)
def test_the_normal_curve_has_its_middle_where_the_window_has_it(mode: str, middle: str) -> None:
    spread = make_spread(identity="a", window_mode=mode, window_duration=HOUR, distribution="normal")
    assert spread.distribution.params["mu"] == middle


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
