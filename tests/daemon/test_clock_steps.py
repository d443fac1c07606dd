"""Sleep and clock steps, by the table of specs/engine.md: each recovery strategy on a real store, no time spent."""

from __future__ import annotations

import select
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chronex.clock import wall_ms
from chronex.daemon.embedded import EmbeddedEngine
from chronex.daemon.wakeups import ClockJump, StepAlarm, WakeupDetector
from chronex.engine.clock_steps import newest_sign, rewind
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.model.event import Event
from chronex.model.groups import CatchUpPace
from chronex.model.job import Call, Job, Task
from chronex.model.occurrence import Occurrence
from chronex.model.policies import Cadence, OverlapPolicy, RecoveryPolicy, RecoveryStrategy
from chronex.storage.journal import append
from chronex.storage.records import Reading
from chronex_store import LmdbStore, MemoryStore
from tests.daemon.test_wakeups import Hands
from tests.kit.waits import until_async
from tests.verify.assertion import assert_verified

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
MIDNIGHT = 1_798_761_600_000  # 2027-01-01T00:00:00Z


class Awake(Hands):
    """A daemon's hands and eyes, without its sleep."""

    def __init__(self, store: LmdbStore, schedule: str, strategy: RecoveryStrategy) -> None:
        super().__init__()
        self.wall = MIDNIGHT + 30_000
        self.store, self.started = store, Counter[int]()
        self.engine = Engine(store, "node-a", slots=1000)
        self.engine.pace = CatchUpPace(spacing_ms=0, share=1.0)  # this is about which instants run, not how soon
        recovery = RecoveryPolicy(strategy=strategy, max_count=2 if strategy is RecoveryStrategy.BOUNDED else None)
        tasks = (Task(name="main", run=("true",)),)
        job = Job(id="job", schedule=schedule, tasks=tasks, overlap=OverlapPolicy.ALLOW, recovery=recovery)
        apply_jobs(store, [job], self.wall)
        self.detector = WakeupDetector(self)
        self.turn()

    def turn(self) -> None:
        """What the loop does between two sleeps; every command succeeds at once."""
        jump = self.detector.check()
        if jump is not None and jump.by_ms < 0:
            rewind(self.store, jump.at_ms)
        while True:
            tick = self.engine.tick(self.wall, self.detector.since_ms)
            for order in tick.orders:
                assert isinstance(order, Launch)
                self.started[order.occurrence.nominal_ms] += 1
                self.store.update(self.engine.ended(order.attempt, AttemptEnd("success"), self.wall))
            if not tick.has_more and not tick.orders:
                return

    def live(self, span: int, step: int) -> None:
        """Awake all the time; checking the clock less often than a daemon does would be a stall."""
        for _ in range(span // step):
            for _ in range(step // MINUTE):
                self.pass_time(MINUTE)
                self.detector.check()
            self.turn()

    def history(self) -> list[Occurrence]:
        found = self.store.view(lambda tx: Reading(tx).occurrences("job", limit=100_000))
        return sorted(found, key=lambda one: one.nominal_ms)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    with LmdbStore.open(tmp_path / "store", map_size=64 << 20) as opened:
        yield opened


FORWARDS = {
    "asleep for eight hours": (8 * HOUR, "*/10 * * * *", 48, "asleep"),
    "stopped for eight hours": (8 * HOUR, "*/10 * * * *", 48, "stopped"),
    "set forwards by a minute": (MINUTE, "* * * * *", 1, "set"),
    "set forwards by an hour": (HOUR, "*/10 * * * *", 6, "set"),
    "set forwards by a year": (365 * DAY, "0 0 * * *", 365, "set"),
}
RUN: dict[RecoveryStrategy, Callable[[list[int]], list[int]]] = {
    RecoveryStrategy.EXECUTE_ALL: lambda missed: missed,
    RecoveryStrategy.EXECUTE_LAST: lambda missed: missed[-1:],
    RecoveryStrategy.MARK_MISSED: lambda missed: [],
    RecoveryStrategy.BOUNDED: lambda missed: missed[-2:],
    RecoveryStrategy.COMPRESSED: lambda missed: missed[-1:],
}


@pytest.mark.parametrize("strategy", RUN)
@pytest.mark.parametrize("jump", FORWARDS)
def test_what_was_slept_through_is_settled_by_the_strategy(
    store: LmdbStore, jump: str, strategy: RecoveryStrategy
) -> None:
    by, schedule, count, how = FORWARDS[jump]
    daemon = Awake(store, schedule, strategy)
    daemon.wall += by
    if how != "set":
        daemon.boot += by
    if how == "stopped":
        daemon.awake += by
    daemon.turn()
    daemon.turn()
    history = daemon.history()
    missed = [one.nominal_ms for one in history]
    assert len(missed) == count
    assert dict(daemon.started) == dict.fromkeys(RUN[strategy](missed), 1)
    assert all(one.recovery for one in history)
    if strategy is RecoveryStrategy.COMPRESSED:
        assert (history[-1].span_start_ms, history[-1].span_end_ms) == (missed[0], missed[-1])


@pytest.mark.parametrize("strategy", RUN)
@pytest.mark.parametrize("step", [MINUTE, HOUR, 365 * DAY], ids=["a minute", "an hour", "a year"])
def test_a_clock_set_back_repeats_nothing_and_silences_nobody(
    store: LmdbStore, strategy: RecoveryStrategy, step: int
) -> None:
    daemon = Awake(store, "*/10 * * * *", strategy)
    daemon.live(2 * HOUR, 10 * MINUTE)
    before = dict(daemon.started)
    assert set(before.values()) == {1}
    daemon.wall -= step
    daemon.turn()
    assert daemon.started == before, "the step itself starts nothing"
    daemon.live(2 * HOUR, 10 * MINUTE)
    assert set(daemon.started.values()) == {1}, "no instant runs twice"
    assert len(daemon.started) > len(before), "it goes on after what it had decided"


def test_what_waits_in_a_queue_when_the_clock_is_set_back_starts_when_its_turn_comes(store: LmdbStore) -> None:
    """It had been due. To hold it until its instant comes again would be a year of waiting after a step of a year."""
    tasks = (Task(name="main", run=("true",)),)
    apply_jobs(store, [Job(id=name, schedule="0 * * * *", tasks=tasks) for name in ("first", "second")], MIDNIGHT + 1)
    store.update(lambda tx: append(tx, Event(name="SchedulerStarted", at_ms=MIDNIGHT + 1, data={"node": "node-a"})))
    engine, now = Engine(store, "node-a", slots=1), MIDNIGHT + HOUR
    (launch,) = engine.tick(now, MIDNIGHT).orders
    assert isinstance(launch, Launch)
    now -= 50 * MINUTE
    rewind(store, now)
    assert engine.tick(now, MIDNIGHT).orders == ()
    (after,) = store.update(engine.ended(launch.attempt, AttemptEnd("success"), now))
    assert isinstance(after, Launch)
    assert (launch.occurrence.job, after.occurrence.job) == ("first", "second")
    store.update(engine.ended(after.attempt, AttemptEnd("success"), now + MINUTE))
    assert engine.tick(MIDNIGHT + HOUR, MIDNIGHT).orders == (), "no instant runs twice"
    assert len(engine.tick(MIDNIGHT + 2 * HOUR, MIDNIGHT).orders) == 1
    assert_verified(store)


@pytest.mark.parametrize("strategy", [one for one in RUN if one is not RecoveryStrategy.EXECUTE_ALL])
def test_a_clock_that_stood_a_year_ahead_and_is_put_right(store: LmdbStore, strategy: RecoveryStrategy) -> None:
    """`execute_all` is not here: it has run them all, so nothing is left to run."""
    daemon = Awake(store, "*/10 * * * *", strategy)
    daemon.live(HOUR, 10 * MINUTE)
    daemon.wall += 365 * DAY
    daemon.turn()
    daemon.wall -= 365 * DAY
    daemon.turn()
    before = sum(daemon.started.values())
    daemon.live(DAY, 10 * MINUTE)
    assert sum(daemon.started.values()) - before == 144, "a day like any other"
    assert set(daemon.started.values()) == {1}


def test_a_leap_second_or_a_trembling_clock_repeats_nothing(store: LmdbStore) -> None:
    daemon = Awake(store, "* * * * * *", RecoveryStrategy.EXECUTE_LAST)
    for by in (1000, -1000, 1000, 500, -1500, 2000, -900, 1000, 1000):
        daemon.pass_time(100)
        daemon.wall += by
        daemon.turn()
    assert set(daemon.started.values()) == {1}


@pytest.mark.parametrize(
    ("jump", "described"),
    [
        (ClockJump(MIDNIGHT, 8 * HOUR, 8 * HOUR), "asleep 17:00–01:00"),
        (ClockJump(MIDNIGHT, 3 * DAY, 3 * DAY), "asleep 2026-12-29 01:00–2027-01-01 01:00"),
        (ClockJump(MIDNIGHT, 0, 0, 2 * HOUR), "stopped 23:00–01:00"),
        (ClockJump(MIDNIGHT, HOUR, 0), "the clock was set forwards from 00:00 to 01:00"),
        (ClockJump(MIDNIGHT, -HOUR, 0), "the clock was set back from 02:00 to 01:00"),
    ],
)
def test_what_happened_is_described_in_the_schedulers_zone(jump: ClockJump, described: str) -> None:
    assert jump.describe("Europe/Berlin") == described


def test_the_alarm_is_silent_while_nobody_sets_the_clock() -> None:
    try:
        alarm = StepAlarm()
    except OSError:
        pytest.skip("this system cannot detect when its clock is set")
    for _ in range(2):
        assert select.select([alarm.fileno()], [], [], 0) == ([], [], [])
        alarm.again()
    alarm.close()


@pytest.mark.parametrize("cadence", list(Cadence))
@pytest.mark.parametrize("schedule", ["* * * * *", "@every 1m", "@every 50s-70s"])
def test_a_clock_that_is_put_right_while_nobody_runs_silences_no_job(
    store: LmdbStore, schedule: str, cadence: Cadence
) -> None:
    """The jobs were applied, and have run, a year ahead of the time that it really is."""
    year_ahead = MIDNIGHT + 365 * DAY
    tasks = (Task(name="main", run=("true",)),)
    apply_jobs(store, [Job(id="job", schedule=schedule, cadence=cadence, tasks=tasks)], year_ahead)
    engine = Engine(store, "node-a", slots=10)
    for launch in engine.tick(year_ahead + 2 * MINUTE, year_ahead).orders:
        assert isinstance(launch, Launch)
        store.update(engine.ended(launch.attempt, AttemptEnd("success"), year_ahead + 2 * MINUTE))
    assert store.view(newest_sign) > MIDNIGHT + 364 * DAY
    assert rewind(store, MIDNIGHT) == 1
    assert engine.tick(MIDNIGHT + 2 * MINUTE, MIDNIGHT).orders != ()


async def test_a_daemon_notices_when_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "chronex")
    store = MemoryStore()
    apply_jobs(
        store,
        [Job(id="job", schedule="@every 50ms {max:1}", tasks=(Task(name="m", run=Call("f")),))],
        wall_ms() + DAY,
    )

    for _ in range(2):
        async with EmbeddedEngine(store, calls={"f": lambda _: None}) as engine:
            await until_async(lambda: engine.row("job").job.progress.counters.completed, "the end of a run")
    steps = [record.__dict__["fields"] for record in caplog.records if record.message == "ClockStepped"]
    assert [fields["jobs"] for fields in steps] == [1], "once, not at every start"
