"""How long one decision takes, from request to result."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from timeit import repeat

from chronex.decision import DecisionRequest, decide

ROWS: list[tuple[str, dict[str, str], str]] = [
    ("uniform", {}, "at most 50"),
    ("skewEarly", {"s": "3"}, "at most 200"),
    ("skewEarly", {"s": "2.5"}, "at most 200"),
    ("normal", {"mu": "mid"}, "at most 200"),
    ("exponential", {"lambda": "2"}, "at most 200"),
]


def run() -> list[tuple[str, float, str]]:
    """(name, microseconds, remark) for each distribution when the first draw is accepted."""
    return [
        (" ".join(["decide", name, *params.values()]), microseconds(name, params), remark)
        for name, params, remark in ROWS
    ]


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


if __name__ == "__main__":
    for name, cost, remark in run():
        print(f"{name:26} {cost:8.1f} µs  {remark}")
