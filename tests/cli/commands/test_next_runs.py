"""next: the instants of an expression, for scripts."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Chronex

pytestmark = pytest.mark.binary


def test_next_as_json_is_a_list_of_times(chronex: Chronex) -> None:
    done = chronex("next", "0 9 * * *", "-n", "2", "--from", "2027-01-01", "--tz", "UTC", "--format", "json")
    assert json.loads(done.out) == ["2027-01-01T09:00:00+00:00", "2027-01-02T09:00:00+00:00"]
    never = chronex("next", "0 0 30 2 *", "--format", "json")
    assert (never.code, json.loads(never.out)) == (1, [])


def test_next_prints_one_instant_a_line(chronex: Chronex) -> None:
    done = chronex("next", "0 9 * * *", "-n", "2", "--from", "2027-03-27T12:00", "--tz", "Europe/Berlin")
    assert done.out == "2027-03-28T09:00:00+02:00\n2027-03-29T09:00:00+02:00\n"


def test_next_with_calendars(chronex: Chronex) -> None:
    about = ("next", "0 9 1 * *", "-n", "2", "--from", "2026-12-30", "--tz", "Europe/Berlin")
    new_year = ("--calendar", "dates=2027-01-01")
    assert chronex(*about, *new_year).out == "2027-02-01T09:00:00+01:00\n2027-03-01T09:00:00+01:00\n"
    moved = chronex(*about, *new_year, "--on-excluded", "next_workday")
    assert moved.out == "2027-01-04T09:00:00+01:00\n2027-02-01T09:00:00+01:00\n"
    counted = chronex(
        "next", "0 9 * * *", "-n", "2", "--from", "2026-12-30", "--tz", "UTC", "--workday", "1", "--workday", "-1"
    )
    assert counted.out == "2026-12-31T09:00:00+00:00\n2027-01-01T09:00:00+00:00\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--calendar", "freeze"), "no job file"),
        (("--calendar", "dates=24.12."), "write dates=2026-12-24"),
        (("--calendar", "weekdays=XXX"), "weekdays are"),
        (("--calendar", "moon=full"), "write one of holidays="),
        (("--calendar", "ics=/nowhere.ics"), "cannot read"),
        (("--on-excluded", "next_workday"), "needs --calendar"),
        (("--on-excluded", "next_workday", "--workday", "1"), "nothing is left to move"),
        (("--on-excluded", "tomorrow"), "use skip, next_workday or previous_workday"),
        (("--workday", "0"), "--workday goes from 1 to 23"),
    ],
)
def test_a_calendar_that_is_not_understood_is_told(chronex: Chronex, given: tuple[str, ...], said: str) -> None:
    done = chronex("next", "0 9 * * *", *given)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize("command", ["next", "explain"])
def test_an_interval_is_moved_to_no_other_day(chronex: Chronex, command: str) -> None:
    done = chronex(command, "@every 5h", "--calendar", "weekdays=SAT", "--on-excluded", "next_workday")
    assert (done.code, done.out) == (2, "")
    assert "an interval has no time of the day to keep on another day" in done.err


def test_next_without_an_occurrence_says_so_and_exits_1(chronex: Chronex) -> None:
    done = chronex("next", "0 0 30 2 *", "--from", "2027-01-01")
    assert (done.code, done.out) == (1, "")
    assert done.err == "chronex: no occurrence after 2027-01-01T00:00:00+00:00\n"


def test_next_stops_at_the_expressions_own_max(chronex: Chronex) -> None:
    done = chronex("next", "0 9 * * * {max:2}", "-n", "9", "--from", "2027-01-01")
    assert len(done.out.splitlines()) == 2
