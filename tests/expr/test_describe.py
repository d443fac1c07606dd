"""English for every expression."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

import chronex
from chronex import timing
from tests.timing import oracle
from tests.timing.oracle import ANY, Days, Spec

REFERENCE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # minutes and hours
        ("* * * * *", "Every minute"),
        ("*/5 * * * *", "Every 5 minutes"),
        ("0,30 * * * *", "Every 30 minutes"),
        ("2/5 * * * *", "Every 5 minutes starting at minute 2"),
        ("5/20 * * * *", "Every 20 minutes starting at minute 5"),
        ("30 * * * *", "Every hour at minute 30"),
        ("15,20,25 * * * *", "Every hour at minutes 15, 20 and 25"),
        ("10-20 * * * *", "Every hour at minutes 10 through 20"),
        ("*/7 * * * *", "Every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56"),
        ("@hourly", "Every hour at minute 0"),
        ("0 */2 * * *", "Every 2 hours at minute 0"),
        ("0 1/2 * * *", "Every 2 hours from 01:00"),
        ("30 1/2 * * *", "Every 2 hours from 01:30"),
        ("5,30 1/2 * * *", "Every 2 hours from 01:00 at minutes 5 and 30"),
        ("23 0-20/2 * * *", "Every 2 hours from 00:23 through 20:23"),
        ("0 1-23/3 * * *", "Every 3 hours from 01:00"),
        ("0 9-17 * * *", "Every hour from 09:00 through 17:00"),
        ("0 0-5,12 * * *", "At minute 0 of hours 00 through 05 and 12"),
        ("*/5 9-17 * * *", "Every 5 minutes, from 09:00 through 17:59"),
        ("* 22-2 * * *", "Every minute, from 22:00 through 02:59"),
        ("* 0,23 * * *", "Every minute, from 23:00 through 00:59"),
        ("* */2 * * *", "Every minute, in every 2nd hour"),
        ("* 1/2 * * *", "Every minute, in every 2nd hour from 01:00"),
        ("* 7-2 * * *", "Every minute, from 07:00 through 02:59"),
        # times of day
        ("0 9 * * *", "At 09:00"),
        ("0 0 * * *", "At midnight"),
        ("0 0 0 * * *", "At midnight"),
        ("0 9,17 * * *", "At 09:00 and 17:00"),
        ("0,30 9,17 * * *", "At 09:00, 09:30, 17:00 and 17:30"),
        ("30 */6 * * *", "At 00:30, 06:30, 12:30 and 18:30"),
        ("0/30 9 * * *", "At 09:00 and 09:30"),
        # six fields
        ("30 0 9 * * *", "At 09:00:30"),
        ("* * * * * *", "Every second"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("15 * * * * *", "Every minute at second 15"),
        ("15,45 * * * * *", "Every 30 seconds from second 15"),
        ("10-20 * * * * *", "Every minute at seconds 10 through 20"),
        ("0 */5 * * * *", "Every 5 minutes"),
        ("30 */5 * * * *", "Every 5 minutes, at second 30"),
        ("*/15 30 9 * * *", "Every 15 seconds from 09:30:00 through 09:30:45"),
        ("5/15 0-9 9 * * *", "Every 15 seconds from 09:00:05 through 09:09:50"),
        ("* 0 9 * * *", "Every second from 09:00:00 through 09:00:59"),
        ("0-30 0 9 * * *", "Every second from 09:00:00 through 09:00:30"),
        ("0-30 0,5 9 * * *", "At seconds 0 through 30 of minutes 0 and 5 of hour 09"),
        ("*/10 * 9-17 * * *", "Every 10 seconds, from 09:00 through 17:59"),
        ("0,10 0 9 * * MON", "At 09:00:00 and 09:00:10 on Monday"),
        ("0-30/10 0 0 * * *", "At 00:00:00, 00:00:10, 00:00:20 and 00:00:30"),
        # days
        ("0 0 15W 6 *", "At midnight on the nearest weekday to day 15 of June"),
        ("0 0 31W 2,4 *", "Never: at midnight on the nearest weekday to day 31 of February and April"),
        ("0 0 L-29 2 *", "Never: at midnight on 29 days before the last day of February"),
        ("0 0 L-28 2 *", "At midnight on 28 days before the last day of February"),
        ("0 0 30,L-30 2 *", "Never: at midnight on day 30 and 30 days before the last day of February"),
        ("0 0 1,L-30 2 *", "At midnight on day 1 and 30 days before the last day of February"),
        ("0 0 31W 2 MON", "At midnight on the nearest weekday to day 31 or on Monday, in February"),
        ("0 9 1 * *", "At 09:00 on day 1"),
        ("0 9 1 1 *", "At 09:00 on day 1 of January"),
        ("0 9 * 1 *", "At 09:00, every day in January"),
        ("0 9 * NOV-FEB *", "At 09:00 from November through February"),
        ("0 0 1 JAN-MAR *", "At midnight on day 1, from January through March"),
        ("0 0 1 */3 *", "At midnight on day 1 of January, April, July and October"),
        ("0 0 1,2,3,10-15 * *", "At midnight on days 1 through 3 and 10 through 15"),
        ("0 9 * * MON-FRI", "At 09:00, Monday through Friday"),
        ("0 9 * * 1-5", "At 09:00, Monday through Friday"),
        ("0 0 * * FRI-MON", "At midnight, Friday through Monday"),
        ("0 0 * * SAT,SUN", "At midnight on Saturday and Sunday"),
        ("0 0 * * 1,3,5", "At midnight on Monday, Wednesday and Friday"),
        ("@weekly", "At midnight on Sunday"),
        ("0 0 L-1 * *", "At midnight on the day before the last day of the month"),
        ("0 0 1,L-3 * *", "At midnight on day 1 and 3 days before the last day of the month"),
        ("* 8,12,18 * * *", "Every minute, in hours 08, 12 and 18"),
        ("0,15,45 22-6 * * *", "At minutes 0, 15 and 45 of hours 22 through 06"),
        ("*/10 30 */2 * * *", "Every 10 seconds of minute 30 of every 2nd hour"),
        ("0,30 0,30 * * * *", "Every 30 seconds of minutes 0 and 30 of every hour"),
        ("@monthly", "At midnight on day 1"),
        ("@yearly", "At midnight on day 1 of January"),
        ("0 0 * JAN MON", "At midnight on Monday in January"),
        ("0 0 L * *", "At midnight on the last day of the month"),
        ("0 0 L-3 * *", "At midnight on 3 days before the last day of the month"),
        ("0 0 L 2 *", "At midnight on the last day of February"),
        ("0 0 15,L 6,12 *", "At midnight on day 15 and the last day of June and December"),
        ("0 0 LW JUN-AUG *", "At midnight on the last weekday of the month, from June through August"),
        ("0 0 L,LW 2 *", "At midnight on the last day of the month and the last weekday of the month in February"),
        ("0 0 LW * *", "At midnight on the last weekday of the month"),
        ("0 0 L-2W * *", "At midnight on the nearest weekday to 2 days before the last day of the month"),
        ("0 0 15W * *", "At midnight on the nearest weekday to day 15"),
        ("0 0 * * MON#2", "At midnight on the 2nd Monday of the month"),
        ("0 0 * * 7#1", "At midnight on the 1st Sunday of the month"),
        ("0 0 * * 5L", "At midnight on the last Friday of the month"),
        # both day fields: or
        ("0 0 13 * FRI", "At midnight on day 13 or on Friday"),
        ("0 0 1,15 * FRI", "At midnight on days 1 and 15 or on Friday"),
        ("0 0 L * MON-FRI", "At midnight on the last day of the month or Monday through Friday"),
        ("0 0 15W JUN FRIL", "At midnight on the nearest weekday to day 15 or on the last Friday of the month, in June"),
        ("0 0 1-31 * MON", "At midnight"),
        ("0 0 * * 0-7", "At midnight"),
        # the other kinds
        ("@every 30m", "Every 30m"),
        ("@every 90m", "Every 1h30m"),
        ("@every 1h-2h", "Every 1h to 2h (randomized)"),
        ("@once 2025-03-01T09:00:00Z", "Once at 2025-03-01 09:00 UTC"),
        ("@once 2025-03-01T09:00:30+09:00", "Once at 2025-03-01 09:00:30 +09:00"),
        ("@once 2025-03-01T09:00:00.5", "Once at 2025-03-01 09:00:00.5"),
        ("R5/2026-01-01T00:00:00Z/P1M", "Every month from 2026-01-01 00:00 UTC, 6 times"),
        ("R0/2026-01-01T00:00:00Z/P1M", "Once at 2026-01-01 00:00 UTC"),
        ("R1/P1M", "Every month, once"),
        ("R/2026-01-01T09:00/P3W", "Every 3 weeks from 2026-01-01 09:00"),
        ("R/2026-01-01T09:00/PT90M", "Every 1h30m from 2026-01-01 09:00"),
        ("R/2026-01-01T09:00/P1Y2M3DT4H", "Every 1 year, 2 months, 3 days and 4h from 2026-01-01 09:00"),
        # zone and options
        ("TZ=Asia/Seoul 0 9 * * *", "At 09:00 (Asia/Seoul)"),
        ("TZ=UTC @every 5m {window:1m}", "Every 5m (UTC), within a window of 1m"),
        ("0 9 * * * {jitter:30s}", "At 09:00, with up to 30s jitter"),
        ("0 9 * * * {jitter:0s}", "At 09:00"),
        ("0 9 * * * {stagger:5m}", "At 09:00, with 5m stagger"),
        ("0 9 * * * {window:10m}", "At 09:00, within a window of 10m"),
        ("0 9 * * * {max:10}", "At 09:00, max 10 executions"),
        ("0 9 * * * {max:1}", "At 09:00, max 1 execution"),
        ("0 9 * * * {tag:report+daily}", "At 09:00, tagged report, daily"),
        ("0 9 * * * {from:2026-01-01, until:2026-12-31}", "At 09:00, from 2026-01-01, until 2026-12-31"),
        ("0 9 * * * {until:2026-12-31T10:00:00Z}", "At 09:00, until 2026-12-31 10:00 UTC"),
    ],
)  # fmt: skip
def test_an_expression_is_described(text: str, expected: str) -> None:
    assert chronex.parse(text).describe() == expected


def test_the_options_come_in_one_order() -> None:
    text = "TZ=Asia/Seoul 0 9 * * MON-FRI {tag:a+b, max:10, window:15m, stagger:3m, jitter:10s}"
    expected = (
        "At 09:00, Monday through Friday (Asia/Seoul), with up to 10s jitter, with 3m stagger, within a window of 15m, "
        "max 10 executions, tagged a, b"
    )
    assert chronex.parse(text).describe() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0 9 * * MON-FRI", "0 09 * * 1,2,3,4,5"),
        ("@daily", "0 0 * * *"),
        ("*/15 * * * *", "0,15,30,45 * * * *"),
        ("0 0 * * 7", "0 0 * * SUN"),
        ("0 0 9 * * *", "0 9 * * *"),
    ],
)
def test_the_same_meaning_reads_the_same_however_it_is_spelt(one: str, other: str) -> None:
    assert chronex.parse(one).describe() == chronex.parse(other).describe()


def test_a_relative_moment_says_what_it_counts_from() -> None:
    read = timing.parse("@once +20m")
    assert read.describe() == "Once, 20m from reference time"
    assert chronex.parse("@once +20m", reference=REFERENCE).describe() == "Once at 2026-01-01 00:20 UTC"


def _fires(spec: Spec) -> tuple[object, ...]:
    """When it fires, whatever the spelling: times, months, and days with a full field taken for every day."""
    days: object = (spec.dom, _without_its_own(spec.dow))
    full = [
        field == ANY or any(part.kind == "set" and len(part.values) == size for part in (field, *field.parts))
        for field, size in ((spec.dom, 31), (spec.dow, 7))
    ]
    either = spec.dom != ANY and spec.dow != ANY
    if (either and any(full)) or all(full):
        days = "every day"
    return spec.seconds, spec.minutes, spec.hours, spec.months, days


def _without_its_own(dow: Days) -> Days:
    """A list that has a weekday has the first and the last one of them."""
    plain = next((part for part in dow.parts if part.kind == "set"), None)
    if plain is None:
        return dow
    parts = (plain, *(part for part in dow.parts if part is not plain and not part.values <= plain.values))
    return plain if len(parts) == 1 else dow._replace(parts=parts)


def _short_text(rng: Random) -> str:
    """Few different values, so that descriptions often meet."""

    def field(low: int, high: int) -> str:
        step = rng.choice([2, 3, 5, 6, 10, 12, 15, 20, 30])
        return rng.choice(
            [
                "*",
                str(low),
                str(high),
                f"*/{step}",
                f"{low + 1}/{step}",
                f"{low}-{low + 2}",
                f"{high - 1}-{low + 1}",
                f"{low + 1}-{high}",
            ]
        )

    times = [field(0, 59), field(0, 59), field(0, 23)][rng.randint(0, 1) :]
    dom = rng.choice(["*", "*", "1", "L", "LW", "L-1", "15W", "1-2", "*/2", "1-31", "1,15"])
    dow = rng.choice(["*", "*", "0", "7", "1-5", "5-1", "1L", "1#2", "0-6", "6,0", "1,2", "1,3"])
    return " ".join([*times, dom, rng.choice(["*", "1", "1-3", "2/3", "11-2"]), dow])


def test_two_expressions_read_the_same_only_when_they_fire_at_the_same_times() -> None:
    seen: dict[str, tuple[tuple[object, ...], str]] = {}
    for seed in range(6000):
        rng = Random(seed)
        text = _short_text(rng) if seed % 3 else oracle.random_spec(rng).text
        meaning = _fires(oracle.read(text))
        first, other = seen.setdefault(chronex.parse(text).describe(), (meaning, text))
        assert first == meaning, (text, other)


def test_a_day_that_no_calendar_has_is_never_and_no_other_day_is() -> None:
    """Over every number of each kind of day in February, April and January."""
    days = [f"{n}" for n in range(1, 32)] + [f"{n}W" for n in range(1, 32)]
    days += [f"L-{n}" for n in range(1, 31)] + [f"L-{n}W" for n in range(1, 31)]
    for day in days:
        for month in ("1", "2", "4", "2,4"):
            found = chronex.parse(f"0 0 {day} {month} *")
            assert found.describe().startswith("Never: ") is (found.next(REFERENCE) is None), str(found)
