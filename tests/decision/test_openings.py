"""The first second that clauses leave, beside a walk through every minute of the wall clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from chronex.decision.constraints import Constraints, local_moment, parse_constraints
from chronex.decision.decide import make_spread
from chronex.decision.openings import first_open_second
from chronex.timing.zones import Zone, load_zone

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca")
CLAUSES = (
    "hours=2", "hours=0,23", "hours=8-18", "dow=SAT,SUN", "dow=MON", "dom=1,31", "months=MAR,OCT", "between=02:15-02:45",
    "between=23:50-23:59;between=00:00-00:05", "date=2027-03-28", "dates=2027-10-30..2027-11-02", "hours=2;dow=SUN",
)  # fmt: skip
DAY = 86_400


def second(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def is_open(constraints: Constraints, zone: Zone, at: int) -> bool:
    return not constraints.rejecting(local_moment(zone, at))


def walked(constraints: Constraints, zone: Zone, begin: int, end: int) -> int | None:
    """Minutes of the wall begin with those of UTC in all these zones, and clocks change between two of them."""
    starts = (begin, *range(begin // 60 * 60 + 60, end, 60))
    return next((at for at in starts if is_open(constraints, zone, at)), None)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_first_of_a_walk_through_all_minutes(seed: int) -> None:
    random = Random(seed)
    only = ";".join(random.sample(CLAUSES, random.choice((1, 1, 2))))
    constraints = parse_constraints(only, random.choice(("", "", *CLAUSES)))
    zone = load_zone(random.choice(ZONES))
    begin = second(random.choice(("2027-03-26", "2027-10-29", "2027-04-02", "2027-02-01"))) + random.randrange(
        3 * DAY
    )
    expected = walked(constraints, zone, begin, begin + 12 * DAY)
    found = first_open_second(constraints, zone, begin)
    assert expected is None or found == expected
    if found is not None:
        assert is_open(constraints, zone, found)
        assert expected is not None or found >= begin + 12 * DAY - 60


@pytest.mark.parametrize(
    ("only", "avoid", "expected"),
    [
        ("dow=MON;dom=29;months=FEB", "", "2044-02-29"),
        ("hours=3", "hours=0-23", None),
        ("", "dow=MON-SUN", None),
        ("date=2020-01-01", "", None),
        ("", "", "2027-01-01"),
    ],
)
def test_it_is_found_however_far_away_it_is(only: str, avoid: str, expected: str | None) -> None:
    found = first_open_second(parse_constraints(only, avoid), load_zone("UTC"), second("2027-01-01"))
    assert found == (None if expected is None else second(expected))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("after", "2027-01-01T14:00"), ("around", "2027-01-01T19:00"), ("before", "2027-01-02T00:00")],
)
def test_the_first_nominal_time_with_an_opening_is_that_whose_window_reaches_it(mode: str, expected: str) -> None:
    spread = make_spread(identity="j", window_mode=mode, window_duration=timedelta(hours=10), only="dow=SAT")
    friday = second("2027-01-01T03:00:00")
    found = spread.opening_from(friday * 1_000 + 250)
    assert found == second(expected) * 1_000
    assert spread.opening_from(found) == found
    start_of = spread.decide_at(found)
    assert (start_of.window_end, start_of.window_end + 1) == (second("2027-01-02"), second("2027-01-02") + 1)


def test_a_window_with_an_opening_is_its_own_answer() -> None:
    spread = make_spread(identity="j", window_duration=timedelta(days=1), only="hours=4")
    assert spread.opening_from(second("2027-01-01") * 1_000) == second("2027-01-01") * 1_000
    assert make_spread(identity="j", only="hours=4", avoid="hours=4").opening_from(0) is None
