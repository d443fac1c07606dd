"""Chronex against the slow oracle: random expressions, zones and instants, and every clock change there is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, pairwise
from random import Random
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chronex
from tests.timing import oracle
from tests.timing.oracle import DAY, Spec

ZONES = (
    "UTC", "America/New_York", "Europe/London", "Europe/Dublin", "Australia/Lord_Howe", "Asia/Amman",
    "America/Havana", "America/Sao_Paulo", "Asia/Beirut", "Pacific/Apia", "America/Santiago", "Africa/Casablanca",
    "Asia/Kathmandu", "Pacific/Chatham", "America/St_Johns", "Asia/Tehran", "Antarctica/Troll", "Africa/Cairo",
    "Pacific/Kiritimati", "Europe/Lisbon", "Asia/Pyongyang", "America/Scoresbysund", "Asia/Gaza", "America/Godthab",
)  # fmt: skip
HORIZON_DAYS = 420
CHUNK = 250


class Case(NamedTuple):
    spec: Spec
    zone: str
    second: int

    @property
    def expression(self) -> chronex.Expression:
        return chronex.parse(self.spec.text, dialect="posix" if self.spec.posix else "chronex", tz=self.zone)

    @property
    def tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)


def random_case(seed: int) -> Case:
    rng = Random(seed)
    zone = rng.choice(ZONES)
    spec = oracle.random_posix_spec(rng) if rng.random() < 0.1 else oracle.random_spec(rng)
    changes = oracle.transitions(zone)
    if changes and rng.random() < 0.6:
        near = rng.choice(changes) + rng.choice([0, -1, 1, rng.randint(-7200, 7200), rng.randint(-2 * DAY, 2 * DAY)])
        return Case(spec, zone, near)
    return Case(spec, zone, rng.randint(70 * 10**6, 4000 * 10**6))


def at(second: int, zone: str = "UTC") -> datetime:
    return datetime.fromtimestamp(second, ZoneInfo(zone))


def seconds_of(found: datetime | None) -> int | None:
    return None if found is None else int(found.timestamp())


def check_against_the_oracle(case: Case) -> None:
    expression, spec, zone, second = case.expression, *case
    label = f"{spec.text!r} {zone} {at(second, zone).isoformat()}"
    limit = HORIZON_DAYS * DAY
    wanted = oracle.next_after(spec, second, case.tz, HORIZON_DAYS)
    found = expression.next(at(second))
    local = expression.next(at(second, zone))
    assert found == local or (found and local and found.timestamp() == local.timestamp()), label
    if wanted is None:
        assert found is None or found.timestamp() > second + limit, label
    else:
        assert seconds_of(found) == wanted, f"{label}: {found} not {at(wanted, zone)}"
        assert found is not None
        assert (found.replace(tzinfo=None), found.fold) == (
            at(wanted, zone).replace(tzinfo=None),
            at(wanted, zone).fold,
        )
    before = oracle.previous_before(spec, second, case.tz, HORIZON_DAYS)
    past = expression.previous(at(second))
    if before is None:
        assert past is None or past.timestamp() < second - limit, label
    else:
        assert seconds_of(past) == before, f"{label}: {past} not {at(before, zone)}"
    fires = oracle.fires_at(spec, second, case.tz)
    assert expression.matches(at(second)) is fires, label
    assert (seconds_of(expression.next(at(second), inclusive=True)) == second) is fires, label
    assert (seconds_of(expression.previous(at(second), inclusive=True)) == second) is fires, label


@pytest.mark.parametrize("chunk", range(3))
def test_next_and_previous_are_those_of_the_oracle(chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check_against_the_oracle(random_case(seed))


@pytest.mark.torture
@pytest.mark.parametrize("first", range(3, 443, 20))
def test_next_and_previous_are_those_of_the_oracle_many_times(first: int) -> None:
    for seed in range(first * CHUNK, (first + 20) * CHUNK):
        check_against_the_oracle(random_case(seed))


def check_streams_agree(case: Case, count: int) -> None:
    """upcoming, repeated next, repeated previous and the integer path give one and the same list."""
    expression, zone = case.expression, case.zone
    start = at(case.second)
    listed = list(islice(expression.upcoming(start), count))
    stepped: list[datetime] = []
    while len(stepped) < count and (found := expression.next(stepped[-1] if stepped else start)) is not None:
        stepped.append(found)
    assert listed == stepped, case
    assert [m.fold for m in listed] == [m.fold for m in stepped], case
    instants = [m.timestamp() for m in listed]
    assert all(a < b for a, b in pairwise(instants)), case
    for earlier, later in pairwise(listed):
        back = expression.previous(later)
        assert back is not None
        assert (back.timestamp(), back.utcoffset()) == (earlier.timestamp(), earlier.utcoffset()), case
    whole = expression.occurrences(zone)
    if listed:
        end = int(instants[-1] * 1000)
        assert list(whole.between(case.second * 1000 + 1, end)) == [int(i * 1000) for i in instants], case
        assert whole.nearest(case.second * 1000 + 1, 1) == int(instants[0] * 1000), case
        assert whole.nearest(end, -1) == end, case


@pytest.mark.parametrize("chunk", range(4))
def test_upcoming_next_previous_and_the_integer_path_agree(chunk: int) -> None:
    for seed in range(500_000 + chunk * 100, 500_000 + (chunk + 1) * 100):
        check_streams_agree(random_case(seed), 25)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    return random_case(draw(st.integers(min_value=1_000_000, max_value=2**40)))


@given(case=cases())
@settings(max_examples=150, deadline=None)
def test_canonical_text_reads_back_as_an_equal_value(case: Case) -> None:
    expression = case.expression
    again = chronex.parse(str(expression), dialect=expression.dialect)
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == str(expression)


@given(case=cases(), extra=st.integers(min_value=0, max_value=999_999))
@settings(max_examples=150, deadline=None)
def test_next_is_after_and_previous_before_whatever_the_fraction_of_a_second(case: Case, extra: int) -> None:
    moment = at(case.second) + timedelta(microseconds=extra)
    after, before = case.expression.next(moment), case.expression.previous(moment)
    assert after is None or after.timestamp() > moment.timestamp()
    assert before is None or before.timestamp() < moment.timestamp()
    if after is not None:
        assert case.expression.next(after.astimezone(UTC) - timedelta(microseconds=1)) == after
        assert case.expression.next(after, inclusive=True) == after
    if before is not None:
        assert case.expression.previous(before.astimezone(UTC) + timedelta(microseconds=1)) == before


@given(case=cases())
@settings(max_examples=100, deadline=None)
def test_the_description_is_never_empty_and_reads_as_one_line(case: Case) -> None:
    text = case.expression.describe()
    assert text.strip() == text != ""
    assert "\n" not in text
    assert "  " not in text


@pytest.mark.parametrize("chunk", range(4))
def test_single_wall_times_are_those_of_the_oracle(chunk: int) -> None:
    """`@once`, `from` and repeating starts: the first instant that shows the time, or the end of the gap."""
    rng = Random(chunk)
    for _ in range(60):
        zone = rng.choice(ZONES)
        changes = oracle.transitions(zone)
        second = (rng.choice(changes) if changes else 10**9) + rng.randint(-DAY, DAY)
        wall = datetime.fromtimestamp(second, UTC).replace(tzinfo=None)
        wanted = oracle.first_instant(wall, ZoneInfo(zone))
        text = wall.isoformat()
        once = chronex.parse(f"TZ={zone} @once {text}").next(datetime(1970, 1, 2, tzinfo=UTC))
        assert seconds_of(once) == wanted, (zone, text)
        repeating = chronex.parse(f"R/{text}/P1D").next(datetime(1970, 1, 2, tzinfo=UTC), tz=zone)
        assert seconds_of(repeating) == wanted, (zone, text)
        bounded = chronex.parse(f"* * * * * * {{from:{text}}}").next(datetime(1970, 1, 2, tzinfo=UTC), tz=zone)
        assert seconds_of(bounded) == wanted, (zone, text)


# -- every clock change, forty expressions --------------------------------------------------------------------

TIMES = (
    "*/30 * * * *", "30 * * * *", "0 * * * *", "*/7 * * * *", "0 */2 * * *", "0 0-6 * * *", "15,45 1-3 * * *",
    "59 23-1 * * *", "*/20 0,23 * * *", "5/25 22-4 * * *",
    "0 0 * * *", "30 0 * * *", "59 0 * * *", "0 1 * * *", "30 1 * * *", "59 1 * * *", "0 2 * * *", "15 2 * * *",
    "30 2 * * *", "59 2 * * *", "0 3 * * *", "30 3 * * *", "45 3 * * *", "0 4 * * *", "30 22 * * *", "0 23 * * *",
    "30 23 * * *", "59 23 * * *", "0,30 1,2 * * *", "0,30 0,1,23 * * *", "0 12 * * *", "17 5,11,18 * * *",
)  # fmt: skip
DAYS_TOO = (
    "30 2 * * SUN", "0 0 * * SUN", "30 0 * * MON", "0 3 L * *", "30 1 * * SUN#1", "30 1 * * SUNL", "0 0 1 * *",
    "*/15 2 25-31 * 0",
)  # fmt: skip
FORTY = TIMES + DAYS_TOO


@cache
def spec_of(text: str) -> Spec:
    return oracle.read(text)


@cache
def clock_of(text: str) -> tuple[int, ...]:
    spec = spec_of(text)
    return tuple(sorted(60 * h + m for h in spec.hours for m in spec.minutes))


class Wall:
    """The wall clock around one change, minute by minute: which instants show a minute, and where gaps end."""

    def __init__(self, zone: ZoneInfo, change: int) -> None:
        self.start, self.end = change // 60 * 60 - 36 * 3600, change // 60 * 60 + 36 * 3600
        self.shown: dict[tuple[date, int], list[int]] = {}
        self.jumped: dict[tuple[date, int], int] = {}
        expected: datetime | None = None
        for second in range(self.start, self.end + 1, 60):
            wall = datetime.fromtimestamp(second, zone).replace(tzinfo=None)
            while expected is not None and expected < wall:
                self.jumped[expected.date(), expected.hour * 60 + expected.minute] = second
                expected += timedelta(minutes=1)
            self.shown.setdefault((wall.date(), wall.hour * 60 + wall.minute), []).append(second)
            expected = wall + timedelta(minutes=1)
        self.days = sorted({day for day, _ in self.shown} | {day for day, _ in self.jumped})

    def instants(self, text: str) -> list[int]:
        spec, clock = spec_of(text), clock_of(text)
        found: set[int] = set()
        for day in self.days:
            if oracle.day_matches(spec, day):
                for minute in clock:
                    shown = self.shown.get((day, minute))
                    if shown:
                        found.update(shown if spec.repeats else shown[:1])
                    elif (day, minute) in self.jumped:
                        found.add(self.jumped[day, minute])
        return sorted(found)


def changes_of_all_zones() -> Iterator[tuple[str, int]]:
    """Each change of each zone once: names whose clocks are set alike are one zone."""
    seen: set[tuple[tuple[int, timedelta | None], ...]] = set()
    for name in sorted(available_timezones()):
        changes = oracle.transitions(name, 1990, 2040)
        history = tuple((change, at(change, name).utcoffset()) for change in changes)
        if history and history not in seen:
            seen.add(history)
            yield from ((name, change) for change in changes if change % 60 == 0)


@cache
def parsed(text: str) -> chronex.Expression:
    return chronex.parse(text)


def check_change(name: str, change: int) -> None:
    zone = ZoneInfo(name)
    wall = Wall(zone, change)
    # A wall time near the first minute may have been shown before it: look at what follows twelve hours in.
    low, high = wall.start + 12 * 3600, wall.end - 12 * 3600
    for text in FORTY:
        wanted = [second for second in wall.instants(text) if low <= second <= high]
        expression = parsed(text)
        found = [int(m.timestamp()) for m in expression.upcoming(at(low), tz=name, until=at(high), inclusive=True)]
        assert found == wanted, (text, name, at(change, name).isoformat())
        whole = expression.occurrences(name)
        assert [ms // 1000 for ms in whole.between(low * 1000, high * 1000)] == wanted, (text, name, change)
        for bound in (change - 1, change, change + 1, change + 1799, change + 3600):
            after = next((s for s in wanted if s > bound), None)
            before = next((s for s in reversed(wanted) if s < bound), None)
            if after is not None:
                assert seconds_of(expression.next(at(bound), tz=name)) == after, (text, name, bound)
                assert seconds_of(expression.next(at(bound, name), tz=name)) == after, (text, name, bound)
            if before is not None:
                assert seconds_of(expression.previous(at(bound), tz=name)) == before, (text, name, bound)


def test_the_reader_of_the_oracle_agrees_with_its_writer() -> None:
    for seed in range(2000):
        written = oracle.random_spec(Random(seed))
        assert oracle.read(written.text) == written
        strict = oracle.random_posix_spec(Random(seed))
        assert oracle.read(strict.text, posix=True) == strict


def test_the_forty_expressions_are_forty() -> None:
    assert len(set(FORTY)) == 40


def test_a_sample_of_clock_changes_is_walked_as_the_wall_shows() -> None:
    named = [(zone, change) for zone in ZONES for change in oracle.transitions(zone, 2005, 2030)[:6]]
    for name, change in Random(20).sample(named, 25):
        check_change(name, change)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(24))
def test_every_clock_change_of_every_zone_is_walked_as_the_wall_shows(part: int) -> None:
    for number, (name, change) in enumerate(changes_of_all_zones()):
        if number % 24 == part:
            check_change(name, change)
