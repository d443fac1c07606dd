"""The daemon's loop: tick, carry out the orders, sleep until something is due or has changed. And periodic tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from msgspec.structs import replace

from chronex.daemon import skip_log
from chronex.daemon.condition_watch import ConditionWatch
from chronex.daemon.executor import Executor
from chronex.daemon.function_guard import FunctionGuard
from chronex.daemon.log_handlers import log_event
from chronex.daemon.once import has_run_all
from chronex.daemon.periodic_tasks import Faults, PeriodicTask, PeriodicTasks
from chronex.daemon.registration import (
    RENEW_S,
    NodeTroubles,
    Registration,
    clock_facts,
    note_ended_here,
    running_attempts,
    start_what_waits_for_boot,
    until_taken,
    watched_since,
)
from chronex.daemon.store_writes import FULL_PAUSE_S, JournalNotes, StoreAway
from chronex.daemon.wakeups import (
    LONGEST_BETWEEN_CHECKS_MS,
    AgeClock,
    ClockFollower,
    Rest,
    WakeupDetector,
    wake_on_clock_set,
)
from chronex.engine.commands import bound_dead_letters
from chronex.engine.commands.nodes import RESTART
from chronex.engine.engine import BATCH, FIRST_BATCH, Engine, Tick
from chronex.engine.membership import KILL_AFTER_MS, SHORT_TRUST_MS, STOP_AFTER_MS, TRUSTED_MS, is_here
from chronex.engine.takeover import IsKept, TakenOver, kept_by_nobody
from chronex.errors import FencedError, StoreError, StoreFullError, StoreOutcomeUnknownError, StoreUnavailableError
from chronex.failpoints import fail_point
from chronex.jobfile import SchedulerSettings
from chronex.keeper.keepers import Keepers
from chronex.keeper.kept_commands import KeptCommands
from chronex.keeper.messages import Trust
from chronex.model.placement import fits_node
from chronex.model.policies import StopMode
from chronex.model.reasons import TroubleCode
from chronex.model.records import Node
from chronex.run import RunContext, is_alive
from chronex.run.functions import Calls
from chronex.run.process import age_ms as age_of_process
from chronex.run.secret_values import has_secret
from chronex.storage.ports import FailsOver, LostCommits, Store, UpdateFn
from chronex.storage.records import Reading, Records

log = logging.getLogger(__name__)

# No sleep is longer, so that a clock that was set, or a machine that slept, is noticed within it.
LONGEST_SLEEP_S = 30.0
HEARTBEAT_S = 30.0
LEASE = "lease"  # a heartbeat that others wait for
DEAD_LETTERS_S, HOOKS_S = 60.0, 2.0
# How soon to look again where ends that waited for the store are being recorded.
ENDS_FIRST_MS = 50
RECORDED_WITHIN_S = 5.0


class Daemon:
    """One node that works on a store. `periodic` are tasks in addition to its own."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        run_context: RunContext,
        node: Node,
        settings: SchedulerSettings,
        periodic: Iterable[PeriodicTask] = (),
        calls: Calls | None = None,
        keepers: Keepers | None = None,
    ) -> None:
        self.keepers = keepers
        self.store = store
        self.engine = engine
        self.clock = run_context.clock
        self.faults = Faults()
        self.faults.on_fault = self._note_fault
        self.notes = JournalNotes(store, self.clock, self.faults)
        self.away = StoreAway(self.clock, self.notes, lambda: self.registration.is_shared)
        self.troubles = NodeTroubles(self.clock, self._publish_troubles)
        self.registration = Registration(store, node, self.clock, self._described, self.faults)
        self.registration.on_trusted, self.registration.on_silence = self._renew_trust, self._take_over_again
        if isinstance(store, FailsOver):
            store.on_went_back = self._went_back
        engine.placement = lambda job: fits_node(job, self.node)
        engine.epoch = node.epoch if node.lease_ms else None
        self.calls = calls or Calls()
        engine.has_function, engine.age_of = self.calls.has, age_of_process
        engine.has_secret = partial(has_secret, inheritance=run_context.inheritance)
        engine.read_clock, engine.pace = self.clock.wall_ms, settings.catch_up
        runner = None if keepers is None else KeptCommands(keepers, run_context)
        self.executor = Executor(store, engine, run_context, settings, self.fail, self.calls, runner, self.faults)
        self.executor.on_process_stopped = self._take_over_again
        self.guard = FunctionGuard(self.executor) if node.lease_ms else None
        self.has_failed = self._is_refused_stopping = False
        self.must_restart = False  # whoever runs it is to run a new one in its place
        self.problem_of_successor: Callable[[], Awaitable[str]] | None = None  # why one could not begin
        self._ages = AgeClock(self.clock)
        self._woken = asyncio.Event()  # something other than the store ends the sleep
        self._conditions: ConditionWatch | None = None  # made when somebody waits for conditions
        self._skips = skip_log.SkipLog(store, self.clock, node.id)
        self._detector = WakeupDetector(self.clock)
        self.periodic = PeriodicTasks((*self._own_tasks(settings), *periodic), self.clock, self._note_periodic_task)
        self.closers: list[Callable[[], Awaitable[None]]] = []  # what goes on beside the loop ends by these
        self.clock_follower = ClockFollower(store, self.clock, node.id, settings.timezone, self.journal)
        # Called when the job file has changed the settings.
        self.settings_listeners: list[Callable[[SchedulerSettings], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None  # while `run` is under way
        self.on_begun: Callable[[], None] = lambda: None  # it works: what dead nodes left is taken up
        self.on_stopping: Callable[[], None] = lambda: None
        self._stopping = asyncio.Event()
        self._must_take_over = False
        self._rested: Rest | None = None
        self._seen_hooks: int | None = None  # the change counter with which no hook waited

    def _own_tasks(self, settings: SchedulerSettings) -> tuple[PeriodicTask, ...]:
        named = (LEASE, RENEW_S) if self.registration.is_shared else ("heartbeat", HEARTBEAT_S)
        return (
            PeriodicTask(*named, self._heartbeat),
            PeriodicTask("reaper", settings.reaper_interval_ms / 1000, self._reap),
            PeriodicTask("dead letters", DEAD_LETTERS_S, self._bound_dead_letters),
            PeriodicTask("hooks", HOOKS_S, self._call_hooks),
            PeriodicTask("skipped", skip_log.EVERY_S, self._skips.do),
        )

    @property
    def node(self) -> Node:
        return self.registration.node

    def _renew_trust(self, sent_ms: int) -> None:
        """Our heartbeat has arrived: what runs here may run on for a while, whatever becomes of us."""
        if self.guard is not None:
            self.guard.trust(sent_ms + STOP_AFTER_MS)
        if self.keepers is not None:
            trust = Trust(sent_ms + STOP_AFTER_MS, sent_ms + KILL_AFTER_MS)
            until_ms = sent_ms + TRUSTED_MS
            self.keepers.trust(trust, until_ms, until_ms - SHORT_TRUST_MS)

    def _described(self, node: Node) -> Node:
        functions, imports = self.calls.names, self.calls.can_import
        found, since_ms = self.troubles.found, self._detector.since_ms
        described = replace(node, functions=functions, imports=imports, troubles=found, awake_since_ms=since_ms)
        if not node.lease_ms:
            return described
        return replace(
            described, lacking_secrets=tuple(sorted(self.engine.lacking_secrets)), **clock_facts(self.clock)
        )

    def _publish_troubles(self) -> None:
        if self.is_at_work:
            self.notes.beside(self._publish_node(), "the record of this node")  # else the next heartbeat tells it

    def _note_fault(self, what: str, fault: str) -> None:
        self.troubles.begin(TroubleCode.FAULT, f"{what}: {fault}", what)

    def _note_periodic_task(self, name: str, data: dict[str, Any]) -> None:
        task = str(data["chore"])
        if name == "ChoreFailed":
            self.troubles.begin(TroubleCode.CHORE_FAILS, f"{task}: {data['reason']}", task)
        else:
            self.troubles.end(TroubleCode.CHORE_FAILS, task)
        self.journal(name, data)

    @property
    def is_able_to_start(self) -> bool:
        """Whether what is due would be recorded and started."""
        return not self.away and self.registration.is_trusted and not self.is_stopping

    def stop(self, mode: StopMode | None = None, within_ms: int | None = None, *, must_restart: bool = False) -> None:
        """No new claim from now on; what runs is left, waited for or stopped, by default as the settings say.

        What drains longer than `within_ms` is left. Whether a new one is to take its place goes by the last word.
        """
        self.must_restart = must_restart
        self._stopping.set()
        self._woken.set()
        self.engine.stopping = True
        self.on_stopping()
        mode = mode or StopMode(self.executor.settings.on_stop)
        if mode is StopMode.DRAIN and within_ms is not None:
            asyncio.get_running_loop().call_later(within_ms / 1000, self.executor.stop, StopMode.LEAVE)
        if mode is not StopMode.DRAIN:
            self.executor.stop(mode)
        fail_point("stop asked")

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop_as_asked(
        self, on_refused: Callable[[], None] = lambda: None, on_nothing: Callable[[], None] | None = None
    ) -> None:
        """A signal came: stop as `chronex stop` has asked for it since the last one; where nobody has, `on_nothing`
        is called, or it stops as the settings say. Who asked for a restart that cannot be is told, and the caller."""
        self.notes.beside(self._stop_as_asked(on_refused, on_nothing or self.stop), "a stop as it was asked for")

    async def _stop_as_asked(self, on_refused: Callable[[], None], on_nothing: Callable[[], None]) -> None:
        try:
            asked = await self.registration.asked_to_stop()
        except Exception as fault:  # a signal is not to be in vain
            self.faults.note("how it is asked to stop", fault)
            asked = None
        if asked is None:
            on_nothing()
        elif asked.stop_mode == RESTART:
            await self._stop_to_restart(on_refused)
        else:
            self.stop(StopMode(asked.stop_mode) if asked.stop_mode else None, asked.stop_within_ms)

    async def _stop_to_restart(self, on_refused: Callable[[], None]) -> None:
        """A successor that cannot begin would leave nobody to schedule: then this one goes on, and says why."""
        problem = "" if self.problem_of_successor is None else await self.problem_of_successor()
        if not problem:
            self.stop(StopMode.LEAVE, must_restart=True)
            return
        on_refused()
        await self.registration.refuse_stop(problem)
        self.journal("ConfigurationRejected", {"because": "restart", "error": problem})

    def fail(self, error: StoreError | None = None) -> None:
        """A start or an end could not be recorded: stop, so that the next daemon goes by what the store says.

        One that others have given up begins anew under another name: what still runs here is taken up by that.
        """
        if self.has_failed:
            return
        is_asked, is_refused, must_restart = self.is_stopping, isinstance(error, FencedError), self.must_restart
        self.has_failed, self._is_refused_stopping = True, is_asked and is_refused
        if is_refused:
            self.notes.beside(self.registration.note_refused(), "that others have given this node up")
        if error is not None and self.registration.is_shared and not is_asked:  # else whoever asked has decided
            must_restart = True
            fields = {"node": self.node.id, "so": "this node registers anew", "reason": str(error)}
            log_event(log, "begins anew", fields, logging.WARNING)
        self.stop(StopMode.LEAVE, must_restart=must_restart)

    def drain(self) -> None:
        """No new claim from now on; running work may take its time."""
        self.stop(StopMode.DRAIN)

    def _went_back(self, lost: LostCommits) -> None:
        """Called on a thread of the store: what others have decided on meanwhile must not go on here too."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(
                lambda: self.notes.beside(self._end_taken(lost), "what others have taken over")
            )

    async def _end_taken(self, lost: LostCommits) -> None:
        log_event(log, "StoreWentBack", {"conflicts": list(lost.conflicts)}, logging.WARNING)
        if lost.conflicts:
            running = await self.store.view_async(lambda tx: running_attempts(Reading(tx)))
            self.executor.stop_all_but({one.id for one in running if one.owner == self.node.id})
            # Its record may have running what has ended here. Whoever takes this node's place finds that out.
            self.fail(StoreOutcomeUnknownError("the database went back, and others had decided of the same jobs"))

    def note_functions(self) -> None:
        """This program has a further function: tell others, and look again at what is due."""
        self.notes.beside(self._publish_node(), "the record of this node")  # else the next heartbeat tells it
        self._rested = None
        self._woken.set()

    async def _publish_node(self) -> None:
        await self.registration.put(self.node)

    async def run(self, *, once: bool = False) -> None:
        """Until stopped; with `once`, until what is due now has ended."""
        _daemons_here[self.node.id] = self
        self._loop = asyncio.get_running_loop()
        if self.keepers is not None:
            self.keepers.on_short_trust = partial(self.periodic.hurry, LEASE)
        try:
            await self._run(once=once)
        finally:
            self._loop = None

    @property
    def is_at_work(self) -> bool:
        """False once `run` is over, and when the event loop was closed under it."""
        return self._loop is not None and not self._loop.is_closed()

    async def _run(self, *, once: bool) -> None:
        detector = self._detector = WakeupDetector(self.clock)
        most = FIRST_BATCH
        await self._begin(once=once)
        if once:
            await self._begin_once()
        with wake_on_clock_set(self._woken.set):
            while not self._stopping.is_set():
                self._woken.clear()
                was_idle = self.executor.is_idle  # then this tick sees the ends of all that ran
                self._check_clock(detector)
                if self._must_take_over:
                    self._must_take_over = False
                    with contextlib.suppress(StoreError):  # the reaper's next pass does it
                        await self._take_over()
                seen = self.store.wait(-1, 0)
                tick_ms = self.clock.wall_ms()
                tick = (None if once else self._still_resting(seen)) or await self._tick(detector, most)
                self._rested = None if tick.has_more or self._rested is None else self._rested._replace(seen=seen)
                fail_point("tick decided")
                self.executor.carry_out(tick.orders)
                most = BATCH if tick.has_more else FIRST_BATCH
                self.periodic.start_due()  # also between the ticks of a backlog: heartbeats are among it
                if tick.has_more:
                    await asyncio.sleep(0)
                    continue
                self.executor.prestart.discard(until_ms=tick_ms)  # a later instant is still to come
                if once:
                    if was_idle and (self.away or await has_run_all(self.engine, self.executor, self._watch)):
                        break
                    await self._sleep(self._check_conditions(None) if self.engine.awaits_conditions else None, seen)
                    continue
                self.executor.prestart.prepare(tick.next_ms)
                next_ms = self._check_conditions(tick.next_ms) if self.engine.awaits_conditions else tick.next_ms
                await self._sleep(next_ms, seen)
        await self._finish()

    async def _begin(self, *, once: bool) -> None:
        """Record this node, then take up what dead nodes left. A store that is full, or away, is waited for."""
        told = self.away.begin, None if once else self._stopping
        if not self.registration.is_shared:  # the clock of a database is no machine's to set
            self.clock_follower.check_set_back()
        nodes = await until_taken(lambda: self.store.view_async(lambda tx: Reading(tx).nodes()), *told)
        self._ages = AgeClock(self.clock, nodes)
        self._detector.since_ms = watched_since(nodes, self.node, self._detector.since_ms)
        boot = partial(start_what_waits_for_boot, self.store, self.node, self.clock.wall_ms())
        await until_taken(boot, *told)
        await until_taken(lambda: self.registration.put(self.node), *told)
        if self.keepers is not None and self.keepers.starts_at_once:
            # After the record: others clear away what lies there of a node that they do not know.
            self.keepers.begin()
        self._skips.begin()
        self.journal("SchedulerStarted", {"node": self.node.id})
        await self.notes.all_noted()
        fail_point("node registered")
        await until_taken(self._take_over, *told)
        self.on_begun()

    async def _begin_once(self) -> None:
        """Decide what is due by now and what follows from it, and do nothing beside that but stay alive."""
        self.engine.due_until_ms = self.clock.wall_ms()
        self.executor.on_idle = self._woken.set
        await self.periodic.stop(but=LEASE)

    async def _tick(self, detector: WakeupDetector, most: int) -> Tick:
        """Decide what is due. Attempts of earlier ticks go on starting while the store commits."""
        unfollowed = self.clock_follower.unfollowed
        if (unfollowed and not self.registration.is_shared) or not self.registration.may_claim:
            return Tick((), None, has_more=False)
        now_ms = self.clock.wall_ms()
        try:
            if unfollowed:
                await self.clock_follower.follow_shared()
            resting = await self.store.view_async(self.engine.resting(now_ms))
            if self.away and self.registration.is_shared and self.executor.store_retry.waiting:
                # Ends come first: what is decided before them would find work running that is over.
                self.executor.store_retry.store_is_back()
                await asyncio.sleep(0)
                return Tick((), now_ms + ENDS_FIRST_MS, has_more=False)
            if resting is not None:
                self.away.end()
                self._rested = Rest(-1, resting.next_ms)
                return resting
            if self.away.away_ms > LONGEST_BETWEEN_CHECKS_MS:
                detector.since_ms = now_ms  # nothing could be claimed: what fell due meanwhile counts as missed
            update, scope = self.engine.tick_update(now_ms, detector.since_ms, most), self.engine.tick_scope(now_ms)
            tick = await self.store.update_async(update, scope=scope)
        except StoreUnavailableError as error:
            self.away.begin(error)
            return Tick((), None, has_more=False)
        except (FencedError, StoreOutcomeUnknownError) as error:
            if not self.registration.is_shared:
                raise
            self.fail(error)
            return Tick((), None, has_more=False)
        self.away.end()
        return tick

    def _still_resting(self, seen: int) -> Tick | None:
        """The last tick found nothing to do, and neither the store nor the hour has changed since.

        A shared store is far away, and idle nodes must not ask it over and over again.
        """
        rest, self._rested = self._rested, None
        if rest is None or not self.registration.is_shared or rest.seen != seen or self.away:
            return None
        if self.engine.has_news or self.clock_follower.unfollowed:
            return None
        if rest.next_ms is not None and rest.next_ms <= self.clock.wall_ms():
            return None
        self._rested = rest
        return Tick((), rest.next_ms, has_more=False)

    def journal(self, name: str, data: dict[str, Any]) -> None:
        """One event in the journal and in the log; only in the log where the journal cannot take it."""
        self.notes.journal(name, data)

    async def _take_over(self) -> None:
        await note_ended_here(self.store, self.node, self.clock.wall_ms(), _works_here)
        keepers = self.keepers
        kept: IsKept = kept_by_nobody
        if keepers is not None:
            found = keepers.found()
            nodes = await self.store.view_async(lambda tx: Reading(tx).nodes())
            living = {node.id for node in nodes if self._lives(node)}
            await keepers.discover(lambda node: node not in living, found)
            kept = keepers.keeps
        update = self.engine.take_over_update(is_alive, self.clock.wall_ms(), kept)
        try:
            over = await self.periodic.to_its_end(self._taken_over(update))
        except FencedError as error:
            self.fail(error)
            return
        if over:  # no tick may find running what ended long ago; who does not answer is not waited for long
            await asyncio.wait(over, timeout=RECORDED_WITHIN_S)
        if keepers is not None:
            await self._tidy(keepers)

    async def _taken_over(self, update: UpdateFn[TakenOver]) -> list[asyncio.Task[None]]:
        orders, adopted = await self.store.update_async(update, use_reserve=True)
        fail_point("taken over")
        over = self.executor.adopt(adopted)
        self.executor.carry_out(orders)
        return over

    async def _tidy(self, keepers: Keepers) -> None:
        if keepers.others or keepers.dead:
            running = await self.store.view_async(lambda tx: {one.id for one in running_attempts(Reading(tx))})
            keepers.tidy(running.__contains__)

    def _lives(self, node: Node) -> bool:
        """Whether it holds its commands itself; one of another machine has its keepers there."""
        if node.id == self.node.id or not is_here(node, self.node):
            return True
        return node.stopped_ms is None and is_alive(node.process)

    def _take_over_again(self) -> None:
        """A process that a hanging node had left is gone, or a node is silent for too long: that is recorded now
        rather than at the next pass."""
        if not self._stopping.is_set():
            self._woken.set()
            self._must_take_over = True

    def _check_clock(self, detector: WakeupDetector) -> None:
        """A store that is full cannot follow: then nothing is decided before it has, and it is asked again soon."""
        jump = detector.check()
        if jump is not None:
            self.executor.prestart.discard()
            self.clock_follower.note(jump, is_shared=self.registration.is_shared)
        if self.registration.is_shared or not self.clock_follower.unfollowed:
            return  # where machines share the store, it is followed by the next tick, and not on the loop
        try:
            self.clock_follower.follow()
        except StoreFullError as error:
            self.away.begin(error)

    def _check_conditions(self, next_ms: int | None) -> int:
        """Somebody waits for conditions: when the daemon must be awake again for what is found of them."""
        return self._watch().begin(next_ms)

    def _watch(self) -> ConditionWatch:
        if self._conditions is None:
            executor = self.executor
            self._conditions = ConditionWatch(
                self.store, self.engine, executor.run_context, executor.threads, self._woken.set, self.faults
            )
        return self._conditions

    async def _sleep(self, next_ms: int | None, seen: int) -> None:
        pause = self.periodic.seconds_until_next(at_most=FULL_PAUSE_S if self.away else LONGEST_SLEEP_S)
        if next_ms is not None:
            pause = min(pause, max(next_ms - self.clock.wall_ms(), 0) / 1000)
        change = asyncio.ensure_future(self.store.wait_async(seen, pause))
        stirred = asyncio.ensure_future(self._woken.wait())
        _, pending = await asyncio.wait({change, stirred}, timeout=pause + 0.001, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if change not in pending:
            change.exception()  # a store that is gone is met again by who reads it next, and told there

    async def _finish(self) -> None:
        """Wait until all that runs has ended; then record that this node has stopped."""
        self.executor.prestart.discard()
        if self._conditions is not None:
            self._conditions.stop()
        await self.periodic.stop(but=LEASE)
        for close in self.closers:
            await close()
        if not self._stopping.is_set():  # `once`: all that was due runs to its end, later tasks of its jobs too
            await self._until_all_ended()
        if not self.has_failed:  # nobody has asked one that failed: it ends as one that died
            self.journal("SchedulerStopRequested", {"node": self.node.id})
        await self._until_all_ended()
        await self.periodic.stop()
        await self.executor.prestart.wait_reaped()
        if self.keepers is not None:
            with contextlib.suppress(StoreError):  # the next daemon tidies
                await self.keepers.visit_lost()
                await self.keepers.visit_stuck()
                await self._tidy(self.keepers)
            await self.keepers.close()
        with contextlib.suppress(StoreError):  # the journal has it
            await self._skips.finish()
        fail_point("node leaving")
        await self.notes.all_noted()
        if self.has_failed and not self._is_refused_stopping:
            return  # a successor takes up what could not be recorded, as that of a node that died
        left = await self.registration.leave()
        self.has_failed = left is None
        if left is not None:
            self.journal("SchedulerStopped", {"node": self.node.id, **({"left": left} if left else {})})
            await self.notes.all_noted()

    async def _until_all_ended(self) -> None:
        """What drains may take its time. Meanwhile others must know that this node lives, or they take it over."""
        ended = asyncio.ensure_future(self.executor.finish())
        while not ended.done():
            self.periodic.start_due()
            await asyncio.wait({ended}, timeout=self.periodic.seconds_until_next(at_most=LONGEST_SLEEP_S))
        await ended  # a fault of it is not lost

    # -- periodic tasks ------------------------------------------------------------------------------------------

    async def _heartbeat(self) -> None:
        self.age_ms()
        doubt_ms = self._ages.doubt_ms
        aged_ms = self._ages.trusted_ms if doubt_ms else 0
        renewed = replace(self.node, aged_ms=aged_ms, doubt_ms=doubt_ms)
        try:
            await self.registration.renew(renewed)
        except FencedError as error:
            self.fail(error)

    def age_ms(self) -> int:
        """The time by which things are too old to be kept."""
        was_in_doubt, now_ms = bool(self._ages.doubt_ms), self._ages.now_ms()
        if self._ages.doubt_ms and not was_in_doubt:
            words = "the clock has jumped ahead: nothing is removed for its age until it has held for a day"
            self.journal("RetentionHeld", {"told": words, "age_ms": now_ms})
        return now_ms

    async def _bound_dead_letters(self) -> None:
        """What is over their count or age is dropped, a few in each transaction."""
        now_ms, age_ms = self.clock.wall_ms(), self.age_ms()
        while await self.store.update_async(lambda tx: bound_dead_letters(Records(tx, now_ms), age_ms=age_ms)):
            await asyncio.sleep(0)

    async def _call_hooks(self) -> None:
        """Hooks that failed are called again after their pauses, and those of nodes that are gone."""
        now_ms, seen = self.clock.wall_ms(), self.store.wait(-1, 0)
        if seen == self._seen_hooks:
            return
        is_due, is_any_left = await self.store.view_async(self.engine.hooks_waiting(now_ms))
        self._seen_hooks = None if is_any_left else seen
        if is_due and not self._stopping.is_set():
            await self.periodic.to_its_end(self._call_due(now_ms))

    async def _call_due(self, now_ms: int) -> None:
        self.executor.carry_out(await self.store.update_async(self.engine.hooks_due(now_ms)))

    async def _reap(self) -> None:
        """A library engine on the same store may have died; what outlived its deadline is ended."""
        if not self._stopping.is_set():
            await self._take_over()


# The daemons of this process by the id of their node. One that nobody holds any more does not work either.
_daemons_here: WeakValueDictionary[str, Daemon] = WeakValueDictionary()


def _works_here(node: str) -> bool:
    return (daemon := _daemons_here.get(node)) is not None and daemon.is_at_work
