"""pause and resume: what is skipped, by whom, and until when. cancel: with and without a daemon that runs the work."""

from __future__ import annotations

import pytest

from chronex.engine.commands import cancel, pause, resume, trigger
from chronex.engine.commands.control import MOST_PAUSES
from chronex.errors import AmbiguousIdError, NotPossibleError, UnknownIdError
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy, TaskMode
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.testing import MINUTE
from tests.kit.machine import BOB, FIRST, ONE, START, TWO, SteppedEngine

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
    # The first and the last are caught up with, one after the other; the pause skipped those between them.
    assert world.occurrence(FIRST + 3 * MINUTE).reason.code is not ReasonCode.PAUSED


def test_what_was_due_in_an_earlier_pause_stays_skipped_too() -> None:
    """Paused and resumed twice while no daemon ran."""
    world = SteppedEngine(recovery=ALL, overlap=OverlapPolicy.ALLOW)
    for begin in (1, 5):
        world.ask(pause, "job", at=FIRST + begin * MINUTE + 1)
        world.ask(resume, "job", at=FIRST + (begin + 2) * MINUTE + 1)
    now = FIRST + 9 * MINUTE
    launched = world.tick(now, awake_since=now)
    minutes = [(launch.occurrence.nominal_ms - FIRST) // MINUTE for launch in launched]
    assert minutes == [0, 1, 4, 5, 8, 9]


def test_the_pauses_that_are_kept_are_bounded() -> None:
    world = SteppedEngine()
    for number in range(3 * MOST_PAUSES):
        world.ask(pause, "job", at=FIRST + 2 * number * MINUTE)
        world.ask(resume, "job", at=FIRST + (2 * number + 1) * MINUTE)
    assert len(world.stored().progress.pauses) == MOST_PAUSES


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


def test_what_was_claimed_before_a_pause_goes_on_in_it_also_when_its_scheduler_died_before_it_began() -> None:
    world = SteppedEngine()
    world.tick(FIRST)
    world.ask(pause, "job", at=FIRST + 1)
    world.boot("node-2")
    world.engine.take_over(lambda process: False, FIRST + 1_000)
    (again,) = world.tick(FIRST + 1_000)
    assert (again.occurrence.nominal_ms, again.attempt.number) == (FIRST, 2)
    assert world.tick(FIRST + MINUTE) == []
    assert world.occurrence(FIRST + MINUTE).state is OccurrenceState.SKIPPED


def test_pausing_again_moves_the_end_and_resuming_twice_is_one_event() -> None:
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


WHY = Reason(ReasonCode.CANCELED, by="ann@desk (cli)")


def test_what_waits_is_over_at_once() -> None:
    world = SteppedEngine(overlap=OverlapPolicy.QUEUE)
    world.tick(FIRST)
    queued = world.ask(trigger, "job").occurrence
    done = world.ask(cancel, queued.id, at=FIRST + 2)
    assert (done.is_over, done.occurrence.state) == (True, OccurrenceState.CANCELED)
    pending = world.ask(trigger, "job", at=FIRST + 3).occurrence
    assert world.ask(cancel, pending.id, at=FIRST + 4).is_over


def test_what_runs_is_ordered_to_stop_by_the_next_tick_and_only_once() -> None:
    world = SteppedEngine(tasks=(ONE, TWO))
    (launch,) = world.tick(FIRST)
    asked = world.ask(cancel, launch.occurrence.id)
    assert not asked.is_over
    assert [(order.attempt.id, order.reason) for order in world.canceled(FIRST + 2)] == [(launch.attempt.id, WHY)]
    assert world.canceled(FIRST + 3) == []
    assert world.launches_after(launch, "canceled", FIRST + 4, reason=WHY) == []
    ended = world.occurrence(FIRST)
    assert (ended.state, ended.reason) == (OccurrenceState.CANCELED, WHY)
    assert world.run(FIRST, "two").state is RunState.CANCELED


@pytest.mark.parametrize(
    ("state", "ends_as"), [("success", "completed"), ("failed", "canceled"), ("timeout", "canceled")]
)
def test_an_end_that_was_faster_than_the_cancel_counts_but_is_not_tried_again(state: str, ends_as: str) -> None:
    world = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = world.tick(FIRST)
    world.ask(cancel, launch.occurrence.id)
    world.end(launch, state, FIRST + 2)
    assert world.occurrence(FIRST).state.value == ends_as
    assert world.read(lambda reading: reading.dead_letters()) == []


def test_the_node_that_runs_the_work_reads_the_request_whichever_node_ticks_first() -> None:
    world = SteppedEngine()
    (launch,) = world.tick(FIRST)
    owner = world.engine
    world.ask(cancel, launch.occurrence.id)
    world.boot("node-2")
    assert world.canceled(FIRST + 2) == []
    world.engine = owner
    assert [order.attempt.id for order in world.canceled(FIRST + 3)] == [launch.attempt.id]


def test_what_waits_for_a_retry_is_over_at_once() -> None:
    world = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = world.tick(FIRST)
    world.end(launch, "failed", FIRST + 2)
    assert world.ask(cancel, launch.occurrence.id, at=FIRST + 3).is_over
    assert world.run(FIRST).state is RunState.CANCELED


def test_parallel_tasks_are_all_stopped() -> None:
    world = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL)
    launches = world.tick(FIRST)
    world.ask(cancel, launches[0].occurrence.id)
    assert {order.attempt.task for order in world.canceled(FIRST + 2)} == {"one", "two"}


@pytest.mark.parametrize("process_lives", [True, False])
def test_the_successor_of_a_dead_daemon_carries_out_the_request(process_lives: bool) -> None:

    world = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = world.tick(FIRST)
    child = ProcessIdentity(77, "boot", 5)
    world.store.update(world.engine.started(launch.attempt, child, "", FIRST))
    world.ask(cancel, launch.occurrence.id)
    world.canceled(FIRST + 2)  # the request was read, and then the node died before it could act
    world.boot("node-2")
    _, adopted = world.engine.take_over(lambda process: process_lives and process == child, FIRST + MINUTE)
    if process_lives:
        assert [order.attempt.id for order in world.canceled(FIRST + MINUTE + 1)] == [adopted[0].id]
        assert world.occurrence(FIRST).state is OccurrenceState.RUNNING
    else:
        assert world.occurrence(FIRST).state is OccurrenceState.CANCELED
        attempt = world.read(lambda reading: reading.attempt("job", FIRST, "one", 1))
        assert attempt is not None
        assert attempt.state is AttemptState.CANCELED


def test_any_id_inside_an_occurrence_names_it_and_a_beginning_will_do() -> None:
    world = SteppedEngine()
    (launch,) = world.tick(FIRST)
    for text in (launch.occurrence.id[:12], launch.attempt.id[:20], world.run(FIRST).id, "job@2027-01-01T00:01:00Z"):
        assert world.ask(cancel, text).occurrence.nominal_ms == FIRST


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("occ_ffffffff", "no occurrence, run or attempt"),
        ("occ_", "at least 4 characters"),
        ("nonsense", "at least 4 characters"),
        ("job@2027-01-01T00:00:00", "say which zone"),
        ("job@yesterday", "write the time as"),
        ("job@2027-05-01T00:00:00Z", "no occurrence, run or attempt"),
    ],
)
def test_an_unknown_id_is_an_error_with_a_hint(text: str, says: str) -> None:
    world = SteppedEngine()
    world.tick(FIRST)
    with pytest.raises(UnknownIdError, match=says):
        world.ask(cancel, text)


def test_a_beginning_of_two_ids_is_refused() -> None:
    world = SteppedEngine(overlap=OverlapPolicy.ALLOW)
    ids: list[str] = []
    while len({one[:8] for one in ids}) == len(ids):  # 16 bits: a pair is found soon
        ids.append(world.ask(trigger, "job", at=START + 1 + 2 * len(ids)).occurrence.id)
    with pytest.raises(AmbiguousIdError, match="write more of it"):
        world.ask(cancel, ids[-1][:8])


def test_what_has_ended_cannot_be_canceled() -> None:
    world = SteppedEngine()
    (launch,) = world.tick(FIRST)
    world.end(launch, "success", FIRST + 2)
    with pytest.raises(NotPossibleError, match="has ended already: completed"):
        world.ask(cancel, launch.occurrence.id, at=FIRST + 3)


def test_the_journal_says_who_asked_and_why() -> None:
    world = SteppedEngine()
    (launch,) = world.tick(FIRST)
    world.ask(cancel, launch.occurrence.id, by=BOB)
    event = world.events()[-1]
    assert (event.name, event.actor, event.nominal_ms) == ("CancelRequested", "bob@lap (tui)", FIRST)
