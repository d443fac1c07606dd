"""Jobs that follow others (`after`): what the end of an occurrence brings about, and what an occurrence waits for.

A job without a schedule has one occurrence for each nominal time at which all of its parents have one: the last of
those to end creates it. A job with a schedule waits at each of its instants until the newest occurrence of each
parent, at or before that instant, has ended. Both look up who follows whom in an index, so an end costs what it
changes (specs/graphs.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from msgspec.structs import replace

from chronex.errors import CustomScheduleError
from chronex.model.job import Job
from chronex.model.occurrence import Occurrence, occurrence_id
from chronex.model.policies import RunOn
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.records import Reading
from chronex.timing.job_schedule import schedule_of

# Withdrawn by an edit: the instant may be wanted again, and then it happens after all.
_WITHDRAWN = (ReasonCode.REPLACED, ReasonCode.JOB_REMOVED)
# How many occurrences back a replay of one parent looks for what became of the same time in the others.
_MOST_SEARCHED = 1_000
# A person may ask for a part of a job, time and again; such a run is no occurrence to wait for.
_MOST_PARTIAL = 100

_WHY_SKIPPED = {
    OccurrenceState.FAILED: ReasonCode.PARENT_FAILED,
    OccurrenceState.FAILED_STALE: ReasonCode.PARENT_FAILED,
    OccurrenceState.CANCELED: ReasonCode.PARENT_CANCELED,
    OccurrenceState.SKIPPED: ReasonCode.PARENT_SKIPPED,
    OccurrenceState.MISSED: ReasonCode.PARENT_MISSED,
}


def why_skipped(parent: Occurrence) -> Reason:
    """The reason of a child whose parent ended without having completed."""
    return Reason(_WHY_SKIPPED[parent.state], parent.id, parent.job)


# -- a child without a schedule ----------------------------------------------------------------------------


class Successor(NamedTuple):
    """An occurrence that the end of another one creates; with a reason it is skipped at once."""

    occurrence: Occurrence
    reason: Reason = NO_REASON


def successor(reading: Reading, child: Job, ended: Occurrence, now_ms: int) -> Successor | None:
    """The occurrence of `child` that follows this end; None where none does, or not yet."""
    if not child.enabled or not child.follows or ended.only or ended.reason.code in _WITHDRAWN:
        return None
    if child.run_on is RunOn.EACH and not child.target:
        return None  # it runs as the jobs that each node has of it
    if ended.replay_of:
        return _replayed(reading, child, ended, now_ms) if ended.with_children else None
    parents = [reading.occurrence(parent, ended.nominal_ms) for parent in child.after]
    if not _have_ended(parents):
        return None
    nominal_ms = ended.nominal_ms
    while ended.manual and reading.occurrence(child.id, nominal_ms) is not None:
        nominal_ms += 1
    found = _following(child, parents, nominal_ms, now_ms)
    return None if reading.occurrence(child.id, nominal_ms) is not None else found


def _have_ended(parents: Iterable[Occurrence | None]) -> bool:
    return all(one is not None and is_final(one.state) for one in parents)


def _following(child: Job, parents: Iterable[Occurrence | None], nominal_ms: int, now_ms: int) -> Successor:
    ends = [one for one in parents if one is not None]
    bad = next((one for one in ends if one.state is not OccurrenceState.COMPLETED), None)
    occurrence = Occurrence(
        job=child.id,
        nominal_ms=nominal_ms,
        due_ms=now_ms,
        version=child.version,
        parents={one.job: one.nominal_ms for one in ends},
        created_ms=now_ms,
    )
    return Successor(occurrence, NO_REASON if bad is None else why_skipped(bad))


def _replayed(reading: Reading, child: Job, ended: Occurrence, now_ms: int) -> Successor | None:
    """The child runs again for the same scheduled time, as its parent did: a new occurrence that stands for it."""
    parents = [
        ended if parent == ended.job else _newest_for(reading, parent, ended.scheduled_ms) for parent in child.after
    ]
    if not _have_ended(parents) or any(
        _runs_again(reading, parent, ended.scheduled_ms, {}) for parent in child.after if parent != ended.job
    ):
        return None
    found = _following(child, parents, free_instant(reading, child, now_ms), now_ms)
    own = _newest_for(reading, child.id, ended.scheduled_ms)
    if own is not None and own.parents == found.occurrence.parents:
        return None  # it was skipped a moment ago, with another one that was
    again = replace(
        found.occurrence,
        manual=True,
        triggered_by=ended.triggered_by,
        replay_of=occurrence_id(child.id, ended.scheduled_ms),
        stands_for_ms=ended.scheduled_ms,
        asked_for=ended.asked_for,
        with_children=True,
    )
    return found._replace(occurrence=again)


def _runs_again(reading: Reading, name: str, scheduled_ms: int, known: dict[str, bool]) -> bool:
    """Whether the job follows one that has run again for this time, and has yet to follow that run.

    Of a diamond (`k` after `p`, `g` after both) `g` would follow the old run of `k`, and then the new one too.
    """
    if name not in known:
        job = reading.job(name)
        own = None if job is None or not job.enabled or not job.follows else _newest_for(reading, name, scheduled_ms)
        known[name] = (
            job is not None
            and own is not None
            and any(
                _is_behind(own, _newest_for(reading, parent, scheduled_ms))
                or _runs_again(reading, parent, scheduled_ms, known)
                for parent in job.after
            )
        )
    return known[name]


def _is_behind(own: Occurrence, parent: Occurrence | None) -> bool:
    """The parent was replayed with its children, and this is no occurrence that followed the replay."""
    if parent is None or not parent.replay_of or not parent.with_children:
        return False
    return own.parents.get(parent.job) != parent.nominal_ms


def _newest_for(reading: Reading, job: str, scheduled_ms: int) -> Occurrence | None:
    found = reading.occurrences(job, limit=_MOST_SEARCHED)
    return next((one for one in found if one.scheduled_ms == scheduled_ms and not one.only), None)


def free_instant(reading: Reading, job: Job, now_ms: int) -> int:
    """The first millisecond from now on that is no occurrence's and not the schedule's, nor a whole second's:
    a schedule that is applied later may fire on any of those."""
    candidate = now_ms
    while candidate % 1000 == 0 or reading.occurrence(job.id, candidate) is not None or _is_scheduled(job, candidate):
        candidate += 1
    return candidate


def _is_scheduled(job: Job, ms: int) -> bool:
    try:
        return schedule_of(job).next(ms - 1) == ms
    except CustomScheduleError:
        return False  # a schedule of another program: only that program can answer


# -- a child with a schedule -------------------------------------------------------------------------------


class ParentEnd(Enum):
    COMPLETED = "completed"
    OPEN = "open"
    NOT_COMPLETED = "not completed"
    NEVER_RAN = "never ran"


class ParentStatus(NamedTuple):
    """How the newest occurrence of a parent stands that the child has to wait for."""

    parent: str
    end: ParentEnd
    occurrence: Occurrence | None = None

    @property
    def reason(self) -> Reason:
        if self.occurrence is None:
            return Reason(ReasonCode.PARENT_NEVER_RAN, by=self.parent)
        return why_skipped(self.occurrence)


Known = dict[str, ParentStatus]


def parent_statuses(reading: Reading, child: Job, instant_ms: int, known: Known | None = None) -> list[ParentStatus]:
    """One for each parent, for the occurrence of the child at `instant_ms`.

    A parent that is reached by several ways is asked for once: `known` has those that were.
    """
    known = {} if known is None else known
    for parent in child.after:
        if parent not in known:
            known[parent] = _status(reading, parent, instant_ms, known)
    return [known[parent] for parent in child.after]


def _status(reading: Reading, parent: str, instant_ms: int, known: Known) -> ParentStatus:
    job = reading.job(parent)
    newest = next(_newest(reading, parent, instant_ms), None)
    if job is not None and _is_expected(reading, job, instant_ms, known):
        return ParentStatus(parent, ParentEnd.OPEN, newest)
    if newest is None:
        return ParentStatus(parent, ParentEnd.NEVER_RAN)
    if not is_final(newest.state):
        return ParentStatus(parent, ParentEnd.OPEN, newest)
    is_good = newest.state is OccurrenceState.COMPLETED
    return ParentStatus(parent, ParentEnd.COMPLETED if is_good else ParentEnd.NOT_COMPLETED, newest)


def _newest(reading: Reading, job: str, instant_ms: int) -> Iterator[Occurrence]:
    found = reading.occurrences(job, instant_ms + 1, _MOST_PARTIAL)
    return (one for one in found if not one.only and one.reason.code not in _WITHDRAWN)


def _is_expected(reading: Reading, job: Job, instant_ms: int, known: Known) -> bool:
    """Will the job have an occurrence up to that instant that it does not have yet?"""
    if job.follows:
        return any(one.end is ParentEnd.OPEN for one in parent_statuses(reading, job, instant_ms, known))
    if not job.enabled or job.progress.next_ms is None or job.progress.cursor_ms is None:
        return False
    try:
        upcoming = _next_undecided(job, job.progress.cursor_ms)
    except CustomScheduleError:
        return False
    return upcoming is not None and upcoming <= instant_ms


def _next_undecided(job: Job, after_ms: int) -> int | None:
    """A clock that was set back lets the job pass hours again whose instants were decided before: none of them is to
    come."""
    schedule = schedule_of(job)
    upcoming = schedule.next(after_ms)
    while upcoming is not None:
        span_end = next((end for begin, end in job.progress.decided if begin < upcoming <= end), None)
        if span_end is None:
            return upcoming
        upcoming = schedule.next(span_end)
    return None


class WaitVerdict(NamedTuple):
    """What the parents mean for an occurrence now: it waits for some, will never start, or may be decided."""

    waits_for: tuple[str, ...] = ()
    refusal: Reason = NO_REASON
    parents: tuple[tuple[str, int], ...] = ()


def wait_verdict(found: Iterable[ParentStatus]) -> WaitVerdict:
    """A parent that has ended badly decides at once, whatever the others do."""
    found = list(found)
    bad = next((one for one in found if one.end in (ParentEnd.NOT_COMPLETED, ParentEnd.NEVER_RAN)), None)
    parents = tuple((one.parent, one.occurrence.nominal_ms) for one in found if one.occurrence is not None)
    if bad is not None:
        return WaitVerdict((), bad.reason, parents)
    return WaitVerdict(tuple(one.parent for one in found if one.end is ParentEnd.OPEN), NO_REASON, parents)
