"""systemd's calendar events, against a table and, where it is installed, against systemd itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chronex.lint.systemd_calendar import NICKNAMES, calendar_schedule, parse_calendar
from chronex.timing.zones import load_zone

BASE = "2026-11-16 00:00:00"
BASE_MS = 1_794_787_200_000
SYSTEMD = shutil.which("systemd-analyze")

ACCEPTED = [
    "20..25/3:00", "9:50..62/9", "*-*~27..29/3", "*-*~1,25", "*-*~25,1", "*-*~1,2,22", "*-*~26,26", "*-*~5,5,23", "*-*~1,20..25",
    "1970-1-1", "Mon  09:00", "5..9/5:00", "Mon,Tue,  9:00", "Mon  UTC", "12-25  UTC",
    "semi-annually", "biannually", "bi-annually", "anually", "09:00 Utc", "09:00 uTC", "93..00-*-*", "69-1-1", "19/4:00", "00:00/59",
    "*-*~5/4", "*-*~3/2", "9..17/15:00", "00:00:58/1.5", "00:00:01.5..03",     "Mon..Fri 9:00", "mon,wed *-1..3-* 5:5", "quarterly", "Sat,Mon *-*~7/1", "2027-02-30", "*-02~03", "*:0/5", "daily UTC",
    "Thu,Fri 2012-*-1,5 11:12:13", "12-31", "05:40", "05:40:23.4200004/3.1700005", "Mon", "@1900000000",
    "monday-friday 10:00", "weekly Europe/Berlin", "00/6:00", "10:00..12:00", "*-*-* 10..12:00", "10:00 EST", "1,2,3:00",
    "Mon,", "*-*~01", "*-*~3..5 1:2", "*-*-1..20/3 2/3:1", "2026/2-*-* 3:4", "mon..wed,sun 3:00:30", "*:*", "30-1-1",
    "*-2-29", "Mon *-2-29 1:1", "*-*-*", "*-*", "5/5:0", "*~1", "*-1~2", "Sun *-*~7/1 3:0", "*-*~9/2", "*-*~1..3",
    "*:30/7", "tue *-*-8..14 9:0 America/New_York", "*-*-* 2:30 America/New_York", "*-*-* 1:30 America/New_York",
    "*:0/30 Europe/Berlin", *NICKNAMES,
]  # fmt: skip
REFUSED = [
    "20..25/4:00", "*-*~27..29", "*-*~1,26", "*-*~25,28", "*-*~1,2,23", "*-*~26..27,1", "*-*~1,20..26", "1969-1-1", "939-1-1",
    "09:00  UTC", "09:00  Europe/Berlin", "daily  UTC", "09:00\tUTC", "Mon\t09:00", "69..71-1-1",
    "20/4:00", "00:00/60", "*-*~5/5", "*-*~1/5", "*-*-31/1", "*-12/1-1", "2199/1-*-*", "00:00:00/60", "00:00:00.0..00.9",
        "9", "*-*-* 24:00", "*-*-32", "Foo", "*-*-01/0", "Fri-Mon", "10:00 Foo/Bar", "hourly,daily", "Mon,,Tue", "**", "10:",
    "1..2..3:0", "*", "2027", ":10", "::", "12:60", "*-13-1", "0:0:60", "*-*~1-2", "2030..2028-1-1", "*-*~31", "*/2:00",
    "*:*:*/15", "1:1 UTC UTC", "*-*~7..3", "",
]  # fmt: skip


def ours(event: str, count: int) -> list[str]:
    schedule = calendar_schedule(event, load_zone("UTC"))
    assert schedule is not None
    return [
        f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%S}" for ms in schedule.upcoming(BASE_MS, count)
    ]


@pytest.mark.parametrize(
    ("event", "first", "words"),
    [
        ("Mon..Fri 9:00", "2026-11-16 09:00:00", "At 09:00 on Mon, Tue, Wed, Thu, Fri"),
        ("quarterly", "2027-01-01 00:00:00", "At 00:00 on day 1 of January, April, July, October"),
        ("*-02~03", "2027-02-26 00:00:00", "At 00:00 on day 3 counted from the end of the month of February"),
        ("weekly Europe/Berlin", "2026-11-22 23:00:00", "At 00:00 on Mon (Europe/Berlin)"),
        ("*:0/5", "2026-11-16 00:05:00", "Every hour at minute 0 and every 5 from there"),
        ("@1900000000", "2030-03-17 17:46:40", "Once at 2030-03-17 17:46:40 UTC"),
        ("Tue *-*-8..14 9:0", "2026-12-08 09:00:00", "At 09:00 on Tue, only if it is day 8 to 14"),
    ],
)
def test_events_in_instants_and_words(event: str, first: str, words: str) -> None:
    schedule = calendar_schedule(event, load_zone("UTC"))
    assert schedule is not None
    assert (ours(event, 1), schedule.words()) == ([first], words)


@pytest.mark.parametrize("event", ACCEPTED)
def test_accepted(event: str) -> None:
    assert parse_calendar(event)[0] is not None


@pytest.mark.parametrize("event", REFUSED)
def test_refused_at_a_place_inside_the_text(event: str) -> None:
    parsed, faults = parse_calendar(event)
    assert parsed is None
    assert all(0 <= fault.start <= fault.end <= len(event) and fault.message for fault in faults)
    assert faults


@pytest.mark.skipif(SYSTEMD is None, reason="systemd is not installed")
@pytest.mark.parametrize("event", [*ACCEPTED, *(event for event in REFUSED if event)])
def test_systemd_agrees(event: str) -> None:
    if event.endswith(" EST") and not Path("/usr/share/zoneinfo/EST").exists():
        pytest.skip("this machine has no zones of old names")  # a package of its own in Debian 13
    command = [SYSTEMD or "", "calendar", f"--base-time={BASE}", "--iterations=6", event]
    done = subprocess.run(command, capture_output=True, text=True, env={"TZ": "UTC"}, timeout=20, check=False)
    if event in REFUSED:
        assert done.returncode != 0
        return
    theirs = re.findall(r"(?:Next elapse|Iter(?:\.|ation) #\d+): \w+ (\S+ \S+) UTC", done.stdout)
    assert (done.returncode, ours(event, 6)) == (0, theirs)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="MonTueFri0123456789*-~:/.,@ UTCdaily\t\x00é", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    event, faults = parse_calendar(text)
    assert (event is None) == bool(faults)
    if event is not None:
        schedule = calendar_schedule(text, load_zone("Europe/Berlin"))
        assert schedule is not None
        assert schedule.words()
        found = schedule.upcoming(BASE_MS, 3)
        assert found == sorted(set(found))
