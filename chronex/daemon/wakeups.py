"""Detects that the machine slept, that the wall clock was set, or that this process was stopped.

This is not part of `chronex.clock`, because it needs ctypes, whose import would take longer than `chronex next`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from chronex.clock import Clock
from chronex.engine.clock_steps import begin_where_never_set, follow_clock, follow_shared_clock, newest_sign, rewind
from chronex.model.records import Node
from chronex.run import is_alive
from chronex.storage.ports import Store
from chronex.storage.records import Reading
from chronex.text.durations import DAY_MS

# From Linux's timerfd_create(2); Python has them since 3.13.
_ABSOLUTE, _CANCEL_ON_SET = 1, 2
_END_OF_TIME = 2**31 - 1 if ctypes.sizeof(ctypes.c_long) == 4 else 253_402_300_799
_CLOCK_ERROR = 5  # TIME_ERROR of adjtimex(2): no service corrects the clock


class StepAlarm:
    """Readable as soon as the wall clock is set or the machine wakes up: Linux cancels this timer then.

    It never fires for another reason, because it is set for the end of time.
    """

    def __init__(self) -> None:
        """Raises OSError where the system has no such timer."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "timerfd_create"):
            raise OSError(errno.ENOSYS, "no timer that notices a set clock")
        self._descriptor: int = self._libc.timerfd_create(time.CLOCK_REALTIME, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "no timer that notices a set clock")
        try:
            self._arm()
        except OSError:
            self.close()
            raise

    def fileno(self) -> int:
        return self._descriptor

    def again(self) -> None:
        """Once it has rung: be ready for the next time."""
        with contextlib.suppress(OSError):  # ECANCELED is what it says when the clock was set
            os.read(self._descriptor, 8)
        self._arm()

    def _arm(self) -> None:
        when = (ctypes.c_long * 4)(0, 0, _END_OF_TIME, 0)
        if self._libc.timerfd_settime(self._descriptor, _ABSOLUTE | _CANCEL_ON_SET, ctypes.byref(when), None) != 0:
            raise OSError(ctypes.get_errno(), "no timer that notices a set clock")

    def close(self) -> None:
        os.close(self._descriptor)


def is_synchronized() -> bool | None:
    """Does the kernel hold the wall clock for corrected by a time service? None where it does not say."""
    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    if adjtimex is None:
        return None
    # struct timex: all zeros means "change nothing", which anyone may ask. It is 208 bytes on 64-bit Linux.
    answer = adjtimex(ctypes.create_string_buffer(512))
    return None if answer < 0 else bool(answer != _CLOCK_ERROR)


# When the wall clock advanced this much more than the clock that counts waking time only, the machine slept.
TOLERANCE_MS = 2_000
# No sleep of the loop is half as long; a check this late means that the process did not run when things fell due.
LONGEST_BETWEEN_CHECKS_MS = 90_000


class ClockJump(NamedTuple):
    """The wall moved by `by_ms` more than time did, while `slept_ms` of it were spent asleep.

    For `stalled_ms` the machine was awake and this process was not: stopped, frozen, or starved.
    """

    at_ms: int
    by_ms: int
    slept_ms: int
    stalled_ms: int = 0

    @property
    def set_by_ms(self) -> int:
        """By how much the clock was set, asleep or not: time since boot tells how much has really passed; 0 where the
        machine only slept.
        """
        step = self.by_ms - self.slept_ms
        return step if abs(step) > TOLERANCE_MS else 0

    @property
    def name(self) -> str:
        if self.slept_ms > TOLERANCE_MS:
            return "MachineSlept"
        return "SchedulerStalled" if self.stalled_ms else "ClockStepped"

    def describe(self, zone: str) -> str:
        """ "asleep 23:10–07:42", in the scheduler's zone; with dates where it was longer than a day."""
        asleep = self.slept_ms > TOLERANCE_MS
        before = self.at_ms - (self.slept_ms if asleep else self.stalled_ms or self.by_ms)
        form = "%H:%M" if abs(self.at_ms - before) < DAY_MS else "%Y-%m-%d %H:%M"
        start, end = (datetime.fromtimestamp(ms / 1000, _zone(zone)).strftime(form) for ms in (before, self.at_ms))
        if asleep or self.stalled_ms:
            return f"{'asleep' if asleep else 'stopped'} {start}–{end}"
        return f"the clock was set {'forwards' if self.by_ms > 0 else 'back'} from {start} to {end}"


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


@contextmanager
def wake_on_clock_set(wake: Callable[[], None]) -> Iterator[None]:
    """Call `wake` as soon as the wall clock is set, where the system can detect that."""
    try:
        alarm = StepAlarm()
    except OSError:
        yield
        return
    loop = asyncio.get_running_loop()

    def rung() -> None:
        alarm.again()
        wake()

    loop.add_reader(alarm.fileno(), rung)
    try:
        yield
    finally:
        loop.remove_reader(alarm.fileno())
        alarm.close()


class Rest(NamedTuple):
    """Nothing is to be done while the change counter of the store is `seen`, and before `next_ms`."""

    seen: int
    next_ms: int | None

    def holds(self, seen: int, now_ms: int) -> bool:
        return self.seen == seen and (self.next_ms is None or now_ms < self.next_ms)


class WakeupDetector:
    """Since when the scheduler has been awake without a break, by the wall."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._awake, self._boot = clock.wall_ms(), clock.monotonic_ms(), clock.boottime_ms()
        self.since_ms = self._wall

    def check(self) -> ClockJump | None:
        """Compare the three clocks; a step forwards or a sleep begins a new waking time."""
        wall, awake, boot = self._clock.wall_ms(), self._clock.monotonic_ms(), self._clock.boottime_ms()
        elapsed = awake - self._awake
        by, slept = (wall - self._wall) - elapsed, (boot - self._boot) - elapsed
        stalled = elapsed if elapsed > LONGEST_BETWEEN_CHECKS_MS else 0
        self._wall, self._awake, self._boot = wall, awake, boot
        if abs(by) <= TOLERANCE_MS and slept <= TOLERANCE_MS and not stalled:
            return None
        if by > TOLERANCE_MS or slept > TOLERANCE_MS or (stalled and by >= -TOLERANCE_MS):
            self.since_ms = wall
        else:
            self.since_ms = min(self.since_ms, wall)
        return ClockJump(wall, by, slept, stalled)


# What a daemon does when a clock was set or the machine slept: the jobs follow, and the journal says so.


# The time by which history, logs and dead letters are too old.
#
# What is removed is gone, so a clock that has just jumped a year ahead must not decide it. Ages are counted by the
# wall clock as long as that agrees, within a week, with the time that schedulers have seen pass. When it is further
# ahead, ages go on from the old time, and the new one holds only after schedulers have run by it for a day.

# A machine that was off for a week is nothing unusual, and a week more or less is no loss to what is kept for months.
MOST_AHEAD_MS = 7 * DAY_MS
PROOF_MS = DAY_MS
_TOLERANCE_MS = 2_000


class AgeClock:
    """`trusted_ms` is the time of ages; `doubt_ms` is how much longer the wall clock must hold to be believed."""

    def __init__(self, clock: Clock, nodes: Iterable[Node] = ()) -> None:
        """Go on from what the scheduler before has written to its node."""
        self._clock = clock
        self._boot_ms = clock.boottime_ms()
        self.doubt_ms = 0
        self.trusted_ms = clock.wall_ms()
        before = max(nodes, key=lambda node: (node.seen_ms, node.doubt_ms), default=None)
        if before is not None:
            self._continue(before)
        self._ahead_ms = clock.wall_ms() - self.trusted_ms

    def _continue(self, before: Node) -> None:
        seen_ms = max(before.seen_ms, before.started_ms, before.stopped_ms or 0)
        if not before.doubt_ms:
            self.trusted_ms = seen_ms
            return
        gap_ms = max(self._clock.wall_ms() - seen_ms, 0)
        self.trusted_ms = before.aged_ms + (gap_ms if gap_ms <= MOST_AHEAD_MS else 0)
        self.doubt_ms = before.doubt_ms

    def now_ms(self) -> int:
        wall_ms, boot_ms = self._clock.wall_ms(), self._clock.boottime_ms()
        elapsed_ms, self._boot_ms = boot_ms - self._boot_ms, boot_ms
        self.trusted_ms += elapsed_ms
        ahead_ms = wall_ms - self.trusted_ms
        if ahead_ms <= MOST_AHEAD_MS:
            self.doubt_ms = 0
        elif not self.doubt_ms or abs(ahead_ms - self._ahead_ms) > _TOLERANCE_MS:
            self.doubt_ms = PROOF_MS
        else:
            self.doubt_ms = max(self.doubt_ms - elapsed_ms, 0)
        if not self.doubt_ms:
            self.trusted_ms = wall_ms
        self._ahead_ms = wall_ms - self.trusted_ms
        return self.trusted_ms


class JournalWriter(Protocol):
    def __call__(self, name: str, data: dict[str, Any]) -> None: ...


class ClockFollower:
    """Remembers what the store could not follow yet; until it has, nothing may be decided."""

    def __init__(self, store: Store, clock: Clock, node: str, zone: str, journal: JournalWriter) -> None:
        self._store, self._clock, self._node, self._journal = store, clock, node, journal
        self.zone = zone  # of the job file, for the words of the journal
        self.unfollowed: list[ClockJump] = []

    def note(self, jump: ClockJump, *, is_shared: bool) -> None:
        """That one of several machines slept is nothing to the others."""
        if not is_shared or jump.set_by_ms:
            self.unfollowed.append(jump)

    def follow(self) -> None:
        """The clock of this machine. StoreFullError: what is left is followed by the next call."""
        while self.unfollowed:
            jump, more = self.unfollowed[0], dict[str, Any]()
            if jump.stalled_ms:
                more["stalled_ms"] = jump.stalled_ms
            if jump.set_by_ms:
                followed = follow_clock(self._store, jump.set_by_ms, jump.at_ms, self._node)
                more |= {"retries": followed.retries, "jobs": followed.jobs}
            self._record_jump(jump, more)
            del self.unfollowed[0]

    async def follow_shared(self) -> None:
        """The clock of the database was set: the jobs follow once, whoever of the nodes comes first."""
        while self.unfollowed:
            jump = self.unfollowed[0]
            now_ms = self._clock.wall_ms()
            update = follow_shared_clock(jump.set_by_ms, jump.at_ms, self._node, now_ms)
            followed = await self._store.update_async(update)
            del self.unfollowed[0]
            if followed is not None:
                self._record_jump(jump, {"retries": followed.retries, "jobs": followed.jobs})

    def check_set_back(self) -> None:
        """The clock may have been put right while no scheduler was there to see it."""
        now_ms = self._clock.wall_ms()
        begin_where_never_set(self._store, now_ms)
        ahead_ms = self._store.view(newest_sign) - now_ms
        if ahead_ms > TOLERANCE_MS:
            nodes = self._store.view(lambda tx: Reading(tx).nodes())
            living = {node.id for node in nodes if node.stopped_ms is None and is_alive(node.process)}
            jobs = rewind(self._store, now_ms, living)
            self._record_jump(ClockJump(now_ms, -ahead_ms, 0, 0), {"jobs": jobs}, name="ClockStepped")

    def _record_jump(self, jump: ClockJump, more: dict[str, Any], name: str = "") -> None:
        fields = {"told": jump.describe(self.zone), "by_ms": jump.by_ms, "slept_ms": jump.slept_ms}
        self._journal(name or jump.name, {**fields, **more})
