"""The busiest minute, and run time by hour: plain values and lines."""

from __future__ import annotations

import pytest

from chronex.model.reasons import NO_REASON
from chronex_tui.model.cells import plain
from chronex_tui.model.crowd import busiest_minute, crowd_lines, crowd_of, shifted
from chronex_tui.model.figures import busiest_crowd, coming_time, past_time, usual_times
from chronex_tui.model.glyphs import UNICODE
from chronex_tui.model.look import Look
from chronex_tui.model.snapshot import RunItem, RunKey
from tests.tui.world import DAY, HOME, HOUR, MINUTE, NOW, job

MIDNIGHT = NOW // DAY * DAY + DAY  # of UTC
LOOK = Look(NOW, UNICODE, HOME)


def ran(name: str, start: int, took: int | None) -> RunItem:
    end = None if took is None else start + took
    return RunItem(RunKey(name, start), "completed", NO_REASON, start, start, end, recovery=False, manual=False)


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
    crowd = crowd_of([*jobs, job("one", "1 0 * * *")], MIDNIGHT)
    assert (crowd.starts, crowd.after) == (4, 1)
    assert sorted(move.rewritten for move in crowd.moves) == ["", "2 0 * * *", "3 0 * * *", "4 0 * * *"]


def test_a_job_is_never_moved_past_its_own_next_start() -> None:
    crowd = crowd_of([job("a", "*/2 * * * *"), job("b", "*/2 * * * *"), job("c", "* * * * *")], MIDNIGHT)
    assert {move.minutes for move in crowd.moves} <= {0, 1}
    assert all(move.job != "c" for move in crowd.moves if move.minutes)


def test_what_cannot_be_moved_by_its_minute_is_told_so() -> None:
    crowd = crowd_of([job("a", "0 0 0 * * *"), job("b", "0 0 0 * * *")], MIDNIGHT)
    assert crowd.after == crowd.starts == 2
    assert "give them a spread instead" in plain(crowd_lines(crowd, LOOK))


def test_a_week_in_which_no_two_start_together() -> None:
    assert busiest_minute([(MIDNIGHT, 1)]) is None
    assert busiest_crowd([job("a", "0 3 * * *")], NOW, HOME) is None
    assert "No two jobs start in the same minute" in plain(crowd_lines(None, LOOK))


def test_run_time_falls_into_the_hours_in_which_it_was_spent() -> None:
    start = NOW // HOUR * HOUR - 10 * MINUTE
    density = past_time([ran("a", start, 30 * MINUTE), ran("b", start, 2_000)], NOW, HOME)
    assert sorted(density.counts.values()) == [10, 20]
    assert (density.is_time, density.is_past, density.minutes) == (True, True, {})


def test_what_still_runs_counts_up_to_now() -> None:
    assert past_time([ran("a", NOW - 12 * MINUTE, None)], NOW, HOME).total == 12


def test_run_time_to_come_takes_as_long_as_usual() -> None:
    usual = usual_times([ran("a", NOW - n * HOUR, n * MINUTE) for n in (1, 2, 30)])
    assert usual == {"a": 2 * MINUTE}
    density = coming_time([job("a", "0 3 * * *"), job("never-ran", "* * * * *")], usual, NOW, HOME)
    assert set(density.counts.values()) == {2}
    assert not density.is_past


def test_a_job_of_every_second_is_carried_on() -> None:
    density = coming_time([job("a", "* * * * * *")], {"a": 1000}, NOW, HOME)
    assert density.is_cut
    assert max(density.counts.values()) == 60
