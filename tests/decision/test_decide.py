"""Properties of every decision, the border where datetimes come in, and a spread for many nominal instants."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.decision import MAX_ATTEMPTS, DecisionRequest, decide, make_spread
from chronex.decision.decide import histogram, preview
from tests.decision import reference

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
]
SHAPES: list[tuple[str, dict[str, str]]] = [
    ("uniform", {}),
    ("skewEarly", {"s": "3"}),
    ("skewEarly", {"s": "0.7"}),
    ("skewLate", {"s": "1.5"}),
    ("normal", {}),
    ("normal", {"mu": "mid", "sigma": "45s"}),
    ("normal", {"mu": "end", "sigma": "window/2"}),
    ("exponential", {"lambda": "2", "dir": "early"}),
    ("exponential", {"lambda": "0.1", "dir": "late"}),
]
CLAUSES = ["", "hours=8-20", "dow=MON-FRI", "between=08:30-19:45;dow=1-6", "dom=1-15;months=1-9", "hours=3"]


def base(**fields: Any) -> DecisionRequest:
    return DecisionRequest(**{"identity": "a", "nominal_time": NOON, **fields})


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    moment = draw(st.datetimes(datetime(1950, 1, 1), datetime(2150, 1, 1), timezones=st.just(UTC)))
    name, params = draw(st.sampled_from(SHAPES))
    micros = draw(st.one_of(st.integers(0, 5_000_000), st.integers(0, 10**6 * 86_400 * 30)))
    return {
        "identity": draw(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)),
        "nominal_time": moment.isoformat(),
        "timezone": draw(st.sampled_from(ZONES)),
        "window_mode": draw(st.sampled_from(["after", "around", "center", "before"])),
        "window_duration": f"{micros // 10**6}.{micros % 10**6:06}",
        "distribution": name,
        "distribution_params": params,
        "seed_strategy": draw(st.sampled_from(["stable", "daily", "weekly"])),
        "salt": draw(st.sampled_from(["", "s", "x\ny"])),
        "only": draw(st.sampled_from(CLAUSES)),
        "avoid": draw(st.sampled_from(CLAUSES)),
    }


def as_request(row: dict[str, Any]) -> DecisionRequest:
    whole, part = row["window_duration"].split(".")
    return DecisionRequest(
        **row
        | {
            "nominal_time": datetime.fromisoformat(row["nominal_time"]),
            "window_duration": timedelta(seconds=int(whole), microseconds=int(part)),
        }
    )


@settings(max_examples=60, deadline=None)
@given(requests())
def test_every_decision_keeps_its_promises(row: dict[str, Any]) -> None:
    request = as_request(row)
    result = decide(request)
    assert result == decide(request)
    assert 0 <= result.attempts <= MAX_ATTEMPTS
    assert (result.attempts == 0) == (result.window_start == result.window_end)
    assert result.unschedulable == (result.chosen_time is None) == bool(result.reason)
    assert result.window_start <= result.nominal_time
    assert result.window_start.microsecond == result.window_end.microsecond == result.nominal_time.microsecond
    if request.window_mode == "after":
        assert result.window_start == result.nominal_time
    if result.chosen_time is not None:
        assert result.chosen_time.tzinfo is UTC
        assert result.window_start <= result.chosen_time <= result.window_end
        shown = reference.field_values(result.chosen_time.astimezone(ZoneInfo(request.timezone)))
        assert all(shown[kind] in values for kind, values in reference.clauses(request.only).items())
        assert all(shown[kind] not in values for kind, values in reference.clauses(request.avoid).items())


@settings(max_examples=60, deadline=None)
@given(requests())
def test_the_slow_reference_decides_the_same(row: dict[str, Any]) -> None:
    assert decide(as_request(row)).to_dict() == reference.decide(row)


@settings(max_examples=100, deadline=None)
@given(requests())
def test_the_integer_path_decides_the_same(row: dict[str, Any]) -> None:
    nominal = datetime.fromisoformat(row["nominal_time"])
    request = dataclasses.replace(
        as_request(row), nominal_time=nominal.replace(microsecond=nominal.microsecond // 1000 * 1000)
    )
    since = request.nominal_time - datetime(1970, 1, 1, tzinfo=UTC)
    fields = {f.name: getattr(request, f.name) for f in dataclasses.fields(request) if f.name != "nominal_time"}
    spread = make_spread(**fields)
    nominal_ms = since // timedelta(milliseconds=1)
    decision, result = spread.decide_at(nominal_ms), decide(request)
    assert decision.seed_hash == result.seed_hash
    assert decision.attempts == result.attempts
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    chosen = None if result.chosen_time is None else (result.chosen_time - epoch) // timedelta(milliseconds=1)
    assert decision.chosen_ms == chosen
    assert nominal_ms - decision.window_ms[0] <= spread.lead_ms


@pytest.mark.parametrize("fraction_ms", [0, 1, 610, 999])
@pytest.mark.parametrize(
    ("mode", "seconds"), [("after", 0), ("after", 2), ("around", 0), ("around", 2), ("before", 0)]
)
def test_a_fraction_of_the_nominal_time_stays_in_the_window_and_in_the_start(
    mode: str, seconds: int, fraction_ms: int
) -> None:
    nominal_ms = 1_772_323_226_000 + fraction_ms
    spread = make_spread(identity="a", window_mode=mode, window_duration=timedelta(seconds=seconds))
    decision = spread.decide_at(nominal_ms)
    lead = seconds * 1000 // 2 if mode == "around" else 0
    assert decision.window_ms == (nominal_ms - lead, nominal_ms - lead + seconds * 1000)
    assert decision.chosen_ms is not None
    assert (decision.chosen_ms - nominal_ms) % 1000 == 0
    assert spread.lead_ms >= lead
    if seconds == 0:
        assert decision.chosen_ms == nominal_ms
    if mode == "after":
        assert decision.chosen_ms >= nominal_ms


def test_the_zone_of_the_nominal_time_does_not_matter() -> None:
    seoul = NOON.astimezone(ZoneInfo("Asia/Seoul"))
    west = NOON.astimezone(timezone(timedelta(hours=-11, minutes=-30)))
    results = {
        str(decide(base(nominal_time=at, window_duration=timedelta(hours=1))).to_dict()) for at in (NOON, seoul, west)
    }
    assert len(results) == 1


def test_both_passes_of_an_overlap_are_different_periods() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert decide(base(nominal_time=first)).period_id == "2026-10-25T00:30:00Z"
    assert decide(base(nominal_time=first.replace(fold=1))).period_id == "2026-10-25T01:30:00Z"


SCRIPT = """
import json
from datetime import UTC, datetime, timedelta
from chronex.decision import DecisionRequest, decide
for name in ("uniform", "skewEarly", "skewLate", "normal", "exponential"):
    for seed in ("stable", "daily", "weekly"):
        for hour in range(0, 400, 7):
            request = DecisionRequest(
                identity="env", nominal_time=datetime(2026, 3, 20, tzinfo=UTC) + timedelta(hours=hour),
                timezone="Europe/Berlin", window_mode="around", window_duration=timedelta(hours=5),
                distribution=name, seed_strategy=seed, only="dow=MON-FRI;hours=6-22", avoid="between=12:00-12:59",
            )
            print(json.dumps(decide(request).to_dict()))
"""


def test_two_processes_in_different_environments_agree() -> None:
    outputs = []
    for number, (zone, locale) in enumerate((("UTC", "C"), ("Asia/Kathmandu", "tr_TR.UTF-8")), 1):
        environment = os.environ | {"PYTHONHASHSEED": str(number), "TZ": zone, "LC_ALL": locale}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True)
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 5 * 3 * 58


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
