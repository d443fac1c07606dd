"""Bad input of any kind is a typed error that names its field, and nothing else."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chronex.errors
from chronex.decision import DecisionError, DecisionRequest, decide, make_spread
from chronex.errors import (
    ConstraintError,
    DecisionTimezoneError,
    DistributionError,
    DistributionParameterError,
    IdentityError,
    NominalTimeError,
    SaltError,
    SeedStrategyError,
    WindowDurationError,
    WindowModeError,
)

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
BIG = 10**5000
LONG = "x" * 9999


def base(**fields: Any) -> DecisionRequest:
    return DecisionRequest(**{"identity": "a", "nominal_time": NOON, **fields})


class BrokenZone(tzinfo):
    """A zone whose author made a mistake."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        raise RuntimeError("no idea")

    def tzname(self, moment: datetime | None) -> str:
        return "broken"

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None


class NoZone(BrokenZone):
    """A zone that does not know its offset, which makes the datetime naive."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None


EAST, WEST = timezone(timedelta(hours=1)), timezone(timedelta(hours=-1))
WRONG: dict[str, tuple[type[DecisionError], list[object]]] = {
    "identity": (IdentityError, ["", None, 7, b"a", "\ud800", ["a"]]),
    "nominal_time": (
        NominalTimeError,
        [
            None, "2026-03-01", 0, NOON.date(), datetime(2026, 3, 1),
            NOON.replace(tzinfo=BrokenZone()), NOON.replace(tzinfo=NoZone()),
            datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=WEST),
        ],
    ),
    "timezone": (
        DecisionTimezoneError,
        [None, 1, [], "", "Mars/X", "../etc/passwd", LONG, "Europe", "\0", "\ud800", "+09:00"],
    ),
    "window_mode": (WindowModeError, [None, 1, [], "", "After", "during", LONG]),
    "window_duration": (
        WindowDurationError,
        [None, 60, 1.5, "1h", -timedelta(microseconds=1), timedelta.min, timedelta.max],
    ),
    "distribution": (DistributionError, [None, 1, [], "", "Uniform", "zipf", LONG]),
    "distribution_params": (DistributionParameterError, [1, "s=2", [("s", 2)], {"s": 2}, {1: 2}, {LONG: 1}]),
    "seed_strategy": (SeedStrategyError, [None, 1, {}, "", "monthly", LONG]),
    "salt": (SaltError, [None, 1, b"s", "\udfff"]),
    "only": (ConstraintError, [None, 1, [], b"hours=1", LONG, "hours=1\0", "\ud800=1", "dow=" + LONG[:99]]),
    "avoid": (ConstraintError, [None, ["hours=1"], "hours", "hours=1;" * 999]),
}  # fmt: skip
ROWS = [(field, kind, value) for field, (kind, values) in WRONG.items() for value in values]


@pytest.mark.parametrize(("field", "kind", "value"), ROWS, ids=[f"{f}-{v!r:.30}" for f, _, v in ROWS])
def test_a_wrong_value_names_its_field(field: str, kind: type[DecisionError], value: object) -> None:
    with pytest.raises(DecisionError) as caught:
        decide(base(**{field: value}))
    assert type(caught.value) is kind
    assert caught.value.field == field
    assert len(str(caught.value)) < 300


PARAMETERS = [
    ("skewEarly", "s"),
    ("normal", "sigma"),
    ("normal", "mu"),
    ("exponential", "lambda"),
    ("exponential", "dir"),
]


@pytest.mark.parametrize(("name", "key"), PARAMETERS)
def test_a_wrong_parameter_names_itself(name: str, key: str) -> None:
    wrong: list[object] = [None, "", True, [], {}, -1, 0, BIG, -BIG, "1/2", "٣", "9" * 99, "s", LONG]
    wrong += [float("nan"), float("inf"), 1e300, -0.5, 1e-300]
    for value in wrong:
        with pytest.raises(DistributionParameterError, match=key):
            decide(base(distribution=name, distribution_params={key: value}))


@pytest.mark.parametrize("value", [None, 1, "x", {"identity": "a"}])
def test_only_a_request_is_decided(value: Any) -> None:
    with pytest.raises(DecisionError, match="DecisionRequest"):
        decide(value)


def test_only_whole_milliseconds_of_known_years_are_decided() -> None:
    wrong: list[Any] = [None, 1.0, "0", True, BIG, -BIG]
    for value in wrong:
        with pytest.raises(NominalTimeError):
            make_spread(identity="a").decide_at(value)


ANYTHING = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dictionaries(st.text(), st.text()),
    st.timedeltas(),
    st.datetimes(),
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([f.name for f in dataclasses.fields(DecisionRequest)]), ANYTHING)
def test_no_value_of_any_field_raises_anything_else(field: str, value: object) -> None:
    assert field_of_error(**{field: value}) in {None, field}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="hoursdwmntbe=,-;:.0123456789 MONJAN\n٣", max_size=30))
def test_no_clause_text_raises_anything_else(text: str) -> None:
    assert field_of_error(avoid=text) in {None, "avoid"}


def field_of_error(**fields: object) -> str | None:
    try:
        decide(base(**fields))
    except DecisionError as error:
        return error.field
    return None


def test_the_tree_is_drawn_and_each_docstring_is_a_message() -> None:
    found = [kind for kind in vars(chronex.errors).values() if isinstance(kind, type)]
    kinds = [kind for kind in found if issubclass(kind, DecisionError)]
    assert len(kinds) == 11
    for kind in kinds:
        error = kind()
        assert isinstance(error, ValueError)
        assert str(error) == f"{kind.field}: {kind.__doc__}".partition("\n")[0]
        assert kind.__name__ in (chronex.errors.__doc__ or "")
