"""Chronex beside cronsim and croniter on what all of them can read.

Every difference is in the table ACCEPTED, with its reason and an example that is run: a row that no longer tells
the truth fails. Random expressions outside the table must agree to the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterError, croniter
from cronsim import CronSim, CronSimError

import chronex
from tests.timing import oracle
from tests.timing.oracle import ANY, DAY_NAMES, MONTH_NAMES, Days, Spec

NEW_YORK = ZoneInfo("America/New_York")
NUMBERS = {name: n + 1 for n, name in enumerate(MONTH_NAMES)} | {name: n for n, name in enumerate(DAY_NAMES)}
TOPS = (59, 59, 23, 31, 12, 7)


def cronsim(text: str, start: datetime, count: int) -> list[datetime]:
    return list(islice(CronSim(text, start), count))


def croniter_(text: str, start: datetime, count: int) -> list[datetime]:
    runs = croniter(text, start, second_at_beginning=True)
    return [runs.get_next(datetime) for _ in range(count)]


PEERS: dict[str, Callable[[str, datetime, int], list[datetime]]] = {"cronsim": cronsim, "croniter": croniter_}


def ours(text: str, start: datetime, count: int) -> list[datetime]:
    return list(chronex.parse(text, tz=start.tzinfo).upcoming(start, limit=count))


# -- what an expression is made of ----------------------------------------------------------------------------


class Part(NamedTuple):
    """One element of a list: `first[-last][/step]`; `top` is the largest value of the field."""

    top: int
    first: int
    last: int | None
    step: int | None


def parts(spec: Spec) -> Iterator[Part]:
    fields = spec.text.upper().split()
    for top, field in zip(TOPS[-len(fields) :], fields, strict=True):
        for element in field.split(","):
            body, _, step = element.partition("/")
            first, _, last = body.partition("-")
            try:
                start = int(NUMBERS.get(first, first))
                end = int(NUMBERS.get(last, last)) if last else None
            except ValueError:
                continue  # a star, or a rule such as L or 15W
            yield Part(top, start, end, int(step) if step else None)


def both_days(spec: Spec) -> bool:
    return spec.dom != ANY and spec.dow != ANY


def stepped_star_beside_other_day(spec: Spec) -> bool:
    dom, _, dow = spec.text.split()[-3:]
    return both_days(spec) and "*" in dom + dow


def full_field_beside_other_day(spec: Spec) -> bool:
    days, weekdays = (named_values(field) for field in (spec.dom, spec.dow))
    return both_days(spec) and (len(days) == 31 or len(weekdays) == 7)


def named_values(days: Days) -> frozenset[int]:
    return days.values.union(*(part.values for part in days.parts if part.kind == "set"))


def rule_beside_other_day(spec: Spec) -> bool:
    return both_days(spec) and (spec.dom.kind != "set" or spec.dow.kind != "set")


def weekday_beside_one_of_its_own(spec: Spec) -> bool:
    named = [part for part in spec.dow.parts if part.kind == "set"]
    return any(part.values & named[0].values for part in spec.dow.parts if named and part.kind == "nth-of")


def range_of_one(spec: Spec) -> bool:
    return any(p.last == p.first or (p.top, p.first, p.last) == (7, 7, 0) for p in parts(spec))


def range_of_one_with_step(spec: Spec) -> bool:
    return any(p.last == p.first and p.step for p in parts(spec))


def wrapped_range_with_step(spec: Spec) -> bool:
    return any(p.last is not None and p.last < p.first and p.step for p in parts(spec))


def start_with_long_step(spec: Spec) -> bool:
    return any(p.last is None and p.step and p.first + p.step > p.top - (p.top == 7) for p in parts(spec))


def weekday_start_with_step(spec: Spec) -> bool:
    return any(p.top == 7 and p.last is None and p.step for p in parts(spec))


def nearest_weekday_to_a_late_day(spec: Spec) -> bool:
    return any(days.kind == "nearest" and days.number > 28 for days in (spec.dom, *spec.dom.parts))


# -- the table ------------------------------------------------------------------------------------------------


class Difference(NamedTuple):
    peer: str
    name: str
    reason: str
    text: str
    start: str
    runs: str  # ours
    theirs: str
    covers: Callable[[Spec], bool] = lambda _: False  # which random expressions it explains


ACCEPTED = [
    Difference(
        "cronsim", "star-step-days", "only a lone * is the wildcard of the OR rule; cronsim takes any leading * for one and joins by AND, as Vixie does",
        "0 0 */10 * MON", "2026-02-01T12:00", "2026-02-02T00:00 2026-02-09T00:00", "2026-05-11T00:00 2026-06-01T00:00", stepped_star_beside_other_day,
    ),
    Difference(
        "croniter", "full-day-field", "a list of all weekdays still restricts, so that with the other day field it means every day; croniter drops it beside a stepped star",
        "0 0 */10 * 0-3,4-6", "2026-02-01T12:00", "2026-02-02T00:00 2026-02-03T00:00", "2026-02-11T00:00 2026-02-21T00:00", full_field_beside_other_day,
    ),
    Difference(
        "cronsim", "one-value-range-with-step", "a-a/n is one value; cronsim reads it as a/n",
        "23-23/7 * * * *", "2026-02-01T12:00", "2026-02-01T12:23 2026-02-01T13:23", "2026-02-01T12:23 2026-02-01T12:30", range_of_one_with_step,
    ),
    Difference(
        "croniter", "one-value-range", "a-a is one value; croniter reads it as the whole field",
        "5-5 * * * *", "2026-02-01T12:00", "2026-02-01T12:05 2026-02-01T13:05", "2026-02-01T12:01 2026-02-01T12:02", range_of_one,
    ),
    Difference(
        "croniter", "wrapped-range-with-step", "a step keeps its phase over the wrap (23, 1, 3); croniter goes on with 2",
        "0 23-3/2 * * *", "2026-02-01T12:00", "2026-02-01T23:00 2026-02-02T01:00 2026-02-02T03:00", "2026-02-01T23:00 2026-02-02T02:00 2026-02-02T23:00", wrapped_range_with_step,
    ),
    Difference(
        "croniter", "step-beyond-the-end", "n/step with nothing left after n is n alone; croniter reads it as */step",
        "0 23/25 * * *", "2026-02-01T12:00", "2026-02-01T23:00 2026-02-02T23:00", "2026-02-02T00:00 2026-02-03T00:00", start_with_long_step,
    ),
    Difference(
        "croniter", "weekday-step-to-sunday", "n/step of weekdays goes up to 7, which is Sunday; croniter stops at 6",
        "0 0 * * 3/2", "2026-02-05T00:00", "2026-02-06T00:00 2026-02-08T00:00", "2026-02-06T00:00 2026-02-11T00:00", weekday_start_with_step,
    ),
    Difference(
        "croniter", "rule-beside-other-day", "L, W and # in one day field are joined to the other by OR as well; croniter drops or requires one of them",
        "0 0 15W * FRI", "2026-02-01T12:00", "2026-02-06T00:00 2026-02-13T00:00", "2026-02-16T00:00 2026-03-16T00:00", rule_beside_other_day,
    ),
    Difference(
        "croniter", "nearest-weekday-beyond-the-month", "31W in a month of 30 days is skipped as a plain 31 is; croniter clamps to the end of the month",
        "0 0 31W * *", "2026-04-01T12:00", "2026-05-29T00:00 2026-07-31T00:00", "2026-04-30T00:00 2026-05-29T00:00", nearest_weekday_to_a_late_day,
    ),
    Difference(
        "croniter", "weekday-beside-one-of-its-own", "a list has all of its elements, so that FRI beside FRI#4 is every Friday; croniter keeps the fourth alone",
        "0 9 * * FRI,FRI#4", "2027-01-01T00:00", "2027-01-01T09:00 2027-01-08T09:00", "2027-01-22T09:00 2027-02-26T09:00", weekday_beside_one_of_its_own,
    ),
    # clock changes in New York
    Difference(
        "cronsim", "gap-every-hour", "a run of an hourly schedule that falls into the gap happens at its end; cronsim skips it",
        "30 * * * *", "2026-03-08T01:00-05:00", "2026-03-08T01:30-05:00 2026-03-08T03:00-04:00 2026-03-08T03:30-04:00", "2026-03-08T01:30-05:00 2026-03-08T03:30-04:00 2026-03-08T04:30-04:00",
    ),
    Difference(
        "croniter", "gap-every-hour", "a run of an hourly schedule that falls into the gap happens at its end; croniter skips it",
        "30 * * * *", "2026-03-08T01:00-05:00", "2026-03-08T01:30-05:00 2026-03-08T03:00-04:00 2026-03-08T03:30-04:00", "2026-03-08T01:30-05:00 2026-03-08T03:30-04:00 2026-03-08T04:30-04:00",
    ),
    Difference(
        "cronsim", "gap-starred-minutes", "the same for a starred minute within a fixed hour",
        "*/30 2 * * *", "2026-03-08T01:00-05:00", "2026-03-08T03:00-04:00 2026-03-09T02:00-04:00", "2026-03-09T02:00-04:00 2026-03-09T02:30-04:00",
    ),
    Difference(
        "cronsim", "overlap-range", "a range of hours makes an interval, which runs on both passes; for cronsim only a star does",
        "0 1-5 * * *", "2026-11-01T00:30-04:00", "2026-11-01T01:00-04:00 2026-11-01T01:00-05:00", "2026-11-01T01:00-04:00 2026-11-01T02:00-05:00",
    ),
    Difference(
        "croniter", "overlap-fixed-time", "a fixed time runs once in a doubled hour, on the first pass; croniter runs it twice",
        "30 1 * * *", "2026-11-01T00:30-04:00", "2026-11-01T01:30-04:00 2026-11-02T01:30-05:00", "2026-11-01T01:30-04:00 2026-11-01T01:30-05:00",
    ),
]  # fmt: skip


def start_of(row: Difference) -> datetime:
    moment = datetime.fromisoformat(row.start)
    return moment.astimezone(NEW_YORK) if moment.tzinfo else moment.replace(tzinfo=UTC)


def shown(moments: list[datetime]) -> str:
    return " ".join(m.isoformat(timespec="minutes").removesuffix("+00:00") for m in moments)


@pytest.mark.parametrize("row", ACCEPTED, ids=lambda row: f"{row.peer}-{row.name}")
def test_a_difference_in_the_table_is_there_and_has_a_reason(row: Difference) -> None:
    start, count = start_of(row), len(row.runs.split())
    assert shown(ours(row.text, start, count)) == row.runs
    assert shown(PEERS[row.peer](row.text, start, count)) == row.theirs != row.runs
    assert len(row.reason) > 20


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("chunk", range(4))
def test_random_expressions_outside_the_table_agree(peer: str, chunk: int) -> None:
    explained = [row.covers for row in ACCEPTED if row.peer == peer]
    compared = 0
    for seed in range(chunk * 500, (chunk + 1) * 500):
        rng = Random(seed)
        spec = oracle.random_spec(rng)
        start = datetime.fromtimestamp(rng.randint(10**9, 2 * 10**9), UTC)
        if any(covers(spec) for covers in explained):
            continue
        expected = ours(spec.text, start, 3)
        try:
            theirs = PEERS[peer](spec.text, start, len(expected))
        except (CroniterError, CronSimError):
            continue  # not in the common subset
        assert theirs == expected, (spec.text, start)
        compared += 1
    assert compared > 120


@pytest.mark.parametrize(
    "text", ["30 2 * * *", "15,45 2 * * *", "0 3 * * *", "0 2 * * *", "30 1 * * *", "0,30 1 * * *", "*/30 * * * *", "* * * * *", "0 12 * * SUN"]
)  # fmt: skip
@pytest.mark.parametrize("start", ["2026-03-08T00:45-05:00", "2026-11-01T00:45-04:00"])
def test_fixed_times_and_plain_stars_cross_a_clock_change_as_in_cronsim(text: str, start: str) -> None:
    begin = datetime.fromisoformat(start).astimezone(NEW_YORK)
    assert shown(ours(text, begin, 12)) == shown(cronsim(text, begin, 12))
