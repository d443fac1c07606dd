"""The rules of the sources, against those who know them: cronsim for Debian's cron, systemd for its own calendar."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim

from chronex.imports.oracle import CRON, KUBERNETES, CronRules, five_years, instants, pattern_of
from chronex.timing.zones import load_zone

START, END = five_years(int(datetime(2027, 1, 1, tzinfo=UTC).timestamp()))
ZONES = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca", "UTC"]
TEXTS = [
    "* * * * *", "*/20 * * * *", "30 2 * * *", "0,30 1,2 * * *", "15 1-5 * * *", "*/30 2 * * *", "0 * * * *",
    "0 0 13 * FRI", "0 0 */2 * MON", "0 0 1-7 * *", "5 0 * * SUN", "0 9 * * MON-FRI", "@weekly", "0 0 29 2 *",
    "30 1 * * 7", "0 3 1,15 * 1", "59 23 31 12 *", "0 12 * JAN-MAR,DEC *", "10-20/5 4 * * *",
]  # fmt: skip


def fired(text: str, zone: str, rules: CronRules = CRON, start: int = START, end: int = END) -> list[int]:
    pattern = pattern_of(text, rules)
    assert pattern is not None
    return list(instants(pattern, rules, load_zone(zone), start, end))


# After the half hour that Lord Howe repeats, cronsim misses the 02:00 that comes once, at 15:30 UTC.
MISSED_BY_CRONSIM = ("*/30 2 * * *", "Australia/Lord_Howe")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("text", TEXTS)
def test_cron_fires_as_cronsim_says_around_every_clock_change(text: str, zone: str) -> None:
    if (text, zone) == MISSED_BY_CRONSIM:
        pytest.skip("cronsim misses an instant here")
    changes = [change.at for change in load_zone(zone).changes(START, END)] or [START + 86_400]
    for at in changes[:4]:
        begin, end = at - 2 * 86_400, at + (3 if text.startswith("*") else 40) * 86_400
        assert fired(text, zone, start=begin, end=end) == sorted(set(by_cronsim(text, zone, begin, end)))


def by_cronsim(text: str, zone: str, begin: int, end: int) -> Iterator[int]:
    plain = {"@weekly": "0 0 * * 0"}.get(text, text)
    for moment in CronSim(plain, datetime.fromtimestamp(begin - 1, ZoneInfo(zone))):
        if moment.timestamp() >= end:
            return
        yield int(moment.timestamp())


@pytest.mark.parametrize(
    ("text", "day", "cron", "kubernetes"),
    [
        ("30 2 * * *", "2027-03-28", ["01:00"], []),
        ("30 2 * * *", "2027-10-31", ["00:30"], ["00:30", "01:30"]),
        ("30 1-3 * * *", "2027-10-31", ["23:30", "00:30", "02:30"], ["23:30", "00:30", "01:30", "02:30"]),
        ("0 */2 * * *", "2027-10-31", None, None),
    ],
)
def test_what_a_clock_change_in_berlin_does(
    text: str, day: str, cron: list[str] | None, kubernetes: list[str] | None
) -> None:
    begin = int(datetime.fromisoformat(f"{day}T00:00:00").replace(tzinfo=ZoneInfo("Europe/Berlin")).timestamp())
    for host, expected in ((CRON, cron), (KUBERNETES, kubernetes)):
        times = [
            datetime.fromtimestamp(second, UTC).strftime("%H:%M")
            for second in fired(text, "Europe/Berlin", host, begin, begin + 25 * 3600)
            if datetime.fromtimestamp(second, ZoneInfo("Europe/Berlin")).date().isoformat() == day
        ]
        assert expected is None or times == expected, host


def test_a_stepped_day_beside_a_weekday_means_both_to_cron_and_either_to_kubernetes() -> None:
    both, either = (list(islice(fired("0 0 */2 * MON", "UTC", host), 60)) for host in (CRON, KUBERNETES))
    assert len({datetime.fromtimestamp(second, UTC).weekday() for second in both}) == 1
    assert len({datetime.fromtimestamp(second, UTC).weekday() for second in either}) == 7


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "* 5-3 * * *", "a * * * *", "*/0 * * * *", "@reboot"])
def test_what_the_source_refuses_is_no_pattern(text: str) -> None:
    assert pattern_of(text, CRON) is None
