"""Calendars in the job file: what they become, and what is refused with its place."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from chronex.jobfile import JobFileError, read_job_file
from chronex.jobfile.calendar_sources import MOST_SPANS, made_again, reach_of
from chronex.jobfile.ics_events import MOST_BYTES
from chronex.model.calendars import CalendarSource, JobCalendar, OnExcluded
from chronex.model.job import Job
from chronex.timing.zones import load_zone, utc_zone

NOW = round(datetime(2026, 11, 17, tzinfo=UTC).timestamp() * 1000)
EPOCH = date(1970, 1, 1)
JOB = '[jobs.a]\nschedule = "0 9 * * *"\nrun = "true"\n'


def read(text: str, path: str = "chronex.toml") -> Job:
    return read_job_file(text, path, "Europe/Berlin", NOW).jobs[0]


def problems(text: str, path: str = "chronex.toml") -> list[str]:
    with pytest.raises(JobFileError) as caught:
        read(text, path)
    return [f"{p.line}:{p.column} {p.code} {p.text}" for p in caught.value.problems]


def dates_of(calendar: JobCalendar) -> list[str]:
    spans = zip(calendar.days[::2], calendar.days[1::2], strict=True)
    return [str(date.fromordinal(day + EPOCH.toordinal())) for first, last in spans for day in range(first, last + 1)]


def excluded(job: Job) -> JobCalendar:
    assert job.calendars is not None
    (found,) = job.calendars.excluded
    return found


def test_dates_join_and_weekdays_count_from_monday() -> None:
    job = read(
        '[scheduler]\nblackout = ["days"]\n[calendars.days]\ndates = ["2026-12-24..2026-12-25", 2026-12-26, "2027-01-01"]\n'
        f'[calendars.ends]\nweekdays = ["sat", "SUN"]\n[defaults]\nonly = ["ends"]\n{JOB}workday = -1\n'
    )
    assert job.calendars is not None
    (blackout,) = job.calendars.blackout
    assert dates_of(blackout) == ["2026-12-24", "2026-12-25", "2026-12-26", "2027-01-01"]
    assert len(blackout.days) == 4
    assert job.calendars.only[0].weekdays == (6, 7)
    assert job.calendars.workday == (-1,)
    assert read(f"{JOB}only = []\n").calendars is None


def test_a_list_of_schedules_is_one_text_with_what_they_share() -> None:
    job = read('[jobs.a]\nschedule = ["0 9 * * * {tag:x}", "TZ=Asia/Tokyo 0 12 1 * *", "@once +20m"]\nrun = "true"\n')
    assert job.schedules == ("0 9 * * * {tag:x}", "TZ=Asia/Tokyo 0 12 1 * *", "@once +20m")
    assert job.tags == ("x",)
    assert job.timezone == "Europe/Berlin"
    assert read('[jobs.a]\nschedule = ["0 9 * * *"]\nrun = "true"\n').schedule == "0 9 * * *"


def test_holidays_with_their_version_and_weekend() -> None:
    pytest.importorskip("holidays")
    bavaria = excluded(read(f'[calendars.by]\nholidays = "DE-BY"\n{JOB}except = ["by"]\n'))
    assert {"2026-12-25", "2026-12-26", "2027-01-01", "2027-01-06", "2031-12-25"} <= set(dates_of(bavaria))
    assert bavaria.source is CalendarSource.HOLIDAYS
    assert bavaria.data.startswith("holidays ")
    assert bavaria.until_day == (date(2031, 12, 31) - EPOCH).days
    assert made_again(bavaria, NOW, utc_zone()) == bavaria
    arabia = excluded(read(f'[calendars.sa]\nholidays = "SA"\n{JOB}except = ["sa"]\n'))
    assert arabia.weekend == (5, 6)
    assert "2027-01-18" in dates_of(excluded(read(f'[calendars.n]\nholidays = "NYSE"\n{JOB}except = ["n"]\n')))


def event(*lines: str, uid: str = "1") -> str:
    return "\r\n".join(["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20260101T000000Z", *lines, "END:VEVENT"])


def ics(*events: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:test", *events, "END:VCALENDAR", ""])


WITH_ICS = f'[calendars.c]\nics = "c.ics"\n{JOB}except = ["c"]\n'


def from_ics(tmp_path: Path, text: str | bytes) -> JobCalendar:
    (tmp_path / "c.ics").write_bytes(text if isinstance(text, bytes) else text.encode())
    return excluded(read(WITH_ICS, str(tmp_path / "chronex.toml")))


DAYS = {
    "one day": ([event("DTSTART;VALUE=DATE:20261120")], ["2026-11-20"]),
    "until before its end": ([event("DTSTART;VALUE=DATE:20261120", "DTEND;VALUE=DATE:20261122")], ["2026-11-20", "2026-11-21"]),
    "a duration": ([event("DTSTART;VALUE=DATE:20261120", "DURATION:P2D")], ["2026-11-20", "2026-11-21"]),
    "every year but one": (
        [event("DTSTART;VALUE=DATE:20201120", "RRULE:FREQ=YEARLY;UNTIL=20290101", "EXDATE;VALUE=DATE:20271120")],
        ["2025-11-20", "2026-11-20", "2028-11-20"],
    ),
    "one of them moved": (
        [
            event("DTSTART;VALUE=DATE:20261101", "RRULE:FREQ=DAILY;COUNT=3"),
            event("DTSTART;VALUE=DATE:20261120", "RECURRENCE-ID;VALUE=DATE:20261102"),
        ],
        ["2026-11-01", "2026-11-03", "2026-11-20"],
    ),
    "canceled": ([event("DTSTART;VALUE=DATE:20261120", "STATUS:CANCELLED")], []),
    "more dates": ([event("DTSTART;VALUE=DATE:20261120", "RDATE;VALUE=DATE:20261201,20261203")], ["2026-11-20", "2026-12-01", "2026-12-03"]),
    "a period, of which only the day counts": (
        [event("DTSTART;VALUE=DATE:20261120", "RDATE;VALUE=PERIOD:20261201T090000Z/PT1H")], ["2026-11-20", "2026-12-01"],
    ),
    "long ago": ([event("DTSTART;VALUE=DATE:19991231")], []),
}  # fmt: skip


@pytest.mark.parametrize("case", DAYS)
def test_days_of_events(tmp_path: Path, case: str) -> None:
    pytest.importorskip("icalendar")
    events, expected = DAYS[case]
    assert dates_of(from_ics(tmp_path, ics(*events))) == expected


def test_times_of_events_in_their_zone_in_utc_and_in_the_files(tmp_path: Path) -> None:
    pytest.importorskip("icalendar")
    calendar = from_ics(
        tmp_path,
        ics(
            event("DTSTART;TZID=Europe/Berlin:20261024T023000", "DTEND;TZID=Europe/Berlin:20261024T033000", "RRULE:FREQ=DAILY;COUNT=3",
                  "EXDATE;TZID=Europe/Berlin:20261026T023000"),
            event("DTSTART:20261201T120000Z", "DURATION:PT30M", uid="2"),
            event("DTSTART:20261202T120000", "DTEND:20261202T130000", uid="3"),
            event("DTSTART:20261202T123000", "DTEND:20261202T140000", uid="4"),
        ),
    )  # fmt: skip
    shown = [f"{datetime.fromtimestamp(second, UTC):%m-%d %H:%M}" for second in calendar.times]
    assert shown == [
        "10-24 00:30", "10-24 01:30", "10-25 00:30", "10-25 01:30", "12-01 12:00", "12-01 12:30", "12-02 11:00", "12-02 13:00",
    ]  # fmt: skip
    assert made_again(calendar, NOW, load_zone("Europe/Berlin")) == calendar


TIMES = {
    # Where an export writes the end of the last local day in UTC, that is the next day's date west of Greenwich.
    "until a time in UTC, in the west": (
        event("DTSTART;TZID=America/New_York:20261201T210000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261203T045959Z"),
        ["12-02 02:00", "12-02 03:00", "12-03 02:00", "12-03 03:00"],
    ),
    "until a time in UTC, in the east": (
        event("DTSTART;TZID=Asia/Tokyo:20261201T080000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261201T230000Z"),
        ["11-30 23:00", "12-01 00:00", "12-01 23:00", "12-02 00:00"],
    ),
    "until a local time before that of the event": (
        event("DTSTART:20261201T080000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261202T070000"),
        ["12-01 07:00", "12-01 08:00"],
    ),
    "until a date, which counts as a whole": (
        event("DTSTART:20261201T080000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20261202"),
        ["12-01 07:00", "12-01 08:00", "12-02 07:00", "12-02 08:00"],
    ),
    "further times, each its own": (
        event("DTSTART;TZID=Asia/Tokyo:20261201T080000", "DURATION:PT1H", "RDATE:20261204T233000Z",
              "RDATE;TZID=Asia/Tokyo:20261207T120000"),
        ["11-30 23:00", "12-01 00:00", "12-04 23:30", "12-05 00:30", "12-07 03:00", "12-07 04:00"],
    ),
    "further periods, each as long as it says": (
        event("DTSTART:20261201T120000Z", "DURATION:PT1H", "RDATE;VALUE=PERIOD:20261203T120000Z/20261203T150000Z,20261205T120000Z/PT30M"),
        ["12-01 12:00", "12-01 13:00", "12-03 12:00", "12-03 15:00", "12-05 12:00", "12-05 12:30"],
    ),
    "a night in which the clock goes back": (
        event("DTSTART;TZID=Europe/Berlin:20261024T220000", "DTEND;TZID=Europe/Berlin:20261025T060000"),
        ["10-24 20:00", "10-25 05:00"],
    ),
    "a night in which the clock goes forwards, in the zone of the file": (
        event("DTSTART:20270327T220000", "DTEND:20270328T060000"), ["03-27 21:00", "03-28 04:00"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TIMES)
def test_times_of_events(tmp_path: Path, case: str) -> None:
    pytest.importorskip("icalendar")
    written, expected = TIMES[case]
    calendar = from_ics(tmp_path, ics(written))
    assert [f"{datetime.fromtimestamp(second, UTC):%m-%d %H:%M}" for second in calendar.times] == expected


def vtimezone(name: str, *of_whole: str, rule: str = "FREQ=YEARLY", until: str = "") -> str:
    """Berlin's time of today, as Outlook writes it: since 1601."""
    return "\n".join(
        [
            "BEGIN:VTIMEZONE", f"TZID:{name}", *of_whole,
            "BEGIN:STANDARD", "DTSTART:16011028T030000", f"RRULE:{rule};BYDAY=-1SU;BYMONTH=10{until}",
            "TZOFFSETFROM:+0200", "TZOFFSETTO:+0100", "END:STANDARD",
            "BEGIN:DAYLIGHT", "DTSTART:16010325T020000", f"RRULE:{rule};BYDAY=-1SU;BYMONTH=3{until}",
            "TZOFFSETFROM:+0100", "TZOFFSETTO:+0200", "END:DAYLIGHT", "END:VTIMEZONE",
        ]
    )  # fmt: skip


IN_SUMMER = "20270701T090000"
ZONES = {
    "of Windows": ('"W. Europe Standard Time"', vtimezone("W. Europe Standard Time"), "07:00"),
    "of Windows, without its rules": ("W. Europe Standard Time", "", "07:00"),
    "the maker's own": ("Customized Time Zone", vtimezone("Customized Time Zone"), "07:00"),
    "the maker's own, with commas": ('"(UTC+01:00) Bern, Rome"', vtimezone("(UTC+01:00) Bern\\, Rome"), "07:00"),
    "the maker's own, whose summer time was given up": (
        '"tzone://Microsoft/Custom"', vtimezone("tzone://Microsoft/Custom", until=";UNTIL=20201025T010000Z"), "08:00",
    ),
    "with its place beside it": ("Local", vtimezone("Local", "X-LIC-LOCATION:America/New_York"), "13:00"),
    "behind its maker": ("/freeassociation.sourceforge.net/Europe/Berlin", "", "07:00"),
    "a place, whatever the file says of it": (
        "Asia/Tokyo", vtimezone("Asia/Tokyo"), "00:00",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ZONES)
@pytest.mark.filterwarnings("error")
def test_zones_as_other_programs_write_them(tmp_path: Path, case: str) -> None:
    """A calendar of Outlook could not be read: its zones have names of Windows, and their rules beside them."""
    pytest.importorskip("icalendar")
    name, written, expected = ZONES[case]
    calendar = from_ics(tmp_path, ics(written, event(f"DTSTART;TZID={name}:{IN_SUMMER}")))
    assert f"{datetime.fromtimestamp(calendar.times[0], UTC):%H:%M}" == expected


def test_what_is_taken_out_and_moved_in_a_zone_of_the_file(tmp_path: Path) -> None:
    pytest.importorskip("icalendar")
    calendar = from_ics(
        tmp_path,
        ics(
            vtimezone("Ours"),
            event("DTSTART:20270705T070000Z", "RRULE:FREQ=DAILY;COUNT=4", "EXDATE;TZID=Ours:20270706T090000"),
            event("DTSTART;TZID=Ours:20270707T120000", "RECURRENCE-ID;TZID=Ours:20270707T090000"),
        ),
    )
    shown = [f"{datetime.fromtimestamp(second, UTC):%d %H:%M}" for second in calendar.times[::2]]
    assert shown == ["05 07:00", "07 10:00", "08 07:00"]


BOMBS: dict[str, tuple[str | bytes, str]] = {
    "a zone of every second since 1601": (
        ics(vtimezone("B", rule="FREQ=SECONDLY"), event("DTSTART;TZID=B:20261024T023000", "RECURRENCE-ID;TZID=B:20261024T023000")),
        "FREQ=SECONDLY",
    ),
    "a zone of every day since 1601": (
        ics(vtimezone("B").replace("FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3", "FREQ=DAILY;COUNT=9999999"), event("DTSTART;TZID=B:20261024T023000")), "too often",
    ),
    "a zone without an end": (ics("BEGIN:VTIMEZONE", event("DTSTART:20261024T023000")), "a VTIMEZONE has no end"),
    "a zone that says nothing": (
        ics("BEGIN:VTIMEZONE\nTZID:B\nEND:VTIMEZONE", event("DTSTART;TZID=B:20261024T023000")), "the time zone B is empty",
    ),
    "a zone of a name of 20,000 parts": (ics(event("DTSTART;TZID=" + "A/" * 20_000 + ":20261024T023000")), "too many parts"),
    "a weekday, 100,000 times": (ics(event("DTSTART;VALUE=DATE:20261024", "RRULE:FREQ=YEARLY;BYDAY=" + ",".join(["MO"] * 100_000))), "BYDAY names 100000 weekdays"),
    "no beginning": (ics(event("SUMMARY:Closed")), "it has no DTSTART"),
    "two beginnings": (ics(event("DTSTART;VALUE=DATE:20261024", "DTSTART;VALUE=DATE:20261025")), "it has several DTSTARTs"),
    "cut off": (b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261024\r\n", "it has no END:VCALENDAR"),
    "not a calendar": (b"\x00\xff hello", "no iCalendar file"),
    "nothing": (b"", "no iCalendar file"),
    "a billion seconds": (ics(event("DTSTART:20260101T000000Z", "RRULE:FREQ=SECONDLY;COUNT=1000000000")), "FREQ=SECONDLY"),
    "a billion days": (ics(event("DTSTART;VALUE=DATE:00010101", "RRULE:FREQ=DAILY;COUNT=1000000000")), "too often"),
    "many that never match": (
        ics(*(event("DTSTART;VALUE=DATE:20250101", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", uid=str(n)) for n in range(300))),
        "too often",
    ),
    "too many spans": (ics(event("DTSTART:20250101T000000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY"), event("DTSTART:20250101T120000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY", uid="2")), f"at most {MOST_SPANS}"),
    "too many entries": (b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\nEND:VEVENT\n" * 20_001 + b"END:VCALENDAR\n", "more than 20000 entries"),
    "too large": (b" " * (MOST_BYTES + 1), "more than 4 MiB"),
    "a zone nobody knows": (ics(event("DTSTART;TZID=Mars/Olympus:20261024T023000")), "the time zone Mars/Olympus is unknown"),
    "a change of all that follow": (
        ics(event("DTSTART;VALUE=DATE:20261024", "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20261023")), "THISANDFUTURE",
    ),
    "a rule for what is taken out": (
        ics(event("DTSTART;VALUE=DATE:20261024", "RRULE:FREQ=DAILY", "EXRULE:FREQ=WEEKLY")), "EXRULE",
    ),
    "an exception nobody can read": (
        ics(event("DTSTART;VALUE=DATE:20261024", "RRULE:FREQ=DAILY", "EXDATE;VALUE=DATE:x")), "EXDATE",
    ),
    "a rule nobody can read": (ics(event("DTSTART;VALUE=DATE:20261024", "RRULE:FREQ=DAILY;UNTIL=x")), "RRULE"),
}  # fmt: skip


@pytest.mark.parametrize("case", BOMBS)
def test_a_file_of_events_that_asks_for_too_much(tmp_path: Path, case: str) -> None:
    pytest.importorskip("icalendar")
    data, expected = BOMBS[case]
    (tmp_path / "c.ics").write_bytes(data if isinstance(data, bytes) else data.encode())
    (problem,) = problems(WITH_ICS, str(tmp_path / "chronex.toml"))
    assert problem.startswith("2:7 J031 ")
    assert expected in problem


def test_a_file_of_events_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.ics")
    (problem,) = problems(WITH_ICS, str(tmp_path / "chronex.toml"))
    assert "it is not a regular file" in problem


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("Germany", "did you mean DE?"),
        ("DX-BY", "did you mean DE?"),
        ("??", "write a country such as DE"),
    ],
)
def test_a_country_that_is_named_otherwise_is_told_by_its_code(written: str, hint: str) -> None:
    pytest.importorskip("holidays")
    text = f'[calendars.x]\nholidays = "{written}"\n{JOB}'
    (problem,) = problems(text, "chronex.toml")
    assert problem.startswith("2:12 J031 no holidays are known for")
    assert hint in problem


CALENDAR = '[calendars.freeze]\ndates = ["2026-12-24"]\n'
REFUSED = {
    "unknown calendar": (f'{CALENDAR}{JOB}except = ["frieze"]\n', ["6:11 J030 unknown calendar 'frieze'; did you mean freeze?"]),
    "no calendars at all": (f'{JOB}only = ["x"]\n', ["4:9 J030 unknown calendar 'x'; write [calendars.x] with holidays"]),
    "unknown blackout": (f'[scheduler]\nblackout = ["z"]\n{CALENDAR}{JOB}', ["2:13 J030 unknown calendar 'z'; the calendars here are freeze"]),
    "unknown in the defaults, once": (f'[defaults]\nexcept = ["z"]\n{JOB}\n[jobs.b]\nschedule = "@daily"\nrun = "true"\n', ["2:11 J030"]),
    "a calendar that is refused is known": (f'[calendars.x]\ndates = []\n{JOB}except = ["x"]\n', ["2:9 J013 dates is empty"]),
    "nothing in it": (f"[calendars.x]\n{JOB}", ["1:12 J012 calendar 'x' has no days"]),
    "two sources": (f'[calendars.x]\ndates = ["2026-12-24"]\nweekdays = ["SAT"]\n{JOB}', ["3:1 J024 calendar 'x' has both dates and weekdays"]),
    "a key that nobody knows": (f'[calendars.x]\nholiday = "DE"\n{JOB}', ["1:12 J012", "2:1 J010 unknown key 'holiday'; did you mean holidays?"]),
    "a weekday twice": (f'[calendars.x]\nweekdays = ["SUN", "mon", "MON"]\n{JOB}', ["2:27 J018 'MON' is given twice"]),
    "no date": (f'[calendars.x]\ndates = ["2026-02-30"]\n{JOB}', ["2:10 J031 '2026-02-30' is neither a date nor a range"]),
    "backwards": (f'[calendars.x]\ndates = ["2027-01-02..2026-12-24"]\n{JOB}', ['2:10 J031 \'2027-01-02..2026-12-24\' ends before it begins; write "2026-12-24..2027-01-02"']),
    "a huge range is one span": (f'[calendars.x]\ndates = ["0001-01-01..9999-12-31"]\n{JOB}except = ["y"]\n', ["6:11 J030"]),
    "no weekday": (f'[calendars.x]\nweekdays = ["SONNTAG"]\n{JOB}', ["2:13 J013 weekdays[0] cannot be 'SONNTAG'"]),
    "no file": (f'[calendars.x]\nics = "nowhere.ics"\n{JOB}', ["2:7 J031 cannot read"]),
    "a name with a blank": (f'[calendars."a b"]\nweekdays = ["SAT"]\n{JOB}', ["1:12 J017"]),
    "day zero": (f"{JOB}workday = [0]\n", ["4:12 J014 workday[0] cannot be 0"]),
    "day 24": (f"{JOB}workday = 24\n", ["4:11 J014"]),
    "workday and move": (f'{CALENDAR}{JOB}except = ["freeze"]\non_excluded = "next_workday"\nworkday = 1\n', ["8:1 J024 workday names working days already"]),
    "move without a calendar": (f'{JOB}on_excluded = "next_workday"\n', ["4:1 J024 on_excluded says"]),
    "move of an interval": (f'{CALENDAR}[jobs.a]\nschedule = "@every 15m"\nrun = "true"\nexcept = ["freeze"]\non_excluded = "next_workday"\n', ["7:1 J024 an interval has no time"]),
    "move of every minute": (f'{CALENDAR}[jobs.a]\nschedule = "* * * * *"\nrun = "true"\nexcept = ["freeze"]\non_excluded = "next_workday"\n', ["7:1 J024 more than 48 runs of a day"]),
    "no such word": (f'{CALENDAR}{JOB}on_excluded = "next_workdays"\n', ["6:15 J013"]),
    "an empty list of schedules": ('[jobs.a]\nschedule = []\nrun = "true"\n', ["2:12 J014 schedule has 0 expressions"]),
    "one of the list is bad": ('[jobs.a]\nschedule = ["@daily", "99 * * * *"]\nrun = "true"\n', ["2:24 E002"]),
    "the same twice": ('[jobs.a]\nschedule = ["@daily", "@daily"]\nrun = "true"\n', ["2:23 J018"]),
    "options that differ": ('[jobs.a]\nschedule = ["0 1 * * *", "0 2 * * * {window:5m}"]\nrun = "true"\n', ["2:26 J024 the expressions of a job share"]),
    "a random interval": ('[jobs.a]\nschedule = ["@daily", "@every 5m-10m"]\nrun = "true"\n', ["2:23 J024 a random interval"]),
    "a fixed delay": ('[jobs.a]\nschedule = ["@daily", "@every 5m"]\ncadence = "fixed_delay"\nrun = "true"\n', ["3:11 J024 fixed_delay"]),
    "a number": ("[jobs.a]\nschedule = [1]\nrun = \"true\"\n", ["2:13 J011"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_problems_have_their_place(case: str) -> None:
    text, expected = REFUSED[case]
    found = problems(text)
    assert len(found) == len(expected), found
    for problem, start in zip(found, expected, strict=True):
        assert problem.startswith(start), problem


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("DE-BX", "DE has no part 'BX'; did you mean DE-B"),
        ("QQQ", "no holidays are known for 'QQQ'"),
        ("D", "no holidays are known for 'D'"),
        ("--", "no holidays are known for '--'"),
        ("DE-BY-X", "DE has no part 'BY-X'"),
    ],
)
def test_a_holiday_code_that_does_not_exist(code: str, expected: str) -> None:
    pytest.importorskip("holidays")
    (problem,) = problems(f'[calendars.x]\nholidays = "{code}"\n{JOB}')
    assert problem.startswith(f"2:12 J031 {expected}"), problem


def test_without_the_packages_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "holidays", None)
    monkeypatch.setitem(__import__("sys").modules, "icalendar", None)
    (tmp_path / "c.ics").write_text(ics())
    (problem,) = problems(f'[calendars.x]\nholidays = "FR"\n{JOB}')
    assert "pip install 'chronex[calendars]'" in problem
    (problem,) = problems(WITH_ICS, str(tmp_path / "chronex.toml"))
    assert "pip install 'chronex[calendars]'" in problem


def test_how_far_a_calendar_reaches() -> None:
    first, last = reach_of(NOW)
    assert (first, last) == ((date(2025, 1, 1) - EPOCH).days, (date(2031, 12, 31) - EPOCH).days)


def test_moved_runs_are_read() -> None:
    job = read(f'{CALENDAR}{JOB}except = ["freeze"]\non_excluded = "previous_workday"\n')
    assert job.calendars is not None
    assert job.calendars.on_excluded is OnExcluded.PREVIOUS_WORKDAY
