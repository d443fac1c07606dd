"""Clause text: what is understood, and that its canonical text means the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.decision.constraints import MAX_TEXT, LocalMoment, local_moment, parse_constraints
from chronex.errors import ConstraintError
from chronex.timing.zones import load_zone

UNDERSTOOD = [
    ("", []),
    (" ; ;", []),
    ("hours=8-20,22", ["hours=8-20,22"]),
    ("HOURS=08", ["hours=8"]),
    ("hours=1,2,3,5", ["hours=1-3,5"]),
    ("hours=5;hours=4", ["hours=4-5"]),
    ("dow=mon-Fri", ["dow=MON-FRI"]),
    ("dow=0", ["dow=SUN"]),
    ("dow=7", ["dow=SUN"]),
    ("dow=0-7", ["dow=MON-SUN"]),
    ("dow=5-7", ["dow=FRI-SUN"]),
    ("dow=SAT-SUN", ["dow=SAT-SUN"]),
    ("dow=MON-SUN", ["dow=MON-SUN"]),
    ("dow=SUN-TUE", ["dow=MON-TUE,SUN"]),
    ("dow=SUN-SUN", ["dow=SUN"]),
    ("dom=1-15,31", ["dom=1-15,31"]),
    ("months=JAN,MAR-may", ["months=JAN,MAR-MAY"]),
    ("months=12", ["months=DEC"]),
    ("between=8:00-20:00", ["between=08:00-20:00"]),
    ("between=12:00-12:00", ["between=12:00-12:00"]),
    ("between=08:00-09:59,10:00-11:00", ["between=08:00-11:00"]),
    ("date=2026-12-24", ["dates=2026-12-24..2026-12-24"]),
    ("dates=2026-12-24..2026-12-26;date=2026-12-27", ["dates=2026-12-24..2026-12-27"]),
    ("dates=2026-01-05..2026-01-09,2026-01-01..2026-01-06", ["dates=2026-01-01..2026-01-09"]),
    (
        "dates=2026-01-01..2026-01-02;months=1;hours=3;dow=1",
        ["hours=3", "dow=MON", "months=JAN", "dates=2026-01-01..2026-01-02"],
    ),
]


@pytest.mark.parametrize(("text", "canonical"), UNDERSTOOD)
def test_clauses_are_understood(text: str, canonical: list[str]) -> None:
    found = parse_constraints(text, "").only
    assert [clause.text for clause in found] == canonical
    assert parse_constraints(";".join(canonical), "").only == found


@st.composite
def texts(draw: st.DrawFn) -> str:
    def span(kind: str, low: int, high: int) -> str:
        a, b = sorted(draw(st.tuples(st.integers(low, high), st.integers(low, high))))
        return f"{kind}={a}-{b}"

    kinds = [("hours", 0, 23), ("dow", 0, 7), ("dom", 1, 31), ("months", 1, 12)]
    return ";".join(span(*draw(st.sampled_from(kinds))) for _ in range(draw(st.integers(1, 5))))


@settings(max_examples=150, deadline=None)
@given(texts(), st.integers(-(10**10), 10**11))
def test_canonical_text_means_the_same(text: str, second: int) -> None:
    moment = local_moment(load_zone("Europe/Berlin"), second)
    given_clauses = parse_constraints(text, "")
    again = parse_constraints(";".join(clause.text for clause in given_clauses.only), "")
    assert given_clauses.rejecting(moment) == again.rejecting(moment)
    avoided = parse_constraints("", text)
    assert len(given_clauses.rejecting(moment)) + len(avoided.rejecting(moment)) == len(given_clauses.only)


def test_each_rejecting_clause_is_counted() -> None:
    monday_noon = LocalMoment(ordinal=739_677, month=3, day=2, weekday=1, minute=720)
    constraints = parse_constraints("hours=3;dow=MON", "months=MAR;dom=1")
    assert constraints.rejecting(monday_noon) == [0, 3]
    assert constraints.report([4, 0, 1, 9]) == {
        "only": [{"clause": "hours=3", "rejected": 4}, {"clause": "dow=MON", "rejected": 0}],
        "avoid": [{"clause": "dom=1", "rejected": 1}, {"clause": "months=MAR", "rejected": 9}],
    }


def test_local_time_is_what_the_wall_clock_shows() -> None:
    berlin = load_zone("Europe/Berlin")
    assert local_moment(berlin, 1_774_745_999)[1:] == (3, 29, 0, 119)  # 01:59:59, the last before the gap
    assert local_moment(berlin, 1_774_746_000)[1:] == (3, 29, 0, 180)  # 03:00:00
    assert local_moment(berlin, 1_774_746_000).hour == 3


def test_text_without_end_is_refused_at_the_limit() -> None:
    assert parse_constraints(";" * MAX_TEXT, "").only == ()
    with pytest.raises(ConstraintError) as caught:
        parse_constraints("", ";" * (MAX_TEXT + 1))
    assert caught.value.position == MAX_TEXT


def test_an_error_says_where_what_and_what_instead() -> None:
    with pytest.raises(ConstraintError) as caught:
        parse_constraints("dow=MON-FRI;between=22:00-06:00", "")
    assert str(caught.value) == (
        "only: the range '22:00-06:00' runs backwards; a night takes two clauses (at position 20); "
        "did you mean between=22:00-23:59;between=00:00-06:00?"
    )
    assert caught.value.value == "22:00-06:00"
