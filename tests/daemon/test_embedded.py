"""The engine inside another program: functions as tasks, schedules of its own, state, start and stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.periodic_tasks import PeriodicTasks
from chronex.engine.orders import Launch
from chronex.engine.task_state import task_state
from chronex.engine.update import apply_jobs
from chronex.errors import ChronexError, StaleUpdateError, StoreNamespaceError, UnknownJobError
from chronex.jobfile import SchedulerSettings
from chronex.model.groups import CatchUpPace
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import Attempt, Occurrence
from chronex.model.policies import CrashPolicy, OverlapPolicy, RetryPolicy
from chronex.model.states import OccurrenceState
from chronex.run import is_alive
from chronex.run.callables import TaskContext
from chronex.storage import journal
from chronex.storage.ports import Store, T, UpdateFn
from chronex.storage.records import Reading, Records
from chronex.storage.scopes import WHOLE, Scope
from chronex.timing.job_schedule import forget_schedule
from chronex.views.status import StoreStatus, store_status
from chronex.views.why import why
from chronex_store import LmdbStore, MemoryStore, daemon_lock
from chronex_store.daemon_lock import acquire_engine_lock
from tests.kit.forked import run_python
from tests.kit.waits import DEADLINE_S, until_async
from tests.verify.assertion import assert_verified

SOON = "@every 100ms {max:1}"


def job(target: str, schedule: str = SOON, **more: object) -> Job:
    return Job(id="job", schedule=schedule, tasks=(Task(name="main", run=Call(target)),), **more)  # type: ignore[arg-type]


async def completed(engine: EmbeddedEngine, count: int) -> None:
    """So many runs of the job have succeeded."""
    await until_async(lambda: engine.row("job").job.progress.counters.completed == count, f"{count} completed runs")


def begun(store: Store, job: str = "job") -> list[Occurrence]:
    """In order. `max` counts runs: what a busy machine skips while its only run lasts is an occurrence more."""
    found = store.view(lambda tx: Reading(tx).occurrences(job, limit=10_000))
    return sorted((one for one in found if one.state is not OccurrenceState.SKIPPED), key=lambda one: one.nominal_ms)


async def ended(engine: EmbeddedEngine, count: int = 1, job: str = "job") -> list[Occurrence]:
    """The first `count` occurrences once they have ended."""

    def over() -> list[Occurrence]:
        return [one for one in begun(engine.store, job) if one.finished_ms is not None]

    await until_async(lambda: len(over()) >= count, f"the end of {count} occurrences of {job}")
    return over()[:count]


async def test_a_function_runs_with_its_whole_context() -> None:
    seen: list[TaskContext] = []
    async with EmbeddedEngine(MemoryStore(), calls={"note": seen.append}) as engine:
        overlap = OverlapPolicy.QUEUE  # where the first takes longer than 100 ms the second must not be skipped
        engine.apply([job("note", "@every 100ms {max:2}", metadata={"team": "data"}, overlap=overlap)])
        await completed(engine, 2)
    first, second = seen
    assert (first.job, first.task, first.attempt, first.last_run) == ("job", "main", 1, None)
    assert (first.metadata, first.parameters) == ({"team": "data"}, {})
    assert first.scheduled <= first.actual <= datetime.now(UTC)
    assert second.last_run is not None
    assert first.scheduled <= second.last_run <= second.actual


@pytest.mark.parametrize("is_missed", [True, False])
async def test_a_function_and_a_command_are_told_which_run_they_are(is_missed: bool, tmp_path: Path) -> None:
    seen: list[TaskContext] = []
    tasks = (
        Task(name="function", run=Call("note")),
        Task(name="command", run="echo $CHRONEX_RUN_ID $CHRONEX_VERSION $CHRONEX_RECOVERY $CHRONEX_FIRE_COUNT"),
    )
    now = wall_ms()
    with LmdbStore.open(tmp_path / "store") as store:
        apply_jobs(store, [Job(id="job", schedule="@hourly", tasks=tasks)], now)
        apply_jobs(store, [Job(id="job", schedule="@every 1s {max:1}", tasks=tasks)], now)
        applied = store.view(lambda tx: Reading(tx).job("job"))
        assert applied is not None
        if is_missed:
            began = {"cursor_ms": now - 600_000, "anchor_ms": now - 600_000, "next_ms": now - 599_000}
            store.update(lambda tx: Records(tx, now).put(applied.progressed(**began).progress))
        async with EmbeddedEngine(store, calls={"note": seen.append}) as engine:
            await completed(engine, 1)
        occurrence = next(one for one in begun(store) if one.state is OccurrenceState.COMPLETED)
        runs = {run.task: run for run in store.view(lambda tx: Reading(tx).runs("job", occurrence.nominal_ms))}
        (attempt,) = store.view(lambda tx: Reading(tx).attempts("job", occurrence.nominal_ms, "command"))
    (context,) = seen
    told = (context.run_id, context.version, context.recovery, context.fire_count)
    assert told == (runs["function"].id, 2, is_missed, 1)
    printed = (tmp_path / "store" / "logs" / attempt.log_path).read_text()
    assert printed == f"{runs['command'].id} 2 {str(is_missed).lower()} 1\n"


async def coroutine(context: TaskContext) -> None:
    await asyncio.sleep(0)
    context.state.set("thread", threading.current_thread().name)


class Greeter:
    async def __call__(self, context: TaskContext) -> None:
        context.state.set("greeted", context.job)


def imported(context: TaskContext) -> None:
    context.state.set("imported", "yes")


@pytest.mark.parametrize(
    ("target", "state"),
    [
        ("coroutine", {"thread": threading.main_thread().name}),
        ("greeter", {"greeted": "job"}),
        ("tests.daemon.test_embedded:imported", {"imported": "yes"}),
    ],
)
async def test_what_can_be_called(target: str, state: dict[str, str], tmp_path: Path) -> None:
    async with EmbeddedEngine(tmp_path / "store", calls={"coroutine": coroutine, "greeter": Greeter()}) as engine:
        engine.apply([job(target)])
        (occurrence,) = await ended(engine)
        assert occurrence.state is OccurrenceState.COMPLETED, occurrence.reason
        assert engine.store.view(lambda tx: task_state(tx, "job", "main")) == state


async def test_state_of_an_attempt_that_fails_is_dropped_and_the_next_one_begins_afresh() -> None:
    seen: list[str | None] = []

    def count(context: TaskContext) -> None:
        seen.append(context.state.get("n"))
        context.state.set("n", f"written by attempt {context.attempt}")
        if context.attempt == 1:
            raise ValueError("not yet")

    async with EmbeddedEngine(MemoryStore(), calls={"count": count}) as engine:
        engine.apply([job("count", retry=RetryPolicy(max=1, interval_ms=0))])
        await ended(engine)
        assert engine.store.view(lambda tx: task_state(tx, "job", "main")) == {"n": "written by attempt 2"}
    assert seen == [None, None]


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("no.such.module:f", "'no.such.module:f' cannot be loaded: ModuleNotFoundError: No module named 'no'"),
        ("fails", "ValueError: boom"),
    ],
)
async def test_what_goes_wrong_is_told_in_a_sentence(target: str, sentence: str) -> None:
    def fails(_context: TaskContext) -> None:
        raise ValueError("boom")

    async with EmbeddedEngine(MemoryStore(), calls={"fails": fails}) as engine:
        engine.apply([job(target)])
        (occurrence,) = await ended(engine)
    assert (occurrence.state, str(occurrence.reason)) == (OccurrenceState.FAILED, f"main: {sentence}")


@pytest.mark.parametrize(
    ("on_crash", "states", "calls"),
    [(CrashPolicy.RETRY, ["completed"], 2), (CrashPolicy.FAIL, ["failed"], 1)],
    ids=["retry", "fail"],
)
async def test_a_function_that_outlasts_the_grace_period_is_interrupted_and_on_crash_decides(
    tmp_path: Path, on_crash: CrashPolicy, states: list[str], calls: int
) -> None:
    """Its outcome is not known, and never a cancellation that nobody asked for."""
    began = asyncio.Event()
    reasons: list[str] = []
    called: list[int] = []

    async def patient(context: TaskContext) -> None:
        called.append(context.attempt)
        if len(called) == 2:
            return
        began.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            reasons.append(context.cancellation.reason)

    soon = SchedulerSettings(grace_ms=20)
    engine = EmbeddedEngine(tmp_path / "store", calls={"patient": patient}, settings=soon)
    await engine.start([job("patient", on_crash=on_crash)])
    await asyncio.wait_for(began.wait(), DEADLINE_S)
    for _ in range(2):  # the second time there is nothing left to do
        await engine.stop()
    assert reasons == ["the scheduler was stopped while it ran"]
    async with EmbeddedEngine(tmp_path / "store", calls={"patient": patient}) as successor:
        await until_async(
            lambda: [one.state for one in begun(successor.store) if one.finished_ms] == states, "its end"
        )
    assert len(called) == calls


async def test_draining_ends_a_sleep_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PeriodicTasks, "seconds_until_next", lambda *_args, **_more: 3600.0)
    slept = asyncio.Event()

    class SaysThatItSleeps(MemoryStore):
        async def wait_async(self, since: int, timeout: float) -> int:
            slept.set()
            await asyncio.Event().wait()
            return since

    engine = EmbeddedEngine(SaysThatItSleeps())
    await engine.start()
    await asyncio.wait_for(slept.wait(), DEADLINE_S)
    await asyncio.wait_for(engine.stop(drain=True), DEADLINE_S)
    assert not engine.is_running


PAYS_AND_DIES = """
import asyncio, os, sys
from pathlib import Path
from chronex.daemon.embedded import EmbeddedEngine
from chronex.model import Call, Job, Task
from chronex.model.policies import CrashPolicy

async def pay(context):
    with open(sys.argv[2], "a") as paid:
        paid.write("x")
    os.kill(os.getpid(), 9)

def pay_in_a_thread(context):
    asyncio.run(pay(context))

async def main():
    function = {"async": pay, "sync": pay_in_a_thread}[sys.argv[3]]
    async with EmbeddedEngine(Path(sys.argv[1]), calls={"pay": function}) as engine:
        tasks = (Task(name="main", run=Call("pay")),)
        policy = CrashPolicy(sys.argv[4])
        engine.apply([Job(id="job", schedule="@every 10ms {max:1}", tasks=tasks, on_crash=policy)])
        while not engine.row("job").job.progress.counters.failed:
            await asyncio.sleep(0.01)
        print("failed")

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("kind", "on_crash", "paid"), [("async", "fail", 1), ("sync", "fail", 1), ("async", "retry", 4)]
)
def test_a_function_that_takes_its_process_down_has_started_for_the_record(
    kind: str, on_crash: str, paid: int, tmp_path: Path
) -> None:
    """The bound is that of a command: three attempts that died with their scheduler are repeated, a fourth is not."""
    arguments = ["-c", PAYS_AND_DIES, str(tmp_path / "store"), str(tmp_path / "paid"), kind, on_crash]
    ends = [run_python(arguments, text=True) for _ in range(paid + 1)]
    assert [end.returncode for end in ends] == [-9] * paid + [0], ends[-1].stderr
    assert ends[-1].stdout == "failed\n"
    assert (tmp_path / "paid").read_text() == "x" * paid
    with LmdbStore.open(tmp_path / "store") as store:
        assert len(store.view(lambda tx: Reading(tx).dead_letters())) == 1
        assert_verified(store)


class Soon:
    """Two instants: just after it was first asked, which is when the job is applied, and a little later."""

    def __init__(self) -> None:
        self.instants: list[int] = []

    def next(self, after_ms: int) -> int | None:
        self.instants = self.instants or [after_ms + 300, after_ms + 301]
        return next((at for at in self.instants if at > after_ms), None)

    def previous(self, before_ms: int) -> int | None:
        return next((at for at in reversed(self.instants) if at < before_ms), None)

    def between(self, after_ms: int, until_ms: int) -> Iterator[int]:
        return iter([at for at in self.instants if after_ms < at <= until_ms])


class Never(Soon):
    def next(self, after_ms: int) -> int | None:
        return None


async def test_a_schedule_of_the_users_own_decides_when() -> None:
    try:
        async with EmbeddedEngine(MemoryStore(), calls={"note": print}, schedules={"never": Never()}) as engine:
            soon = Soon()
            engine.add_schedule("soon", soon)
            engine.apply([job("note", "soon", dialect="custom", overlap=OverlapPolicy.ALLOW)])
            found = await ended(engine, 2)
    finally:
        forget_schedule("soon")
        forget_schedule("never")
    assert [occurrence.nominal_ms for occurrence in found] == soon.instants


async def test_a_command_finds_the_store_it_belongs_to(tmp_path: Path) -> None:
    async with EmbeddedEngine(tmp_path / "store") as engine:
        engine.apply([Job(id="job", schedule=SOON, tasks=(Task(name="main", run='echo "$CHRONEX_STORE"'),))])
        (occurrence,) = await ended(engine)
        (attempt,) = engine.store.view(lambda tx: Reading(tx).attempts("job", occurrence.nominal_ms))
    assert (tmp_path / "store" / "logs" / attempt.log_path).read_text() == f"{(tmp_path / 'store').resolve()}\n"


async def test_a_task_without_a_key_of_its_own_is_told_the_id_of_its_run() -> None:
    seen: list[TaskContext] = []
    async with EmbeddedEngine(MemoryStore(), calls={"note": seen.append}) as engine:
        engine.apply([job("note")])
        (occurrence,) = await ended(engine)
        (run,) = engine.store.view(lambda tx: Reading(tx).runs("job", occurrence.nominal_ms))
    assert seen[0].idempotency_key == run.id


async def test_what_a_job_is_doing_is_asked_of_the_store() -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def patient(_context: TaskContext) -> None:
        began.set()
        await go.wait()

    async with EmbeddedEngine(MemoryStore(), calls={"patient": patient}) as engine:
        engine.apply([job("patient", "@every 100ms")])
        before = engine.row("job")
        await asyncio.wait_for(began.wait(), DEADLINE_S)
        during = engine.row("job")
        go.set()
        await ended(engine)
        assert [row.job.id for row in engine.rows()] == ["job"]
        with pytest.raises(UnknownJobError, match="did you mean job"):
            engine.row("jab")
    assert (before.is_active, before.is_enabled, before.is_paused, before.is_running) == (True, True, False, False)
    assert before.next is not None
    assert during.is_running


async def test_two_engines_on_one_store_share_the_work_and_each_occurrence_runs_once() -> None:
    store, ran = MemoryStore(), list[str]()

    def note(context: TaskContext) -> None:
        ran.append(context.occurrence_id)

    engines = [EmbeddedEngine(store, calls={"note": note}) for _ in range(2)]
    for engine in engines:
        await engine.start()
    engines[0].apply([job("note", "@every 50ms {max:6}", overlap=OverlapPolicy.QUEUE)])
    await completed(engines[0], 6)
    for engine in engines:
        await engine.stop()
    assert len(ran) == len(set(ran)) == 6


@pytest.mark.parametrize("many", [1, 250], ids=["one job", "more jobs than one tick takes"])
async def test_a_job_is_left_to_the_engine_that_has_its_function(many: int) -> None:
    store, ran = MemoryStore(), list[str]()
    # On a busy machine they are late, and 250 late runs would be spaced over two minutes.
    roomy = SchedulerSettings(max_concurrent_jobs=500, catch_up=CatchUpPace(spacing_ms=0, share=1.0))
    without, having = (
        EmbeddedEngine(store),
        # A pool for all of them: on a busy machine 250 jobs that wait for a slot would queue ten instants a second each.
        EmbeddedEngine(store, calls={"f": lambda context: ran.append(context.job)}, settings=roomy),
    )
    await without.start()
    calling = [
        Job(id=f"calling{n}", schedule=SOON, tasks=(Task(name="main", run=Call("f")),), overlap=OverlapPolicy.ALLOW)
        for n in range(many)
    ]
    command = Job(id="command", schedule="@every 150ms {max:2}", tasks=(Task(name="main", run=("true",)),))
    without.apply([*calling, command])
    await until_async(lambda: without.row("command").job.progress.counters.completed == 2, "the command of the other")
    status = store_status_now(store)
    assert [(job.id, functions) for job, functions in status.unserved][:1] == [("calling0", ("f",))]
    assert "calling0 waits: no scheduler has 'f'; start the program that registers it" in status.attention()
    instant = without.row("calling0").job.progress.next_ms
    answer = store.view(lambda tx: why(Reading(tx), "calling0", instant or 0, wall_ms()))
    assert answer is not None
    assert answer.summary == "it waits for the program that registers 'f': no scheduler here has it"
    await having.start()
    await until_async(lambda: len(ran) == many, "every job that calls the function")
    assert not store_status_now(store).unserved
    await having.stop()
    await without.stop()
    assert sorted(ran) == sorted(one.id for one in calling)
    assert not store.view(lambda tx: Reading(tx).dead_letters())
    assert_verified(store)


async def test_a_function_that_is_added_later_is_called_then() -> None:
    ran = list[str]()
    async with EmbeddedEngine(MemoryStore()) as engine:
        engine.apply([job("late")])
        await until_async(lambda: (engine.row("job").job.progress.next_ms or wall_ms()) < wall_ms(), "its instant")
        engine.add_call("late", lambda context: ran.append(context.job))
        await completed(engine, 1)
    assert ran == ["job"]


async def test_a_retry_and_a_further_task_wait_for_who_has_the_function() -> None:
    """The first engine claims with all functions and dies; the second lacks one, the third has it again."""
    store, ran = MemoryStore(), list[str]()

    def work(context: TaskContext) -> None:
        ran.append(f"{context.task} {context.attempt}")
        if context.attempt == 1:
            raise ValueError("not yet")

    first = EmbeddedEngine(store, calls={"f": work})
    await first.start([job("f", retry=RetryPolicy(max=1, interval_ms=1_000))])
    await until_async(lambda: ran, "the first attempt")
    await first.stop(drain=True)
    async with EmbeddedEngine(store) as without:
        due = Job(id="beat", schedule="@every 400ms", tasks=(Task(name="main", run=("true",)),))
        apply_jobs(store, [due], wall_ms(), owns=lambda one: False)
        await until_async(lambda: without.row("beat").job.progress.counters.completed >= 4, "the retry is long due")
        assert ran == ["main 1"]
        async with EmbeddedEngine(store, calls={"f": work}):
            await completed(without, 1)
    assert ran == ["main 1", "main 2"]


def store_status_now(store: Store) -> StoreStatus:
    return store.view(lambda tx: store_status(Reading(tx), wall_ms(), is_alive))


@pytest.mark.parametrize("closes_well", [True, False], ids=["its tasks are canceled", "its loop is dropped"])
def test_an_engine_whose_loop_ended_without_stop_is_not_alive(closes_well: bool) -> None:
    store, ran = MemoryStore(), list[int]()

    async def work(context: TaskContext) -> None:
        ran.append(context.attempt)
        if len(ran) == 1:
            await asyncio.sleep(3600)

    async def leaves() -> EmbeddedEngine:
        engine = EmbeddedEngine(store, calls={"work": work})
        await engine.start([job("work")])
        await until_async(lambda: ran, "the first attempt")
        return engine

    async def goes_on() -> None:
        async with EmbeddedEngine(store, calls={"work": work}) as engine:
            await completed(engine, 1)

    loop = asyncio.new_event_loop()
    if closes_well:
        asyncio.run(leaves())
        left = set[asyncio.Task[object]]()
    else:
        kept = loop.run_until_complete(leaves())
        left = asyncio.all_tasks(loop)
        assert kept.is_running
    loop.close()
    asyncio.run(goes_on())
    for task in left:
        # Else asyncio complains of it in the log of whatever test runs by then; its types do not know the flag.
        setattr(task, "_log_destroy_pending", False)  # noqa: B010
        if (coroutine := task.get_coro()) is not None:
            coroutine.close()
    assert ran == [1, 2]
    assert_verified(store)


async def test_engines_of_two_containers_are_not_let_on_one_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LMDB and the engines tell whether a process lives by its pid, which means nothing in another container."""
    elsewhere = daemon_lock.LockHolder(1, "another boot", 1)
    with monkeypatch.context() as there:
        there.setattr(daemon_lock, "this_process", lambda: elsewhere)
        other = EmbeddedEngine(tmp_path / "store")
        await other.start()
        lock = acquire_engine_lock(tmp_path / "store")  # a second one in that container may come
    await other.stop()
    with pytest.raises(StoreNamespaceError, match="another container"):
        await EmbeddedEngine(tmp_path / "store").start()
    with pytest.raises(StoreNamespaceError, match="another container"):
        acquire_engine_lock(tmp_path / "store")
    lock.release()
    async with EmbeddedEngine(tmp_path / "store"):
        monkeypatch.setattr(daemon_lock, "this_process", lambda: elsewhere)
        with pytest.raises(StoreNamespaceError, match="another container"):
            acquire_engine_lock(tmp_path / "store")


async def test_a_stale_update_of_a_program_is_refused() -> None:
    async with EmbeddedEngine(MemoryStore(), calls={"f": print}) as engine:
        engine.apply([job("f", "@daily")])
        seen = engine.store.view(journal.head)
        engine.apply([job("f", "@hourly")], actor="ann")
        with pytest.raises(StaleUpdateError, match="job overridden by ann"):
            engine.apply([job("f", "@weekly")], basis=seen)
        assert engine.row("job").job.schedule == "@hourly"


async def test_an_engine_is_started_once_and_says_so() -> None:
    engine = EmbeddedEngine(MemoryStore())
    with pytest.raises(ChronexError, match="not started"):
        _ = engine.store
    async with engine:
        with pytest.raises(ChronexError, match="started already"):
            await engine.start()
        engine.add_call("f", imported)
        with pytest.raises(ChronexError, match="another function is registered as 'f'"):
            engine.add_call("f", coroutine)


class StopsInBetween(MemoryStore):
    """Asks the engine to stop after an end and the next task's claim were committed, before the waiting caller is notified."""

    engine: EmbeddedEngine

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        result = await super().update_async(fn, use_reserve=use_reserve, scope=scope)
        if isinstance(result, tuple) and any(isinstance(order, Launch) for order in result):
            assert self.engine._daemon is not None
            self.engine._daemon.stop()
        return result


async def test_a_task_that_was_claimed_while_the_engine_stopped_is_not_left_claimed() -> None:
    ran: list[str] = []
    store = StopsInBetween()
    engine = store.engine = EmbeddedEngine(store, calls={"note": lambda context: ran.append(context.task)})
    tasks = tuple(Task(name=name, run=Call("note")) for name in ("one", "two"))
    await engine.start([Job(id="job", schedule=SOON, tasks=tasks)])
    await engine.wait()
    (occurrence,) = begun(store)
    attempts = store.view(lambda tx: Reading(tx).attempts("job", occurrence.nominal_ms))
    assert ran == ["one"]
    assert [attempt.state for attempt in attempts] == ["success", "canceled"]
    assert (occurrence.state, str(occurrence.reason)) == ("canceled", "the scheduler was stopped")
    assert_verified(store)
    await engine.stop()


class HoldsAnEnd(MemoryStore):
    """The first end waits for the store until the next occurrence has been queued."""

    is_held = False

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        if use_reserve and not self.is_held and any(one.started_ms for one in self._attempts()):
            self.is_held = True
            await until_async(lambda: bool(self.view(lambda tx: Reading(tx).queued("job"))), "a queued occurrence")
        return await super().update_async(fn, use_reserve=use_reserve, scope=scope)

    def _attempts(self) -> list[Attempt]:
        return self.view(lambda tx: Reading(tx).active_attempts())


async def test_no_run_leaves_its_queue_before_it_is_due_because_an_end_waited_for_the_store() -> None:
    store = HoldsAnEnd()
    async with EmbeddedEngine(store, calls={"note": lambda context: None}) as engine:
        engine.apply([job("note", "@every 300ms {max:2}", overlap=OverlapPolicy.QUEUE)])
        _, second = await ended(engine, 2)
    assert store.is_held
    assert second.started_ms is not None
    assert second.started_ms >= second.due_ms


LEAVES_WITHOUT_STOP = """
import asyncio, sys, tempfile
tempfile.tempdir = sys.argv[1]
from chronex.daemon.embedded import EmbeddedEngine
from chronex_store import MemoryStore

engine = EmbeddedEngine(MemoryStore())
asyncio.run(engine.start())
"""


def test_a_program_that_ends_without_stop_leaves_nothing_of_a_store_in_memory(tmp_path: Path) -> None:
    done = run_python(["-c", LEAVES_WITHOUT_STOP, str(tmp_path)], text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())
