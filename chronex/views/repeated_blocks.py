"""What repeats in a simulation is played once: the coming time is cut into blocks, and equal blocks end alike.

A block begins where nothing runs, nobody waits and no rate remembers a start; so all that happens in it depends on
which jobs have instants in it and how far these lie apart. An hour of a hundred hourly jobs is the same hour 8,760
times a year. Where the runs of a block are in nobody's way they are counted, else it is played by the simulation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, compress, count, islice, repeat
from operator import add, and_, ge, mod, mul, sub
from typing import NamedTuple

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.policies import OverlapPolicy
from chronex.views.simulated_chains import Played
from chronex.views.simulation import JobTally, RunSimulation, count_run

# Blocks are at least so long: schedules repeat by the hour, and looking for an equal one costs something each time.
BLOCK_MS = 3_600_000
# One that never comes to rest is no block: jobs that take longer than their time.
MOST_IN_BLOCK = 50_000
# An end comes before a start of the same millisecond, so what ends makes room for it.
_CHANGES = (-1, 1)


class RunOfJob(NamedTuple):
    """When the runs of one job are due, and how long each takes."""

    job: Job
    starts: list[int]
    takes_ms: int


class Block(NamedTuple):
    """What happens in a block, in milliseconds from its first instant."""

    instants: tuple[int, ...]  # each with the job that has it, in one number
    rests_ms: int  # from then on nothing is under way: an end at that time comes before a start
    jobs: dict[str, JobTally]
    starts: list[int]
    ends: list[int]
    most_at_once: int


class FoldedBlocks(NamedTuple):
    """All blocks: how often each happens, and the true times of all starts and ends."""

    blocks: list[tuple[Block, int]]
    starts: list[int]
    ends: list[int]


def fold_blocks(runs: Sequence[RunOfJob], simulation: RunSimulation, slots: int) -> FoldedBlocks | None:
    """Every run in blocks; None where a block does not come to rest."""
    return _Blocks(runs, simulation, slots).fold()


class _Blocks:
    """Every instant is one number, so that sorting and comparing them is no work of Python's: its time by the number
    of jobs, and the place of its job among those that have the same instant."""

    def __init__(self, runs: Sequence[RunOfJob], simulation: RunSimulation, slots: int) -> None:
        # Of those that are due at once the highest priority goes first, then by name, as in the engine.
        self._runs = sorted(runs, key=lambda one: (-one.job.priority, one.job.id))
        self._simulation, self._slots = simulation, slots
        self._jobs = len(self._runs)
        self._instants: list[int] = []
        for place, one in enumerate(self._runs):
            self._instants += map(add, map(mul, one.starts, repeat(self._jobs)), repeat(place))
        self._instants.sort()
        self._takes = [one.takes_ms for one in self._runs]
        self._has_groups = any(one.job.groups for one in self._runs)
        self._cuts = self._quiet()
        self._known: dict[tuple[int, ...], list[Block]] = {}
        self._is_long_in_vain = False

    def fold(self) -> FoldedBlocks | None:
        found: dict[int, tuple[Block, int]] = {}
        starts: list[int] = []
        ends: list[int] = []
        begin = 0
        while begin < len(self._instants):
            first_ms = self._instants[begin] // self._jobs
            block = self._block(begin, first_ms)
            if block is None:
                return None
            found[id(block)] = (block, found.get(id(block), (block, 0))[1] + 1)
            starts += map(add, block.starts, repeat(first_ms))
            ends += map(add, block.ends, repeat(first_ms))
            begin += len(block.instants)
        return FoldedBlocks(list(found.values()), starts, ends)

    def _quiet(self) -> list[int]:
        """The instants at which nothing would run if every run started at once, whatever is in its way."""
        times = [one // self._jobs for one in self._instants]
        takes = map(self._takes.__getitem__, map(mod, self._instants, repeat(self._jobs)))
        busy_until = accumulate(map(add, times, takes), max)
        return list(compress(count(1), map(ge, islice(times, 1, None), busy_until)))

    def _block(self, begin: int, first_ms: int) -> Block | None:
        """Known by its first hour; how far it reaches beyond that is another question."""
        hour_end = bisect_left(self._instants, (first_ms + BLOCK_MS) * self._jobs, begin)
        hour = self._relative(begin, hour_end, first_ms)
        known = self._known.setdefault(hour, [])
        for block in known:
            if self._is_same(block, begin, first_ms, hour):
                return block
        new = self._counted(begin, hour_end, first_ms) or self._played(begin, first_ms)
        if new is not None:
            known.append(new)
        return new

    def _relative(self, begin: int, end: int, first_ms: int) -> tuple[int, ...]:
        return tuple(map(sub, self._instants[begin:end], repeat(first_ms * self._jobs)))

    def _is_same(self, block: Block, begin: int, first_ms: int, hour: tuple[int, ...]) -> bool:
        after = begin + len(block.instants)
        if after < len(self._instants) and self._instants[after] // self._jobs < first_ms + block.rests_ms:
            return False
        instants = hour if len(block.instants) == len(hour) else self._relative(begin, after, first_ms)
        return instants == block.instants

    # -- what happens in a block ---------------------------------------------------------------------------

    def _counted(self, begin: int, hour_end: int, first_ms: int) -> Block | None:
        """Where no run is in the way of another: no group, no overlap of its own, and a pool that is never full."""
        cut = bisect_left(self._cuts, hour_end)
        end = self._cuts[cut] if cut < len(self._cuts) else len(self._instants)
        is_long = end - begin > MOST_IN_BLOCK
        if self._has_groups or (is_long and self._is_long_in_vain):
            return None
        self._is_long_in_vain = is_long
        instants = self._relative(begin, end, first_ms)
        starts = [one // self._jobs for one in instants]
        places = [one % self._jobs for one in instants]
        ends = list(map(add, starts, map(self._takes.__getitem__, places)))
        most = most_at_once(starts, ends)
        if most > self._slots or self._overlaps(starts, places):
            return None
        jobs = {
            self._runs[place].job.id: JobTally(completed=runs, busy_ms=runs * self._takes[place])
            for place, runs in Counter(places).items()
        }
        return Block(instants, max(ends), jobs, starts, ends, most)

    def _overlaps(self, starts: Sequence[int], places: Sequence[int]) -> bool:
        """Whether a job is due while it still runs."""
        last: dict[int, int] = {}
        for start, place in zip(starts, places, strict=True):
            before = last.get(place)
            is_over = before is None or start >= before + self._takes[place]
            if not is_over and self._runs[place].job.overlap is not OverlapPolicy.ALLOW:
                return True
            last[place] = start
        return False

    def _played(self, begin: int, first_ms: int) -> Block | None:
        """As far as to where nothing is under way any more, an hour at least."""
        played: list[Played] = []
        index, until = begin, first_ms + BLOCK_MS
        while index - begin <= MOST_IN_BLOCK:
            while index < len(self._instants) and self._instants[index] // self._jobs < until:
                due_ms, place = divmod(self._instants[index], self._jobs)
                self._simulation.push(Occurrence(job=self._runs[place].job.id, nominal_ms=due_ms, due_ms=due_ms))
                index += 1
            played += self._simulation.advance(until - 1)
            next_ms = self._simulation.goes_on_until(until)
            if next_ms is None:
                played += self._simulation.advance(until)
                return self._block_of(played, self._relative(begin, index, first_ms), first_ms, until)
            until = next_ms
        return None

    def _block_of(self, played: Iterable[Played], instants: tuple[int, ...], first_ms: int, until: int) -> Block:
        jobs: dict[str, JobTally] = {}
        starts: list[int] = []
        ends: list[int] = []
        for one in played:
            count_run(jobs.setdefault(one.occurrence.job, JobTally()), one)
            if one.started_ms is not None and one.ended_ms is not None:
                starts.append(one.started_ms - first_ms)
                ends.append(one.ended_ms - first_ms)
        return Block(instants, until - first_ms, jobs, starts, ends, most_at_once(starts, ends))


def most_at_once(starts: Iterable[int], ends: Iterable[int]) -> int:
    """Every start and every end in order, as one number each: twice its time, and one more for a start."""
    moments = [*map(add, map(mul, starts, repeat(2)), repeat(1)), *map(mul, ends, repeat(2))]
    moments.sort()
    return max(accumulate(map(_CHANGES.__getitem__, map(and_, moments, repeat(1)))), default=0)
