"""The three readings of the fake clock, and what moves them apart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from chronex.testing import HOUR, MINUTE, FakeClock

START = datetime(2027, 1, 1, tzinfo=UTC)


def moved(clock: FakeClock, before: tuple[int, int, int]) -> tuple[int, int, int]:
    after = readings(clock)
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


def readings(clock: FakeClock) -> tuple[int, int, int]:
    return clock.wall_ms(), clock.monotonic_ms(), clock.boottime_ms()


@pytest.mark.parametrize(
    ("change", "by"),
    [
        (lambda clock: clock.advance(MINUTE), (MINUTE, MINUTE, MINUTE)),
        (lambda clock: clock.advance(timedelta(minutes=1)), (MINUTE, MINUTE, MINUTE)),
        (lambda clock: clock.sleep(timedelta(hours=1)), (HOUR, 0, HOUR)),
        (lambda clock: clock.step(HOUR), (HOUR, 0, 0)),
        (lambda clock: clock.step(timedelta(hours=-1)), (-HOUR, 0, 0)),
    ],
)  # fmt: skip
def test_each_change_moves_its_readings(change: Callable[[FakeClock], None], by: tuple[int, int, int]) -> None:
    clock = FakeClock(START)
    before = readings(clock)
    change(clock)
    assert moved(clock, before) == by


def test_a_start_is_an_aware_datetime_or_milliseconds() -> None:
    assert FakeClock(START).wall_ms() == FakeClock(1_798_761_600_000).wall_ms() == 1_798_761_600_000
    with pytest.raises(TypeError):
        FakeClock(datetime(2027, 1, 1))
