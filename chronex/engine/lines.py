"""Who waits for a place, and whose turn it is: by overlap, conditions, groups, the pace of catch-up and the pool.

Those who wait for a group, the pool, catch-up or conditions stand in lines; `Turns` asks the questions in order. Of
each line only the first is looked at, so that a hundred thousand who wait cost no more than a hundred. What a
transaction has read of a group it knows until its end, with what it has started meanwhile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import (
    DROPPING,
    MOST_QUEUED,
    Admission,
    Verdict,
    admit,
    is_met,
    overlap_on_time,
    patient,
    until_met,
    wait_in_line,
)
from chronex.engine.group_limits import (
    CATCH_UP,
    CONDITIONS,
    POOL,
    GroupUse,
    lacking,
    order_of,
    ready_at,
)
from chronex.model.groups import CatchUpPace, Group
from chronex.model.job import Job, JobProgress
from chronex.model.occurrence import Occurrence, Run
from chronex.model.policies import Found, OverlapPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.ports import HeldGroups
from chronex.storage.records import EVERYTHING, Reading, Records
from chronex.timing.job_schedule import options_of

# Those at the head of a line that this node must leave to others are passed over, so many of them.
MOST_PASSED_OVER = 20


CanRun = Callable[[Occurrence], bool]
DueRecord = JobProgress | Occurrence | Run


class LineWait(NamedTuple):
    """Why it waits, in which lines, and its place in the order."""

    reason: Reason
    lines: tuple[str, ...]
    order_ms: int


def is_catch_up(occurrence: Occurrence) -> bool:
    """It is made up for by itself; what a person asked for is no catch-up."""
    return occurrence.recovery and not occurrence.manual


def due_by_priority(records: Records, due: Sequence[DueRecord]) -> list[DueRecord]:
    """Of those that begin at one instant the highest priority first: all of them came at the same time.

    What runs already, and is due for its next attempt or for its end, takes no place of another.
    """
    found: list[DueRecord] = []
    for begins_ms, group in groupby(due, key=_begins_ms):
        together = list(group)
        if begins_ms is not None and len(together) > 1:
            together.sort(key=lambda one: -_priority(records, one.job))
        found += together
    return found


def _begins_ms(record: DueRecord) -> int | None:
    if isinstance(record, JobProgress):
        return record.next_ms
    if not isinstance(record, Occurrence):
        return None
    # One that its parents let go comes to its turn as if it were due then.
    return record.due_ms if record.state is OccurrenceState.PENDING else record.released_ms


def _priority(records: Records, name: str) -> int:
    job = records.job(name)
    return 0 if job is None else job.priority


class LineOrder(ABC):
    """Whose turn it is, wherever the lines are kept: in a store, or in a simulation."""

    owner: str | None = None

    @property
    @abstractmethod
    def now_ms(self) -> int: ...

    @abstractmethod
    def lines(self) -> set[str]:
        """Those in which somebody may stand."""

    def served(self) -> set[str]:
        """Those whose first may have its turn now."""
        return self.lines() - {CONDITIONS}

    @abstractmethod
    def use(self, name: str) -> GroupUse:
        """What is known of a group."""

    @abstractmethod
    def head(self, name: str) -> Occurrence | None:
        """The first in the line that could start here."""

    @abstractmethod
    def current(self, job: str, nominal_ms: int) -> Occurrence | None:
        """The occurrence as it is now."""

    def wait(self, job: Job, occurrence: Occurrence, free_slots: int) -> LineWait | None:
        """The lines that it must stand in; None where it can start.

        It joins the line of one group after the other, as each is found to be lacking, and keeps its place in them.
        The pool and catch-up hold up nobody for the sake of one that has no place in its groups yet: it leaves those
        lines, and comes back to its old place.
        """
        now_ms, is_past = self.now_ms, is_catch_up(occurrence)
        if not job.groups and not is_past and free_slots > 0 and POOL not in self.lines():
            return None
        stands = [name for name in occurrence.lines if name in job.groups]
        order_ms = occurrence.order_ms or order_of(now_ms, job.priority, is_catch_up=is_past)
        # Those that it stands in line for first: while it lacks one of them, it keeps nobody from the others.
        for name in sorted(job.groups, key=lambda name: (name not in stands, name)):
            if reason := self._lacking(name, job.groups[name], order_ms):
                return LineWait(reason, tuple(sorted({*stands, name})), order_ms)
        pace = self._lacking_pace(order_ms) if is_past else NO_REASON
        slot = self._lacking_slot(order_ms, free_slots)
        if not pace and not slot:
            return None
        # Where machines share the store, each has slots of its own, and the queues of jobs are claimed by each.
        own = [*([CATCH_UP] if pace else []), *([POOL] if slot and self.owner is None else [])]
        return LineWait(pace or slot, tuple(sorted((*stands, *own))), order_ms)

    def conditions(self, job: Job, occurrence: Occurrence, reason: Reason) -> LineWait:
        """It waits for what no run of ours gives back, and holds up nobody meanwhile."""
        order_ms = order_of(self.now_ms, job.priority, is_catch_up=is_catch_up(occurrence))
        return LineWait(reason, (CONDITIONS,), occurrence.order_ms or order_ms)

    def _lacking(self, name: str, weight: int, order_ms: int) -> Reason:
        first_ms = self._first_ms(name)
        return lacking(self.use(name), weight, order_ms, first_ms, self.now_ms)

    def _lacking_pace(self, order_ms: int) -> Reason:
        return Reason(ReasonCode.CATCH_UP) if self._lacking(CATCH_UP, 1, order_ms) else NO_REASON

    def _lacking_slot(self, order_ms: int, free_slots: int) -> Reason:
        first_ms = self._first_ms(POOL)
        is_free = free_slots > 0 and (first_ms is None or first_ms >= order_ms)
        return NO_REASON if is_free else Reason(ReasonCode.POOL_FULL)

    def _first_ms(self, name: str) -> int | None:
        """The place of the first in the line that could start here."""
        head = self.head(name) if name in self.lines() else None
        return None if head is None else head.order_ms

    def heads(self) -> Iterator[Occurrence]:
        """The first of each line, the first of all of them first; behind one that has left its line, the next.

        Where the first is still there when the next is asked for, its line is done.
        """
        heads = [
            (one.order_ms, name, one.job, one.nominal_ms)
            for name in self.served()
            if (one := self.head(name)) is not None
        ]
        heapify(heads)
        while heads:
            _, name, job, nominal_ms = heappop(heads)
            found = self.current(job, nominal_ms)
            if found is not None and name in found.lines:
                yield found
            now = self.head(name)
            if now is not None and (now.job, now.nominal_ms) != (job, nominal_ms):
                heappush(heads, (now.order_ms, name, now.job, now.nominal_ms))


class GroupReader:
    """What the groups hold and who is first in their lines, as one reading of the store has it."""

    def __init__(self, reading: Reading, pace: CatchUpPace, slots: int, owner: str | None) -> None:
        self.reading, self.pace, self.slots, self.owner = reading, pace, slots, owner
        self.uses: dict[str, GroupUse] = {}
        self._lines: set[str] | None = None

    def lines(self) -> set[str]:
        """Those in which somebody stands."""
        if self._lines is None:
            self._lines = set(self.reading.lines())
        return self._lines

    def use(self, name: str) -> GroupUse:
        found = self.uses.get(name)
        if found is None:
            found = self.uses[name] = self._read(name)
        return found

    def served(self) -> set[str]:
        """The lines whose first may have its turn: where machines share the store, those of groups that are held."""
        tx = self.reading.tx
        found = (
            {name for name in self.lines() if tx.holds_group(name)} if isinstance(tx, HeldGroups) else self.lines()
        )
        return found - {CONDITIONS}

    def _read(self, name: str) -> GroupUse:
        group = self.reading.group(name) or Group(name=name)
        holders = self.reading.holders(name, EVERYTHING)
        if name == CATCH_UP:  # the slots are this node's, and so is its share of them
            mine = [one for one in holders if self.owner is None or one.owner == self.owner]
            return GroupUse(name, self.pace.places(self.slots), self.pace.rate, len(mine), starts=group.starts)
        longest = min(holders, key=lambda one: one.started_ms or 0, default=None)
        held = sum(one.groups.get(name, 0) for one in holders)
        return GroupUse(name, group.limit, group.rate, held, longest, group.starts)

    def open_lines(self, now_ms: int) -> frozenset[str]:
        """Those whose first could start, as far as their groups tell; slots are not asked for."""
        return frozenset(name for name in self.served() if name == POOL or not self._is_closed(name, now_ms))

    def _is_closed(self, name: str, now_ms: int) -> bool:
        use = self.use(name)
        return (use.limit is not None and use.held >= use.limit) or ready_at(use.rate, use.starts, now_ms) > now_ms

    def next_ms(self, now_ms: int) -> int | None:
        """When a rate lets a line go on that it holds up now."""
        waits = []
        for name in self.served() - {POOL}:
            use = self.use(name)
            ready_ms = ready_at(use.rate, use.starts, now_ms)
            if ready_ms > now_ms and (use.limit is None or use.held < use.limit):
                waits.append(ready_ms)
        return min(waits, default=None)


class Lines(GroupReader, LineOrder):
    """The same inside an update, with what that starts and lets wait."""

    def __init__(
        self,
        records: Records,
        pace: CatchUpPace,
        slots: int,
        owner: str | None,
        can_run: CanRun,
    ) -> None:
        super().__init__(records, pace, slots, owner)
        self.records, self.can_run = records, can_run

    @property
    def now_ms(self) -> int:
        return self.records.now_ms

    def current(self, job: str, nominal_ms: int) -> Occurrence | None:
        return self.records.occurrence(job, nominal_ms)

    def joined(self, names: tuple[str, ...]) -> None:
        self.lines().update(names)

    def take(self, occurrence: Occurrence, weights: dict[str, int]) -> None:
        """It has started and holds these places until it ends; the starts of a group are kept where it has a rate."""
        for name, weight in weights.items():
            use = self.use(name)
            self.uses[name] = taken = use.with_start(weight, occurrence, self.records.now_ms)
            if taken.rate is not None:
                row = self.records.group(name) or Group(name=name)
                self.records.put(replace(row, starts=tuple(taken.starts)))

    def head(self, name: str) -> Occurrence | None:
        first = self.records.in_line(name, 1)
        if first and self.can_run(first[0]):
            return first[0]
        passed = self.records.in_line(name, MOST_PASSED_OVER) if first else []
        return next((one for one in passed if self.can_run(one)), None)


def places_of(job: Job, occurrence: Occurrence) -> dict[str, int]:
    """The places that it takes while it runs."""
    return {**job.groups, CATCH_UP: 1} if is_catch_up(occurrence) else dict(job.groups)


def line_key(occurrence: Occurrence, name: str) -> bytes:
    """Its entry in the line."""
    key = keys.occurrence_key(occurrence.job, occurrence.nominal_ms)
    return keys.within_line(name) + keys.instant(occurrence.order_ms) + key


def leave_lines(occurrence: Occurrence) -> Occurrence:
    """The same, in no line; where it comes back to one, it has its old place."""
    return replace(occurrence, lines=())


class TurnAnswer(NamedTuple):
    """`wait` says in which lines it stands where it is queued there; `is_behind` that it waits for its job's past."""

    admission: Admission
    wait: LineWait | None = None
    is_behind: bool = False


class Turns:
    """Asks the pure functions, with what the records say of the job and of the lines."""

    def __init__(
        self, records: Records, lines: Lines, found: Mapping[str, Found], free_slots: Callable[[], int]
    ) -> None:
        self.records, self.lines, self.found, self.free_slots = records, lines, found, free_slots

    def answer(
        self, job: Job, occurrence: Occurrence, running: list[Occurrence], waiting: int, retry_ms: int | None,
        lacking: str,
    ) -> TurnAnswer:  # fmt: skip
        """`lacking` is what no node has that lives; then it waits for a node."""
        now_ms, window_ms, free = self.records.now_ms, options_of(job).window, 0 if lacking else 1
        answer = admit(job, occurrence, running, waiting, free, now_ms, window_ms, retry_ms)
        is_behind = occurrence.behind
        # An instant of now waits for the past of its job; whether several missed ones run is for the strategy to say.
        is_of_now = not occurrence.manual and not occurrence.recovery
        if answer.verdict is Verdict.SKIP and job.overlap in DROPPING and is_of_now:
            is_behind = self._is_past_in_the_way(job, running)
            if is_behind:
                answer = admit(patient(job), occurrence, running, waiting, free, now_ms, window_ms, retry_ms)
        if lacking and answer.reason.code is ReasonCode.POOL_FULL:
            answer = answer._replace(reason=Reason(ReasonCode.NO_NODE, lacking))
        if answer.verdict is Verdict.START and occurrence.behind and job.overlap is OverlapPolicy.SKIP:
            answer = overlap_on_time(occurrence, self._ran_before(occurrence))
        wait = None
        if answer.verdict is Verdict.START:
            answer, wait = self._in_line(job, occurrence, answer, waiting)
        return TurnAnswer(answer, wait, is_behind)

    def _in_line(
        self, job: Job, occurrence: Occurrence, answer: Admission, waiting: int
    ) -> tuple[Admission, LineWait | None]:
        """It could start but for its conditions, its groups, the pace of catch-up, or the pool."""
        now_ms, found = self.records.now_ms, self.found.get(job.id)
        if is_met(job, occurrence, found, now_ms):
            wait = self.lines.wait(job, occurrence, self.free_slots())
        else:
            answer = until_met(job, occurrence, found, now_ms)
            if answer.verdict is Verdict.SKIP:
                return answer, None
            wait = self.lines.conditions(job, occurrence, answer.reason)
        return answer if wait is None else wait_in_line(job, occurrence, wait.reason, waiting), wait

    def _is_past_in_the_way(self, job: Job, running: list[Occurrence]) -> bool:
        """Whether the one in the way is there because the job makes up for what it missed.

        Where the newest wins (the declarative scheduler), an instant that was due meanwhile is not kept for later.
        """
        if job.retry is not None and job.retry.newest_wins:
            return False
        first = running[:1] or self.records.queued(job.id, limit=1)
        return any(one.recovery or (one.behind and job.overlap is OverlapPolicy.SKIP) for one in first)

    def _ran_before(self, occurrence: Occurrence) -> Occurrence | None:
        """The one of its job that ran last before it."""
        earlier = self.records.occurrences(occurrence.job, occurrence.nominal_ms, MOST_QUEUED)
        return next((one for one in earlier if one.started_ms is not None and not one.manual), None)
