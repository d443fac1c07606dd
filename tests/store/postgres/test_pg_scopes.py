"""Which updates of a shared store run beside each other, which wait, and what happens to one whose scope is too small."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.engine.commands import trigger
from chronex.engine.commands.actor import Actor
from chronex.engine.orders import Launch
from chronex.engine.update import apply_jobs
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.model.policies import OverlapPolicy
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage import journal, keys, scopes
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import DueClaim, Scope
from chronex_store.postgres.pg_scopes import HeldScope, OutOfScopeError, job_in, union
from chronex_store.postgres.pg_store import PostgresStore
from tests.kit.racing import RacingNode
from tests.kit.waits import DEADLINE_S

AT = 1_798_761_600_000
ACTOR = Actor("somebody", "cli", "here")
Two = tuple[PostgresStore, PostgresStore]


def hourly(name: str, overlap: OverlapPolicy = OverlapPolicy.SKIP) -> Job:
    return Job(id=name, schedule="0 * * * *", overlap=overlap, tasks=(Task(name="main", run="true"),))


@pytest.fixture
def two(emptied_url: str) -> Iterator[Two]:
    """A store of four jobs that are due at AT, opened by two machines."""
    with PostgresStore.open(emptied_url) as one, PostgresStore.open(emptied_url) as other:
        apply_jobs(one, [hourly(name) for name in "abcd"], AT - 1000)
        yield one, other


def node(store: PostgresStore, name: str, slots: int = 10, now_ms: int = AT) -> RacingNode:
    made = RacingNode(store, name, slots)
    made.register(now_ms)
    return made


class Holding:
    """An update that another thread has begun and that holds what it locked, until the block is left."""

    def __init__(
        self, store: PostgresStore, scope: Scope, work: Callable[[Transaction], Any] = lambda tx: None
    ) -> None:
        self._store, self._scope, self._work = store, scope, work
        self._begun, self._over = threading.Event(), threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> None:
        def hold(tx: Transaction) -> None:
            self._work(tx)
            self._begun.set()
            assert self._over.wait(DEADLINE_S)

        self._held: Future[None] = self._pool.submit(lambda: self._store.update(hold, scope=self._scope))
        assert self._begun.wait(DEADLINE_S)

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._held.result(30)
        self._pool.shutdown()


def note(text: str) -> Callable[[Transaction], None]:
    return lambda tx: journal.append(tx, Event(name="Noted", at_ms=AT, data={"text": text}))


def trigger_of(job: str) -> Callable[[Transaction], Any]:
    return lambda tx: trigger(Records(tx, AT), job, ACTOR)


# -- beside each other, or one after the other ----------------------------------------------------------------------


def test_updates_of_different_jobs_run_beside_each_other(two: Two) -> None:
    one, other = two
    with Holding(one, scopes.of_jobs("a"), trigger_of("a")):
        other.update(trigger_of("b"), scope=scopes.of_jobs("b"))
        other.update(note("beside"), scope=scopes.JOURNAL_ONLY)
        assert one.view(lambda tx: Reading(tx).occurrences("a")) == [], "the first has not committed yet"


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (scopes.of_jobs("a"), scopes.of_jobs("a", "b")),
        (scopes.of_jobs("a"), scopes.WHOLE),
        (scopes.WHOLE, scopes.of_jobs("a")),
        (scopes.WHOLE, scopes.JOURNAL_ONLY),
    ],
    ids=["the same job", "the store behind a job", "a job behind the store", "an event behind the store"],
)
def test_one_waits_for_the_other(two: Two, held: Scope, wanted: Scope) -> None:
    one, other = two
    with ThreadPoolExecutor(1) as pool:
        with Holding(one, held, note("first")):
            waiting = pool.submit(lambda: other.update(note("second"), scope=wanted))
            assert not waiting.done()
        waiting.result(30)
    told = [event.data["text"] for _, event in one.view(lambda tx: journal.latest(tx, limit=2))]
    assert told == ["second", "first"]


def test_a_tick_takes_what_nobody_holds_and_comes_back_for_the_rest(two: Two) -> None:
    one, other = two
    engine = node(other, "node-2").engine
    with Holding(one, scopes.of_jobs("a", "c")):
        tick = engine.tick(AT, AT - 1000)
        assert [order.job.id for order in tick.orders if isinstance(order, Launch)] == ["b", "d"]
        assert tick.next_ms == AT + scopes.HELD_ELSEWHERE_MS
    assert [order.job.id for order in engine.tick(AT, AT - 1000).orders] == ["a", "c"]  # type: ignore[union-attr]


# -- claims ---------------------------------------------------------------------------------------------------------


def test_a_node_claims_no_more_than_it_can_run(two: Two) -> None:
    first, second = node(two[0], "node-1", slots=3), node(two[1], "node-2", slots=3)
    tick = first.engine.tick(AT, AT - 1000)
    assert (len(tick.orders), tick.has_more) == (3, True)
    assert len(second.engine.tick(AT, AT - 1000).orders) == 1


def test_a_full_node_leaves_what_is_due_to_others_for_a_moment_and_queues_it_then(two: Two) -> None:
    engine = node(two[0], "node-1", slots=1).engine
    assert len(engine.tick(AT, AT - 1000).orders) == 1
    assert engine.tick(AT + 100, AT - 1000).orders == ()
    assert two[0].view(lambda tx: Reading(tx).queued()) == []
    engine.tick(AT + scopes.LEFT_BY_OTHERS_MS + 1, AT - 1000)
    assert len(two[0].view(lambda tx: Reading(tx).queued())) == 3, "nobody else came"


def test_whichever_node_has_room_serves_the_queue(two: Two) -> None:
    full, free = node(two[0], "node-1", slots=1), node(two[1], "node-2", slots=2)
    full.engine.tick(AT, AT - 1000)
    full.engine.tick(AT + 501, AT - 1000)
    orders = free.engine.tick(AT + 600, AT - 1000).orders
    assert [order.job.id for order in orders if isinstance(order, Launch)] == ["b", "c"]
    assert free.engine.tick(AT + 600, AT - 1000).orders == (), "its pool is full"


def test_a_cancel_is_left_to_the_node_that_runs_it(two: Two) -> None:
    first, second = node(two[0], "node-1"), node(two[1], "node-2")
    first.engine.tick(AT, AT - 1000)

    def ask(tx: Transaction) -> None:
        records = Records(tx, AT)
        (running,) = records.active("a")
        records.put(replace(running, cancel_ms=AT, cancel_reason=Reason(ReasonCode.CANCELED)))

    two[1].update(ask, scope=scopes.of_jobs("a"))
    assert second.engine.tick(AT + 10, AT - 1000).orders == ()
    with Holding(two[1], second.engine.tick_scope(AT + 10)):
        assert len(first.engine.tick(AT + 10, AT - 1000).orders) == 1, "nobody held it up"


def test_a_draining_node_holds_nothing_up(two: Two) -> None:
    draining = node(two[0], "node-1")
    draining.engine.was_draining = True
    other = node(two[1], "node-2")
    with Holding(two[0], draining.engine.tick_scope(AT)):
        assert len(other.engine.tick(AT, AT - 1000).orders) == 4


def test_what_is_due_of_a_job_that_is_gone_is_decided_too(two: Two) -> None:
    """A trigger that is due, and then the job is removed behind its back: there is no row left to lock."""
    one, _ = two
    engine = node(one, "node-1").engine
    one.update(trigger_of("a"), scope=scopes.of_jobs("a"))
    one.update(lambda tx: Records(tx, AT).delete_job("a"))
    engine.tick(AT, AT - 1000)
    (found,) = one.view(lambda tx: Reading(tx).occurrences("a"))
    assert found.state is OccurrenceState.CANCELED


def test_a_removed_job_ends_like_any_other(two: Two) -> None:
    one, _ = two
    first = node(one, "node-1")
    tick = first.engine.tick(AT, AT - 1000)
    apply_jobs(one, [hourly(name) for name in "bcd"], AT + 10, owns=lambda job: True)
    first.carry_out([order for order in tick.orders if isinstance(order, Launch) and order.job.id == "a"], AT + 20)
    (found,) = one.view(lambda tx: Reading(tx).occurrences("a"))
    assert found.finished_ms == AT + 20


# -- a scope that is too small --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda tx: tx.get(b"Ja\0"), id="reads another job"),
        pytest.param(lambda tx: tx.put(b"Jb\0", tx.get(b"Jb\0")), id="writes a definition"),
        pytest.param(lambda tx: tx.get(keys.group_key("g")), id="reads a group"),
        pytest.param(lambda tx: tx.scan(keys.within_holding("g")), id="lists who has places of a group"),
        pytest.param(lambda tx: tx.put(keys.within_holding("g") + b"Ob\0" + bytes(8), b""), id="takes a place"),
        pytest.param(lambda tx: tx.scan(keys.within_channel("c")), id="lists what waits for a channel"),
        pytest.param(lambda tx: tx.delete(b"Va\0" + bytes(4)), id="writes of another job"),
        pytest.param(lambda tx: tx.expect({"a"}), id="expects another job"),
        pytest.param(lambda tx: tx.scan(b"Oa\0"), id="lists another job's occurrences"),
        pytest.param(lambda tx: tx.scan(keys.ACTIVE), id="lists what runs of all jobs"),
        pytest.param(lambda tx: tx.scan(keys.NOTICE), id="lists all notices"),
        pytest.param(lambda tx: tx.scan(b""), id="lists everything"),
        pytest.param(lambda tx: tx.put(keys.META + b"x", b"x"), id="writes what belongs to no job"),
        pytest.param(lambda tx: tx.get(keys.idempotency_key("x")), id="reads what belongs to no job"),
        pytest.param(lambda tx: tx.put(keys.node_key("n"), b"x"), id="writes the record of a node"),
        pytest.param(lambda tx: tx.put(keys.event_key(1), b"x"), id="rewrites the journal"),
        pytest.param(lambda tx: tx.put(b"?new\0", b"x"), id="writes a kind of record that is new"),
    ],
)
def test_what_needs_more_than_it_has_locked_is_run_again_with_more(
    two: Two, work: Callable[[Transaction], Any]
) -> None:
    one, _ = two
    tries: list[int] = []

    def update(tx: Transaction) -> str:
        tries.append(1)
        tx.put(keys.task_state_key("b", "main", "kept"), b"first")
        work(tx)
        return "done"

    assert one.update(update, scope=scopes.of_jobs("b")) == "done"
    assert len(tries) == 2
    assert one.run_again == 1
    assert one.view(lambda tx: tx.get(keys.task_state_key("b", "main", "kept"))) == b"first"


def test_even_a_decision_that_swallows_every_error_is_run_again(two: Two) -> None:
    one, _ = two

    def update(tx: Transaction) -> bytes | None:
        try:
            return tx.get(b"Ga\0")
        except BaseException:
            return b"half of the truth"

    assert one.update(update, scope=scopes.of_jobs("b")) not in (None, b"half of the truth")


def test_one_that_needs_more_does_not_hold_up_its_neighbours_in_the_commit(two: Two) -> None:
    one, _ = two
    with ThreadPoolExecutor(3) as pool:
        with Holding(one, scopes.of_jobs("d")):  # meanwhile both wait in the queue, and share the next commit
            needy = pool.submit(lambda: one.update(trigger_of("a"), scope=scopes.of_jobs("b")))
            other = pool.submit(lambda: one.update(trigger_of("c"), scope=scopes.of_jobs("c")))
        needy.result(30), other.result(30)
    assert [len(one.view(lambda tx, n=name: Reading(tx).occurrences(n))) for name in "abc"] == [1, 0, 1]  # type: ignore[misc]


def test_a_job_or_node_that_is_not_there_cannot_be_locked_and_the_store_is(two: Two) -> None:
    one, other = two
    for scope in (scopes.of_jobs("none"), scopes.of_node("none")):
        with ThreadPoolExecutor(1) as pool:
            with Holding(one, scope):
                waiting = pool.submit(lambda: other.update(note("x"), scope=scopes.JOURNAL_ONLY))
                assert not waiting.done()
            waiting.result(30)


def test_rows_are_known_by_their_job() -> None:
    progress = keys.job_progress_key("a")
    assert [job_in(key) for key in (progress, keys.timed(keys.DUE, AT, progress), keys.quarantine_key(progress))] == (
        [b"a"] * 3
    )
    assert job_in(keys.ACTIVE + keys.occurrence_key("a", AT)) == b"a"
    assert job_in(keys.notice_key("a", AT, "late")) == b"a"
    assert job_in(keys.following("a", keys.job_key("b"))) == b"a", "it is found by who holds the parent"
    nobody = (b"", keys.NODE, keys.JOURNAL_HEAD, keys.event_key(1), keys.idempotency_key("a"), keys.DUE, keys.ACTIVE)
    assert [job_in(key) for key in nobody] == [None] * len(nobody)


def test_scopes_of_one_commit_are_joined_where_they_can_be() -> None:
    due = DueClaim(AT, "n", 1)
    joined = union([scopes.of_jobs("a"), scopes.of_jobs("b"), Scope(due=due), scopes.of_node("n")])
    assert joined == Scope(frozenset("ab"), due, "n")
    assert union([Scope(due=due), Scope(due=DueClaim(AT, "m", 1))]).is_whole
    assert union([scopes.of_node("n"), scopes.of_node("m")]).is_whole


def test_an_update_that_asks_for_ever_more_gets_everything() -> None:
    held = HeldScope(scopes.of_jobs("a"))
    with pytest.raises(OutOfScopeError):
        held.check_jobs(["b"])
    wider = held.wider(scopes.of_jobs("a"))
    assert wider == scopes.of_jobs("a", "b")
    with pytest.raises(OutOfScopeError):
        held.check_jobs([f"job-{number}" for number in range(100)])
    assert held.wider(wider).is_whole


# -- what it costs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 60])
def test_an_update_waits_for_the_network_a_few_times_whatever_its_size(emptied_url: str, jobs: int) -> None:
    with PostgresStore.open(emptied_url) as store:
        apply_jobs(store, [hourly(f"job-{number:03}") for number in range(jobs)], AT - 1000)
        one = node(store, "node-1", slots=200)

        def trips(work: Callable[[], Any]) -> int:
            before = store.round_trips
            work()
            return store.round_trips - before

        tick: list[Launch] = []
        assert trips(lambda: tick.extend(one.engine.tick(AT, AT - 1000).orders)) == 3  # type: ignore[arg-type]
        assert len(tick) == jobs
        assert trips(lambda: one.carry_out(tick[:1], AT)) == 2 + 2, "for its start and for its end"
        assert trips(lambda: one.register(AT)) == 2
        assert trips(lambda: store.view(lambda tx: tx.get(b"Ja"))) == 2, "a view begins with its first question"
        assert trips(lambda: store.view(lambda tx: None)) == 0
        assert trips(lambda: one.engine.take_over(lambda process: True, AT)) <= 9


def test_the_word_of_a_node_wakes_nobody(two: Two) -> None:
    one, other = two
    speaker = node(other, "node-2")
    counter = one.wait(-1, 0)
    mark = one.view(lambda tx: tx.get(keys.JOURNAL_HEAD))
    speaker.register(AT + 3000)
    assert one.view(lambda tx: tx.get(keys.JOURNAL_HEAD)) == mark
    assert one.wait(counter, 0) == counter
    assert other._changes.wait(-1, 0) == other._changes.wait(-1, 0)
