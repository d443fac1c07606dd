"""What `status` says of calendars whose sources have changed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.cli.file_changes import stale_calendars
from chronex.jobfile.calendar_sources import of_dates, of_holidays, of_ics
from chronex.model.calendars import CalendarRules, JobCalendar
from chronex.model.job import Job
from chronex.timing.zones import utc_zone

NOW = round(datetime(2026, 11, 17, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000
EVENT = "BEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:{}\r\nEND:VEVENT\r\n"


def job(*calendars: JobCalendar, schedule: str = "0 9 * * *", name: str = "daily") -> Job:
    return Job(id=name, schedule=schedule, calendars=CalendarRules(excluded=calendars))


def write(path: Path, *days: str) -> None:
    path.write_text("BEGIN:VCALENDAR\r\n" + "".join(map(EVENT.format, days)) + "END:VCALENDAR\r\n")


def test_a_changed_file_is_told_with_the_jobs_and_the_day_where_runs_move(tmp_path: Path) -> None:
    pytest.importorskip("icalendar")
    path = tmp_path / "c.ics"
    write(path, "20261224")
    calendar = of_ics("company", path, NOW, utc_zone())
    jobs = [job(calendar), job(calendar, schedule="0 9 1 * *", name="monthly")]
    assert stale_calendars(jobs, NOW) == []
    write(path, "20261224", "20270301")
    (found,) = stale_calendars(jobs, NOW)
    assert (found.jobs, found.moved_from) == (("daily", "monthly"), "2027-03-01")
    assert "runs of daily, monthly would move from 2027-03-01 on" in found.problem
    write(path, "20261224", "20270302")
    assert stale_calendars(jobs, NOW)[0].jobs == ("daily",)
    write(path, "20261224", "20200101")  # other bytes, and no run moves
    assert stale_calendars(jobs, NOW) == []
    path.unlink()
    (found,) = stale_calendars(jobs, NOW)
    assert "cannot be made again: cannot read" in found.problem


def test_new_holiday_data_is_told_where_it_moves_a_run() -> None:
    pytest.importorskip("holidays")
    calendar = of_holidays("public", "DE-BY", NOW)
    older = replace(calendar, data="holidays 0.1")
    assert stale_calendars([job(calendar), job(older)], NOW) == []
    day = (date(2027, 1, 6) - date(1970, 1, 1)).days  # Epiphany, which the older data did not know
    edges = [edge for edge in zip(calendar.days[::2], calendar.days[1::2], strict=True) if edge != (day, day)]
    (found,) = stale_calendars([job(replace(older, days=tuple(edge for span in edges for edge in span)))], NOW)
    assert found.moved_from == "2027-01-06"


def test_a_calendar_that_soon_ends_is_told_and_one_of_the_file_never_does() -> None:
    pytest.importorskip("holidays")
    calendar = of_holidays("public", "DE", NOW)
    later = NOW + 4 * 366 * DAY
    assert "is known until 2031-12-31 only" in stale_calendars([job(calendar)], later + 200 * DAY)[0].problem
    assert stale_calendars([job(of_dates("mine", [(20_000, 20_001)]))], later) == []
