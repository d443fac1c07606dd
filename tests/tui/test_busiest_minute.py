"""The busiest minute: plain values and lines."""

from __future__ import annotations

import pytest

from chronex_tui.model.busiest_minute import (
    busiest_minute_lines,
    find_busiest_minute,
    fullest_minute,
    shifted,
    spread_minute,
)
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.layout import plain
from tests.tui.world import DAY, HOME, NOW, job

MIDNIGHT = NOW // DAY * DAY + DAY  # of UTC
DISPLAY = DisplaySettings(NOW, UNICODE, HOME)


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


def test_what_cannot_be_moved_by_its_minute_is_told_so() -> None:
    busiest_minute = spread_minute([job("a", "0 0 0 * * *"), job("b", "0 0 0 * * *")], MIDNIGHT)
    assert busiest_minute.starts_after == busiest_minute.starts == 2
    assert "give them a spread instead" in plain(busiest_minute_lines(busiest_minute, DISPLAY))


def test_a_week_in_which_no_two_start_together() -> None:
    assert fullest_minute([(MIDNIGHT, 1)]) is None
    assert find_busiest_minute([job("a", "0 3 * * *")], NOW, HOME) is None
    assert "No two jobs start in the same minute" in plain(busiest_minute_lines(None, DISPLAY))
