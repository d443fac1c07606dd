"""What a clock change does to a schedule: one row for each rule and zone, worked out by hand.

A missing time runs at the end of the gap, several become one. A doubled time runs on the first pass, and on the
second too when the seconds, minutes or hours have a star, a range or a step.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice, pairwise

import pytest

import chronex
from chronex.timing.dst import DstPolicy
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import load_zone

Row = tuple[str, str, str, str]

# (zone, expression, from, the runs that follow)
ROWS: list[Row] = [
    # New York, 8 March 2026: 02:00 becomes 03:00
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00-05:00", "03-08T03:00-04:00 03-09T02:30-04:00"),
    ("America/New_York", "0 30 2 * * *", "2026-03-07T12:00-05:00", "03-08T03:00-04:00 03-09T02:30-04:00"),
    ("America/New_York", "15 30 2 * * *", "2026-03-07T12:00-05:00", "03-08T03:00-04:00 03-09T02:30:15-04:00"),
    ("America/New_York", "15,45 2 * * *", "2026-03-07T12:00-05:00", "03-08T03:00-04:00 03-09T02:15-04:00"),
    ("America/New_York", "0 2,3 * * *", "2026-03-08T01:00-05:00", "03-08T03:00-04:00 03-09T02:00-04:00"),
    ("America/New_York", "0 3 * * *", "2026-03-08T01:00-05:00", "03-08T03:00-04:00 03-09T03:00-04:00"),
    ("America/New_York", "*/30 * * * *", "2026-03-08T01:00-05:00", "03-08T01:30-05:00 03-08T03:00-04:00 03-08T03:30-04:00"),
    ("America/New_York", "30 * * * *", "2026-03-08T01:00-05:00", "03-08T01:30-05:00 03-08T03:00-04:00 03-08T03:30-04:00"),
    ("America/New_York", "0 * * * *", "2026-03-08T00:30-05:00", "03-08T01:00-05:00 03-08T03:00-04:00 03-08T04:00-04:00"),
    ("America/New_York", "45 1-3 * * *", "2026-03-08T01:00-05:00", "03-08T01:45-05:00 03-08T03:00-04:00 03-08T03:45-04:00"),
    ("America/New_York", "30 2 8 3 *", "2026-01-01T00:00-05:00", "2026-03-08T03:00-04:00 2027-03-08T02:30-05:00"),
    ("America/New_York", "30 2 * * SUN#2", "2026-03-01T00:00-05:00", "03-08T03:00-04:00 04-12T02:30-04:00"),
    # New York, 1 November 2026: 02:00 becomes 01:00
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00-04:00", "11-01T01:30-04:00 11-02T01:30-05:00"),
    ("America/New_York", "0 1 * * *", "2026-10-31T12:00-04:00", "11-01T01:00-04:00 11-02T01:00-05:00"),
    ("America/New_York", "0 2 * * *", "2026-10-31T12:00-04:00", "11-01T02:00-05:00 11-02T02:00-05:00"),
    ("America/New_York", "0 0,30 1,2 * * *", "2026-11-01T00:00-04:00", "11-01T01:00-04:00 11-01T01:30-04:00 11-01T02:00-05:00"),
    ("America/New_York", "*/30 * * * *", "2026-11-01T00:45-04:00", "11-01T01:00-04:00 11-01T01:30-04:00 11-01T01:00-05:00 11-01T01:30-05:00 11-01T02:00-05:00"),
    ("America/New_York", "0 1-5 * * *", "2026-11-01T00:00-04:00", "11-01T01:00-04:00 11-01T01:00-05:00 11-01T02:00-05:00"),
    ("America/New_York", "0 30 1-9 * * *", "2026-11-01T00:00-04:00", "11-01T01:30-04:00 11-01T01:30-05:00 11-01T02:30-05:00"),
    ("America/New_York", "0,30-31 1 * * *", "2026-11-01T00:00-04:00", "11-01T01:00-04:00 11-01T01:30-04:00 11-01T01:31-04:00 11-01T01:00-05:00"),
    ("America/New_York", "30 1 1 11 *", "2026-01-01T00:00-05:00", "2026-11-01T01:30-04:00 2027-11-01T01:30-04:00"),
    ("America/New_York", "30 1 1-31 * *", "2026-10-31T12:00-04:00", "11-01T01:30-04:00 11-02T01:30-05:00"),
    ("America/New_York", "30 1 * 1-12 0-6", "2026-10-31T12:00-04:00", "11-01T01:30-04:00 11-02T01:30-05:00"),
    ("America/New_York", "@hourly", "2026-11-01T00:30-04:00", "11-01T01:00-04:00 11-01T01:00-05:00 11-01T02:00-05:00"),
    # Lord Howe: half an hour; 4 October 2026 02:00 becomes 02:30, 5 April 02:00 becomes 01:30
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00+10:30", "10-04T02:30+11:00 10-05T02:15+11:00"),
    ("Australia/Lord_Howe", "*/15 2 * * *", "2026-10-03T12:00+10:30", "10-04T02:30+11:00 10-04T02:45+11:00 10-05T02:00+11:00"),
    ("Australia/Lord_Howe", "0 3 * * *", "2026-10-03T12:00+10:30", "10-04T03:00+11:00 10-05T03:00+11:00"),
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00+11:00", "04-05T01:45+11:00 04-06T01:45+10:30"),
    ("Australia/Lord_Howe", "15 1 * * *", "2026-04-04T12:00+11:00", "04-05T01:15+11:00 04-06T01:15+10:30"),
    ("Australia/Lord_Howe", "*/15 1 * * *", "2026-04-05T01:10+11:00", "04-05T01:15+11:00 04-05T01:30+11:00 04-05T01:45+11:00 04-05T01:30+10:30 04-05T01:45+10:30"),
    ("Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:40+11:00", "04-05T01:45+11:00 04-05T01:30+10:30 04-05T01:45+10:30 04-05T02:00+10:30"),
    # midnight is missing: Amman 26 March 2021, Havana 8 March 2026, Sao Paulo 4 November 2018, Beirut 29 March 2026
    ("Asia/Amman", "0 0 * * *", "2021-03-25T12:00+02:00", "03-26T01:00+03:00 03-27T00:00+03:00"),
    ("Asia/Amman", "30 0 * * *", "2021-03-25T12:00+02:00", "03-26T01:00+03:00 03-27T00:30+03:00"),
    ("Asia/Amman", "@daily", "2021-03-25T12:00+02:00", "03-26T01:00+03:00 03-27T00:00+03:00"),
    ("Asia/Amman", "0 0 * * FRI", "2021-03-25T12:00+02:00", "03-26T01:00+03:00 04-02T00:00+03:00"),
    ("America/Havana", "0 0 * * *", "2026-03-07T12:00-05:00", "03-08T01:00-04:00 03-09T00:00-04:00"),
    ("America/Havana", "*/20 * * * *", "2026-03-07T23:30-05:00", "03-07T23:40-05:00 03-08T01:00-04:00 03-08T01:20-04:00"),
    ("America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00-03:00", "11-04T01:00-02:00 11-05T00:00-02:00"),
    ("America/Sao_Paulo", "0 0 * * SUN", "2018-11-03T12:00-03:00", "11-04T01:00-02:00 11-11T00:00-02:00"),
    ("Asia/Beirut", "0 0 * * *", "2026-03-28T12:00+02:00", "03-29T01:00+03:00 03-30T00:00+03:00"),
    ("Asia/Beirut", "0 0-2 * * *", "2026-03-28T12:00+02:00", "03-29T01:00+03:00 03-29T02:00+03:00"),
    # midnight is doubled: Amman 29 October 2021, Havana 2 November 2025 (in 2026 it was not set back)
    ("Asia/Amman", "0 0 * * *", "2021-10-28T12:00+03:00", "10-29T00:00+03:00 10-30T00:00+02:00"),
    ("Asia/Amman", "30 0 * * *", "2021-10-28T12:00+03:00", "10-29T00:30+03:00 10-30T00:30+02:00"),
    ("America/Havana", "*/30 0 * * *", "2025-11-01T12:00-04:00", "11-02T00:00-04:00 11-02T00:30-04:00 11-02T00:00-05:00 11-02T00:30-05:00"),
    # the hour before midnight is doubled: Sao Paulo 16 February 2019, Santiago 4 April 2026, Beirut 24 October 2026
    ("America/Sao_Paulo", "30 23 * * *", "2019-02-16T12:00-02:00", "02-16T23:30-02:00 02-17T23:30-03:00"),
    ("America/Sao_Paulo", "0 0 * * *", "2019-02-16T12:00-02:00", "02-17T00:00-03:00 02-18T00:00-03:00"),
    ("America/Santiago", "*/30 23 * * *", "2026-04-04T12:00-03:00", "04-04T23:00-03:00 04-04T23:30-03:00 04-04T23:00-04:00 04-04T23:30-04:00 04-05T23:00-04:00"),
    ("America/Santiago", "30 23 * * SAT", "2026-04-04T12:00-03:00", "04-04T23:30-03:00 04-11T23:30-04:00"),
    ("America/Santiago", "0 0 * * *", "2026-04-04T12:00-03:00", "04-05T00:00-04:00 04-06T00:00-04:00"),
    ("America/Santiago", "0 0 * * *", "2026-09-05T12:00-04:00", "09-06T01:00-03:00 09-07T00:00-03:00"),
    ("Asia/Beirut", "0,30 23 * * *", "2026-10-24T12:00+03:00", "10-24T23:00+03:00 10-24T23:30+03:00 10-25T23:00+02:00"),
    # a day is missing: Apia went from 29 to 31 December 2011; the 30th was a Friday
    ("Pacific/Apia", "0 12 * * *", "2011-12-29T00:00-10:00", "2011-12-29T12:00-10:00 2011-12-31T00:00+14:00 2011-12-31T12:00+14:00"),
    ("Pacific/Apia", "0 0 * * *", "2011-12-28T12:00-10:00", "2011-12-29T00:00-10:00 2011-12-31T00:00+14:00 2012-01-01T00:00+14:00"),
    ("Pacific/Apia", "0 9 30 12 *", "2011-01-01T00:00+00:00", "2011-12-31T00:00+14:00 2012-12-30T09:00+14:00"),
    ("Pacific/Apia", "0 9 * * FRI", "2011-12-29T00:00-10:00", "2011-12-31T00:00+14:00 2012-01-06T09:00+14:00"),
    ("Pacific/Apia", "0 * * * *", "2011-12-29T22:30-10:00", "2011-12-29T23:00-10:00 2011-12-31T00:00+14:00 2011-12-31T01:00+14:00"),
    ("Pacific/Apia", "*/30 * 30 * *", "2011-12-29T00:00-10:00", "2011-12-31T00:00+14:00 2012-01-30T00:00+14:00"),
    # Dublin counts winter as the exception; the wall is what matters: 29 March and 25 October 2026
    ("Europe/Dublin", "30 1 * * *", "2026-03-28T12:00+00:00", "03-29T02:00+01:00 03-30T01:30+01:00"),
    ("Europe/Dublin", "30 1 * * *", "2026-10-24T12:00+01:00", "10-25T01:30+01:00 10-26T01:30+00:00"),
    ("Europe/Dublin", "30 */1 * * *", "2026-10-25T01:00+01:00", "10-25T01:30+01:00 10-25T01:30+00:00 10-25T02:30+00:00"),
    # Casablanca sets its clock for Ramadan: 15 February 2026 03:00 becomes 02:00, 22 March 02:00 becomes 03:00
    ("Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00+01:00", "02-15T02:30+01:00 02-16T02:30+00:00"),
    ("Africa/Casablanca", "*/30 2 * * *", "2026-02-14T12:00+01:00", "02-15T02:00+01:00 02-15T02:30+01:00 02-15T02:00+00:00 02-15T02:30+00:00"),
    ("Africa/Casablanca", "30 2 * * *", "2026-03-21T12:00+00:00", "03-22T03:00+01:00 03-23T02:30+01:00"),
    # Monrovia moved its clock by 44 minutes and 30 seconds at the midnight of 7 January 1972
    ("Africa/Monrovia", "30 0 * * *", "1972-01-06T12:00:00-00:44:30", "1972-01-07T00:44:30+00:00 1972-01-08T00:30+00:00"),
    ("Africa/Monrovia", "* * * * *", "1972-01-06T23:58:00-00:44:30", "1972-01-06T23:59:00-00:44:30 1972-01-07T00:44:30+00:00 1972-01-07T00:45+00:00"),
    # no clock changes
    ("UTC", "30 2 * * *", "2026-03-08T00:00+00:00", "03-08T02:30+00:00 03-09T02:30+00:00"),
    ("Asia/Tokyo", "30 2 * * *", "2026-03-08T00:00+09:00", "03-08T02:30+09:00 03-09T02:30+09:00"),
    ("Asia/Kathmandu", "15 2 * * *", "2026-03-08T00:00+05:45", "03-08T02:15+05:45 03-09T02:15+05:45"),
]  # fmt: skip

POSIX: list[Row] = [
    # a missing minute is skipped; a doubled one runs on the first pass, whatever the fields
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00-05:00", "03-09T02:30-04:00 03-10T02:30-04:00"),
    ("America/New_York", "0,30 * * * *", "2026-03-08T01:15-05:00", "03-08T01:30-05:00 03-08T03:00-04:00 03-08T03:30-04:00"),
    ("America/New_York", "15 * * * *", "2026-03-08T01:00-05:00", "03-08T01:15-05:00 03-08T03:15-04:00"),
    ("America/New_York", "30 2 8 3 *", "2026-01-01T00:00-05:00", "2027-03-08T02:30-05:00 2028-03-08T02:30-05:00"),
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00-04:00", "11-01T01:30-04:00 11-02T01:30-05:00"),
    ("America/New_York", "30 * * * *", "2026-11-01T00:00-04:00", "11-01T00:30-04:00 11-01T01:30-04:00 11-01T02:30-05:00"),
    ("America/New_York", "30 1-5 * * *", "2026-11-01T00:00-04:00", "11-01T01:30-04:00 11-01T02:30-05:00"),
    ("Asia/Amman", "0 0 * * *", "2021-03-25T12:00+02:00", "03-27T00:00+03:00 03-28T00:00+03:00"),
    ("America/Santiago", "30 23 * * *", "2026-04-04T12:00-03:00", "04-04T23:30-03:00 04-05T23:30-04:00"),
    ("Australia/Lord_Howe", "45 * * * *", "2026-04-05T01:00+11:00", "04-05T01:45+11:00 04-05T02:45+10:30"),
    ("Pacific/Apia", "0 12 * * *", "2011-12-29T00:00-10:00", "2011-12-29T12:00-10:00 2011-12-31T12:00+14:00"),
    ("UTC", "30 2 * * *", "2026-03-07T12:00+00:00", "03-08T02:30+00:00 03-09T02:30+00:00"),
]  # fmt: skip


def instants(start: str, runs: str) -> list[datetime]:
    """`03-08T03:00-04:00` takes its year from the start."""
    texts = [run if run[4] == "-" else f"{start[:5]}{run}" for run in runs.split()]
    return [datetime.fromisoformat(text) for text in texts]


def shown(moments: list[datetime]) -> list[str]:
    return [moment.isoformat() for moment in moments]


@pytest.mark.parametrize(("dialect", "row"), [("chronex", row) for row in ROWS] + [("posix", row) for row in POSIX])
def test_a_clock_change_does_what_the_table_says(dialect: str, row: Row) -> None:
    zone, text, start, runs = row
    expression = chronex.parse(text, dialect=dialect, tz=zone)
    expected = instants(start, runs)
    after = datetime.fromisoformat(start)
    assert shown(list(islice(expression.upcoming(after), len(expected)))) == shown(expected)
    stepped: list[datetime] = []
    for _ in expected:
        found = expression.next(stepped[-1] if stepped else after)
        assert found is not None
        stepped.append(found)
    assert shown(stepped) == shown(expected)
    for earlier, later in pairwise(expected):
        back = expression.previous(later)
        assert back is not None
        assert back.isoformat() == earlier.isoformat()
    for moment in expected:
        assert expression.matches(moment)
        assert (expression.next(moment, inclusive=True) or after).isoformat() == moment.isoformat()
        assert (expression.previous(moment, inclusive=True) or after).isoformat() == moment.isoformat()


@pytest.mark.parametrize(
    ("policy", "text", "start", "runs"),
    [
        (DstPolicy("skip", "first"), "30 2 * * *", "2026-03-07T12:00-05:00", "03-09T02:30-04:00"),
        (DstPolicy("end", "first"), "30 2 * * *", "2026-03-07T12:00-05:00", "03-08T03:00-04:00"),
        (DstPolicy("skip", "both"), "30 1 * * *", "2026-11-01T00:00-04:00", "11-01T01:30-04:00 11-01T01:30-05:00"),
        (DstPolicy("skip", "first"), "*/30 1 * * *", "2026-11-01T01:15-04:00", "11-01T01:30-04:00 11-02T01:00-05:00"),
        (
            DstPolicy("skip", "by-kind"),
            "*/30 1 * * *",
            "2026-11-01T01:15-04:00",
            "11-01T01:30-04:00 11-01T01:00-05:00",
        ),
        (DstPolicy("skip", "by-kind"), "30 1 * * *", "2026-11-01T00:00-04:00", "11-01T01:30-04:00 11-02T01:30-05:00"),
        (
            DstPolicy("skip", "first"),
            "*/20 2-3 * * *",
            "2026-03-08T01:30-05:00",
            "03-08T03:00-04:00 03-08T03:20-04:00",
        ),
    ],
)
def test_a_policy_of_its_own_overrides_the_dialect(policy: DstPolicy, text: str, start: str, runs: str) -> None:
    whole = Occurrences(chronex.parse(text).meaning, load_zone("America/New_York"), policy)
    expected = [int(moment.timestamp() * 1000) for moment in instants(start, runs)]
    begin = int(datetime.fromisoformat(start).timestamp() * 1000)
    assert list(whole.between(begin, expected[-1])) == expected
    assert [whole.nearest(at, -1) for at in expected] == expected


@pytest.mark.parametrize(
    ("start", "minutes"),
    [("2026-03-08T01:59:59-05:00", 1), ("2026-11-01T01:59:59-04:00", 1), ("2011-12-29T23:59:59-10:00", 1)],
)
def test_every_minute_stays_every_minute_over_a_clock_change(start: str, minutes: int) -> None:
    zone = "Pacific/Apia" if start.startswith("2011") else "America/New_York"
    moments = list(islice(chronex.parse("* * * * *", tz=zone).upcoming(datetime.fromisoformat(start)), 180))
    gaps = {later.timestamp() - earlier.timestamp() for earlier, later in pairwise(moments)}
    assert gaps == {minutes * 60.0}


def test_the_second_pass_is_marked_as_such() -> None:
    runs = list(
        chronex.parse("*/30 1 * * *", tz="America/New_York").upcoming(
            datetime.fromisoformat("2026-11-01T00:00-04:00"), limit=5
        )
    )
    assert [(m.hour, m.minute, m.fold) for m in runs] == [(1, 0, 0), (1, 30, 0), (1, 0, 1), (1, 30, 1), (1, 0, 0)]
    assert [m.utcoffset() for m in runs[:4]] == [timedelta(hours=h) for h in (-4, -4, -5, -5)]
