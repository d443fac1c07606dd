"""What `show` says of coming runs beside one that is not over, and that the engine then does so."""

from __future__ import annotations

import pytest

from chronex.cli.job_output import detail_lines
from chronex.model.policies import Cadence, OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.model.states import AttemptState
from chronex.model.states import OccurrenceState as S
from chronex.testing import MINUTE, SECOND
from chronex.timing.zones import utc_zone
from chronex.views.jobs import detail_of
from chronex.views.nodes import Watch
from chronex.views.why import why
from tests.kit.machine import FIRST, SteppedEngine, steady

THAT = "that of Fri 2027-01-01 00:01:00+00:00"
LATER = [FIRST + MINUTE, FIRST + 2 * MINUTE]


def shown(machine: SteppedEngine, now: int, *, has_scheduler: bool = True) -> str:
    job = machine.stored()
    detail = machine.read(lambda reading: detail_of(reading, job, now))
    return "\n".join(detail_lines(detail, now, utc_zone(), Watch(has_scheduler=has_scheduler)))


@pytest.mark.parametrize(
    ("overlap", "words", "states"),
    [
        (OverlapPolicy.SKIP, f"each is skipped if {THAT} is not over by then", [S.SKIPPED, S.SKIPPED]),
        (OverlapPolicy.QUEUE, f"each waits until {THAT} is over", [S.QUEUED, S.QUEUED]),
        (OverlapPolicy.QUEUE_ONE, f"the first waits until {THAT} is over, and the others", [S.QUEUED, S.SKIPPED]),
        (OverlapPolicy.CANCEL_RUNNING, f"the first cancels {THAT} if it is not over by then", [S.SKIPPED, S.QUEUED]),
        (OverlapPolicy.ALLOW, "", [S.RUNNING, S.RUNNING]),
    ],
)
def test_what_becomes_of_coming_runs_beside_one_that_is_not_over(
    overlap: OverlapPolicy, words: str, states: list[S]
) -> None:
    machine = SteppedEngine(overlap=overlap)
    machine.tick(FIRST)
    told = shown(machine, FIRST + SECOND)
    assert words in told if words else THAT not in told
    for instant in LATER:
        machine.tick(instant)
    assert [machine.occurrence(instant).state for instant in LATER] == states


def test_what_was_missed_is_skipped_for_a_run_that_outlived_its_scheduler_and_show_says_that_it_may_be() -> None:
    """It was listed as "was due", and nothing said that it may never start."""
    machine = SteppedEngine()
    machine.tick(FIRST)
    now = FIRST + MINUTE + 30 * SECOND
    told = shown(machine, now, has_scheduler=False)
    assert "was due 00:02" in told
    assert f"each is skipped if {THAT} is not over by then" in told
    machine.tick(now, awake_since=now)
    assert machine.occurrence(FIRST + MINUTE).state is S.SKIPPED


def test_where_all_that_was_missed_is_made_up_for_it_waits() -> None:
    machine = SteppedEngine(recovery=RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL))
    machine.tick(FIRST)
    now = FIRST + MINUTE + 30 * SECOND
    assert "those that were missed wait for it (execute_all)" in shown(machine, now, has_scheduler=False)
    machine.tick(now, awake_since=now)
    assert machine.occurrence(FIRST + MINUTE).state is S.QUEUED


def test_a_retry_that_gives_way_to_the_newest_is_in_nobodys_way() -> None:
    machine = SteppedEngine(retry=steady(3, 5 * MINUTE, newest_wins=True))
    (launch,) = machine.tick(FIRST)
    assert "is not over by then" in shown(machine, FIRST + SECOND)
    machine.end(launch, AttemptState.FAILED, FIRST + 2 * SECOND)
    assert THAT not in shown(machine, FIRST + 3 * SECOND)
    machine.tick(FIRST + MINUTE)
    assert machine.occurrence(FIRST + MINUTE).state is S.RUNNING


def test_one_that_waits_for_its_turn_is_in_the_way_as_one_that_runs_is() -> None:
    """Both `show` and `why` named the next run, and it was skipped for one that waited for its condition."""
    machine = SteppedEngine(wait_for=("mains",))
    machine.tick(FIRST)
    now = FIRST + SECOND
    assert f"each is skipped if {THAT} is not over by then" in shown(machine, now)
    answer = machine.read(lambda reading: why(reading, "job", FIRST + MINUTE, now))
    assert answer is not None
    risk = "unless an earlier occurrence still runs or waits (that of 2027-01-01 00:01+00:00 is not over)"
    assert any(link.fact.startswith(risk) for link in answer.links)
    machine.tick(FIRST + MINUTE)
    assert [machine.occurrence(FIRST + n * MINUTE).state for n in (0, 1)] == [S.QUEUED, S.SKIPPED]


def test_where_one_may_wait_and_one_does_each_is_skipped() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.QUEUE_ONE)
    machine.tick(FIRST)
    machine.tick(FIRST + MINUTE)
    assert "each is skipped while that of Fri 2027-01-01 00:02:00+00:00 waits" in shown(machine, FIRST + MINUTE)
    machine.tick(FIRST + 2 * MINUTE)
    assert machine.occurrence(FIRST + 2 * MINUTE).state is S.SKIPPED


def test_an_interval_that_counts_from_its_end_is_not_over_while_its_run_goes_on_or_waits_for_a_retry() -> None:
    """`show` said `next never` of it."""
    machine = SteppedEngine("@every 1m", cadence=Cadence.FIXED_DELAY, retry=steady(1, 5 * MINUTE))
    (launch,) = machine.tick(FIRST)
    assert "next       counted from the end of its run" in shown(machine, FIRST + SECOND)
    machine.end(launch, AttemptState.FAILED, FIRST + 2 * SECOND)
    assert "next       counted from the end of its run" in shown(machine, FIRST + 3 * SECOND)
    (again,) = machine.tick(FIRST + 6 * MINUTE)
    machine.end(again, AttemptState.SUCCESS, FIRST + 7 * MINUTE)
    assert "next       Fri 2027-01-01 00:09:00" in shown(machine, FIRST + 7 * MINUTE)


def test_what_max_leaves_no_further_run_of_is_over_while_its_last_run_goes_on() -> None:
    machine = SteppedEngine("@every 1m {max:1}", cadence=Cadence.FIXED_DELAY)
    machine.tick(FIRST)
    assert "next       never" in shown(machine, FIRST + SECOND)
