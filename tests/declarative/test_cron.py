"""Strict POSIX cron: what is accepted, the nine rules with their messages, days, and clock changes in many zones."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chronex
from chronex.declarative.persistence import job_of
from chronex.declarative.registrations import TaskDefinition, check_cron, check_registrations
from chronex.declarative.scheduler_errors import (
    CronExpressionInvalidError,
    FieldParseError,
    InvalidCronExpressionError,
    ScheduleDuplicateTaskError,
    ScheduleTaskError,
)
from chronex.timing.job_schedule import schedule_of


async def nothing() -> None:
    return


VALID = [
    "0 0 * * *", "15 3 * * 1-5", "0,30 * * * *", "0 12 14 2 *", "* * * * *", "\t0  0\t* * * ", "00 09 01 01 0",
    "5-5 * * * *", "1,2,5-9 0 1,15 * 6", "59 23 31 12 6",
]  # fmt: skip

# rule: the expressions that break it, each with the field and the reason of its error
RULES: dict[int, list[tuple[str, str, str]]] = {
    1: [
        ("* * * *", "expression", "must have exactly 5 parts separated by whitespace, not 4"),
        ("0 * * * * *", "expression", "must have exactly 5 parts separated by whitespace, not 6"),
        ("", "expression", "must have exactly 5 parts separated by whitespace, not 0"),
        ("0\n0 * * *", "expression", "must have exactly 5 parts separated by whitespace, not 4"),
    ],
    2: [
        ("*/15 * * * *", "minute", "must not contain step syntax (/N), but has */15"),
        ("0 8-18/2 * * *", "hour", "must not contain step syntax (/N), but has 8-18/2"),
    ],
    3: [
        ("0 0 * * mon", "weekday", "must not contain the named value mon; write its number"),
        ("0 0 * JAN *", "month", "must not contain the named value JAN; write its number"),
        ("0 0 * * sunday", "weekday", "must not contain the named value sunday; write its number"),
        ("0 0 * * mon-fri", "weekday", "must not contain the named value mon-fri; write its number"),
        ("0 0 * jul *", "month", "must not contain the named value jul; write its number"),
    ],
    4: [
        ("@daily", "expression", "must not be a macro such as @daily; write the five fields"),
        ("@hourly", "expression", "must not be a macro such as @daily; write the five fields"),
        ("@every 5m", "expression", "must not be a macro such as @daily; write the five fields"),
    ],
    5: [
        ("0 0 ? * *", "day", "must not contain the Quartz token ?; only numbers, ranges and lists are POSIX"),
        ("0 0 L * *", "day", "must not contain the Quartz token L; only numbers, ranges and lists are POSIX"),
        ("0 0 15W * *", "day", "must not contain the Quartz token 15W; only numbers, ranges and lists are POSIX"),
        ("0 0 * * 5L", "weekday", "must not contain the Quartz token 5L; only numbers, ranges and lists are POSIX"),
        ("0 0 * * 1#2", "weekday", "must not contain the Quartz token 1#2; only numbers, ranges and lists are POSIX"),
    ],
    6: [
        ("0 0 * * 7", "weekday", "must not contain 7; use 0 for Sunday"),
        ("0 0 * * 5-7", "weekday", "must not contain 7; use 0 for Sunday"),
    ],
    7: [
        ("0 22-2 * * *", "hour", "must not contain the wrap-around range 22-2; its start is after its end"),
        ("0 0 * * 6-0", "weekday", "must not contain the wrap-around range 6-0; its start is after its end"),
    ],
    8: [
        ("60 * * * *", "minute", "value 60 is out of range 0-59"),
        ("0 24 * * *", "hour", "value 24 is out of range 0-23"),
        ("0 0 0 * *", "day", "value 0 is out of range 1-31"),
        ("0 0 * 13 *", "month", "value 13 is out of range 1-12"),
        ("0 0 * * 8", "weekday", "value 8 is out of range 0-6"),
        ("0-99999999999 * * * *", "minute", "value 99999999999 is out of range 0-59"),
    ],
    9: [
        ("1e1 * * * *", "minute", "must contain plain decimal numbers only, not 1e1"),
        ("0x1F * * * *", "minute", "must contain plain decimal numbers only, not 0x1F"),
        ("+5 * * * *", "minute", "must contain plain decimal numbers only, not +5"),
        ("-5 * * * *", "minute", "must contain plain decimal numbers only, not -5"),
        ("1.5 * * * *", "minute", "must contain plain decimal numbers only, not 1.5"),
    ],
}  # fmt: skip
OTHERS = [
    ("1,,2 * * * *", "minute", "has an empty element in its list"),
    ("*,5 * * * *", "minute", "must be *, or numbers and ranges separated by commas, not *"),
    ("٣ * * * *", "minute", "must be *, or numbers and ranges separated by commas, not ٣"),
    ("\x1b[2J * * * *", "minute", "must be *, or numbers and ranges separated by commas, not \N{REPLACEMENT CHARACTER}[2J"),
]  # fmt: skip
REFUSED = [(rule, *row) for rule, rows in RULES.items() for row in rows] + [(0, *row) for row in OTHERS]


@pytest.mark.parametrize("text", VALID)
def test_posix_expressions_are_accepted(text: str) -> None:
    check_cron(text)
    assert check_registrations([("a", text, nothing, timedelta(0))])[0].cron == text


@pytest.mark.parametrize(("rule", "text", "field", "reason"), REFUSED)
def test_each_of_the_nine_rules_is_held_with_its_message(rule: int, text: str, field: str, reason: str) -> None:
    with pytest.raises(CronExpressionInvalidError) as refused:
        check_registrations([("a", text, nothing, timedelta(0))])
    shown = text.replace("\n", "\\u000a").replace("\x1b", "\\u001b")
    assert str(refused.value) == f'Invalid cron expression "{shown}": {field} field {reason}'
    assert refused.value.details == {"expression": text, "field": field, "reason": reason}


def test_there_are_nine_rules() -> None:
    assert sorted(RULES) == list(range(1, 10))


def test_the_error_of_the_field_and_of_the_expression_are_its_causes() -> None:
    with pytest.raises(CronExpressionInvalidError) as refused:
        check_registrations([("a", "0 0 * * 7", nothing, timedelta(0))])
    inner = refused.value.__cause__
    assert isinstance(inner, InvalidCronExpressionError)
    assert inner.details == refused.value.details
    assert str(inner) == str(refused.value)
    field = inner.__cause__
    assert isinstance(field, FieldParseError)
    assert field.details == {"fieldValue": "7", "fieldName": "weekday"}
    assert str(field) == "must not contain 7; use 0 for Sunday"


PIECES = st.sampled_from(
    [
        *"0123456789",
        "*",
        ",",
        "-",
        "/",
        " ",
        "\t",
        "L",
        "W",
        "?",
        "#",
        "MON",
        "jan",
        "@",
        "+",
        ".",
        "x",
        "e",
        "\n",
        "٣",
    ]
)


@given(st.lists(PIECES, max_size=16).map("".join))
def test_what_is_accepted_is_exactly_what_the_timing_library_can_run(text: str) -> None:
    try:
        check_cron(text)
    except InvalidCronExpressionError:
        accepted = False
    else:
        accepted = True
    # A line break is no separator here, as the grammar has it; the timing library may be more generous.
    assert accepted == chronex.validate(text, dialect="posix").is_valid or (not accepted and "\n" in text)


@pytest.mark.parametrize("text", ["9" * 5000 + " * * * *", "x" * 5000, "1," * 400 + "1 * * * *"])
def test_absurd_lengths_are_refused_or_read_without_harm(text: str) -> None:
    with contextlib.suppress(CronExpressionInvalidError):
        assert check_registrations([("a", text, nothing, timedelta(0))])[0].cron == text


def test_control_characters_are_escaped_in_messages_and_kept_in_details() -> None:
    text, name = "0 0 * * \x1b[31m", "na\x07me"
    with pytest.raises(CronExpressionInvalidError) as refused:
        check_registrations([("a", text, nothing, timedelta(0))])
    assert refused.value.details["expression"] == text
    with pytest.raises(ScheduleDuplicateTaskError) as twice:
        check_registrations([(name, "0 0 * * *", nothing, timedelta(0))] * 2)
    assert twice.value.details["taskName"] == name
    unscheduled = ScheduleTaskError(name, text, ValueError("x"))
    for problem in (refused.value, refused.value.__cause__, twice.value, unscheduled):
        assert str(problem).isprintable(), repr(str(problem))
        assert "\\u00" in str(problem)


# -- days ---------------------------------------------------------------------------------------------------


def instants(cron: str, zone: str, start: str, days: float) -> list[str]:
    """Local times at which the task is due, from `start` on."""
    job = job_of(TaskDefinition("a", cron, nothing, 0), "s", zone, 0)
    first = round(datetime.fromisoformat(start).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    found = schedule_of(job).between(first - 1, first + round(days * 86_400_000) - 1)
    return [datetime.fromtimestamp(ms / 1000, ZoneInfo(zone)).strftime("%d %H:%M%z") for ms in found]


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 0 * * *", list(range(1, 32))),
        ("0 0 * * 1", [4, 11, 18, 25]),
        ("0 0 15 * *", [15]),
        ("0 0 1,15 * 1", [1, 4, 11, 15, 18, 25]),
    ],
)
def test_day_of_month_and_day_of_week_by_the_truth_table(cron: str, days: list[int]) -> None:
    found = instants(cron, "UTC", "2027-01-01T00:00", 31)
    assert found == [f"{day:02} 00:00+0000" for day in days]


# -- clock changes ------------------------------------------------------------------------------------------

# (zone, cron, from, days, local times): a skipped minute is skipped, a repeated one runs in its first pass
CLOCK_CHANGES = [
    ("America/New_York", "30 2 * * *", "2027-03-13T00:00", 3, ["13 02:30-0500", "15 02:30-0400"]),
    ("America/New_York", "30 1 * * *", "2027-11-06T00:00", 3, ["06 01:30-0400", "07 01:30-0400", "08 01:30-0500"]),
    ("America/New_York", "0 * * * *", "2027-11-07T00:00", 0.16, ["07 00:00-0400", "07 01:00-0400", "07 02:00-0500"]),
    ("Europe/Berlin", "30 2 * * *", "2027-03-27T00:00", 3, ["27 02:30+0100", "29 02:30+0200"]),
    ("Europe/Berlin", "30 2 * * *", "2027-10-30T00:00", 3, ["30 02:30+0200", "31 02:30+0200", "01 02:30+0100"]),
    ("Europe/London", "15 1 * * *", "2027-03-27T00:00", 3, ["27 01:15+0000", "29 01:15+0100"]),
    ("Europe/London", "15 1 * * *", "2027-10-30T00:00", 3, ["30 01:15+0100", "31 01:15+0100", "01 01:15+0000"]),
    ("Australia/Sydney", "30 2 * * *", "2027-10-02T00:00", 3, ["02 02:30+1000", "04 02:30+1100"]),
    ("Australia/Sydney", "30 2 * * *", "2027-04-03T00:00", 3, ["03 02:30+1100", "04 02:30+1100", "05 02:30+1000"]),
    ("Australia/Lord_Howe", "15 2 * * *", "2027-10-02T00:00", 3, ["02 02:15+1030", "04 02:15+1100"]),
    ("Australia/Lord_Howe", "45 1 * * *", "2027-04-03T00:00", 3, ["03 01:45+1100", "04 01:45+1100", "05 01:45+1030"]),
    ("America/Havana", "30 0 * * *", "2025-03-08T00:00", 2.9, ["08 00:30-0500", "10 00:30-0400"]),
    ("America/Santiago", "30 0 * * *", "2027-09-04T00:00", 2.9, ["04 00:30-0400", "06 00:30-0300"]),
    ("Asia/Kolkata", "30 2 * * *", "2027-03-13T00:00", 2, ["13 02:30+0530", "14 02:30+0530"]),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "cron", "start", "days", "expected"), CLOCK_CHANGES)
def test_clock_changes_skip_what_does_not_exist_and_run_the_first_of_two(
    zone: str, cron: str, start: str, days: float, expected: list[str]
) -> None:
    assert instants(cron, zone, start, days) == expected


def test_clock_changes_are_tried_in_at_least_six_zones() -> None:
    assert len({zone for zone, *_ in CLOCK_CHANGES}) >= 7
