"""What groups must keep, worked out anew from what was committed and from the processes that the machine saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from chronex.model.groups import GroupSettings
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState as S
from chronex.storage.records import Reading
from chronex.testing import HOUR, MINUTE, SimulatedProcess
from tests.engine.simulator.observed_store import ObservedStore

if TYPE_CHECKING:
    from tests.engine.simulator.faulty_machine import FaultyMachine

Firing = tuple[str, int]


class _Came(NamedTuple):
    """One that stands in line: its place in the order, and in which lines."""

    order_ms: int
    lines: frozenset[str]


class WatchedLines:
    """Looks at every commit: who stood in line when another one took a place."""

    def __init__(self, store: ObservedStore) -> None:
        self._store = store
        self.findings: list[str] = []
        self.waited = 0  # how many ever stood in the line of a group
        self._standing: dict[Firing, _Came] = {}
        self._seen: dict[Firing, Occurrence] = {}
        store.watch = self._commit

    def _commit(self, written: list[Occurrence]) -> None:
        stood = dict(self._standing)
        started = [one for one in written if one.state is S.RUNNING and self._was(one) is not S.RUNNING]
        orders = {self._key(one): self._order_before(one) for one in started}
        for one in written:
            if one.state is S.QUEUED and one.lines:
                self._check_place(one)
                self.waited += any(not name.startswith("*") for name in one.lines)
                self._standing[self._key(one)] = _Came(one.order_ms, frozenset(one.lines))
            else:
                self._standing.pop(self._key(one), None)
            self._seen[self._key(one)] = one
        for one in started:
            self._check_overtaken(one, orders[self._key(one)], stood)

    def _key(self, one: Occurrence) -> Firing:
        return one.job, one.nominal_ms

    def _was(self, one: Occurrence) -> S | None:
        before = self._seen.get(self._key(one))
        return None if before is None else before.state

    def _job(self, name: str) -> Job | None:
        return self._store.view(lambda tx: Reading(tx).job(name))

    def _order_before(self, one: Occurrence) -> int:
        """Its place in the order when it started; one that never waited came at that moment."""
        before = self._seen.get(self._key(one))
        if before is not None and before.order_ms:
            return before.order_ms
        return self._expected(one, one.started_ms or 0)

    def _expected(self, one: Occurrence, came_ms: int) -> int:
        job = self._job(one.job)
        points = 0 if job is None else job.priority
        return came_ms - points * MINUTE + (HOUR if one.recovery and not one.manual else 0)

    def _check_place(self, one: Occurrence) -> None:
        before = self._seen.get(self._key(one))
        if before is not None and before.order_ms:
            return  # it keeps its place; a clock that is set moves it
        now_ms = self._store.now()
        if one.order_ms != self._expected(one, now_ms):
            self.findings.append(f"{one.job} {one.nominal_ms} came at {now_ms} and has the place {one.order_ms}")

    def _check_overtaken(self, one: Occurrence, order_ms: int, stood: dict[Firing, _Came]) -> None:
        """Those who stood in the line before the commit, and stand there after it."""
        for (job, nominal_ms), came in self._standing.items():
            before = stood.get((job, nominal_ms))
            for name in came.lines & one.groups.keys() & (before.lines if before is not None else set()):
                if came.order_ms < order_ms:
                    self.findings.append(
                        f"{one.job} {one.nominal_ms} with the place {order_ms} took a place of {name} before "
                        f"{job} {nominal_ms} with the place {came.order_ms}"
                    )


def places_exceeded(
    groups: Iterable[GroupSettings], ran: list[tuple[Occurrence, Job]],
    processes: Mapping[str, list[SimulatedProcess]], machine: FaultyMachine, is_clock_set: bool,
) -> Iterator[str]:  # fmt: skip
    """By the processes, in true time; and by the records, which hold places between two attempts too."""
    for group in groups:
        if group.limit is None:
            continue
        seen = [
            (one.started_ms, machine.clock.boot if one.ended_ms is None else one.ended_ms, (one.job, one.nominal_ms))
            for ones in processes.values()
            for one in ones
        ]
        weights = {job.id: job.groups.get(group.name, 0) for _, job in ran}
        if over := _most(seen, weights, group.limit):
            yield f"{group.name} gave {over} of {group.limit} places to processes"
        spans = [
            (one.started_ms, machine.now if one.finished_ms is None else one.finished_ms, (one.job, one.nominal_ms))
            for one, _ in ran
            if one.started_ms is not None
        ]
        if not is_clock_set and (over := _most(spans, weights, group.limit)):
            yield f"{group.name} gave {over} of {group.limit} places by its records"


def _most(spans: Iterable[tuple[int, int, Firing]], weights: Mapping[str, int], limit: int) -> int:
    """The most places that were taken at once where that is over the limit; else 0. A heavier one may have all."""
    moments: list[tuple[int, int, Firing]] = []
    for begin, end, firing in spans:
        if weights[firing[0]] and end > begin:
            moments += [(begin, 1, firing), (end, -1, firing)]
    alive: Counter[Firing] = Counter()
    for _, change, firing in sorted(moments):
        alive[firing] += change
        if alive[firing] <= 0:
            del alive[firing]
        taken = sum(weights[job] for job, _ in alive)
        if taken > limit and len(alive) > 1:
            return taken
    return 0


def rates_exceeded(groups: Iterable[GroupSettings], ran: list[tuple[Occurrence, Job]]) -> Iterator[str]:
    for group in groups:
        if group.rate is None:
            continue
        starts = sorted(one.started_ms for one, job in ran if group.name in job.groups and one.started_ms is not None)
        for index, start in enumerate(starts):
            beyond = index + group.rate.count
            if beyond < len(starts) and starts[beyond] < start + group.rate.per_ms:
                yield f"{group.name} had more than {group.rate.count} starts from {start} on"
                return


def turns_not_given(reading: Reading, machine: FaultyMachine) -> Iterator[str]:
    """The machine has had minutes without a fault: whoever is first in all its lines, with all free, has started."""
    if reading.count_active(machine.slots) >= machine.slots:
        return
    known = {group.name: group for group in machine.groups}
    for one in reading.queued(limit=100_000):
        if not one.lines or any(reading.in_line(name, 1)[0].nominal_ms != one.nominal_ms for name in one.lines):
            continue
        job = reading.job(one.job)
        assert job is not None
        if not any(_is_closed(reading, known.get(name), name, job, machine) for name in {*one.lines, *job.groups}):
            yield f"{one.job} {one.nominal_ms} is first in {one.lines}, all is free, and it still waits"


def _is_closed(reading: Reading, group: GroupSettings | None, name: str, job: Job, machine: FaultyMachine) -> bool:
    if group is None:
        return name.startswith("*")  # the pool was asked for; catch-up has its pace
    held = sum(one.groups.get(name, 0) for one in reading.holders(name, 100_000))
    if group.limit is not None and held and held + job.groups.get(name, 1) > group.limit:
        return True
    first = reading.in_line(name, 1)
    if first and (first[0].job, first[0].nominal_ms) != (job.id, first[0].nominal_ms):
        return True
    return group.rate is not None  # when a window opens is the subject of another rule
