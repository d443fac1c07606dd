"""A host with a clock that tests move, and a store that several schedulers see one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from chronex.daemon.embedded import EmbeddedEngine
from chronex.declarative import Scheduler, SchedulerEvent
from chronex.declarative.registrations import Callback, Registration
from chronex.model.event import Event
from chronex.model.occurrence import ProcessIdentity
from chronex.storage import journal
from chronex.storage.ports import T, UpdateFn
from chronex.storage.records import Records
from chronex.storage.scopes import WHOLE, Scope
from chronex.testing import FakeClock, MemoryStore
from tests.verify.assertion import assert_verified

MINUTE = timedelta(minutes=1)
FIVE_MINUTES = timedelta(minutes=5)


class LoopStore(MemoryStore):
    """A memory store whose waiters are futures of the event loop: no thread, no real time, and the waiters can be listed."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self._waiting: set[asyncio.Future[None]] = set()
        self.fail_next: Exception | None = None

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        if self.fail_next is not None:
            problem, self.fail_next = self.fail_next, None
            raise problem
        result = super().update(fn, use_reserve=use_reserve, scope=scope)
        self.wake()
        return result

    def wake(self) -> None:
        """Retention writes from a thread of its own: from there the loop is asked to wake its waiters."""
        for waiter in tuple(self._waiting):
            if _is_on_loop_of(waiter):
                _finish(waiter)
            else:
                waiter.get_loop().call_soon_threadsafe(_finish, waiter)

    async def wait_async(self, since: int, timeout: float) -> int:
        if self.wait(-1, 0) == since:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await waiter
            finally:
                self._waiting.discard(waiter)
        return self.wait(-1, 0)

    @property
    def is_idle(self) -> bool:
        return all(not waiter.done() for waiter in self._waiting)


def _is_on_loop_of(waiter: asyncio.Future[None]) -> bool:
    try:
        return asyncio.get_running_loop() is waiter.get_loop()
    except RuntimeError:
        return False


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class SimulatedHost:
    """`await host.at("10:10")` moves the clock there, minute by minute, and lets everything happen that is due."""

    def __init__(self, start: str = "2027-01-04T10:00:30", zone: str = "UTC") -> None:
        self.zone = ZoneInfo(zone)
        self.clock = FakeClock(datetime.fromisoformat(start).replace(tzinfo=self.zone))
        self.store = LoopStore(self.clock)
        self.received: list[SchedulerEvent] = []
        self.runs: list[tuple[str, str]] = []  # (task, wall time of its start)

    def scheduler(self, name: str | None = None) -> Scheduler:
        zone, heard = str(self.zone), self.received.append
        return Scheduler(self.store, on_event=heard, clock=self.clock, timezone=zone, name=name)

    def task(
        self, name: str, cron: str = "*/10 * * * *", delay: timedelta = FIVE_MINUTES, does: Callback | None = None
    ) -> Registration:
        """A registration that notes its runs; steps are written out, because POSIX has none."""

        async def callback() -> None:
            self.runs.append((name, self.now))
            if does is not None:
                await does()

        return name, stepless(cron), callback, delay

    @property
    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.clock.wall_ms() / 1000, self.zone)

    @property
    def now(self) -> str:
        return self.moment.strftime("%H:%M")

    async def at(self, time: str) -> None:
        """On to that time (of this day or, with a date, of that), minute by minute."""
        end = self._moment(time)
        while self.clock.wall_ms() / 1000 < end.timestamp():
            now = self.clock.wall_ms() // 1000
            following = min(now - now % 60 + 60, int(end.timestamp()))
            self.clock.advance(following * 1000 - self.clock.wall_ms())
            await self.settle()

    def sleep_until(self, time: str) -> None:
        """The clock goes on while nothing runs."""
        self.clock.advance(self._moment(time) - self.moment)

    def _moment(self, time: str) -> datetime:
        text = time if "T" in time else f"{self.moment.date()}T{time}"
        return datetime.fromisoformat(text).replace(tzinfo=self.zone)

    async def settle(self) -> None:
        """Wake every waiter of the store, and let the loop run until all wait again.

        It is done four times: a chore in a thread of its own may have woken the scheduler a moment before, which is then
        on its way and no waiter yet, and would sleep through a whole minute of this clock.
        """
        for _ in range(4):
            self.store.wake()
            for _ in range(20):
                await asyncio.sleep(0)

    # what came of it
    def events(self) -> list[str]:
        return [event.name for event in self.received]

    def journal(self) -> list[Event]:
        return [event for _, event in self.store.view(lambda tx: journal.tail(tx, limit=1_000_000))]

    def verify(self) -> None:
        assert_verified(self.store)


async def crash(scheduler: Scheduler) -> None:
    """The process dies: the journal gets no event, and no callback goes on."""
    engine = scheduler._engine
    assert isinstance(engine, EmbeddedEngine)
    assert engine._work is not None
    assert engine._daemon is not None
    work = [engine._work, *engine._daemon.executor._work]
    if scheduler._feed is not None:
        work.append(scheduler._feed._following)
    for task in work:
        task.cancel()
    await asyncio.wait(work)
    gone = replace(engine._daemon.node, process=ProcessIdentity(2**31, "another boot", 1))
    engine.store.update(lambda tx: Records(tx, 0).put(gone))


def stepless(cron: str) -> str:
    """`*/10` as POSIX writes it."""
    fields = cron.split(" ")
    if fields[0].startswith("*/"):
        fields[0] = ",".join(str(n) for n in range(0, 60, int(fields[0][2:])))
    return " ".join(fields)


def failing(times: int, then: Callable[[], None] | None = None) -> Callback:
    """Raises that many times, then succeeds."""
    left = times

    async def callback() -> None:
        nonlocal left
        if left > 0:
            left -= 1
            raise RuntimeError("not yet")
        if then is not None:
            then()

    return callback
