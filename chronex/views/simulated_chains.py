"""Jobs that follow others, in a simulation: every run ends well there, so what follows starts when it has ended.

The engine asks the store for the newest occurrence of a parent. Here the schedules say which that is, and what ended
so far is remembered. What came before the simulation is taken to have completed; a parent whose schedule begins later
has not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine.admit import MOST_QUEUED
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.policies import Cadence
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.timing.job_schedule import CUSTOM, is_interval, is_random, options_of, schedule_of


class Played(NamedTuple):
    """How one occurrence ended; `started_ms` is None where it did not run."""

    occurrence: Occurrence
    state: OccurrenceState
    reason: Reason
    started_ms: int | None = None
    ended_ms: int | None = None


class Following(NamedTuple):
    """What an end brings about: occurrences that are due now, and those that are skipped because of it."""

    due: tuple[Occurrence, ...] = ()
    skipped: tuple[Played, ...] = ()


_REASONS = {
    OccurrenceState.SKIPPED: ReasonCode.PARENT_SKIPPED,
    OccurrenceState.CANCELED: ReasonCode.PARENT_CANCELED,
}


class SimulatedChains:
    """Who follows whom, what has ended, and who waits for what has not."""

    def __init__(self, jobs: Mapping[str, Job], from_ms: int, one_by_one: Iterable[str] = ()) -> None:
        self._jobs, self._from_ms = jobs, from_ms
        # Of jobs whose instants depend on what happened the schedule does not know which they will have.
        self._planned: dict[str, list[int]] = {name: [] for name in one_by_one}
        self._children: dict[str, list[Job]] = {}
        for job in jobs.values():
            for parent in job.after:
                self._children.setdefault(parent, []).append(job)
        self._ended: dict[tuple[str, int], OccurrenceState] = {}
        self._waiting: dict[tuple[str, int], list[Occurrence]] = {}
        # Of each job those that wait, by their instants, with the occurrence that each waits for.
        self._held: dict[str, dict[int, tuple[str, int]]] = {}
        self._released: set[tuple[str, int]] = set()
        self._roots: dict[str, tuple[Job | None, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._children)

    def planned(self, occurrence: Occurrence) -> None:
        if (instants := self._planned.get(occurrence.job)) is not None:
            instants.append(occurrence.nominal_ms)

    def ended(self, played: Played, now_ms: int) -> Following:
        """Remember the end of a job that others follow, and give what follows from it.

        What is planned for later to be skipped ends when it is due; what waited and is skipped ends now.
        """
        one = played.occurrence
        if one.job not in self._children:
            return Following()
        self._ended[one.job, one.nominal_ms] = played.state
        at = played.ended_ms if played.ended_ms is not None else max(now_ms, one.due_ms)
        due: list[Occurrence] = []
        skipped: list[Played] = []
        for child in self._children[one.job]:
            if child.follows:
                self._follow(child, one.nominal_ms, at, due, skipped)
        for waiting in self._waiting.pop((one.job, one.nominal_ms), []):
            del self._held[waiting.job][waiting.nominal_ms]
            self._decide_anew(waiting, at, due, skipped)
        return Following(tuple(due), tuple(skipped))

    def _follow(self, child: Job, nominal_ms: int, at: int, due: list[Occurrence], skipped: list[Played]) -> None:
        ends = {parent: self._ended.get((parent, nominal_ms)) for parent in child.after}
        if None in ends.values():
            return
        found = Occurrence(job=child.id, nominal_ms=nominal_ms, due_ms=at)
        if reason := _first_bad(ends, nominal_ms):
            skipped.append(Played(found, OccurrenceState.SKIPPED, reason))
        else:
            due.append(found)

    def _decide_anew(self, waiting: Occurrence, at: int, due: list[Occurrence], skipped: list[Played]) -> None:
        """It waits for another parent, is skipped because of this one, or is let go and meets the rest then."""
        reason = self._by_parents(self._jobs[waiting.job], waiting)
        if reason is None:
            self._released.add((waiting.job, waiting.nominal_ms))
            due.append(replace(waiting, due_ms=at))
        elif reason.code is not ReasonCode.WAITS_FOR:
            skipped.append(Played(waiting, OccurrenceState.SKIPPED, reason))

    def verdict(self, occurrence: Occurrence, at: int) -> Reason | None:
        """Why an instant of a job with a schedule does not start now; None where it may be decided.

        A reason WAITS_FOR means that it is given again when its parent has ended; any other that it is skipped.
        """
        job = self._jobs[occurrence.job]
        if not job.after or not job.schedule:
            return None
        if occurrence.wait_until_ms is not None:
            self.forget(occurrence)
            return Reason(ReasonCode.PARENT_TOO_LATE, by=", ".join(job.after))
        is_late = (window := options_of(job).window) is not None and at > occurrence.nominal_ms + window
        if is_late or (occurrence.job, occurrence.nominal_ms) in self._released:
            return None
        return self._by_parents(job, occurrence)

    def _by_parents(self, job: Job, occurrence: Occurrence) -> Reason | None:
        instant_ms = occurrence.nominal_ms
        newest = {parent: self._newest(parent, instant_ms) for parent in job.after}
        ends = {parent: self._end_of(parent, nominal) for parent, nominal in newest.items()}
        for parent, nominal in newest.items():
            if nominal is None and self._begins_behind(parent, instant_ms):
                return Reason(ReasonCode.PARENT_NEVER_RAN, by=parent)
            state = ends[parent]
            if state is not None and (reason := _first_bad({parent: state}, nominal or 0)):
                return reason
        for parent, nominal in newest.items():
            if ends[parent] is None and nominal is not None:
                return self._hold(occurrence, parent, nominal)
        return None

    def _hold(self, occurrence: Occurrence, parent: str, nominal_ms: int) -> Reason:
        held = self._held.setdefault(occurrence.job, {})
        if len(held) >= MOST_QUEUED:
            return Reason(ReasonCode.QUEUE_FULL)
        held[occurrence.nominal_ms] = (parent, nominal_ms)
        self._waiting.setdefault((parent, nominal_ms), []).append(occurrence)
        return Reason(ReasonCode.WAITS_FOR, parent)

    def holds(self, occurrence: Occurrence) -> bool:
        """Whether it waits for a parent."""
        return occurrence.nominal_ms in self._held.get(occurrence.job, ())

    def forget(self, occurrence: Occurrence) -> None:
        """It has ended, and waits for no parent any more."""
        awaited = self._held.get(occurrence.job, {}).pop(occurrence.nominal_ms, None)
        if awaited is not None:
            key = (occurrence.job, occurrence.nominal_ms)
            self._waiting[awaited] = [one for one in self._waiting[awaited] if (one.job, one.nominal_ms) != key]

    def _end_of(self, parent: str, nominal_ms: int | None) -> OccurrenceState | None:
        if nominal_ms is None or nominal_ms <= self._from_ms:
            return OccurrenceState.COMPLETED  # before the simulation
        return self._ended.get((parent, nominal_ms))

    def _newest(self, parent: str, instant_ms: int) -> int | None:
        """By the schedules of the jobs from which it has its instants; None where one of them is not known here."""
        found = [None if job is None else self._last_of(job, instant_ms) for job in self._roots_of(parent)]
        known = [one for one in found if one is not None]
        return min(known) if known and len(known) == len(found) else None

    def _last_of(self, job: Job, instant_ms: int) -> int | None:
        instants = self._planned.get(job.id)
        if instants is None:
            return schedule_of(job).previous(instant_ms + 1)
        return next((one for one in reversed(instants) if one <= instant_ms), None)

    def _begins_behind(self, parent: str, instant_ms: int) -> bool:
        """Has a job from which it has its instants none up to this one? (`from`, or an interval's first step.)"""
        roots = [job for job in self._roots_of(parent) if job is not None and _is_known_before(job)]
        return any(schedule_of(job).previous(instant_ms + 1) is None for job in roots)

    def _roots_of(self, parent: str) -> tuple[Job | None, ...]:
        roots = self._roots.get(parent)
        if roots is None:
            roots = self._roots[parent] = self._found_roots(parent)
        return roots

    def _found_roots(self, parent: str) -> tuple[Job | None, ...]:
        """The jobs with a schedule that it follows, directly or by way of others; None for one of another file."""
        found: dict[str, Job | None] = {}
        left, seen = [parent], {parent}
        while left:
            name = left.pop()
            job = self._jobs.get(name)
            if job is None or not job.follows:
                found[name] = job
                continue
            new = [one for one in job.after if one not in seen]
            seen.update(new)
            left += new
        return tuple(found.values())


def _is_known_before(job: Job) -> bool:
    """Does its schedule say which instants it had before? Some count from what was, and others only look ahead."""
    counts_from_ends = job.cadence is Cadence.FIXED_DELAY and is_interval(job)
    return not counts_from_ends and not is_random(job) and job.dialect != CUSTOM


def _first_bad(ends: Mapping[str, OccurrenceState | None], nominal_ms: int) -> Reason:
    for parent, state in ends.items():
        if state is not None and state is not OccurrenceState.COMPLETED:
            code = _REASONS.get(state, ReasonCode.PARENT_SKIPPED)
            return Reason(code, occurrence_id(parent, nominal_ms), parent)
    return NO_REASON


def with_followers(
    played: Iterator[Played],
    chains: SimulatedChains,
    push: Callable[[Occurrence], None],
    now: Callable[[], int],
) -> Iterator[Played]:
    """Every end, and after it what is skipped because of it; what is due because of it is pushed."""
    for one in played:
        left = [one]
        while left:
            found = left.pop(0)
            yield found
            following = chains.ended(found, now())
            for due in following.due:
                push(due)
            left += following.skipped
