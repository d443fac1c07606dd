"""Sleep and clock steps, distinguished by three clocks."""

from __future__ import annotations

import pytest

from chronex.daemon.wakeups import WakeupDetector

HOUR = 3_600_000


class Hands:
    """A clock whose three hands are moved one by one."""

    def __init__(self) -> None:
        self.wall, self.awake, self.boot = 1_000_000_000_000, 5_000, 5_000

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.awake

    def boottime_ms(self) -> int:
        return self.boot

    def pass_time(self, ms: int) -> None:
        self.wall, self.awake, self.boot = self.wall + ms, self.awake + ms, self.boot + ms


def test_ordinary_time_is_no_jump() -> None:
    hands = Hands()
    detector = WakeupDetector(hands)
    since = detector.since_ms
    hands.pass_time(30_000)
    assert detector.check() is None
    assert detector.since_ms == since


def test_a_sleep_begins_a_new_waking_time() -> None:
    hands = Hands()
    detector = WakeupDetector(hands)
    hands.wall, hands.boot = hands.wall + 8 * HOUR, hands.boot + 8 * HOUR
    assert detector.check() == (hands.wall, 8 * HOUR, 8 * HOUR, 0)
    assert detector.since_ms == hands.wall


@pytest.mark.parametrize("step", [60_000, HOUR, 365 * 24 * HOUR])
def test_a_clock_set_forwards_counts_as_downtime(step: int) -> None:
    hands = Hands()
    detector = WakeupDetector(hands)
    hands.wall += step
    jump = detector.check()
    assert jump is not None
    assert (jump.by_ms, jump.slept_ms) == (step, 0)
    assert detector.since_ms == hands.wall


@pytest.mark.parametrize("step", [60_000, HOUR, 365 * 24 * HOUR])
def test_a_clock_set_back_makes_nothing_look_missed(step: int) -> None:
    hands = Hands()
    detector = WakeupDetector(hands)
    hands.wall -= step
    assert detector.check() is not None
    assert detector.since_ms <= hands.wall
    assert detector.check() is None


@pytest.mark.parametrize("pause", [91_000, HOUR])
def test_a_process_that_was_stopped_has_seen_nothing(pause: int) -> None:
    hands = Hands()
    detector = WakeupDetector(hands)
    hands.pass_time(pause)
    jump = detector.check()
    assert jump is not None
    assert (jump.name, jump.by_ms, jump.stalled_ms) == ("SchedulerStalled", 0, pause)
    assert detector.since_ms == hands.wall
