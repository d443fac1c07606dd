"""pause and resume: what is skipped, by whom, and until when. cancel: with and without a daemon that runs the work."""

from __future__ import annotations

import pytest

from chronex.engine.commands import cancel, pause, resume, trigger
from chronex.errors import AmbiguousIdError, NotPossibleError, UnknownIdError
from chronex.model.job import MOST_PAUSES
from chronex.model.occurrence import ProcessIdentity
from chronex.model.policies import OverlapPolicy, RecoveryPolicy, RecoveryStrategy, RetryPolicy, TaskMode
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.testing import MINUTE
from chronex.text.instants import LAST_MS
from tests.kit.machine import BOB, FIRST, ONE, START, TWO, SteppedEngine

ALL = RecoveryPolicy(RecoveryStrategy.EXECUTE_ALL)


def states(machine: SteppedEngine) -> list[str]:
    return [o.state.value for o in reversed(machine.read(lambda reading: reading.occurrences("job")))]


def test_a_paused_job_skips_and_says_who_paused_it() -> None:
    machine = SteppedEngine()
    machine.ask(pause, "job", at=START + 1)
    assert machine.tick(FIRST) == []
    skipped = machine.occurrence(FIRST)
    assert (skipped.state, str(skipped.reason)) == (OccurrenceState.SKIPPED, "paused by ann@desk (cli)")


def test_a_pause_with_an_end_is_over_by_itself_and_the_journal_says_so() -> None:
    machine = SteppedEngine()
    machine.ask(pause, "job", at=START + 1, until_ms=FIRST + 1)
    machine.tick(FIRST)
    assert len(machine.tick(FIRST + MINUTE)) == 1
    assert not machine.stored().progress.paused
    assert [e.name for e in machine.events() if e.name.startswith("JobR")] == ["JobResumed"]


def test_what_was_due_in_a_pause_stays_skipped_when_no_daemon_was_there_to_skip_it() -> None:
    machine = SteppedEngine(recovery=ALL)
    machine.ask(pause, "job", at=FIRST + 1)  # the instant before it was only missed
    machine.ask(resume, "job", at=FIRST + 2 * MINUTE + 1)
    awake = FIRST + 3 * MINUTE + 1
    machine.tick(awake, awake_since=awake)
    assert states(machine) == ["running", "skipped", "skipped", "queued"]
    # The first and the last are caught up with, one after the other; the pause skipped those between them.
    assert machine.occurrence(FIRST + 3 * MINUTE).reason.code is not ReasonCode.PAUSED


def test_what_was_due_in_an_earlier_pause_stays_skipped_too() -> None:
    """Paused and resumed twice while no daemon ran."""
    machine = SteppedEngine(recovery=ALL, overlap=OverlapPolicy.ALLOW)
    for begin in (1, 5):
        machine.ask(pause, "job", at=FIRST + begin * MINUTE + 1)
        machine.ask(resume, "job", at=FIRST + (begin + 2) * MINUTE + 1)
    now = FIRST + 9 * MINUTE
    launched = machine.tick(now, awake_since=now)
    minutes = [(launch.occurrence.nominal_ms - FIRST) // MINUTE for launch in launched]
    assert minutes == [0, 1, 4, 5, 8, 9]


def test_the_pauses_that_are_kept_are_bounded() -> None:
    machine = SteppedEngine()
    for number in range(3 * MOST_PAUSES):
        machine.ask(pause, "job", at=FIRST + 2 * number * MINUTE)
        machine.ask(resume, "job", at=FIRST + (2 * number + 1) * MINUTE)
    assert len(machine.stored().progress.pauses) == MOST_PAUSES


def test_what_was_planned_before_a_pause_and_is_due_in_it_is_skipped_and_runs_when_resumed_in_time() -> None:
    for is_resumed in (False, True):
        machine = SteppedEngine("* * * * * {jitter:50s}")
        machine.tick(FIRST)
        due = machine.occurrence(FIRST).due_ms
        assert due > FIRST
        machine.ask(pause, "job", at=FIRST + 1)
        if is_resumed:
            machine.ask(resume, "job", at=FIRST + 2)
        assert len(machine.tick(due)) == is_resumed


def test_what_was_claimed_before_a_pause_goes_on_in_it_also_when_its_scheduler_died_before_it_began() -> None:
    machine = SteppedEngine()
    machine.tick(FIRST)
    machine.ask(pause, "job", at=FIRST + 1)
    machine.boot("node-2")
    machine.engine.take_over(lambda process: False, FIRST + 1_000)
    (again,) = machine.tick(FIRST + 1_000)
    assert (again.occurrence.nominal_ms, again.attempt.number) == (FIRST, 2)
    assert machine.tick(FIRST + MINUTE) == []
    assert machine.occurrence(FIRST + MINUTE).state is OccurrenceState.SKIPPED


def test_pausing_again_moves_the_end_and_resuming_twice_is_one_event() -> None:
    machine = SteppedEngine()
    machine.ask(pause, "job", at=START + 1, until_ms=START + 100)
    machine.ask(pause, "job", at=START + 2, by=BOB)
    assert (machine.stored().progress.paused_until_ms, machine.stored().progress.paused_by) == (None, str(BOB))
    machine.ask(resume, "job", at=START + 3)
    machine.ask(resume, "job", at=START + 4)
    assert [e.name for e in machine.events()][-3:] == ["JobPaused", "JobPaused", "JobResumed"]


def test_a_pause_must_end_in_the_future() -> None:
    with pytest.raises(NotPossibleError, match="in the future"):
        SteppedEngine().ask(pause, "job", at=FIRST, until_ms=FIRST)


def test_a_pause_ends_at_a_time_that_can_be_shown() -> None:
    with pytest.raises(NotPossibleError, match="by the year 9999"):
        SteppedEngine().ask(pause, "job", at=FIRST, until_ms=LAST_MS + 1)


WHY = Reason(ReasonCode.CANCELED, by="ann@desk (cli)")


def test_what_waits_is_over_at_once() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.QUEUE)
    machine.tick(FIRST)
    queued = machine.ask(trigger, "job").occurrence
    done = machine.ask(cancel, queued.id, at=FIRST + 2)
    assert (done.is_over, done.occurrence.state) == (True, OccurrenceState.CANCELED)
    pending = machine.ask(trigger, "job", at=FIRST + 3).occurrence
    assert machine.ask(cancel, pending.id, at=FIRST + 4).is_over


def test_what_runs_is_ordered_to_stop_by_the_next_tick_and_only_once() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO))
    (launch,) = machine.tick(FIRST)
    asked = machine.ask(cancel, launch.occurrence.id)
    assert not asked.is_over
    assert [(order.attempt.id, order.reason) for order in machine.canceled(FIRST + 2)] == [(launch.attempt.id, WHY)]
    assert machine.canceled(FIRST + 3) == []
    assert machine.launches_after(launch, "canceled", FIRST + 4, reason=WHY) == []
    ended = machine.occurrence(FIRST)
    assert (ended.state, ended.reason) == (OccurrenceState.CANCELED, WHY)
    assert machine.run(FIRST, "two").state is RunState.CANCELED


@pytest.mark.parametrize(
    ("state", "ends_as"), [("success", "completed"), ("failed", "canceled"), ("timeout", "canceled")]
)
def test_an_end_that_was_faster_than_the_cancel_counts_but_is_not_tried_again(state: str, ends_as: str) -> None:
    machine = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = machine.tick(FIRST)
    machine.ask(cancel, launch.occurrence.id)
    machine.end(launch, state, FIRST + 2)
    assert machine.occurrence(FIRST).state.value == ends_as
    assert machine.read(lambda reading: reading.dead_letters()) == []


def test_the_node_that_runs_the_work_reads_the_request_whichever_node_ticks_first() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    owner = machine.engine
    machine.ask(cancel, launch.occurrence.id)
    machine.boot("node-2")
    assert machine.canceled(FIRST + 2) == []
    machine.engine = owner
    assert [order.attempt.id for order in machine.canceled(FIRST + 3)] == [launch.attempt.id]


def test_what_waits_for_a_retry_is_over_at_once() -> None:
    machine = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = machine.tick(FIRST)
    machine.end(launch, "failed", FIRST + 2)
    assert machine.ask(cancel, launch.occurrence.id, at=FIRST + 3).is_over
    assert machine.run(FIRST).state is RunState.CANCELED


def test_parallel_tasks_are_all_stopped() -> None:
    machine = SteppedEngine(tasks=(ONE, TWO), mode=TaskMode.PARALLEL)
    launches = machine.tick(FIRST)
    machine.ask(cancel, launches[0].occurrence.id)
    assert {order.attempt.task for order in machine.canceled(FIRST + 2)} == {"one", "two"}


@pytest.mark.parametrize("process_lives", [True, False])
def test_the_successor_of_a_dead_daemon_carries_out_the_request(process_lives: bool) -> None:

    machine = SteppedEngine(retry=RetryPolicy(max=5))
    (launch,) = machine.tick(FIRST)
    child = ProcessIdentity(77, "boot", 5)
    machine.store.update(machine.engine.started(launch.attempt, child, "", FIRST))
    machine.ask(cancel, launch.occurrence.id)
    machine.canceled(FIRST + 2)  # the request was read, and then the node died before it could act
    machine.boot("node-2")
    _, adopted = machine.engine.take_over(lambda process: process_lives and process == child, FIRST + MINUTE)
    if process_lives:
        assert [order.attempt.id for order in machine.canceled(FIRST + MINUTE + 1)] == [adopted[0].id]
        assert machine.occurrence(FIRST).state is OccurrenceState.RUNNING
    else:
        assert machine.occurrence(FIRST).state is OccurrenceState.CANCELED
        attempt = machine.read(lambda reading: reading.attempt("job", FIRST, "one", 1))
        assert attempt is not None
        assert attempt.state is AttemptState.CANCELED


def test_any_id_inside_an_occurrence_names_it_and_a_beginning_will_do() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    for text in (
        launch.occurrence.id[:12],
        launch.attempt.id[:20],
        machine.run(FIRST).id,
        "job@2027-01-01T00:01:00Z",
    ):
        assert machine.ask(cancel, text).occurrence.nominal_ms == FIRST


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
    machine = SteppedEngine()
    machine.tick(FIRST)
    with pytest.raises(UnknownIdError, match=says):
        machine.ask(cancel, text)


def test_a_beginning_of_two_ids_is_refused() -> None:
    machine = SteppedEngine(overlap=OverlapPolicy.ALLOW)
    ids: list[str] = []
    while len({one[:8] for one in ids}) == len(ids):  # 16 bits: a pair is found soon
        ids.append(machine.ask(trigger, "job", at=START + 1 + 2 * len(ids)).occurrence.id)
    with pytest.raises(AmbiguousIdError, match="write more of it"):
        machine.ask(cancel, ids[-1][:8])


def test_what_has_ended_cannot_be_canceled() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    machine.end(launch, "success", FIRST + 2)
    with pytest.raises(NotPossibleError, match="has ended already: completed"):
        machine.ask(cancel, launch.occurrence.id, at=FIRST + 3)


def test_the_journal_says_who_asked_and_why() -> None:
    machine = SteppedEngine()
    (launch,) = machine.tick(FIRST)
    machine.ask(cancel, launch.occurrence.id, by=BOB)
    event = machine.events()[-1]
    assert (event.name, event.actor, event.nominal_ms) == ("CancelRequested", "bob@lap (tui)", FIRST)
