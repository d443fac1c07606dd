"""The Density screen: starts and run time by day and hour, and the busiest minute, as plain values and lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chronex.model.reasons import NO_REASON
from chronex.timing.zones import load_zone
from chronex_tui.model.density import (
    Heatmap,
    busiest_lines,
    busiest_minute_lines,
    coming_run_time,
    coming_starts,
    find_busiest_minute,
    fullest_minute,
    heatmap_lines,
    levels,
    odd_hours,
    past_run_time,
    shifted,
    spread_minute,
    usual_run_times,
)
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.layout import line_width, plain
from chronex_tui.model.snapshot import RunItem, RunKey
from tests.tui.examples import DAY, HOME, HOUR, MINUTE, NOW, job

MIDNIGHT = NOW // DAY * DAY + DAY  # of UTC
DISPLAY = DisplaySettings(NOW, UNICODE, HOME)
AT_UTC = DisplaySettings(NOW, UNICODE, load_zone("UTC"))


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_starts_are_counted_by_day_and_hour_from_now_on() -> None:
    heatmap = coming_starts([job("a", "30 15 * * *", "Europe/Berlin"), job("b", "0 * * * *")], NOW, HOME)
    assert heatmap.counts[(0, 15)] == 2
    assert (0, 14) not in heatmap.counts
    assert heatmap.counts[(6, 15)] == 2
    assert heatmap.jobs[(0, 15)] == (("a", 1), ("b", 1))
    assert heatmap.busiest is not None


def test_a_job_of_every_second_is_counted_by_samples() -> None:
    heatmap = coming_starts([job("fast", "* * * * * *")], NOW, HOME)
    assert heatmap.counts[(1, 12)] == 3600
    assert heatmap.is_sampled
    assert heatmap.minutes[(1, 12)][1] == 60


def test_the_fullest_minute_counts_frequent_jobs_beside_the_others() -> None:
    now = NOW // HOUR * HOUR
    frequent = [job("fast", "*/5 * * * * *"), job("slow", "*/20 * * * * *")]
    heatmap = coming_starts([*frequent, job("at", "7 9 * * *"), job("half", "37 9 * * *")], now, load_zone("UTC"))
    minute, starts = heatmap.minutes[(1, 9)]
    assert (minute % HOUR // MINUTE, starts) == (7, 12 + 3 + 1)
    assert heatmap.minutes[(1, 10)][1] == 12 + 3
    found = find_busiest_minute(frequent, now, load_zone("UTC"))
    assert found is not None
    assert found.starts == 12 + 3


@pytest.mark.parametrize(
    ("cells", "cursor", "hours", "monday"),
    [
        (92, 0, "00 01 02", "░░ ·· ▓▓"),
        (60, 0, "00  02  04", "░░··▓▓"),
        (38, 0, "00    06    12    18", "░·▓"),
        (38, 23, "00    06    12    18", "░·▓"),
        # Too narrow for a day: the hours around the cursor.
        (18, 0, "00", "░·▓"),
        (18, 4, "01", "·▓"),
        (18, 23, "18", ""),
    ],
)
def test_no_hour_of_a_narrow_map_is_cut_off(cells: int, cursor: int, hours: str, monday: str) -> None:
    counts = {(0, 0): 2, (0, 1): 1, (0, 2): 3}
    lines = heatmap_lines(Heatmap(MIDNIGHT, counts, {}, {}), AT_UTC, (0, cursor), cells)
    drawn = plain(lines).splitlines()
    assert all(line_width(line) <= cells for line in lines)
    assert drawn[0][12:].startswith(hours)
    assert drawn[1][12:].startswith(monday)


@pytest.mark.parametrize("cells", [40, 76, 100, 200])
def test_what_is_said_of_the_whole_week_is_never_cut_off(cells: int) -> None:
    lines = busiest_lines(coming_starts([job("fast", "* * * * * *")], NOW, HOME), DISPLAY, cells)
    assert all(line_width(line) <= cells for line in lines)
    assert " ".join(plain(lines).split()).endswith("of the most frequent jobs one minute of each hour is counted")


def test_the_hour_that_has_begun_counts_only_what_is_left_of_it() -> None:
    now = NOW // HOUR * HOUR + 45 * MINUTE
    heatmap = coming_starts([job("fast", "* * * * * *")], now, load_zone("UTC"))
    hour = datetime.fromtimestamp(now / 1000, UTC).hour
    assert heatmap.counts[(0, hour)] == 15 * 60
    assert heatmap.counts[(0, hour + 1)] == 3600


def test_the_fullest_minute_is_named() -> None:
    heatmap = coming_starts(
        [job("a", "0 9 * * *"), job("b", "0 9 * * *"), job("c", "5 9 * * *")], NOW, load_zone("UTC")
    )
    minute, starts = heatmap.minutes[(1, 9)]
    assert starts == 2
    assert minute % HOUR == 0


def test_hours_that_a_clock_change_takes_or_gives_are_marked() -> None:
    missing, _ = odd_hours(at("2027-03-21T23:00"), HOME)
    assert missing == {(6, 2)}
    _, doubled = odd_hours(at("2027-10-25T22:00"), HOME)
    assert doubled == {(5, 2)}


def test_the_ramp_follows_what_there_is() -> None:
    assert levels([]) == (1, 1, 1, 1)
    assert levels([3, 3, 3]) == (3, 3, 3, 3)
    assert levels(range(1, 11)) == (3, 5, 7, 9)


def ran(name: str, start: int, took: int | None) -> RunItem:
    end = None if took is None else start + took
    return RunItem(RunKey(name, start), "completed", NO_REASON, start, start, end, recovery=False, manual=False)


def test_run_time_falls_into_the_hours_in_which_it_was_spent() -> None:
    start = NOW // HOUR * HOUR - 10 * MINUTE
    heatmap = past_run_time([ran("a", start, 30 * MINUTE), ran("b", start, 2_000)], NOW, HOME)
    assert sorted(heatmap.counts.values()) == [10, 20]
    assert (heatmap.is_time, heatmap.is_past, heatmap.minutes) == (True, True, {})


def test_what_still_runs_counts_up_to_now() -> None:
    assert past_run_time([ran("a", NOW - 12 * MINUTE, None)], NOW, HOME).total == 12


def test_run_time_to_come_takes_as_long_as_usual() -> None:
    usual = usual_run_times([ran("a", NOW - n * HOUR, n * MINUTE) for n in (1, 2, 30)])
    assert usual == {"a": 2 * MINUTE}
    heatmap = coming_run_time([job("a", "0 3 * * *"), job("never-ran", "* * * * *")], usual, NOW, HOME)
    assert set(heatmap.counts.values()) == {2}
    assert not heatmap.is_past


def test_a_job_of_every_second_is_carried_on() -> None:
    heatmap = coming_run_time([job("a", "* * * * * *")], {"a": 1000}, NOW, HOME)
    assert heatmap.is_sampled
    assert max(heatmap.counts.values()) == 60


@pytest.mark.parametrize(
    ("schedule", "minutes", "expected"),
    [
        ("0 2 * * *", 7, "7 2 * * *"),
        ("55 2 * * *", 4, "59 2 * * *"),
        ("55 2 * * *", 5, ""),
        ("*/15 * * * *", 4, "4-59/15 * * * *"),
        ("*/15 * * * *", 15, ""),
        ("@hourly", 3, "3 * * * *"),
        ("@daily", 3, "3 0 * * *"),
        ("0,30 * * * *", 3, ""),
        ("0 0 2 * * *", 3, ""),
        ("* * * * *", 1, ""),
        ("@every 5m", 1, ""),
    ],
)
def test_a_schedule_some_minutes_later(schedule: str, minutes: int, expected: str) -> None:
    assert shifted(schedule, minutes) == expected


def test_jobs_of_one_minute_get_minutes_of_their_own_and_one_stays() -> None:
    jobs = [job(f"job-{number}", "0 0 * * *") for number in range(4)]
    busiest_minute = spread_minute([*jobs, job("one", "1 0 * * *")], MIDNIGHT)
    assert (busiest_minute.starts, busiest_minute.starts_after) == (4, 1)
    assert sorted(move.rewritten for move in busiest_minute.moves) == ["", "2 0 * * *", "3 0 * * *", "4 0 * * *"]


def test_a_job_is_never_moved_past_its_own_next_start() -> None:
    busiest_minute = spread_minute(
        [job("a", "*/2 * * * *"), job("b", "*/2 * * * *"), job("c", "* * * * *")], MIDNIGHT
    )
    assert {move.minutes for move in busiest_minute.moves} <= {0, 1}
    assert all(move.job != "c" for move in busiest_minute.moves if move.minutes)


def test_a_minute_that_cannot_be_moved_is_reported() -> None:
    busiest_minute = spread_minute([job("a", "0 0 0 * * *"), job("b", "0 0 0 * * *")], MIDNIGHT)
    assert busiest_minute.starts_after == busiest_minute.starts == 2
    told = plain(busiest_minute_lines(busiest_minute, DISPLAY))
    assert "use spread" in told
    assert "a                         0 0 0 * * *" in told


def test_a_week_in_which_no_two_start_together() -> None:
    assert fullest_minute([(MIDNIGHT, 1)]) is None
    assert find_busiest_minute([job("a", "0 3 * * *")], NOW, HOME) is None
    assert "No two jobs start in the same minute" in plain(busiest_minute_lines(None, DISPLAY))
