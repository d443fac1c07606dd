"""Schedules with calendars against an oracle that walks every day and every instant of a year."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from random import Random
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from chronex.model.calendars import CalendarRules, JobCalendar, OnExcluded
from chronex.model.job import Job
from chronex.text.durations import DAY_MS
from chronex.timing.calendar_days import CalendarDays
from chronex.timing.job_schedule import excluded_instants, moved_from, schedule_of

EPOCH = date(1970, 1, 1)
BEGIN = datetime(2027, 1, 1, tzinfo=UTC)
ZONES = [
    "Europe/Berlin",
    "America/Santiago",
    "Africa/Cairo",
    "Pacific/Chatham",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
]


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def day(text: str) -> int:
    return (date.fromisoformat(text) - EPOCH).days


def days(*spans: str, name: str = "days", **more: object) -> JobCalendar:
    """`days("2027-01-01", "2027-02-01..2027-02-03")`."""
    edges = [day(edge) for span in spans for edge in (span.split("..")[0], span.split("..")[-1])]
    return JobCalendar(name=name, days=tuple(edges), **more)  # type: ignore[arg-type]


# -- the oracle -------------------------------------------------------------------------------------------------


class Oracle:
    """Every question answered by looking at each day and each instant, with Python's own dates and zones."""

    def __init__(self, rules: CalendarRules, zone: str, base: list[int]) -> None:
        self.rules, self.zone, self.base = rules, ZoneInfo(zone), base
        self.workdays: dict[tuple[int, int], list[date]] = {}
        self.images: dict[int, list[int]] = {}
        for instant in base:
            if (image := self.image(instant)) is not None:
                self.images.setdefault(image, []).append(instant)
        self.instants = sorted(self.images)

    def date_of(self, instant: int) -> date:
        return datetime.fromtimestamp(instant / 1000, self.zone).date()

    @staticmethod
    def contains(calendar: JobCalendar, of: date, instant: int | None) -> bool:
        number = (of - EPOCH).days
        spans = zip(calendar.days[::2], calendar.days[1::2], strict=True)
        if any(first <= number <= last for first, last in spans) or of.isoweekday() in calendar.weekdays:
            return True
        times = zip(calendar.times[::2], calendar.times[1::2], strict=True)
        return instant is not None and any(first <= instant // 1000 < last for first, last in times)

    def is_workday(self, of: date) -> bool:
        weekend = {one for calendar in self.rules.excluded for one in calendar.weekdays} or {6, 7}
        if of.isoweekday() in weekend or any(self.contains(one, of, None) for one in self.rules.excluded):
            return False
        return not self.rules.only or any(self.contains(one, of, None) for one in self.rules.only)

    def is_excluded(self, instant: int) -> bool:
        of = self.date_of(instant)
        if any(self.contains(one, of, instant) for one in self.rules.excluded):
            return True
        if self.rules.only and not any(self.contains(one, of, instant) for one in self.rules.only):
            return True
        if not self.rules.workday:
            return False
        month = self.workdays.get((of.year, of.month))
        if month is None:
            dates = (self._same_month(of, number) for number in range(1, 32))
            month = self.workdays[of.year, of.month] = [
                one for one in dates if one is not None and self.is_workday(one)
            ]
        return of not in [month[n - 1 if n > 0 else n] for n in self.rules.workday if 0 < abs(n) <= len(month)]

    @staticmethod
    def _same_month(of: date, number: int) -> date | None:
        try:
            return of.replace(day=number)
        except ValueError:
            return None

    def image(self, instant: int) -> int | None:
        if not self.is_excluded(instant):
            return instant
        if self.rules.on_excluded is OnExcluded.SKIP:
            return None
        step = timedelta(days=1 if self.rules.on_excluded is OnExcluded.NEXT_WORKDAY else -1)
        of = self.date_of(instant)
        for _ in range(62):
            of += step
            if self.is_workday(of):
                moved = self.at_wall(of, datetime.fromtimestamp(instant / 1000, self.zone))
                return None if self.is_excluded(moved) else moved
        return None

    def at_wall(self, of: date, like: datetime) -> int:
        """The first instant that shows the wall time of `like` on that day; in a gap, the first one behind it."""
        wall = datetime.combine(of, like.time().replace(tzinfo=None, fold=0))
        around = (wall + timedelta(days=n) for n in (-1, 1))
        guess = ms(wall.replace(tzinfo=UTC)) - max(
            ms(one.replace(tzinfo=UTC)) - ms(one.replace(tzinfo=self.zone)) for one in around
        )
        while datetime.fromtimestamp(guess / 1000, self.zone).replace(tzinfo=None) < wall:
            guess += 60_000
        return guess


BASES = [
    "0 9 * * *",
    "30 2 * * *",
    "0 0,12 * * *",
    "15 6 1,15 * *",
    "0 18 * * FRI",
    "45 23 L * *",
    "0 7 * * MON-FRI | 30 7 1 * *",
]


def random_rules(random: Random) -> CalendarRules:
    def calendar(name: str, share: float) -> JobCalendar:
        kind = random.random()
        if kind < 0.25:
            return JobCalendar(
                name=name, weekdays=tuple(sorted(random.sample(range(1, 8), random.choice([1, 2, 3]))))
            )
        edges: list[int] = []
        at = day("2026-11-01")
        while at < day("2028-03-01"):
            at += 2 + int(random.expovariate(share))
            length = random.choice([0, 0, 0, 1, 3, 12, 70])  # 70 days: no working day is near enough to move to
            edges += [at, at + length]
            at += length
        if kind < 0.4:
            seconds = [(one * 86_400 + random.randrange(86_400)) for one in edges[::2]]
            return JobCalendar(
                name=name, times=tuple(t for s in seconds for t in (s, s + random.choice([60, 7_200, 50_000])))
            )
        return JobCalendar(name=name, days=tuple(edges))

    excluded = tuple(calendar(f"x{n}", 0.08) for n in range(random.choice([0, 1, 1, 2])))
    only = (calendar("only", 0.3),) if random.random() < 0.25 else ()
    has_days = all(one.days or one.weekdays for one in only)  # else there is no working day to move to
    moves = random.choice(list(OnExcluded)) if (excluded or only) and has_days else OnExcluded.SKIP
    workday = (
        tuple(random.sample([1, 2, 3, 10, -1, -2, -5], 2))
        if moves is OnExcluded.SKIP and random.random() < 0.3
        else ()
    )
    return CalendarRules(excluded=excluded, only=only, on_excluded=moves, workday=workday)


@pytest.mark.parametrize("seed", range(28))
def test_a_year_is_that_of_the_oracle(seed: int) -> None:
    random = Random(seed)
    zone, text, rules = random.choice(ZONES), random.choice(BASES), random_rules(random)
    begin, end = ms(BEGIN), ms(BEGIN) + 400 * DAY_MS
    plain = schedule_of(Job(id="j", schedule=text, timezone=zone))
    base = list(plain.between(begin - 100 * DAY_MS, end + 100 * DAY_MS))
    oracle = Oracle(rules, zone, base)
    job = Job(id="j", schedule=text, timezone=zone, calendars=rules)
    schedule = schedule_of(job)
    inside = oracle.instants[bisect_right(oracle.instants, begin) : bisect_right(oracle.instants, end)]
    assert list(schedule.between(begin, end)) == inside
    for _ in range(40):
        at = random.choice([random.randrange(begin, end), *random.choices(inside or [begin], k=1)])
        later, earlier = bisect_right(oracle.instants, at), bisect_left(oracle.instants, at)
        if later < len(oracle.instants) and oracle.instants[later] <= end:
            assert schedule.next(at) == oracle.instants[later]
        if earlier > 0 and oracle.instants[earlier - 1] > begin - 30 * DAY_MS:
            assert schedule.previous(at) == oracle.instants[earlier - 1]
    for instant in random.choices(inside, k=30) if inside else ():
        moved = moved_from(job, instant)
        sources = oracle.images[instant]
        assert (moved is None) == (instant in sources)
        assert moved is None or moved.nominal_ms == max(sources)
    gone = {one.nominal_ms for one in excluded_instants(job, begin, end)}
    assert gone == {
        one for one in base if begin < one <= end and oracle.is_excluded(one) and one not in oracle.images
    }


# -- worked by hand -----------------------------------------------------------------------------------------------


def stamps(job: Job, begin: str, count: int) -> list[str]:
    zone = ZoneInfo(job.timezone)
    at = ms(datetime.fromisoformat(begin).replace(tzinfo=zone))
    schedule = schedule_of(job)
    found: list[str] = []
    while len(found) < count and (instant := schedule.next(at)) is not None:
        at = instant
        found.append(f"{datetime.fromtimestamp(at / 1000, zone):%Y-%m-%d %H:%M}")
    return found


FREEZE = days("2026-12-24..2027-01-02", name="freeze")
SUNDAYS = JobCalendar(name="sundays", weekdays=(7,))


def worked() -> Iterator[tuple[str, Job, str, list[str]]]:
    def job(text: str, zone: str = "Europe/Berlin", **rules: object) -> Job:
        return Job(id="j", schedule=text, timezone=zone, calendars=CalendarRules(**rules))  # type: ignore[arg-type]

    yield (
        "a range is left out",
        job("0 9 * * *", excluded=(FREEZE,)),
        "2026-12-22 10:00",
        ["2026-12-23 09:00", "2027-01-03 09:00"],
    )
    yield (
        "every second, and ten days are one step",
        job("* * * * * *", excluded=(FREEZE,)),
        "2026-12-23 23:59:59",
        ["2027-01-03 00:00"],
    )
    yield (
        "only some days",
        job("0 9 * * *", only=(FREEZE,)),
        "2026-12-20 00:00",
        [f"2026-12-{n} 09:00" for n in range(24, 32)],
    )
    yield "days that are over leave none", job("0 9 * * *", only=(FREEZE,)), "2027-01-02 09:00", []
    yield "a weekday that never comes", job("0 9 * * SUN", excluded=(SUNDAYS,)), "2027-01-01 00:00", []
    yield (
        "the first or the next working day",
        job("0 6 1 * *", excluded=(FREEZE,), on_excluded=OnExcluded.NEXT_WORKDAY),
        "2026-12-02 00:00", ["2027-01-04 06:00", "2027-02-01 06:00"],
    )  # fmt: skip
    yield (
        "the working day before",
        job("0 6 1 * *", excluded=(FREEZE,), on_excluded=OnExcluded.PREVIOUS_WORKDAY),
        "2026-12-02 00:00", ["2026-12-23 06:00", "2027-02-01 06:00"],
    )  # fmt: skip
    yield (
        "asked in days off of which the first is too far to move: the first of January is not",
        job("0 6 1 * *", excluded=(days("2026-11-01..2027-01-10"),), on_excluded=OnExcluded.NEXT_WORKDAY),
        "2027-01-08 00:00", ["2027-01-11 06:00", "2027-02-01 06:00"],
    )  # fmt: skip
    yield (
        "a daily job gains nothing: it runs on that day already",
        job("0 6 * * *", excluded=(FREEZE,), on_excluded=OnExcluded.NEXT_WORKDAY),
        "2026-12-23 06:00", ["2027-01-03 06:00", "2027-01-04 06:00", "2027-01-05 06:00"],
    )  # fmt: skip
    yield (
        "moved into the gap of a clock change, which ends at three",
        job("30 2 27 3 *", excluded=(days("2027-03-27"), JobCalendar(name="friday", weekdays=(5,))), on_excluded=OnExcluded.NEXT_WORKDAY),
        "2027-03-01 00:00", ["2027-03-28 03:00"],
    )  # fmt: skip
    yield (
        "half hours behind a year off, which none of them is near enough to leave",
        job("*/30 * * * *", excluded=(days("2027-01-01..2027-12-31"),), on_excluded=OnExcluded.NEXT_WORKDAY),
        "2027-01-01 00:00", ["2028-01-01 00:00", "2028-01-01 00:30"],
    )  # fmt: skip
    yield (
        "half hours behind a year off, the other way",
        job("*/30 * * * *", excluded=(days("2027-01-01..2027-12-31"),), on_excluded=OnExcluded.PREVIOUS_WORKDAY),
        "2027-03-05 00:00", ["2028-01-01 00:00", "2028-01-01 00:30"],
    )  # fmt: skip
    yield (
        "first and last working day",
        job("0 18 * * *", excluded=(days("2027-01-01", "2027-01-06"),), workday=(1, -1)),
        "2026-12-31 19:00", ["2027-01-04 18:00", "2027-01-29 18:00", "2027-02-01 18:00", "2027-02-26 18:00"],
    )  # fmt: skip
    yield (
        "the weekend of a country",
        job("0 18 * * *", "Asia/Riyadh", excluded=(days("2027-09-23", weekend=(5, 6)),), workday=(1,)),
        "2027-01-01 00:00", ["2027-01-03 18:00", "2027-02-01 18:00"],
    )  # fmt: skip
    yield (
        "a union, and a time that both name once",
        Job(id="j", schedule="0 9 * * MON-FRI | 0 9 1 * *", timezone="Europe/Berlin"),
        "2027-01-28 10:00", ["2027-01-29 09:00", "2027-02-01 09:00", "2027-02-02 09:00"],
    )  # fmt: skip
    yield (
        "each expression counts the days of its own zone",
        Job(id="j", schedule="TZ=Asia/Tokyo 0 6 * * * | TZ=America/New_York 0 18 * * *", timezone="UTC",
            calendars=CalendarRules(excluded=(days("2027-01-01"),))),
        "2026-12-31 20:00", ["2026-12-31 23:00", "2027-01-01 21:00", "2027-01-02 21:00", "2027-01-02 23:00"],
    )  # fmt: skip


@pytest.mark.parametrize(("job", "begin", "expected"), [pytest.param(*case[1:], id=case[0]) for case in worked()])
def test_worked_cases(job: Job, begin: str, expected: list[str]) -> None:
    assert stamps(job, begin, len(expected) or 1) == expected


@pytest.mark.parametrize("text", ["0 9 * * SUN | 0 9 * * SAT", "0 9 * * SAT | 0 9 * * SUN"])
def test_of_several_that_move_to_one_time_the_latest_gives_its_own_in_whichever_order_they_are_written(
    text: str,
) -> None:
    weekend = JobCalendar(name="weekend", weekdays=(6, 7))
    rules = CalendarRules(excluded=(weekend,), on_excluded=OnExcluded.NEXT_WORKDAY)
    moved = moved_from(Job(id="j", schedule=text, calendars=rules), ms(datetime(2027, 1, 4, 9, tzinfo=UTC)))
    assert moved is not None
    assert moved.nominal_ms == ms(datetime(2027, 1, 3, 9, tzinfo=UTC))


def test_a_calendar_that_never_lets_anything_pass_is_found_out_in_few_steps() -> None:
    """Forty years of Sundays, and of seconds in ten thousand spans: bounded, and none."""
    jobs = [
        Job(id="j", schedule="0 9 * * SUN", calendars=CalendarRules(excluded=(SUNDAYS,))),
        Job(id="j", schedule="* * * * * *", calendars=CalendarRules(only=(days("2020-01-01"),))),
        Job(id="j", schedule="0 0 13 * FRI", calendars=CalendarRules(workday=(23,), excluded=(SUNDAYS, JobCalendar(name="rest", weekdays=(1, 2, 3))))),
    ]  # fmt: skip
    for job in jobs:
        assert schedule_of(job).next(ms(BEGIN)) is None
        assert schedule_of(job).previous(ms(BEGIN)) is None or job.calendars is not None


@pytest.mark.parametrize("moves", [OnExcluded.NEXT_WORKDAY, OnExcluded.PREVIOUS_WORKDAY])
@pytest.mark.parametrize(("rules", "most"), [
    (CalendarRules(only=(JobCalendar(name="weekend", weekdays=(6, 7)),)), 100),
    (CalendarRules(excluded=(days("2026-12-01..2037-12-31"),)), 0),
], ids=["no working day", "eleven years off"])  # fmt: skip
def test_days_without_a_working_day_near_are_looked_at_once(
    moves: OnExcluded, rules: CalendarRules, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each instant looked through the 62 days around it, and so did each of the 250 that may move in front of it."""
    looked: list[int] = []
    plain = JobCalendar.day_span

    def counted(calendar: JobCalendar, at: int) -> tuple[int, int] | None:
        looked.append(at)
        return plain(calendar, at)

    monkeypatch.setattr(JobCalendar, "day_span", counted)
    schedule = schedule_of(Job(id="j", schedule="0 */6 * * *", calendars=replace(rules, on_excluded=moves)))
    assert len(list(islice(schedule.between(ms(BEGIN), ms(BEGIN) + 900 * DAY_MS), 100))) == most
    forwards = len(looked)
    assert schedule.previous(ms(BEGIN) + 800 * DAY_MS) is not None
    assert (forwards < 4_000, len(looked) - forwards < 2_000) == (True, True)


def test_an_expression_that_is_left_no_instant_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty years of Sundays were walked through for each instant of the other expression."""
    asked: list[int] = []
    plain = CalendarDays.allowed_from

    def counted(these: CalendarDays, at: int) -> int | None:
        asked.append(at)
        return plain(these, at)

    monkeypatch.setattr(CalendarDays, "allowed_from", counted)
    rules = CalendarRules(excluded=(SUNDAYS,))
    schedule = schedule_of(Job(id="j", schedule="0 5 * * SUN | 0 9 * * MON", calendars=rules))
    found = list(schedule.between(ms(BEGIN), ms(BEGIN) + 700 * DAY_MS))
    assert found == list(
        schedule_of(Job(id="j", schedule="0 9 * * MON")).between(ms(BEGIN), ms(BEGIN) + 700 * DAY_MS)
    )
    assert [one for one in found if schedule.next(one - 1) != one] == []
    for again in reversed(found):
        assert schedule.next(again - 1) == again
    walk = 40 * 366 // 7
    assert len(asked) < 2 * walk + len(found) * 4


@pytest.mark.parametrize(
    "calendar", [days("2027-02-03"), JobCalendar(name="night", times=(1_801_000_000, 1_801_003_600))]
)
def test_an_interval_keeps_its_grid_behind_what_is_left_out(calendar: JobCalendar) -> None:
    begin = ms(BEGIN)
    plain = Job(id="j", schedule="@every 17m").progressed(anchor_ms=begin)
    with_calendar = Job(id="j", schedule="@every 17m", calendars=CalendarRules(excluded=(calendar,))).progressed(
        anchor_ms=begin
    )
    whole, left = (list(schedule_of(job).between(begin, begin + 60 * DAY_MS)) for job in (plain, with_calendar))
    removed = [one.nominal_ms for one in excluded_instants(with_calendar, begin, begin + 60 * DAY_MS)]
    assert removed
    assert sorted((*left, *removed)) == whole
