"""The strict profile: five numeric fields, lists and forward ranges, nothing else."""

from __future__ import annotations

import pytest

import chronex


@pytest.mark.parametrize(
    "text",
    [
        "* * * * *",
        "0 9 * * *",
        "00 09 01 01 0",
        "0,30 8-17 * * 1-5",
        "1,2,5-9 0 1,15 * 6",
        " 0\t9 *  * * ",
        "59 23 31 12 6",
        "5-5 * * * *",
    ],
)
def test_what_posix_knows_is_valid_in_both_dialects(text: str) -> None:
    assert chronex.validate(text, dialect="posix").is_valid
    assert chronex.validate(text).is_valid
    assert chronex.parse(text, dialect="posix").dialect == "posix"


@pytest.mark.parametrize(
    ("text", "code", "start", "end"),
    [
        ("*/5 * * * *", "E007", 0, 3),
        ("0 8-17/2 * * *", "E007", 2, 8),
        ("0 9 * * MON", "E006", 8, 11),
        ("0 9 * JAN *", "E005", 6, 9),
        ("0 9 * * 7", "E006", 8, 9),
        ("0 9 * * 5-7", "E006", 10, 11),
        ("0 22-2 * * *", "E003", 2, 6),
        ("0 9 L * *", "E004", 4, 5),
        ("0 9 15W * *", "E004", 4, 7),
        ("0 9 * * 5L", "E006", 8, 10),
        ("0 9 * * 1#2", "E006", 8, 11),
        ("0 9 ? * *", "E004", 4, 5),
        ("*,5 9 * * *", "E002", 0, 3),
        ("0 24 * * *", "E003", 2, 4),
        ("60 * * * *", "E002", 0, 2),
        ("0 0 0 * *", "E004", 4, 5),
        ("0 0 1 13 *", "E005", 6, 8),
        ("0-99999999 * * * *", "E002", 2, 10),
        ("-1 * * * *", "E002", 0, 2),
        ("1,,2 * * * *", "E002", 0, 4),
        ("٣ * * * *", "E002", 0, 1),
        ("* * * * * *", "E010", 0, 11),
        ("* * * *", "E010", 0, 7),
        ("@daily", "E010", 0, 6),
        ("@every 5m", "E010", 0, 9),
        ("TZ=UTC 0 9 * * *", "E010", 0, 16),
        ("", "E010", 0, 0),
    ],
)
def test_everything_else_is_refused_at_its_place(text: str, code: str, start: int, end: int) -> None:
    found = chronex.validate(text, dialect="posix").errors
    assert [(d.code, d.start, d.end) for d in found] == [(code, start, end)]
    assert found[0].value == text[start:end]


def test_options_are_not_posix() -> None:
    assert not chronex.validate("0 9 * * * {max:5}", dialect="posix").is_valid
    assert not chronex.validate("0 9 * * *{max:5}", dialect="posix").is_valid


def test_every_fault_is_reported_at_once() -> None:
    found = chronex.validate("60 */2 0 JAN 7", dialect="posix").errors
    assert [d.code for d in found] == ["E002", "E007", "E004", "E005", "E006"]


def test_the_canonical_text_stays_posix() -> None:
    expression = chronex.parse("00 09 * * 1-5", dialect="posix")
    assert str(expression) == "0 9 * * 1-5"
    assert chronex.parse(str(expression), dialect="posix") == expression


def test_an_unknown_dialect_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="chronex and posix"):
        chronex.parse("* * * * *", dialect="quartz")
