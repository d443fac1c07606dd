"""The heat map: starts and run time by day and hour, as plain values."""

from __future__ import annotations

from datetime import UTC, datetime

from chronex.model.reasons import NO_REASON
from chronex.timing.zones import load_zone
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.heatmap import (
    coming_run_time,
    coming_starts,
    levels,
    odd_hours,
    past_run_time,
    usual_run_times,
)
from chronex_tui.model.snapshot import RunItem, RunKey
from tests.tui.world import DAY, HOME, HOUR, MINUTE, NOW, job

MIDNIGHT = NOW // DAY * DAY + DAY  # of UTC
DISPLAY = DisplaySettings(NOW, UNICODE, HOME)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_starts_are_counted_by_day_and_hour_from_now_on() -> None:
    heatmap = coming_starts([job("a", "30 15 * * *", "Europe/Berlin"), job("b", "0 * * * *")], NOW, HOME)
    assert heatmap.counts[(0, 15)] == 2
    assert (0, 14) not in heatmap.counts
    assert heatmap.counts[(6, 15)] == 2
    assert heatmap.jobs[(0, 15)] == (("a", 1), ("b", 1))
    assert heatmap.busiest is not None


def test_a_job_of_every_second_is_counted_without_living_through_it() -> None:
    heatmap = coming_starts([job("fast", "* * * * * *")], NOW, HOME)
    assert heatmap.counts[(1, 12)] == 3600
    assert heatmap.is_sampled


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
