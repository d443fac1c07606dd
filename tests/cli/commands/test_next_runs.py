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


def test_next_without_an_occurrence_says_so_and_exits_1(chronex: Chronex) -> None:
    done = chronex("next", "0 0 30 2 *", "--from", "2027-01-01")
    assert (done.code, done.out) == (1, "")
    assert done.err == "chronex: no occurrence after 2027-01-01T00:00:00+00:00\n"


def test_next_stops_at_the_expressions_own_max(chronex: Chronex) -> None:
    done = chronex("next", "0 9 * * * {max:2}", "-n", "9", "--from", "2027-01-01")
    assert len(done.out.splitlines()) == 2
