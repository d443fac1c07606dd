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
        ("0 9 * * 1-5 # weekdays", "a comment does not belong to the expression", "remove it", ""),
    ],
)  # fmt: skip
def test_a_form_of_others_is_recognised(text: str, problem: str, hint: str, fix: str | None) -> None:
    (found,) = validate(text).diagnostics
    assert (found.code, found.problem, found.hint, found.fix) == ("E010", problem, hint, fix)
    if fix:
        assert validate(fix).is_valid


@pytest.mark.parametrize(
    "text", ["every day", "monday 9am", "rate(soon)", "SUN * * * *", "0 9 * * FRI#2", "every 5 minutes or so"]
)
def test_what_is_none_of_these_is_read_as_ever(text: str) -> None:
    assert all(
        d.case not in ("in words", "AWS rate", "calendar event", "comment") for d in validate(text).diagnostics
    )


def test_a_host_without_intervals_is_not_offered_one() -> None:
    site = ScheduleSite("every 5 minutes", 0, 15, 0, GITHUB, ZoneNote("UTC", ""))
    (found,) = judge(site, 0)
    assert found.message == "an interval in words is no schedule here; write five fields such as */5 * * * *"
    assert found.fix is None


@pytest.mark.parametrize("text", ["@every 100000000d", "@once +100000000d"])
def test_a_duration_beyond_the_calendar_is_called_too_long(text: str) -> None:
    (found,) = validate(text).errors
    assert found.problem == "'100000000d' is longer than the calendar goes"
