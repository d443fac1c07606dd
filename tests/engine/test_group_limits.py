"""Who has a place in a group, who goes first, and when a rate allows the next start: pure functions by their rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.engine.group_limits import (
    CATCH_UP_BEHIND_MS,
    MOST_OVERTAKEN_MS,
    POINT_MS,
    GroupUse,
    kept_starts,
    lacking,
    order_of,
    ready_at,
)
from chronex.model.groups import MOST_PRIORITY, CatchUpPace, StartRate
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import ReasonCode
from chronex.testing import HOUR, MINUTE, SECOND

NOW = 1_800_000_000_000
HOLDER = Occurrence(job="reindex", nominal_ms=NOW, due_ms=NOW, started_ms=NOW - HOUR)
HALF_MINUTE = StartRate(2, 30 * SECOND)

ROWS = [
    ("a group without limits", GroupUse("g"), 1, None, ""),
    ("nobody has a place", GroupUse("g", limit=1), 1, None, ""),
    ("the last place", GroupUse("g", limit=3, held=2, holder=HOLDER), 1, None, ""),
    ("no place is left", GroupUse("g", limit=3, held=3, holder=HOLDER), 1, None, ReasonCode.GROUP_FULL),
    ("two places are wanted, one is left", GroupUse("g", limit=3, held=2, holder=HOLDER), 2, None, ReasonCode.GROUP_FULL),
    ("its limit was lowered below what is held", GroupUse("g", limit=1, held=3, holder=HOLDER), 1, None, ReasonCode.GROUP_FULL),
    ("its limit was lowered below the weight, and nobody is in", GroupUse("g", limit=1), 2, None, ""),
    ("an earlier one waits", GroupUse("g", limit=3), 1, NOW - 1, ReasonCode.GROUP_LINE),
    ("it is itself the first who waits", GroupUse("g", limit=3), 1, NOW, ""),
    ("a later one waits", GroupUse("g", limit=3), 1, NOW + 1, ""),
    ("its rate is used up", GroupUse("g", rate=HALF_MINUTE, starts=(NOW - 5, NOW - 4)), 1, None, ReasonCode.GROUP_RATE),
    ("its rate allows one more", GroupUse("g", rate=HALF_MINUTE, starts=(NOW - 5,)), 1, None, ""),
    ("the first of its starts is a window ago", GroupUse("g", rate=HALF_MINUTE, starts=(NOW - 30 * SECOND, NOW)), 1, None, ""),
]  # fmt: skip


@pytest.mark.parametrize(("case", "use", "weight", "first_ms", "code"), ROWS, ids=[row[0] for row in ROWS])
def test_a_place_is_lacking_for_a_reason(
    case: str, use: GroupUse, weight: int, first_ms: int | None, code: str
) -> None:
    assert lacking(use, weight, NOW, first_ms, NOW).code == code


def test_a_full_group_says_who_holds_it_and_since_when() -> None:
    reason = lacking(GroupUse("database", limit=1, held=1, holder=HOLDER), 1, NOW, None, NOW)
    assert str(reason) == "group database is full: reindex since 2027-01-15T07:00:00Z"


def test_a_rate_says_when_it_starts_the_next() -> None:
    reason = lacking(GroupUse("api", rate=HALF_MINUTE, starts=(NOW - 5, NOW - 4)), 1, NOW, None, NOW)
    assert str(reason) == "group api has a rate, and starts the next at 2027-01-15T08:00:29.995Z"


def test_a_point_of_priority_is_a_minute_of_waiting() -> None:
    plain = order_of(NOW, 0, is_catch_up=False)
    assert order_of(NOW + 10 * MINUTE, 10, is_catch_up=False) == plain
    assert order_of(NOW + 10 * MINUTE - 1, 10, is_catch_up=False) < plain
    assert order_of(NOW + 10 * MINUTE + 1, 10, is_catch_up=False) > plain


@given(st.integers(-MOST_PRIORITY, MOST_PRIORITY), st.integers(-MOST_PRIORITY, MOST_PRIORITY), st.booleans())
def test_nobody_who_comes_after_the_bound_goes_first(own: int, other: int, is_past: bool) -> None:
    waits = order_of(NOW, own, is_catch_up=is_past)
    assert order_of(NOW + MOST_OVERTAKEN_MS + 1, other, is_catch_up=False) > waits
    assert MOST_OVERTAKEN_MS == 2 * MOST_PRIORITY * POINT_MS + CATCH_UP_BEHIND_MS


@given(st.lists(st.integers(0, 200), max_size=60), st.integers(1, 5), st.integers(1, 50))
def test_no_window_has_more_starts_than_its_rate(steps: list[int], count: int, window: int) -> None:
    """Whoever comes starts as soon as the rate allows it."""
    rate, starts, now = StartRate(count, window), list[int](), NOW
    for step in steps:
        now = max(now + step, ready_at(rate, kept_starts(starts, rate, now), now))
        starts.append(now)
    for start in starts:
        assert sum(start <= other < start + window for other in starts) <= count


@given(st.lists(st.integers(0, 100), max_size=40), st.integers(1, 5), st.integers(1, 50))
def test_a_rate_holds_up_nobody_for_longer_than_it_must(steps: list[int], count: int, window: int) -> None:
    """One millisecond before the time that it names there is a window that would have too many."""
    rate, starts, now = StartRate(count, window), list[int](), NOW
    for step in steps:
        now += step
        ready = ready_at(rate, starts, now)
        if ready > now:
            assert sum(ready - 1 - window < other for other in starts) >= count
        now = max(now, ready)
        starts.append(now)


def test_starts_of_a_clock_that_was_set_back_hold_up_nobody_for_ever() -> None:
    assert ready_at(HALF_MINUTE, (NOW + HOUR, NOW + HOUR + 1), NOW) == NOW
    assert kept_starts((NOW + HOUR, NOW - 1), HALF_MINUTE, NOW) == (NOW - 1,)


@pytest.mark.parametrize(
    ("slots", "share", "places"), [(50, 0.5, 25), (1, 0.5, 1), (3, 0.5, 1), (10, 1.0, 10), (4, 0.01, 1)]
)
def test_catch_up_has_its_share_of_the_slots_and_at_least_one(slots: int, share: float, places: int) -> None:
    assert CatchUpPace(share=share).places(slots) == places
