"""What other programs and people write is refused with what to write instead."""

from __future__ import annotations

import pytest

from chronex.lint.findings import ScheduleSite, ZoneNote
from chronex.lint.host_schedules import judge
from chronex.lint.hosts import GITHUB
from chronex.timing import validate


@pytest.mark.parametrize(
    ("text", "problem", "hint", "fix"),
    [
        ("every 5 minutes", "an interval is written @every", "did you mean @every 5m?", "@every 5m"),
        ("Every 2 Hours", "an interval is written @every", "did you mean @every 2h?", "@every 2h"),
        ("every 90s", "an interval is written @every", "did you mean @every 90s?", "@every 90s"),
        ("every day at 9", "a schedule is written in fields", "did you mean 0 9 * * *?", "0 9 * * *"),
        ("Daily at 5:30 pm", "a schedule is written in fields", "did you mean 30 17 * * *?", "30 17 * * *"),
        ("every monday at 12 am", "a schedule is written in fields", "did you mean 0 0 * * MON?", "0 0 * * MON"),
        ("every weekday at 09:15", "a schedule is written in fields", "did you mean 15 9 * * MON-FRI?", "15 9 * * MON-FRI"),
        ("every hour", "a schedule is written in fields", "did you mean @hourly?", "@hourly"),
        ("every day at 25", "expected 5 or 6 fields, got 4", "", None),
        ("rate(5 minutes)", "rate(…) is for AWS", "did you mean @every 5m?", "@every 5m"),
        ("rate(1 day)", "rate(…) is for AWS", "did you mean @every 1d?", "@every 1d"),
        ("Mon..Fri 09:00", "this is a calendar event of systemd", "did you mean 0 9 * * MON-FRI?", "0 9 * * MON-FRI"),
        ("Sun *-*-* 04:30:00", "this is a calendar event of systemd", "did you mean 30 4 * * SUN?", "30 4 * * SUN"),
        ("cron(0 10 * * ? *)", "cron(…) is for AWS, which has a year at the end", "did you mean 0 10 * * *?", "0 10 * * *"),
        ("cron(15 12 ? * MON-FRI *)", "cron(…) is for AWS, which has a year at the end", "did you mean 15 12 * * MON-FRI?", "15 12 * * MON-FRI"),
        ("cron(0 10 ? * 2-6 *)", "cron(…) is for AWS, which has a year at the end and counts Sunday as 1",
         "write five fields without cron( )", None),
        ("cron(0 10 * * ? 2027)", "cron(…) is for AWS, which has a year at the end and counts Sunday as 1",
         "write five fields without cron( )", None),
        ("cron(0 99 * * ? *)", "cron(…) is for AWS, which has a year at the end and counts Sunday as 1",
         "write five fields without cron( )", None),
        ("09:30", "a schedule is written in fields", "did you mean 30 9 * * *?", "30 9 * * *"),
        ("9 PM mon-fri", "a schedule is written in fields", "did you mean 0 21 * * MON-FRI?", "0 21 * * MON-FRI"),
        ("5m", "an interval is written @every", "did you mean @every 5m?", "@every 5m"),
        ("@every5m", "a blank is missing in '@every5m'", "did you mean @every 5m?", "@every 5m"),
        ("2027-03-01 09:00", "one moment is written @once", "did you mean @once 2027-03-01T09:00?", "@once 2027-03-01T09:00"),
        ("2027-03-01", "one moment is written @once", "did you mean @once 2027-03-01T00:00:00?", "@once 2027-03-01T00:00:00"),
        ("*-*-* 04:30:00", "this is a calendar event of systemd", "did you mean 30 4 * * *?", "30 4 * * *"),
        ("*-*-01 04:30", "this is a calendar event of systemd", "did you mean 30 4 1 * *?", "30 4 1 * *"),
        ("OnCalendar=weekly", "this is a calendar event of systemd", "did you mean @weekly?", "@weekly"),
        ("“0 9 * * *”", "the quotes do not belong to the expression", "remove them", "0 9 * * *"),
        ("'@daily'", "the quotes do not belong to the expression", "remove them", "@daily"),
        ("0 9 * * MON - FRI", "a field has no blanks in it", "did you mean 0 9 * * MON-FRI?", "0 9 * * MON-FRI"),
        ("0 9 1, 15 * *", "a field has no blanks in it", "did you mean 0 9 1,15 * *?", "0 9 1,15 * *"),
        ("0 9 * * * Europe/Berlin", "a zone stands in front of the fields",
         "did you mean TZ=Europe/Berlin 0 9 * * *?", "TZ=Europe/Berlin 0 9 * * *"),
        ("0 9 * * 1-5 TZ=Asia/Seoul", "a zone stands in front of the fields",
         "did you mean TZ=Asia/Seoul 0 9 * * 1-5?", "TZ=Asia/Seoul 0 9 * * 1-5"),
        ("0 9 * * * /usr/bin/backup", "a command does not belong to the expression", "keep the five fields before it", None),
        ("0 9 * * * root /bin/x", "expected 5 or 6 fields, got 7", "a command does not belong to the expression", None),
        ("RRULE:FREQ=DAILY", "this is a rule of iCalendar", "write fields such as 0 9 * * MON", None),
        ("0 9 * * 1-5 # weekdays", "a comment does not belong to the expression", "remove it", ""),
    ],
)  # fmt: skip
def test_a_form_of_others_is_recognised(text: str, problem: str, hint: str, fix: str | None) -> None:
    (found,) = validate(text).diagnostics
    assert (found.code, found.problem, found.hint, found.fix) == ("E010", problem, hint, fix)
    if fix:
        assert validate(fix).is_valid


@pytest.mark.parametrize(
    "text",
    [
        "every day",
        "monday 9am",
        "rate(soon)",
        "5",
        "9",
        "9 9",
        "0 9 * * *",
        "1 2 3",
        "SUN * * * *",
        "0 9 * * FRI#2",
        "every 5 minutes or so",
    ],
)
def test_what_is_none_of_these_is_read_as_ever(text: str) -> None:
    assert all(
        d.case not in ("in words", "AWS rate", "calendar event", "comment") for d in validate(text).diagnostics
    )


@pytest.mark.parametrize(
    ("text", "code", "problem", "fix"),
    [
        ("0 9 * * MON\u2013FRI", "E006", "'MON\u2013FRI' is not a value: only plain ASCII characters count", "MON-FRI"),
        ("0 \uff19 * * *", "E003", "'\uff19' is not a value: only plain ASCII characters count", "9"),
        ("0 9 \u2217 * *", "E004", "'\u2217' is not a value: only plain ASCII characters count", "*"),
        ("0 9 * * MON;TUE", "E006", "'MON;TUE' is not understood", "MON,TUE"),
        ("1..5 * * * *", "E002", "'1..5' is not understood", "1-5"),
        ("0 9pm * * *", "E003", "'9pm' is not understood", "21"),
        ("0 12am,12pm * * *", "E003", "'12am,12pm' is not understood", "0,12"),
        ("0 9 1st,15th * *", "E004", "'1st,15th' is not understood", "1,15"),
        ("0 9 W15 * *", "E004", "'W15' is not understood", "15W"),
        ("0 9 last * *", "E004", "'last' is not understood", "L"),
        ("0 9 * * L5", "E006", "'L5' is not understood", "5L"),
        ("0 9 * * 2#FRI", "E006", "'2#FRI' is not understood", "FRI#2"),
        ("@once 2027-02-30T09:00", "E012", "'2027-02-30T09:00' does not exist: 2027-02 has 28 days", None),
        ("@once 2027-03-01T24:00", "E012", "'2027-03-01T24:00' does not exist: times go from 00:00:00 to 23:59:59, and offsets to 23:59", None),
        ("@once 2027-03-01 09:00", "E012", "invalid datetime format '2027-03-01 09:00'", "2027-03-01T09:00"),
        ("R/2026-02-29/P1Y", "E012", "'2026-02-29' does not exist: 2026-02 has 28 days", None),
        ("@daily {from:2027-13-01}", "E016", "'2027-13-01' does not exist: months go from 01 to 12, and days and years begin with 1", None),
        ("@daily {until:9999-12-32}", "E016", "'9999-12-32' does not exist: 9999-12 has 31 days", None),
        ("@daily {jitter=30s}", "E015", "a colon stands between an option and its value", "jitter:30s"),
        ("@daily {timezone:UTC}", "E015", "a zone is no option", None),
        ("TZ=berlin 0 9 * * *", "E011", "unknown timezone 'berlin'", "Europe/Berlin"),
        ("TZ=new-york 0 9 * * *", "E011", "unknown timezone 'new-york'", "America/New_York"),
    ],
)  # fmt: skip
def test_one_part_in_another_spelling_is_recognised(text: str, code: str, problem: str, fix: str | None) -> None:
    (found,) = validate(text).errors
    assert (found.code, found.problem, found.fix) == (code, problem, fix)
    if fix:
        assert validate(text[: found.start] + fix + text[found.end :]).is_valid


def test_a_day_rule_in_another_spelling_is_no_suggestion_for_plain_cron() -> None:
    site = ScheduleSite("0 9 W15 * *", 0, 11, 0, GITHUB, ZoneNote("UTC", ""))
    (found,) = judge(site, 0)
    assert (found.problem, found.fix) == ("'W15' is not a value here", None)


def test_a_host_without_intervals_is_not_offered_one() -> None:
    site = ScheduleSite("every 5 minutes", 0, 15, 0, GITHUB, ZoneNote("UTC", ""))
    (found,) = judge(site, 0)
    assert found.message == "an interval in words is no schedule here; write five fields such as */5 * * * *"
    assert found.fix is None


@pytest.mark.parametrize("text", ["@every 100000000d", "@once +100000000d"])
def test_a_duration_beyond_the_calendar_is_called_too_long(text: str) -> None:
    (found,) = validate(text).errors
    assert found.problem == "'100000000d' is longer than the calendar goes"
