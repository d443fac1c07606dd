"""Warnings on valid expressions: each says what will happen, where it stands, and what to write instead."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import chronex

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def warned(text: str, tz: str = "America/New_York") -> list[tuple[str, str, str | None]]:
    """(code, the text it points at, fix) of every warning."""
    result = chronex.validate(text, tz=tz, reference=NOW)
    assert result.is_valid, result.errors
    for warning in result.warnings:
        assert text[warning.start : warning.end] == warning.value
        assert warning.severity == "warning"
    return [(d.code, d.value, d.fix) for d in result.warnings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # meaning
        ("0 0 30 2 *", [("W101", "30 2 *", None)]),
        ("0 0 31 4,6,9,11 *", [("W101", "31 4,6,9,11 *", None)]),
        ("0 0 L-30 2 *", [("W101", "L-30 2 *", None)]),
        ("0 0 13 * FRI", [("W102", "13 * FRI", None)]),
        ("0 0 1,15 * MON-FRI", [("W102", "1,15 * MON-FRI", None)]),
        ("*/7 * * * *", [("W103", "*/7", None)]),
        ("0 */5 * * *", [("W103", "*/5", None)]),
        ("0 0 */2 * *", [("W103", "*/2", None)]),
        ("*/90 * * * *", [("W103", "*/90", None)]),
        ("5/90 * * * *", [("W103", "5/90", None)]),
        ("* 4 * * *", [("W104", "*", "0")]),
        ("0 0 31 * *", [("W105", "31", "L")]),
        ("0 0 30 * *", [("W105", "30", None)]),
        ("0 0 31W * *", [("W105", "31W", None)]),
        ("0 0 29 2 *", [("W105", "29 2", None)]),
        ("0 0 * * MON#5", [("W105", "MON#5", None)]),
        ("0 0 1-31/2 * MON", [("W102", "1-31/2 * MON", None)]),
        ("0 0 */2 * MON", [("W103", "*/2", None), ("W106", "*/2", None)]),
        ("0 0 1 * */2", [("W103", "*/2", None), ("W106", "*/2", None)]),
        ("*/1 * * * *", [("W107", "*/1", "*")]),
        ("0 0 ? * MON", [("W108", "?", "*")]),
        ("@once 2020-01-01T00:00:00Z", [("W109", "@once 2020-01-01T00:00:00Z", None)]),
        ("@once 2027-01-02T12:00:00Z {until:2027-01-01}", [("W109", "until:2027-01-01", None)]),
        ("0 9 1 1 * {from:2027-02-01, until:2027-03-01}", [("W109", "until:2027-03-01", None)]),
        ("0 9 * * * {until:2026-01-01}", [("W109", "until:2026-01-01", None)]),
        # clock
        ("30 2 * * *", [("W111", "30 2", None)]),
        ("30 1 * * *", [("W112", "30 1", None)]),
        ("0 1-5 * * *", [("W111", "0 1-5", None), ("W112", "0 1-5", None)]),
        # options
        ("0 9 * * * {stagger:3m, jitter:3m, window:5m}", [("W121", "window:5m", None)]),
        ("*/5 * * * * {jitter:3m}", [("W122", "jitter:3m", None)]),
        ("0 9 * * * {max:1, max:2}", [("W123", "max", None)]),
        ("0 9 * * * {window:25h}", [("W124", "window:25h", None)]),
        ("@every 10m {jitter:6m}", [("E022", "jitter:6m", None)]),
        ("@every 10m {stagger:11m}", [("E025", "stagger:11m", None)]),
        ("@every 10m-20m {jitter:6m}", [("E022", "jitter:6m", None)]),
        ("0 9 * * * {tag:a+b+a}", [("W001", "a", None)]),
    ],
)
def test_each_surprise_has_its_warning(text: str, expected: list[tuple[str, str, str | None]]) -> None:
    assert warned(text) == expected


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        ("0 0 9 ? * 2-6", True),
        ("0 9 ? * 6L", True),
        ("0 9 ? * 2#1", True),
        ("0 9 ? * MON#1", False),
        ("0 9 5 * ?", False),
    ],
)
def test_numbers_of_weekdays_beside_a_mark_of_quartz_are_told_and_the_mark_is_kept(text: str, is_told: bool) -> None:
    """There 2-6 is Monday to Friday; without the mark nobody could tell where the numbers came from."""
    (found,) = (d for d in chronex.validate(text).warnings if d.code == "W108")
    assert ("there 1 is Sunday" in found.message, found.is_fix_safe) == (is_told, not is_told)


@pytest.mark.parametrize(
    "text",
    [
        "0 9 * * MON-FRI", "*/5 * * * *", "*/15 9-17 * * *", "0 0 1 * *", "0 0 L * *", "0 0 28 * *", "@daily", "@weekly",
        "@every 10m {jitter:5m}", "@every 10m {stagger:10m}", "*/10 * * * * *", "0 */6 * * *", "0 0 1 */3 *", "0 4 * * *",
        "0 9 * * * {window:1h, jitter:30m, stagger:30m}", "@once 2027-01-01T00:00:00Z", "@once +20m",
        "R/2026-01-01T00:00:00Z/P1M", "0 9 * * * {until:2027-01-01}",
    ],
)  # fmt: skip
def test_ordinary_schedules_are_left_in_peace(text: str) -> None:
    assert warned(text) == []


@pytest.mark.parametrize(
    ("text", "tz", "message"),
    [
        ("30 2 * * *", "America/New_York", "on Sun 14 Mar 2027 in America/New_York 02:30 does not exist: the run fires at 03:00 instead"),
        ("0,30 2 * * *", "Europe/Berlin", "on Sun 28 Mar 2027 in Europe/Berlin 02:00 and 02:30 do not exist: one run at 03:00 instead of 2"),
        ("0 2,3 * * *", "Europe/Berlin", "on Sun 28 Mar 2027 in Europe/Berlin 02:00 does not exist: merged into the run at 03:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "on Sun 03 Oct 2027 in Australia/Lord_Howe 02:15 does not exist: the run fires at 02:30 instead"),
    ],
)  # fmt: skip
def test_a_gap_is_named_with_its_date_and_what_will_happen(text: str, tz: str, message: str) -> None:
    found = [d.message for d in chronex.validate(text, tz=tz, reference=NOW).warnings if d.code == "W111"]
    assert found == [message]


@pytest.mark.parametrize(
    ("text", "tz", "message"),
    [
        ("30 1 * * *", "America/New_York", "on Sun 07 Nov 2027 in America/New_York 01:30 happens twice: fires once, on the first pass"),
        ("0 1-3 * * *", "Europe/London", "on Sun 31 Oct 2027 in Europe/London 01:00 happens twice: fires on both passes, 1 run more than usual"),
    ],
)  # fmt: skip
def test_an_overlap_is_named_with_its_date_and_what_will_happen(text: str, tz: str, message: str) -> None:
    found = [d.message for d in chronex.validate(text, tz=tz, reference=NOW).warnings if d.code == "W112"]
    assert found == [message]


def test_without_a_reference_nothing_depends_on_the_date() -> None:
    assert chronex.validate("30 2 * * *", tz="America/New_York").warnings == ()
    assert chronex.validate("@once 2020-01-01T00:00:00Z").warnings == ()


def test_the_posix_dialect_skips_what_does_not_exist() -> None:
    found = chronex.validate("30 2 * * *", dialect="posix", tz="America/New_York", reference=NOW).warnings
    assert [d.message.partition("York ")[2] for d in found] == ["02:30 does not exist: 1 run skipped"]
