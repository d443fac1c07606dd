"""The same schedule for another program: what to write there, and when there is nothing to write."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from zoneinfo import ZoneInfo

import pytest

import chronex
from chronex.imports import equivalents
from chronex.imports.equivalents import TARGETS, Equivalent, NoEquivalent, equivalent
from chronex.imports.oracle import CRON, KUBERNETES, pattern_of
from chronex.imports.oracle import instants as cron_instants
from chronex.lint.cron_programs import BUSYBOX, CRONIE, DEBIAN, CronProgram
from chronex.lint.systemd_calendar import calendar_schedule
from chronex.timing.zones import load_zone
from tests.timing import oracle

NOW = int(datetime(2026, 11, 17, tzinfo=UTC).timestamp())
DAY = 86_400
BERLIN = "Europe/Berlin"


def found(text: str, target: str, zone: str = "UTC", program: CronProgram = DEBIAN) -> Equivalent:
    return equivalent(chronex.parse(text).meaning, load_zone(zone), target, program, NOW)


@pytest.mark.parametrize(
    ("text", "target", "zone", "lines"),
    [
        ("0 9 * * MON-FRI", "systemd", BERLIN, ["OnCalendar=Mon..Fri *-*-* 09:00:00 Europe/Berlin"]),
        ("0 9 * * MON-FRI", "quartz", BERLIN, ["0 0 9 ? * MON-FRI"]),
        ("0 9 * * MON-FRI", "kubernetes", BERLIN, ['schedule: "0 9 * * 1-5"', "timeZone: Europe/Berlin"]),
        ("0 9 * * MON-FRI", "cron", BERLIN, ["0 9 * * 1-5"]),
        ("@daily", "quartz", "UTC", ["0 0 0 * * ?"]),
        ("30 2 * * *", "cron", BERLIN, ["30 2 * * *"]),  # both run it when the gap ends, and once in an overlap
        ("*/20 1-3 * * *", "kubernetes", BERLIN, ['schedule: "*/20 1-3 * * *"', "timeZone: Europe/Berlin"]),
        ("5,25,45 9-11 * * *", "systemd", "UTC", ["OnCalendar=*-*-* 09..11:05,25,45:00 UTC"]),
        ("0 22-6 * * SAT-MON", "systemd", "UTC", ["OnCalendar=Mon,Sat,Sun *-*-* 00..06,22,23:00:00 UTC"]),
        ("0 22-6 * * SAT-MON", "cron", "UTC", ["0 0-6,22,23 * * 0,1,6"]),
        ("15 30 9 * * *", "systemd", "UTC", ["OnCalendar=*-*-* 09:30:15 UTC"]),
        ("15 30 9 * * *", "quartz", "UTC", ["15 30 9 * * ?"]),
        # either of two days
        ("0 0 13 * FRI", "systemd", "UTC", ["OnCalendar=*-*-13 00:00:00 UTC", "OnCalendar=Fri *-*-* 00:00:00 UTC"]),
        ("0 0 13 * FRI", "cron", "UTC", ["0 0 13 * 5"]),
        ("0 0 1-31 * MON", "quartz", "UTC", ["0 0 0 * * ?"]),
        ("0 0 */2 * MON", "cron", "UTC", ["0 0 1-31/2 * 1"]),  # */2 beside a weekday would need both
        ("0 0 */2 * *", "systemd", "UTC", ["OnCalendar=*-*-01/2 00:00:00 UTC"]),
        # days by their place
        ("0 9 15,L * *", "systemd", "UTC", ["OnCalendar=*-*-15 09:00:00 UTC", "OnCalendar=*-*~01 09:00:00 UTC"]),
        ("0 9 L-3 * *", "systemd", "UTC", ["OnCalendar=*-*~04 09:00:00 UTC"]),
        ("0 9 * * FRIL", "systemd", "UTC", ["OnCalendar=Fri *-*~07/1 09:00:00 UTC"]),
        ("0 9 * * MON#1,THU#5", "systemd", "UTC", ["OnCalendar=Mon *-*-01..07 09:00:00 UTC", "OnCalendar=Thu *-*-29..31 09:00:00 UTC"]),
        ("0 9 L-3 * *", "quartz", "UTC", ["0 0 9 L-3 * ?"]),
        ("0 9 LW * *", "quartz", "UTC", ["0 0 9 LW * ?"]),
        ("0 9 15W * *", "quartz", "UTC", ["0 0 9 15W * ?"]),
        ("0 9 * * 5L", "quartz", "UTC", ["0 0 9 ? * FRIL"]),
        ("0 9 * * 1#2", "quartz", "UTC", ["0 0 9 ? * MON#2"]),
        ("0 9 * * MON,MON#1", "cron", "UTC", ["0 9 * * 1"]),
        # one moment
        ("@once 2027-03-01T09:00:00+01:00", "systemd", BERLIN, ["OnCalendar=2027-03-01 08:00:00 UTC"]),
    ],
)  # fmt: skip
def test_the_equivalent_is_what_the_other_program_takes(text: str, target: str, zone: str, lines: list[str]) -> None:
    answer = found(text, target, zone)
    assert (list(answer.lines), answer.reason) == (lines, None)
    assert answer.compared > 0


@pytest.mark.parametrize(
    ("text", "target", "zone", "reason"),
    [
        ("*/10 * * * * *", "cron", "UTC", NoEquivalent.SECONDS),
        ("*/10 * * * * *", "kubernetes", "UTC", NoEquivalent.SECONDS),
        ("0 0 13 * FRI", "quartz", "UTC", NoEquivalent.EITHER_DAY),
        ("0 9 LW * *", "systemd", "UTC", NoEquivalent.DAY_BY_PLACE),
        ("0 9 L-28 * *", "systemd", "UTC", NoEquivalent.DAY_BY_PLACE),
        ("0 9 L * *", "cron", "UTC", NoEquivalent.DAY_BY_PLACE),
        ("0 9 31W * *", "quartz", "UTC", NoEquivalent.DAY_BY_PLACE),
        ("0 9 15,L * *", "quartz", "UTC", NoEquivalent.LIST_BY_PLACE),
        ("@every 5m", "systemd", "UTC", NoEquivalent.ANCHORED),
        ("R/P1M", "cron", "UTC", NoEquivalent.ANCHORED),
        ("R/2026-01-01T00:00:00Z/P3W", "systemd", "UTC", NoEquivalent.PERIOD),
        ("@once 2027-03-01T09:00:00Z", "kubernetes", "UTC", NoEquivalent.MOMENT),
        ("@once 2020-03-01T09:00:00Z", "systemd", "UTC", NoEquivalent.PASSED),
        ("0 9 * * * {until:2040-01-01}", "cron", "UTC", NoEquivalent.BOUNDS),
        ("0 9 * * * {max:3}", "systemd", "UTC", NoEquivalent.BOUNDS),
        ("0 0 30 2 *", "cron", "UTC", NoEquivalent.NEVER),
        ("30 2 * * *", "quartz", BERLIN, NoEquivalent.CLOCK_CHANGE),
        ("30 2 * * *", "systemd", BERLIN, NoEquivalent.DIFFERS),
        ("30 2 * * *", "kubernetes", BERLIN, NoEquivalent.DIFFERS),
        ("30 * * * *", "cron", BERLIN, NoEquivalent.DIFFERS),
    ],
)  # fmt: skip
def test_where_there_is_none_the_reason_is_told(text: str, target: str, zone: str, reason: NoEquivalent) -> None:
    answer = found(text, target, zone)
    assert (answer.lines, answer.reason) == ((), reason)


def test_a_difference_is_told_with_its_first_instant() -> None:
    answer = found("30 2 * * *", "systemd", BERLIN)
    assert answer.tried == ("OnCalendar=*-*-* 02:30:00 Europe/Berlin",)
    assert answer.differs_at == int(datetime(2027, 3, 28, 1, 0, tzinfo=UTC).timestamp())  # the end of the gap
    assert not answer.only_there


def test_a_cron_that_counts_otherwise_gets_another_text() -> None:
    assert found("0 9 * * 7", "cron", program=BUSYBOX).lines == ("0 9 * * 0",)
    assert found("0 0 */2 * *", "cron", program=BUSYBOX).lines == ("0 0 1-31/2 * *",)
    assert found("30 2 * * *", "cron", BERLIN, BUSYBOX).reason is NoEquivalent.DIFFERS  # it follows the clock
    assert found("30 2 * * *", "cron", BERLIN, CRONIE).reason is None


def test_options_that_move_no_nominal_time_are_named() -> None:
    answer = found("0 9 * * * {jitter:30s, stagger:1m, window:1h, tag:a}", "systemd")
    assert answer.left_out == ("jitter", "stagger", "window")
    assert answer.lines


def test_of_what_fires_often_some_days_are_compared_and_it_is_said() -> None:
    answer = found("*/10 * * * * *", "quartz")
    assert answer.lines == ("*/10 * * * * ?",)
    assert not answer.is_whole


def test_a_wrong_text_is_no_equivalent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof is no formality: a text with one hour too many is found out."""
    wrong = {59: "0", 23: "9-10", 12: "*"}
    monkeypatch.setattr(equivalents, "_starred_list", lambda values, low, high: wrong[high])
    monkeypatch.setattr(equivalents, "_plain_list", lambda values, low, high: wrong[high])
    answer = found("0 9 * * *", "cron")
    assert answer.reason is NoEquivalent.DIFFERS
    assert answer.only_there


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 300), marks=pytest.mark.torture)], ids=len)
def test_what_is_given_fires_as_a_second_opinion_says(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle of the timing tests reads the expression, the other program's evaluator the text; Chronex is left out."""
    monkeypatch.setattr(equivalents, "five_years", lambda now_s: (now_s, now_s + 150 * DAY))
    monkeypatch.setattr(equivalents, "_OFTEN", 300)
    given = 0
    for seed in seeds:
        rng = Random(seed)
        spec = oracle.random_spec(rng, seconds=False)
        name = rng.choice(["UTC", BERLIN, "America/New_York"])
        zone = load_zone(name)
        for target in ("systemd", "kubernetes", "cron"):
            answer = found(spec.text, target, name)
            if answer.reason is not None:
                continue
            given += 1
            for start in [NOW + 60 - NOW % 60, *(c.at - DAY for c in zone.changes(NOW, NOW + 150 * DAY))]:
                expected = list(oracle.scan(spec, start, start + 2 * DAY - 1, ZoneInfo(name)))
                assert _seconds(answer, name, start, start + 2 * DAY) == expected, (spec.text, answer.lines)
    assert given > len(seeds) // 2


def _seconds(answer: Equivalent, name: str, start: int, end: int) -> list[int]:
    zone = load_zone(name)
    if answer.target == "systemd":
        schedules = [calendar_schedule(line.removeprefix("OnCalendar="), zone) for line in answer.lines]
        batches = [schedule.upcoming(start * 1000 - 1, 3000) for schedule in schedules if schedule is not None]
        return sorted({ms // 1000 for batch in batches for ms in batch if ms < end * 1000})
    rules = KUBERNETES if answer.target == "kubernetes" else CRON
    pattern = pattern_of(answer.lines[0].removeprefix('schedule: "').removesuffix('"'), rules)
    assert pattern is not None
    return list(cron_instants(pattern, rules, zone, start, end))


def test_every_target_has_an_answer_for_every_kind_of_schedule() -> None:
    for text in ("0 9 * * *", "@every 1h-2h", "@once 2027-01-01T00:00:00Z", "R5/2027-01-01/P1M", "0 0 29 2 *"):
        for target in TARGETS:
            answer = found(text, target)
            assert bool(answer.lines) is (answer.reason is None)
