"""The due time of an occurrence: its nominal time after spread, stagger and jitter; and how early it must be planned."""

from __future__ import annotations

import pytest

from chronex.engine.plan import NO_CHANCE, due_time, lead_ms
from chronex.model.job import Job
from chronex.model.policies import SpreadPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.timing.job_schedule import options_of
from chronex.timing.occurrences import stagger_offset

HOUR = 3_600_000
NOMINAL = 1_798_761_600_000  # 2027-01-01T00:00:00Z, a Friday
STAGGER = stagger_offset("j", HOUR)


class Highest:
    """Draws the highest number that there is."""

    def randrange(self, stop: int, /) -> int:
        return stop - 1


def job(options: str = "", spread: SpreadPolicy | None = None) -> Job:
    return Job(id="j", schedule=f"0 * * * * {options}".strip(), spread=spread)


@pytest.mark.parametrize(
    ("options", "delay", "jitter"),
    [
        ("", 0, 0),
        ("{jitter:30s}", 29_999, 29_999),
        ("{stagger:1h}", STAGGER, 0),
        ("{stagger:1h,jitter:1s}", STAGGER + 999, 999),
    ],
)
def test_stagger_and_jitter_are_added_to_the_nominal_time(options: str, delay: int, jitter: int) -> None:
    made = job(options)
    due = due_time(made, options_of(made), NOMINAL, Highest())
    assert (due.due_ms - NOMINAL, due.jitter_ms, due.impossible) == (delay, jitter, None)


def test_a_preview_draws_no_jitter() -> None:
    made = job("{jitter:30s}")
    assert due_time(made, options_of(made), NOMINAL, NO_CHANCE).due_ms == NOMINAL


@pytest.mark.parametrize(
    ("mode", "first", "last"),
    [("after", 0, HOUR), ("around", -HOUR // 2, HOUR // 2), ("before", -HOUR, 0)],
)
def test_a_spread_starts_inside_its_window(mode: str, first: int, last: int) -> None:
    made = job(spread=SpreadPolicy(mode=mode, duration_ms=HOUR))
    due = due_time(made, options_of(made), NOMINAL, NO_CHANCE)
    assert due.decision is not None
    assert (due.decision.window_start_ms, due.decision.window_end_ms) == (NOMINAL + first, NOMINAL + last)
    assert NOMINAL + first <= due.due_ms <= NOMINAL + last
    assert due.due_ms == due.decision.chosen_ms


def test_stagger_and_jitter_follow_the_spread() -> None:
    spread = SpreadPolicy(duration_ms=HOUR)
    plain, delayed = job(spread=spread), job("{stagger:1h,jitter:1s}", spread)
    alone = due_time(plain, options_of(plain), NOMINAL, Highest())
    after = due_time(delayed, options_of(delayed), NOMINAL, Highest())
    assert after.due_ms == alone.due_ms + STAGGER + 999


def test_the_same_occurrence_has_the_same_due_time_again() -> None:
    made = job(spread=SpreadPolicy(duration_ms=HOUR))
    first, second = (due_time(made, options_of(made), NOMINAL, NO_CHANCE) for _ in range(2))
    assert first == second


def test_without_an_allowed_second_it_is_impossible_and_says_why() -> None:
    made = job(spread=SpreadPolicy(duration_ms=HOUR, only="dow=MON"))
    due = due_time(made, options_of(made), NOMINAL, NO_CHANCE)
    assert (due.due_ms, due.impossible) == (NOMINAL, Reason(ReasonCode.UNSCHEDULABLE))
    assert due.decision is not None
    assert due.decision.reason


@pytest.mark.parametrize(("mode", "least"), [("after", 0), ("around", HOUR // 2), ("before", HOUR)])
def test_a_spread_that_may_start_earlier_is_planned_earlier(mode: str, least: int) -> None:
    assert least <= lead_ms(job(spread=SpreadPolicy(mode=mode, duration_ms=HOUR))) <= least + 1_000


def test_without_a_spread_nothing_is_planned_early() -> None:
    assert lead_ms(job("{stagger:1h,jitter:30s}")) == 0
