"""Clock changes as plain lines."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from chronex.model.calendars import CalendarRules, JobCalendar
from chronex_tui.model.clock_days import POLICIES, change_lines, clock_days, title_line
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.layout import plain
from tests.tui.examples import HOME, NOW, job

DISPLAY = DisplaySettings(NOW, UNICODE, HOME)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def pictured(zone: str, since: str, *schedules: str, policy: int = 0) -> str:
    jobs = [job(f"job-{number}", schedule, zone) for number, schedule in enumerate(schedules)]
    days, unchanging = clock_days(jobs, at(since), policy=POLICIES[policy])
    lines = [line for day in days[:1] for line in (title_line(day, DISPLAY), *change_lines(day, DISPLAY, 140, 9))]
    return plain([*lines, *(((zone, ""),) for zone in unchanging)])


def test_the_missing_hour_of_berlin() -> None:
    text = pictured("Europe/Berlin", "2027-03-01", "30 2 * * *", "0 * * * *")
    assert "Sun 28 Mar 2027  Europe/Berlin  1h forward, CET → CEST" in text
    assert "██ ██ ╳╳ ██" in text
    assert "02:30 does not exist: the run fires at 03:00 instead" in text


def test_the_doubled_hour_of_berlin() -> None:
    text = pictured("Europe/Berlin", "2027-10-01", "30 2 * * *")
    assert "00 01 02 02 03" in text
    assert "██ ██ ██ ▒▒ ██" in text
    assert "02:30 happens twice: fires once, on the first pass" in text


def test_half_an_hour_is_missing_on_lord_howe() -> None:
    assert "██ ██ ╳█ ██" in pictured("Australia/Lord_Howe", "2026-09-01", "15 2 * * *")


def test_havana_changes_at_midnight() -> None:
    text = pictured("America/Havana", "2025-03-01", "30 0 * * *")  # newer zone data has no change in March 2027
    assert "Sun 9 Mar 2025" in text or "Sat 8 Mar 2025" in text
    assert "00:30 does not exist" in text


def test_a_zone_that_never_changes_is_named() -> None:
    assert pictured("Etc/UTC", "2027-01-01", "0 0 * * *") == "Etc/UTC"


def test_another_policy_is_a_what_if() -> None:
    assert "1 run skipped" in pictured("Europe/Berlin", "2027-03-01", "30 2 * * *", policy=2)


def test_a_day_that_a_calendar_leaves_out_has_no_runs() -> None:
    sunday = JobCalendar(name="sundays", weekdays=(7,))
    one = replace(job("calm", "30 2 * * *", "Europe/Berlin"), calendars=CalendarRules(excluded=(sunday,)))
    days, _ = clock_days([one, job("busy", "30 2 * * *", "Europe/Berlin")], at("2027-03-01"))
    text = plain([line for day in days[:1] for line in change_lines(day, DISPLAY, 140, 9)])
    assert "no run on this day: sundays" in text
    assert text.count("02:30 does not exist") == 1


def test_a_small_terminal_has_whole_names_beside_hours_without_gaps() -> None:
    (day, *_), _ = clock_days([job("new-york-backup", "30 2 * * *", "America/New_York")], at("2027-03-01"))
    lines = plain(change_lines(day, DISPLAY, 76, 9)).splitlines()
    assert lines[2].startswith("new-york-backup ")
    assert all(len(line) <= 76 for line in lines)
    assert plain(change_lines(day, DISPLAY, 40, 9)).splitlines()[2].startswith("new-y… ")


def test_a_narrow_terminal_shows_the_hours_around_the_change() -> None:
    """In Nuuk the clock is set at 23 h; forty cells have room for sixteen hours, and those of the morning are not it."""
    (day, *_), _ = clock_days([job("late", "30 22 * * *", "America/Nuuk")], at("2027-01-01"))
    hours, clock, late, *_ = plain(change_lines(day, DISPLAY, 40, 9)).splitlines()
    assert all(len(line) <= 40 for line in (hours, clock, late))
    assert UNICODE.gap in clock or UNICODE.second in clock
    assert late[7:].strip() != ""
    wide = plain(change_lines(day, DISPLAY, 140, 9)).splitlines()
    assert hours.split()[-1] in wide[0].split()[-2:]
