"""Jobs that follow others, in a simulation: every run ends well there, so what follows starts when it has ended.

The engine asks the store for the newest occurrence of a parent. Here the schedules say which that is, and what ended
so far is remembered. What came before the simulation is taken to have completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.timing.job_schedule import options_of, schedule_of


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
            self._released.add((waiting.job, waiting.nominal_ms))
            due.append(replace(waiting, due_ms=at))
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

    def verdict(self, occurrence: Occurrence, at: int) -> Reason | None:
        """Why an instant of a job with a schedule does not start now; None where it may be decided.

        A reason WAITS_FOR means that it is given again when its parent has ended; any other that it is skipped.
        """
        job = self._jobs[occurrence.job]
        if not job.after or not job.schedule:
            return None
        if occurrence.wait_until_ms is not None:
            return Reason(ReasonCode.PARENT_TOO_LATE, by=", ".join(job.after))
        newest = {parent: self._newest(parent, occurrence.nominal_ms) for parent in job.after}
        ends = {parent: self._end_of(parent, nominal) for parent, nominal in newest.items()}
        window = options_of(job).window
        if window is not None and at > occurrence.nominal_ms + window:
            if (occurrence.job, occurrence.nominal_ms) in self._released:
                return Reason(ReasonCode.PARENT_TOO_LATE, by=", ".join(job.after))
            return None
        for parent, nominal in newest.items():
            state = ends[parent]
            if state is not None and (reason := _first_bad({parent: state}, nominal or 0)):
                return reason
        for parent, nominal in newest.items():
            if ends[parent] is None and nominal is not None:
                self._waiting.setdefault((parent, nominal), []).append(occurrence)
                return Reason(ReasonCode.WAITS_FOR, parent)
        return None

    def gives_up(self, occurrence: Occurrence) -> bool:
        """Its window is over: whether it still waits for a parent. It is waited for no longer."""
        key = (occurrence.job, occurrence.nominal_ms)
        for parent, waiting in list(self._waiting.items()):
            left = [one for one in waiting if (one.job, one.nominal_ms) != key]
            if len(left) < len(waiting):
                self._waiting[parent] = left
                return True
        return False

    def _end_of(self, parent: str, nominal_ms: int | None) -> OccurrenceState | None:
        if nominal_ms is None or nominal_ms <= self._from_ms:
            return OccurrenceState.COMPLETED  # before the simulation
        return self._ended.get((parent, nominal_ms))

    def _newest(self, parent: str, instant_ms: int) -> int | None:
        """By the schedules of the jobs from which it has its instants; None where one of them is not known here."""
        roots = self._roots.get(parent)
        if roots is None:
            roots = self._roots[parent] = self._roots_of(parent)
        found = [None if job is None else self._last_of(job, instant_ms) for job in roots]
        known = [one for one in found if one is not None]
        return min(known) if known and len(known) == len(found) else None

    def _last_of(self, job: Job, instant_ms: int) -> int | None:
        instants = self._planned.get(job.id)
        if instants is None:
            return schedule_of(job).previous(instant_ms + 1)
        return next((one for one in reversed(instants) if one <= instant_ms), None)

    def _roots_of(self, parent: str) -> tuple[Job | None, ...]:
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
