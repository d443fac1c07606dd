"""The names of `import chronex` are a promise."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta

import pytest

import chronex


def test_every_promised_name_is_there() -> None:
    for name in chronex.__all__:
        assert getattr(chronex, name) is not None


def test_who_looks_around_sees_what_is_promised_and_nothing_else() -> None:
    assert dir(chronex) == sorted(chronex.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = chronex.nonsense


def test_parse_raises_with_every_error_not_only_the_first() -> None:
    with pytest.raises(chronex.ExpressionError) as caught:
        chronex.parse("60 25 * * MNO {jiter:1s}")
    assert [d.code for d in caught.value.diagnostics] == ["E002", "E003", "E006", "E015"]
    assert str(caught.value).startswith("minute: value 60 out of range [0, 59]; hour: value 25")


def test_a_relative_once_counts_from_the_reference_or_from_now() -> None:
    reference = datetime(2027, 1, 1, tzinfo=UTC)
    assert str(chronex.parse("@once +20m", reference=reference)) == "@once 2027-01-01T00:20:00Z"
    soon = chronex.parse("@once +20m").next(datetime.now(UTC))
    assert soon is not None
    assert timedelta(minutes=19) < soon - datetime.now(UTC) < timedelta(minutes=21)


def test_the_decision_core_is_part_of_the_front_door() -> None:
    request = chronex.DecisionRequest(
        identity="prod/db-backup", nominal_time=datetime(2026, 3, 1, tzinfo=UTC), window_duration=timedelta(hours=1)
    )
    assert chronex.decide(request).chosen_time == datetime(2026, 3, 1, 0, 58, 29, tzinfo=UTC)
    with pytest.raises(chronex.DecisionError):
        chronex.decide(chronex.DecisionRequest(identity="", nominal_time=datetime(2026, 3, 1, tzinfo=UTC)))


@pytest.mark.parametrize("text", [None, 5, b"* * * * *"])
def test_only_text_is_an_expression(text: object) -> None:
    with pytest.raises(TypeError, match="an expression is a str"):
        chronex.parse(text)  # type: ignore[arg-type]


def test_an_unknown_dialect_or_zone_is_named() -> None:
    with pytest.raises(ValueError, match="the dialects are chronex and posix"):
        chronex.parse("* * * * *", dialect="quartz")
    with pytest.raises(chronex.UnknownZoneError, match="Mars/Base"):
        chronex.parse("* * * * *", tz="Mars/Base")


@pytest.mark.parametrize(
    "text", ["0 9 * * MON-FRI {jitter:30s}", "TZ=Asia/Seoul @daily", "@every 5m", "R/2027-01-01T00:00/P1M"]
)
def test_an_expression_that_was_used_can_be_pickled_and_copied(text: str) -> None:
    expression = chronex.parse(text, tz="Europe/Berlin")
    moment = datetime(2027, 1, 1, tzinfo=UTC)
    expected = expression.next(moment)
    for twin in (pickle.loads(pickle.dumps(expression)), copy.deepcopy(expression)):
        assert twin == expression
        assert twin.next(moment) == expected
