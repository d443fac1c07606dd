"""Which missed instants run, by recovery strategy, and how long backlogs are listed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronex.engine.plan import (
    MOST_CATCH_UP,
    MOST_COUNTED,
    MOST_LISTED,
    TOO_MANY,
    Backlog,
    InstantOutcome,
    Limits,
    backlog_of,
    most_listed,
    reason_of_older,
    recovery_outcomes,
)
from chronex.model.job import Job
from chronex.model.occurrence import MissedSpan
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.model.reasons import Reason, ReasonCode
from chronex.timing.job_schedule import schedule_of

HOUR = 3_600_000
HOURLY = schedule_of(Job(id="hourly", schedule="0 * * * *"))
MISSED = tuple(hour * HOUR for hour in range(1, 6))
NOW = 5 * HOUR + 30 * 60_000


def outcomes(policy: RecoveryPolicy) -> list[tuple[int, bool]]:
    return [(outcome.nominal_ms // HOUR, outcome.runs) for outcome in recovery_outcomes(policy, MISSED, None, NOW)]


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
def test_each_missed_instant_has_one_outcome(policy: RecoveryPolicy, run: set[int]) -> None:
    assert outcomes(policy) == [(hour, hour in run) for hour in range(1, 6)]


def test_those_that_do_not_run_say_why() -> None:
    for strategy in RecoveryStrategy:
        for outcome in recovery_outcomes(RecoveryPolicy(strategy, max_count=1), MISSED, None, NOW):
            assert outcome.runs or outcome.reason


def test_a_compressed_run_has_the_span_it_covers() -> None:
    *_, last = recovery_outcomes(RecoveryPolicy(RecoveryStrategy.COMPRESSED), MISSED, None, NOW)
    assert last == InstantOutcome(5 * HOUR, runs=True, span=(HOUR, 5 * HOUR))
    *_, longer = recovery_outcomes(
        RecoveryPolicy(RecoveryStrategy.COMPRESSED), MISSED, MissedSpan(from_ms=0, to_ms=1, count=2), NOW
    )
    assert longer.span == (0, 5 * HOUR)


def test_a_short_backlog_is_listed_whole() -> None:
    assert backlog_of(HOURLY, 0, NOW) == Backlog(MISSED, None, 5 * HOUR)


def test_nothing_is_missed_when_nothing_was_due() -> None:
    assert backlog_of(HOURLY, HOUR, HOUR + 5) == Backlog((), None, HOUR)
    assert recovery_outcomes(RecoveryPolicy(), (), None, NOW) == []


def test_ten_years_of_seconds_are_a_span_and_the_newest_ones() -> None:
    schedule = schedule_of(Job(id="s", schedule="* * * * * *"))
    end = 10 * 366 * 24 * HOUR
    found = backlog_of(schedule, 0, end)
    assert found.listed == tuple(range(end - (MOST_LISTED - 1) * 1000, end + 1, 1000))
    last = end - MOST_LISTED * 1000
    assert found.older == MissedSpan(from_ms=1000, to_ms=last, count=MOST_COUNTED, is_more=True)


def test_a_span_is_counted_where_that_is_cheap() -> None:
    found = backlog_of(HOURLY, 0, 1_000 * HOUR)
    assert found.older == MissedSpan(from_ms=HOUR, to_ms=500 * HOUR, count=500)


ALL = RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)
MANY = tuple(hour * HOUR for hour in range(1, 2_001))
LATE = MANY[-1] + 1


@pytest.mark.parametrize(
    ("policy", "catch_up", "run", "reason"),
    [
        (ALL, MOST_CATCH_UP, MOST_CATCH_UP, TOO_MANY),
        (ALL, 30, 30, TOO_MANY),
        (ALL, 0, 0, TOO_MANY),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=700), MOST_CATCH_UP, 700, Reason(ReasonCode.TOO_OLD)),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=700), 300, 300, TOO_MANY),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_count=5_000), MOST_CATCH_UP, MOST_CATCH_UP, TOO_MANY),
        (
            RecoveryPolicy(RecoveryStrategy.BOUNDED, max_age_ms=10 * HOUR),
            MOST_CATCH_UP,
            10,
            Reason(ReasonCode.TOO_OLD),
        ),
        (RecoveryPolicy(RecoveryStrategy.BOUNDED, max_age_ms=3_000 * HOUR), MOST_CATCH_UP, MOST_CATCH_UP, TOO_MANY),
    ],
)
def test_the_newest_run_up_to_the_limit_and_the_others_say_what_stopped_them(
    policy: RecoveryPolicy, catch_up: int, run: int, reason: Reason
) -> None:
    missed = backlog_of(HOURLY, 0, LATE, most_listed(policy, Limits(catch_up)))
    outcomes = recovery_outcomes(policy, missed.listed, missed.older, LATE, catch_up)
    assert [outcome.nominal_ms for outcome in outcomes if outcome.runs] == list(MANY[len(MANY) - run :])
    assert {outcome.reason for outcome in outcomes if not outcome.runs} <= {reason}
    assert missed.older is not None
    assert reason_of_older(policy, missed.older, LATE, catch_up) == reason


class OnlyForwards:
    """Does not know what came before, as a random interval."""

    def next(self, after_ms: int) -> int | None:
        return after_ms + 7

    def previous(self, before_ms: int) -> int | None:
        return None

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return iter(range(after_ms + 7, until_ms + 1, 7))


def test_a_schedule_without_previous_is_walked_forwards() -> None:
    assert backlog_of(OnlyForwards(), 0, 21) == Backlog((7, 14, 21), None, 21)
    found = backlog_of(OnlyForwards(), 0, 7 * 2_000)
    assert found.listed == tuple(range(7 * 1_501, 7 * 2_000 + 1, 7))
    assert found.older == MissedSpan(from_ms=7, to_ms=7 * 1_500, count=1_500)


def test_a_long_walk_is_cut_into_stretches_of_which_only_the_last_lists_any() -> None:
    cursor, stretches = 0, 0
    while (found := backlog_of(OnlyForwards(), cursor, 7 * 45_000)).has_more:
        assert (found.listed, found.older) == (
            (),
            MissedSpan(from_ms=cursor + 7, to_ms=cursor + 7 * MOST_COUNTED, count=MOST_COUNTED),
        )
        cursor, stretches = found.cursor_ms, stretches + 1
    assert (stretches, len(found.listed), found.cursor_ms) == (4, MOST_LISTED, 7 * 45_000)
    assert found.older is not None
    assert found.older.from_ms == 7 * 40_001


def test_the_reason_of_the_limit_says_the_limit() -> None:
    assert str(TOO_MANY) == f"only the newest {MOST_CATCH_UP} missed occurrences of a job are made up for"
