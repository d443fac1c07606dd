"""Which days match, against a walk over the calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

import pytest

import chronex
from chronex.expr.meaning import Cron
from chronex.timing.calendar import BLOCK_DAYS, FIRST_DAY, LAST_DAY, block_bits, first_day_of, shape_of, year_of
from tests.timing import oracle

EPOCH = date(1970, 1, 1)


def cron(text: str) -> Cron:
    body = chronex.parse(text).meaning.body
    assert isinstance(body, Cron)
    return body


def days_of(text: str, year: int) -> list[str]:
    """Matching days of a year as `MM-DD`."""
    body = cron(text)
    first, last = (date(year, 1, 1) - EPOCH).days, (date(year, 12, 31) - EPOCH).days
    found = []
    for block in range(first // BLOCK_DAYS, last // BLOCK_DAYS + 1):
        bits = block_bits(body, block)
        days = (block * BLOCK_DAYS + bit for bit in range(BLOCK_DAYS) if bits >> bit & 1)
        found += [(EPOCH + timedelta(days=day)).strftime("%m-%d") for day in days if first <= day <= last]
    return found


@pytest.mark.parametrize(
    ("days", "year", "expected"),
    [
        # the last day, and days before it
        ("L 2 *", 2026, "02-28"),
        ("L 2 *", 2024, "02-29"),
        ("L 2 *", 1900, "02-28"),
        ("L 2 *", 2000, "02-29"),
        ("L 4,5 *", 2026, "04-30 05-31"),
        ("L-1 2 *", 2024, "02-28"),
        ("L-28 2 *", 2024, "02-01"),
        ("L-28 2 *", 2026, ""),
        ("L-30 * *", 2026, "01-01 03-01 05-01 07-01 08-01 10-01 12-01"),
        # the last weekday: 31 January 2026 is a Saturday, 31 May a Sunday
        ("LW 1,5 *", 2026, "01-30 05-29"),
        ("LW 3 *", 2026, "03-31"),
        ("L-1W 2 *", 2026, "02-27"),
        ("L-2W 5 *", 2026, "05-29"),
        # the nearest weekday stays in its month: 1 August 2026 is a Saturday, 1 March a Sunday
        ("1W 8 *", 2026, "08-03"),
        ("1W 3 *", 2026, "03-02"),
        ("2W 8 *", 2026, "08-03"),
        ("15W 2 *", 2026, "02-16"),
        ("15W 8 *", 2026, "08-14"),
        ("15W 4 *", 2026, "04-15"),
        ("30W 5 *", 2026, "05-29"),
        ("31W 5 *", 2026, "05-29"),
        ("31W 4 *", 2026, ""),
        ("30W 2 *", 2024, ""),
        ("29W 2 *", 2024, "02-29"),
        ("29W 2 *", 2026, ""),
        # the n-th and the last of a weekday
        ("* 1 MON#1", 2026, "01-05"),
        ("* 1 THU#5", 2026, "01-29"),
        ("* 1 MON#5", 2026, ""),
        ("* 2 MON#5", 2044, "02-29"),
        ("* 2 MON#5", 2024, ""),
        ("* 1 THUL", 2026, "01-29"),
        ("* 2 SATL", 2026, "02-28"),
        ("* 2 7L", 2026, "02-22"),
        ("* 2 0#1", 2026, "02-01"),
        # both day fields: either
        ("13 2 FRI", 2026, "02-06 02-13 02-20 02-27"),
        ("1 2 WED", 2026, "02-01 02-04 02-11 02-18 02-25"),
        ("L 2 MON#1", 2026, "02-02 02-28"),
        ("15W 2 FRIL", 2026, "02-16 02-27"),
        ("30 2 MON", 2026, "02-02 02-09 02-16 02-23"),
        ("*/10 2 TUE", 2026, "02-01 02-03 02-10 02-11 02-17 02-21 02-24"),
        # days that some months lack
        ("31 * *", 2026, "01-31 03-31 05-31 07-31 08-31 10-31 12-31"),
        ("29 2 *", 2024, "02-29"),
        ("29 2 *", 2100, ""),
        ("30 2 *", 2024, ""),
        ("30-2 2 *", 2026, "02-01 02-02"),
    ],
)  # fmt: skip
def test_the_days_of_a_year_are_those_of_the_table(days: str, year: int, expected: str) -> None:
    assert days_of(f"0 0 {days}", year) == expected.split()


@pytest.mark.parametrize("seed", range(40))
def test_the_days_of_any_year_are_those_of_a_walk(seed: int) -> None:
    rng = Random(seed)
    spec = oracle.random_spec(rng, seconds=False)
    for year in {1, 9999, 1900, 2000, 2024, rng.randint(1, 9999)}:
        start = date(year, 1, 1)
        length = (date(year, 12, 31) - start).days + 1
        walked = [start + timedelta(days=n) for n in range(length)]
        expected = [day.strftime("%m-%d") for day in walked if oracle.day_matches(spec, day)]
        assert days_of(spec.text, year) == expected, (spec.text, year)


def test_the_calendar_has_its_ends() -> None:
    assert ((date.min - EPOCH).days, (date.max - EPOCH).days) == (FIRST_DAY, LAST_DAY)
    everything = cron("0 0 * * *")
    assert block_bits(everything, LAST_DAY // BLOCK_DAYS + 1) == 0
    assert block_bits(everything, FIRST_DAY // BLOCK_DAYS - 1) == 0
    assert (year_of(FIRST_DAY - 5), year_of(LAST_DAY + 5)) == (1, 9999)


@pytest.mark.parametrize("year", [1, 4, 100, 400, 1582, 1900, 1970, 2000, 2024, 2100, 9999])
def test_a_year_has_its_first_day_and_shape(year: int) -> None:
    first = date(year, 1, 1)
    assert first_day_of(year) == (first - EPOCH).days
    leap = (date(year, 12, 31) - first).days == 365
    assert shape_of(year) == (first.isoweekday() % 7, leap)
    assert year_of(first_day_of(year)) == year


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("0 0 29 2 *", "2096-03-01", "2104-02-29"),
        ("0 0 29 2 *", "1896-03-01", "1904-02-29"),
        ("0 0 * 2 MON#5", "2072-03-01", "2112-02-29"),
        ("0 0 * 2 SAT#5", "2076-03-01", "2116-02-29"),
        ("0 0 * 2 FRI#5", "2092-03-01", "2104-02-29"),
        ("0 0 29 2 *", "9996-03-01", None),
        ("0 0 30 2 *", "2026-01-01", None),
        ("0 0 31 4,6,9,11 *", "2026-01-01", None),
        ("0 0 L-30 2,4,6,9,11 *", "2026-01-01", None),
        ("0 0 31W 2,4,6,9,11 *", "2026-01-01", None),
    ],
)
def test_rare_days_are_found_and_impossible_ones_are_given_up(text: str, start: str, expected: str | None) -> None:
    found = chronex.parse(text).next(datetime.fromisoformat(start).replace(tzinfo=UTC))
    assert (None if found is None else found.date().isoformat()) == expected
    if expected is None:
        assert chronex.parse(text).previous(datetime(1, 3, 1, tzinfo=UTC)) is None
