"""One field at a time: text to a set of values."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.expr.fields import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    Anchor,
    DayRule,
    FieldSpec,
    read_field,
)
from tests.kit.tables import table

SPECS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


def values(spec: FieldSpec, text: str) -> list[int]:
    field = read_field(spec, text)
    assert field is not None, text
    assert field.rules == ()
    return [value for value in range(64) if field.values >> value & 1]


def up_to(last: int, first: int = 0) -> list[int]:
    return list(range(first, last + 1))


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        # single values and lists
        (MINUTE, "0", [0]),
        (MINUTE, "59", [59]),
        (MINUTE, "5,10,15", [5, 10, 15]),
        (MINUTE, "15,5,15", [5, 15]),
        (HOUR, "09", [9]),
        (HOUR, "007", [7]),
        (DAY_OF_MONTH, "31", [31]),
        (MONTH, "12", [12]),
        # the whole field
        (SECOND, "*", up_to(59)),
        (HOUR, "*", up_to(23)),
        (DAY_OF_MONTH, "*", up_to(31, 1)),
        (MONTH, "*", up_to(12, 1)),
        (DAY_OF_WEEK, "*", up_to(6)),
        # ranges
        (MINUTE, "10-13", [10, 11, 12, 13]),
        (MINUTE, "5-5", [5]),
        (MINUTE, "1-3,7-8", [1, 2, 3, 7, 8]),
        # ranges that wrap
        (HOUR, "23-01", [0, 1, 23]),
        (HOUR, "22-2", [0, 1, 2, 22, 23]),
        (HOUR, "7-2", [0, 1, 2, *up_to(23, 7)]),
        (MINUTE, "7-3", [0, 1, 2, 3, *up_to(59, 7)]),
        (SECOND, "58-1", [0, 1, 58, 59]),
        (DAY_OF_MONTH, "30-2", [1, 2, 30, 31]),
        (DAY_OF_MONTH, "7-5", [1, 2, 3, 4, 5, *up_to(31, 7)]),
        (MONTH, "NOV-FEB", [1, 2, 11, 12]),
        (MONTH, "7-2", [1, 2, 7, 8, 9, 10, 11, 12]),
        (MONTH, "JUL-2", [1, 2, 7, 8, 9, 10, 11, 12]),
        (DAY_OF_WEEK, "FRI-MON", [0, 1, 5, 6]),
        (DAY_OF_WEEK, "6-1", [0, 1, 6]),
        # steps
        (MINUTE, "*/15", [0, 15, 30, 45]),
        (MINUTE, "*/7", [0, 7, 14, 21, 28, 35, 42, 49, 56]),
        (MINUTE, "*/1", up_to(59)),
        (MINUTE, "*/60", [0]),
        (MINUTE, "*/99999999999999999999", [0]),
        (MINUTE, "10-30/5", [10, 15, 20, 25, 30]),
        (MINUTE, "10-30/07", [10, 17, 24]),
        (MINUTE, "5/20", [5, 25, 45]),
        (HOUR, "9/4", [9, 13, 17, 21]),
        (DAY_OF_MONTH, "*/10", [1, 11, 21, 31]),
        (DAY_OF_MONTH, "2/10", [2, 12, 22]),
        (MONTH, "*/3", [1, 4, 7, 10]),
        (MONTH, "FEB/3", [2, 5, 8, 11]),
        # steps keep their phase over the wrap
        (HOUR, "23-3/2", [1, 3, 23]),
        (HOUR, "22-4/3", [1, 4, 22]),
        (MINUTE, "50-10/7", [4, 50, 57]),
        (DAY_OF_MONTH, "29-3/2", [2, 29, 31]),
        (MONTH, "OCT-MAR/2", [2, 10, 12]),
        (MONTH, "7-6/5", [5, 7, 12]),
        (DAY_OF_WEEK, "FRI-TUE/2", [0, 2, 5]),
        (HOUR, "20-4/99", [20]),
        # names in any case, beside numbers
        (MONTH, "jan,Mar,DEC", [1, 3, 12]),
        (DAY_OF_WEEK, "mon-FRI", [1, 2, 3, 4, 5]),
        (DAY_OF_WEEK, "MON-5", [1, 2, 3, 4, 5]),
        (MONTH, "JAN-3", [1, 2, 3]),
        (DAY_OF_WEEK, "TUE,6", [2, 6]),
        # Sunday is 0 and 7; a range is expanded first and folded after
        (DAY_OF_WEEK, "7", [0]),
        (DAY_OF_WEEK, "0,7", [0]),
        (DAY_OF_WEEK, "0-7", up_to(6)),
        (DAY_OF_WEEK, "5-7", [0, 5, 6]),
        (DAY_OF_WEEK, "7-7", [0]),
        (DAY_OF_WEEK, "7-2", [0, 1, 2]),
        (DAY_OF_WEEK, "7-6/2", [0, 2, 4, 6]),
        (DAY_OF_WEEK, "1-7/2", [0, 1, 3, 5]),
        (DAY_OF_WEEK, "1/2", [0, 1, 3, 5]),
        (DAY_OF_WEEK, "7/2", [0]),
        (DAY_OF_WEEK, "*/2", [0, 2, 4, 6]),
        (DAY_OF_WEEK, "MON-SUN", up_to(6)),
        (DAY_OF_WEEK, "SUN-SAT", up_to(6)),
        (DAY_OF_WEEK, "6-SUN", [0, 6]),
    ],
)  # fmt: skip
def test_a_field_stands_for_its_values(spec: FieldSpec, text: str, expected: list[int]) -> None:
    assert values(spec, text) == expected


@pytest.mark.parametrize(
    ("spec", "text", "rule"),
    [
        (DAY_OF_MONTH, "L", DayRule(Anchor.LAST_DAY, 0)),
        (DAY_OF_MONTH, "l", DayRule(Anchor.LAST_DAY, 0)),
        (DAY_OF_MONTH, "L-3", DayRule(Anchor.LAST_DAY, 3)),
        (DAY_OF_MONTH, "L-30", DayRule(Anchor.LAST_DAY, 30)),
        (DAY_OF_MONTH, "L-03", DayRule(Anchor.LAST_DAY, 3)),
        (DAY_OF_MONTH, "LW", DayRule(Anchor.LAST_WEEKDAY, 0)),
        (DAY_OF_MONTH, "lw", DayRule(Anchor.LAST_WEEKDAY, 0)),
        (DAY_OF_MONTH, "L-2W", DayRule(Anchor.LAST_WEEKDAY, 2)),
        (DAY_OF_MONTH, "15W", DayRule(Anchor.NEAREST_WEEKDAY, 15)),
        (DAY_OF_MONTH, "1w", DayRule(Anchor.NEAREST_WEEKDAY, 1)),
        (DAY_OF_MONTH, "31W", DayRule(Anchor.NEAREST_WEEKDAY, 31)),
        (DAY_OF_WEEK, "5L", DayRule(Anchor.LAST_OF_WEEKDAY, 0, 5)),
        (DAY_OF_WEEK, "7L", DayRule(Anchor.LAST_OF_WEEKDAY, 0, 0)),
        (DAY_OF_WEEK, "005L", DayRule(Anchor.LAST_OF_WEEKDAY, 0, 5)),
        (DAY_OF_WEEK, "07#2", DayRule(Anchor.NTH_OF_WEEKDAY, 2, 0)),
        (DAY_OF_WEEK, "fril", DayRule(Anchor.LAST_OF_WEEKDAY, 0, 5)),
        (DAY_OF_WEEK, "MON#2", DayRule(Anchor.NTH_OF_WEEKDAY, 2, 1)),
        (DAY_OF_WEEK, "1#5", DayRule(Anchor.NTH_OF_WEEKDAY, 5, 1)),
        (DAY_OF_WEEK, "7#1", DayRule(Anchor.NTH_OF_WEEKDAY, 1, 0)),
    ],
)
def test_a_day_named_by_its_place_in_the_month_is_a_rule(spec: FieldSpec, text: str, rule: DayRule) -> None:
    field = read_field(spec, text)
    assert field is not None
    assert field.rules == (rule,)
    assert field.values == 0
    assert not field.is_star


@pytest.mark.parametrize(
    ("spec", "text", "values", "rules"),
    [
        (DAY_OF_MONTH, "15,L", [15], {DayRule(Anchor.LAST_DAY, 0)}),
        (DAY_OF_MONTH, "l,15", [15], {DayRule(Anchor.LAST_DAY, 0)}),
        (DAY_OF_MONTH, "L,L", [], {DayRule(Anchor.LAST_DAY, 0)}),
        (DAY_OF_MONTH, "1W,15W", [], {DayRule(Anchor.NEAREST_WEEKDAY, 1), DayRule(Anchor.NEAREST_WEEKDAY, 15)}),
        (DAY_OF_MONTH, "1-3,L-2,LW", [1, 2, 3], {DayRule(Anchor.LAST_DAY, 2), DayRule(Anchor.LAST_WEEKDAY, 0)}),
        (
            DAY_OF_WEEK,
            "MON#1,THU#1",
            [],
            {DayRule(Anchor.NTH_OF_WEEKDAY, 1, 1), DayRule(Anchor.NTH_OF_WEEKDAY, 1, 4)},
        ),
        (
            DAY_OF_WEEK,
            "7#1,0L,sat",
            [6],
            {DayRule(Anchor.NTH_OF_WEEKDAY, 1, 0), DayRule(Anchor.LAST_OF_WEEKDAY, 0, 0)},
        ),
        (DAY_OF_WEEK, "TUE,5-7,1#2", [0, 2, 5, 6], {DayRule(Anchor.NTH_OF_WEEKDAY, 2, 1)}),
    ],
)
def test_a_list_has_values_and_rules_side_by_side(
    spec: FieldSpec, text: str, values: list[int], rules: set[DayRule]
) -> None:
    field = read_field(spec, text)
    assert field is not None
    assert [value for value in range(64) if field.values >> value & 1] == values
    assert set(field.rules) == rules
    assert len(field.rules) == len(rules)
    assert not field.is_star


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (DAY_OF_MONTH, "15,?"), (DAY_OF_MONTH, "?,L"), (DAY_OF_MONTH, "15,FRIL"), (DAY_OF_MONTH, "L-31,1"), (DAY_OF_MONTH, "L,,1"),
        (DAY_OF_MONTH, "1-5W"), (DAY_OF_MONTH, "L/2"), (DAY_OF_MONTH, "1,2W"), (DAY_OF_MONTH, "15W,1-3"), (DAY_OF_MONTH, "1,L,2W"), (DAY_OF_WEEK, "MON,L"), (DAY_OF_WEEK, "MON#1,FRI#6"),
        (DAY_OF_WEEK, "1-5L,2"), (DAY_OF_WEEK, "MON#1-3"), (MONTH, "1,L"), (MINUTE, "0,15W"), (HOUR, "L"),
    ],
)  # fmt: skip
def test_a_list_is_refused_for_one_wrong_element(spec: FieldSpec, text: str) -> None:
    assert read_field(spec, text) is None


@pytest.mark.parametrize(
    ("text", "is_star", "is_interval"),
    [
        ("*", True, True),
        ("*/2", False, True),
        ("*/1", False, True),
        ("*,5", False, True),
        ("0-59", False, True),
        ("3-3", False, True),
        ("3/70", False, True),
        ("3,4-5", False, True),
        ("3", False, False),
        ("03", False, False),
        ("003", False, False),
        ("3,4,5", False, False),
    ],
)
def test_only_a_lone_star_is_the_wildcard_and_any_star_range_or_step_makes_an_interval(
    text: str, is_star: bool, is_interval: bool
) -> None:
    field = read_field(MINUTE, text)
    assert field is not None
    assert (field.is_star, field.is_interval) == (is_star, is_interval)


NO_FIELDS = [
        "", ",", "1,", ",1", "-", "1-", "-1", "--1", "1--2", "/", "/2", "*/", "*/0", "1/0", "1/-1", "1/*", "*-5", "1-2-3", "**", "*5",
        "1*", "1.5", "1e1", "+1", "0x1", "١", "１", "¹", "x", "60", "99999999", "1-99999999", "1 2", "1#", "#1", "W", "WL", "LL",
        "ſun", "ꓡ", "1_0",
]  # fmt: skip


@table([(f"{spec.name} {text!r}", (spec, text)) for spec in SPECS for text in NO_FIELDS])
def test_what_is_not_a_field_has_no_meaning(case: tuple[FieldSpec, str]) -> None:
    assert read_field(*case) is None


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (HOUR, "24"), (DAY_OF_MONTH, "0"), (DAY_OF_MONTH, "32"), (MONTH, "0"), (MONTH, "13"), (DAY_OF_WEEK, "8"),
        (MINUTE, "L"), (HOUR, "5W"), (MONTH, "L"), (DAY_OF_MONTH, "MON"), (DAY_OF_MONTH, "5L"), (DAY_OF_MONTH, "5#1"),
        (DAY_OF_WEEK, "L"), (DAY_OF_WEEK, "5W"), (DAY_OF_WEEK, "JAN"), (MONTH, "MON"), (MINUTE, "JAN"), (DAY_OF_MONTH, "L-0"),
        (DAY_OF_MONTH, "L-31"), (DAY_OF_MONTH, "0W"), (DAY_OF_MONTH, "32W"), (DAY_OF_MONTH, "1-5W"),
        (DAY_OF_WEEK, "MON#0"), (DAY_OF_WEEK, "MON#6"), (DAY_OF_WEEK, "8L"), (DAY_OF_WEEK, "8#1"),
        (MINUTE, "?"), (MONTH, "?"), (HOUR, "H"), (MONTH, "JANUARY"), (DAY_OF_WEEK, "MONL-2"),
    ],
)  # fmt: skip
def test_a_value_of_another_field_has_no_meaning(spec: FieldSpec, text: str) -> None:
    assert read_field(spec, text) is None


@given(st.data())
@settings(deadline=None)
def test_a_range_counts_up_from_its_start_and_over_the_end(data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(SPECS[:5]))
    bound = st.integers(spec.low, spec.high)
    first, last, step = data.draw(bound), data.draw(bound), data.draw(st.integers(1, 70))
    size = spec.high - spec.low + 1
    length = (last - first) % size
    expected = {spec.low + (first - spec.low + k) % size for k in range(0, length + 1, step)}
    assert set(values(spec, f"{first}-{last}/{step}")) == expected
