"""How long one decision takes, from request to result."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from timeit import repeat

from benchmarks.measure import FULL, Row, Size
from chronex.decision import DecisionRequest, decide

CASES: list[tuple[str, dict[str, str], float]] = [
    ("uniform", {}, 50),
    ("skewEarly", {"s": "3"}, 200),
    ("skewEarly", {"s": "2.5"}, 200),
    ("normal", {"mu": "mid"}, 200),
    ("exponential", {"lambda": "2"}, 200),
]


def notes() -> list[str]:
    return ["One decision from request to result, the first draw accepted, two clauses; no peer does this."]


def run(size: Size = FULL) -> Iterator[Row]:
    for name, params, limit in CASES:
        what = " ".join(["decide", name, *params.values()])
        yield Row("decision", what, microseconds(name, params, size.instants), " µs", at_most=limit)


def microseconds(name: str, params: dict[str, str], calls: int = 200) -> float:
    request = DecisionRequest(
        identity="bench",
        nominal_time=datetime(2026, 3, 2, 8, tzinfo=UTC),
        timezone="Europe/Berlin",
        window_duration=timedelta(hours=4),
        distribution=name,
        distribution_params=params,
        seed_strategy="daily",
        only="dow=MON-FRI;between=08:00-20:00",
    )
    return min(repeat(lambda: decide(request), number=calls, repeat=5)) / calls * 1e6
