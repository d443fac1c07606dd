"""What becomes of instants that passed while nothing ran, per recovery strategy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronex.engine import reasons
from chronex.engine.backlog import MOST_LISTED, Backlog, Fate, backlog_of, settle
from chronex.engine.schedule import schedule_of
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.model.records import Job

HOUR = 3_600_000
HOURLY = schedule_of(Job(id="hourly", schedule="0 * * * *"))
MISSED = tuple(hour * HOUR for hour in range(1, 6))
NOW = 5 * HOUR + 30 * 60_000


def fates(policy: RecoveryPolicy) -> list[tuple[int, bool]]:
    return [(fate.nominal_ms // HOUR, fate.runs) for fate in settle(policy, MISSED, None, NOW)]


@pytest.mark.parametrize(
    ("policy", "run"),
    [
        (RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL), {1, 2, 3, 4, 5}),
        (RecoveryPolicy(RecoveryStrategy.EXECUTE_LAST), {5}),
        (RecoveryPolicy(RecoveryStrategy.MARK_MISSED), set()),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=2), {4, 5}),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_age_ms=3 * HOUR), {3, 4, 5}),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=4, max_age_ms=2 * HOUR), {4, 5}),
        (RecoveryPolicy(RecoveryStrategy.COMPRESSED), {5}),
    ],
)
def test_each_missed_instant_has_one_fate(policy: RecoveryPolicy, run: set[int]) -> None:
    assert fates(policy) == [(hour, hour in run) for hour in range(1, 6)]


def test_those_that_do_not_run_say_why() -> None:
    for strategy in RecoveryStrategy:
        for fate in settle(RecoveryPolicy(strategy, max_count=1), MISSED, None, NOW):
            assert fate.runs or fate.reason


def test_a_compressed_run_is_told_the_span_it_covers() -> None:
    *_, last = settle(RecoveryPolicy(RecoveryStrategy.COMPRESSED), MISSED, None, NOW)
    assert last == Fate(5 * HOUR, runs=True, span=(HOUR, 5 * HOUR))
    *_, longer = settle(RecoveryPolicy(RecoveryStrategy.COMPRESSED), MISSED, (0, HOUR - 1), NOW)
    assert longer.span == (0, 5 * HOUR)


@pytest.mark.parametrize("strategy", list(RecoveryStrategy))
def test_a_short_backlog_is_listed_whole(strategy: RecoveryStrategy) -> None:
    assert backlog_of(HOURLY, 0, NOW, strategy) == Backlog(MISSED)


def test_nothing_is_missed_when_nothing_was_due() -> None:
    assert backlog_of(HOURLY, HOUR, HOUR + 5, RecoveryStrategy.EXECUTE_LAST) == Backlog(())
    assert settle(RecoveryPolicy(), (), None, NOW) == []


def test_ten_years_of_seconds_are_told_as_a_span_and_the_newest_ones() -> None:
    schedule = schedule_of(Job(id="s", schedule="* * * * * *"))
    end = 10 * 366 * 24 * HOUR
    found = backlog_of(schedule, 0, end, RecoveryStrategy.EXECUTE_LAST)
    assert found.listed == tuple(range(end - (MOST_LISTED - 1) * 1000, end + 1, 1000))
    assert found.older == (1000, end - MOST_LISTED * 1000)


def test_execute_all_takes_the_oldest_first_and_says_that_there_is_more() -> None:
    schedule = schedule_of(Job(id="s", schedule="* * * * * *"))
    found = backlog_of(schedule, 0, 24 * HOUR, RecoveryStrategy.EXECUTE_ALL)
    assert (found.listed[0], len(found.listed), found.has_more) == (1000, MOST_LISTED, True)


def test_a_schedule_that_cannot_look_back_is_walked_forwards() -> None:
    class OnlyForwards:
        def next(self, after_ms: int) -> int | None:
            return after_ms + 7

        def previous(self, before_ms: int) -> int | None:
            return None

        def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
            return iter(range(after_ms + 7, until_ms + 1, 7))

    assert backlog_of(OnlyForwards(), 0, 21, RecoveryStrategy.EXECUTE_LAST) == Backlog((7, 14, 21))


def test_the_reasons_are_sentences_for_people() -> None:
    for name, text in vars(reasons).items():
        if name.isupper():
            assert text[0].islower()
            assert not text.endswith(".")
