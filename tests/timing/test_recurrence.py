"""Recurrence rules against a library's, and what a rule may not ask for."""

from __future__ import annotations

from datetime import date, datetime
from itertools import takewhile
from random import Random

import pytest

from chronex.timing.recurrence import RecurrenceError, StepBudget, read_recurrence, recurring_days

EPOCH = date(1970, 1, 1)
BEGIN, END = date(2025, 3, 1), date(2030, 1, 1)


def number(day: date) -> int:
    return (day - EPOCH).days


def days_of(rule: str, first: date, begin: date = BEGIN, end: date = END, steps: int = 1_000_000) -> list[date]:
    read = read_recurrence(rule, number(first))
    found = recurring_days(read, number(first), number(begin), number(end), StepBudget(steps))
    return [date.fromordinal(day + EPOCH.toordinal()) for day in found]


def random_rule(random: Random) -> str:
    frequency = random.choice(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"])
    parts = [f"FREQ={frequency}"]

    def numbers(name: str, choice: list[int], count: int) -> None:
        parts.append(f"{name}={','.join(map(str, random.sample(choice, count)))}")

    if random.random() < 0.5:
        numbers("INTERVAL", [1, 2, 3, 5], 1)
    # One rule for the days: the library walks to the year 9999 where two of them never meet.
    if random.random() < 0.3:
        numbers("BYMONTH", list(range(1, 13)), 2)
    elif random.random() < 0.3 and frequency != "WEEKLY":
        numbers("BYMONTHDAY", [1, 2, 15, 28, 29, 30, 31, -1, -2, -31], 2)
    elif random.random() < 0.2 and frequency == "YEARLY":
        numbers("BYYEARDAY", [1, 60, 100, 366, -1, -366], 2)
    kind = 1.0 if "DAY=" in ";".join(parts) else random.random()
    if kind < 0.3:
        parts.append(
            "BYDAY=" + ",".join(random.sample(["MO", "TU", "WE", "TH", "FR", "SA", "SU"], random.choice([1, 2, 3])))
        )
    elif kind < 0.5 and frequency in ("MONTHLY", "YEARLY"):
        parts.append("BYDAY=" + ",".join(random.sample(["1MO", "-1FR", "2TU", "-2SU", "5WE"], 2)))
    if random.random() < 0.2 and len(parts) > 2:
        parts.append("BYSETPOS=" + random.choice(["1", "-1", "1,-1", "2"]))
    if random.random() < 0.3:
        parts.append("WKST=" + random.choice(["MO", "SU", "WE"]))
    if random.random() < 0.3:
        numbers("COUNT", [1, 5, 40], 1)
    elif random.random() < 0.3:
        parts.append("UNTIL=20281015T000000")
    return ";".join(parts)


@pytest.mark.parametrize("seed", range(3))
def test_the_days_are_those_of_the_library(seed: int) -> None:
    rrule = pytest.importorskip("dateutil.rrule")
    random = Random(seed)
    for _ in range(40):
        rule, first = (
            random_rule(random),
            date(random.choice([2019, 2024]), random.randint(1, 12), random.randint(1, 28)),
        )
        start = datetime.combine(first, datetime.min.time())
        within = takewhile(lambda moment: moment.date() <= END, rrule.rrulestr(rule, dtstart=start))
        assert days_of(rule, first) == [moment.date() for moment in within if moment.date() >= BEGIN], rule


REFUSED = {
    "FREQ=SECONDLY;COUNT=1000000000": "FREQ=SECONDLY",
    "FREQ=HOURLY": "FREQ=HOURLY",
    "": "FREQ=",
    "FREQ=DAILY;INTERVAL=0": "out of range",
    "FREQ=DAILY;BYHOUR=1,2": "BYHOUR is not followed",
    "FREQ=YEARLY;BYWEEKNO=20": "BYWEEKNO is not followed",
    "FREQ=DAILY;BYMONTHDAY=99": "out of range",
    "FREQ=DAILY;BYMONTH=x": "no list of numbers",
    "FREQ=DAILY;BYMONTH=" + ",".join(["1"] * 801): "BYMONTH names 801 numbers, and at most 800",
    "FREQ=WEEKLY;BYDAY=2MO": "a numbered weekday",
    "FREQ=DAILY;UNTIL=soon": "no date",
    "FREQ=DAILY;COUNT=99999999999999999999": "no list of numbers",
}


@pytest.mark.parametrize("rule", REFUSED)
def test_what_is_not_followed_is_refused_with_its_reason(rule: str) -> None:
    with pytest.raises(RecurrenceError, match=REFUSED[rule]):
        days_of(rule, BEGIN)


def test_a_billion_recurrences_cost_no_more_than_the_days_that_are_asked_for() -> None:
    assert len(days_of("FREQ=DAILY", date(1, 1, 1), steps=4_000)) == (END - BEGIN).days + 1
    assert days_of("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", date(1, 1, 1), steps=4_000) == []
    with pytest.raises(RecurrenceError, match="too often"):
        days_of("FREQ=DAILY;COUNT=999999999", date(1, 1, 1), steps=50_000)
