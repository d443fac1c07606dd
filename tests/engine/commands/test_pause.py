"""pause and resume: what is skipped, by whom, and until when."""

from __future__ import annotations

import pytest

from chronex.engine.commands import pause, resume
from chronex.errors import NotPossibleError
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy
from chronex.model.reasons import ReasonCode
from chronex.model.states import OccurrenceState
from chronex.testing import MINUTE
from tests.kit.machine import BOB, FIRST, START, SteppedEngine

ALL = RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)


def states(world: SteppedEngine) -> list[str]:
    return [o.state.value for o in reversed(world.read(lambda reading: reading.occurrences("job")))]


def test_a_paused_job_skips_and_says_who_paused_it() -> None:
    world = SteppedEngine()
    world.ask(pause, "job", at=START + 1)
    assert world.tick(FIRST) == []
    skipped = world.occurrence(FIRST)
    assert (skipped.state, str(skipped.reason)) == (OccurrenceState.SKIPPED, "paused by ann@desk (cli)")


def test_a_pause_with_an_end_is_over_by_itself_and_the_journal_says_so() -> None:
    world = SteppedEngine()
    world.ask(pause, "job", at=START + 1, until_ms=FIRST + 1)
    world.tick(FIRST)
    assert len(world.tick(FIRST + MINUTE)) == 1
    assert not world.stored().progress.paused
    assert [e.name for e in world.events() if e.name.startswith("JobR")] == ["JobResumed"]


def test_what_was_due_in_a_pause_stays_skipped_when_no_daemon_was_there_to_skip_it() -> None:
    world = SteppedEngine(recovery=ALL)
    world.ask(pause, "job", at=FIRST + 1)  # the instant before it was only missed
    world.ask(resume, "job", at=FIRST + 2 * MINUTE + 1)
    awake = FIRST + 3 * MINUTE + 1
    world.tick(awake, awake_since=awake)
    assert states(world) == ["running", "skipped", "skipped", "queued"]
    # The first and the last are owed and run one after the other; the pause speaks of those between them.
    assert world.occurrence(FIRST + 3 * MINUTE).reason.code is not ReasonCode.PAUSED


def test_what_was_planned_before_a_pause_and_is_due_in_it_is_skipped_and_runs_when_resumed_in_time() -> None:
    for is_resumed in (False, True):
        world = SteppedEngine("* * * * * {jitter:50s}")
        world.tick(FIRST)
        due = world.occurrence(FIRST).due_ms
        assert due > FIRST
        world.ask(pause, "job", at=FIRST + 1)
        if is_resumed:
            world.ask(resume, "job", at=FIRST + 2)
        assert len(world.tick(due)) == is_resumed


def test_pausing_again_moves_the_end_and_resuming_twice_tells_once() -> None:
    world = SteppedEngine()
    world.ask(pause, "job", at=START + 1, until_ms=START + 100)
    world.ask(pause, "job", at=START + 2, by=BOB)
    assert (world.stored().progress.paused_until_ms, world.stored().progress.paused_by) == (None, str(BOB))
    world.ask(resume, "job", at=START + 3)
    world.ask(resume, "job", at=START + 4)
    assert [e.name for e in world.events()][-3:] == ["JobPaused", "JobPaused", "JobResumed"]


def test_a_pause_must_end_in_the_future() -> None:
    with pytest.raises(NotPossibleError, match="in the future"):
        SteppedEngine().ask(pause, "job", at=FIRST, until_ms=FIRST)
