"""The history of a store: which occurrences there were, by job, time and state; newest first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from chronex.engine.commands.names import job_id_named, job_named
from chronex.errors import ChronexError
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import ReasonCode, text_of
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.records import Reading
from chronex.text.instants import utc_datetime
from chronex.text.suggestions import nearest
from chronex.views.wording import WITH_ERRORS

_PAGE = 500
# A filter that matches nothing must not read a history of millions of occurrences to its end.
_MOST_SEARCHED = 200_000
_WAITING = {OccurrenceState.QUEUED.value, OccurrenceState.PENDING.value}
STATES = (*(state.value for state in OccurrenceState), WITH_ERRORS)


class HistoryQuery(NamedTuple):
    """The newest `most` occurrences of one job or all, in these states or all, in [since, until)."""

    job: str | None
    most: int
    states: frozenset[str] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    # Only what these nodes ran, by their ids; None for whoever ran it.
    owners: frozenset[str] | None = None

    def contains(self, ms: int) -> bool:
        return (self.since_ms is None or ms >= self.since_ms) and (self.until_ms is None or ms < self.until_ms)

    def matches(self, occurrence: Occurrence) -> bool:
        if self.owners is not None and occurrence.owner not in self.owners:
            return False
        return (
            not self.states
            or occurrence.state in self.states
            or (occurrence.errors > 0 and WITH_ERRORS in self.states)
        )


def unknown_state(text: str) -> str:
    """What to write in the place of a state that there is not."""
    meant = nearest(text, STATES)
    return f"did you mean {meant}?" if meant else f"there are {', '.join(STATES)}"


def past_occurrences(reading: Reading, query: HistoryQuery) -> Iterator[Occurrence]:
    left = query.most
    for occurrence in _candidates(reading, query):
        if left == 0:
            return
        if query.matches(occurrence):
            left -= 1
            yield occurrence


def _candidates(reading: Reading, query: HistoryQuery) -> Iterator[Occurrence]:
    """Newest first: of one job by its nominal time; of all jobs what runs, then what ended, by its end.

    What waits has no place among the past of all jobs, and is found where it is asked for by its state.
    """
    if query.job is not None:
        yield from _of_job(reading, job_id_named(reading, query.job), query)
        return
    if query.states & _WAITING:
        waiting = reading.waiting(limit=query.most)
        yield from sorted((one for one in waiting if query.contains(one.nominal_ms)), key=lambda o: -o.nominal_ms)
    active = sorted(reading.active(), key=lambda o: -(o.started_ms or 0))
    yield from (one for one in active if query.until_ms is None or (one.started_ms or 0) < query.until_ms)
    after = None if query.until_ms is None else keys.timed(keys.FINISHED, query.until_ms, b"")
    for _ in range(_MOST_SEARCHED // _PAGE):
        rows = reading.tx.scan(keys.FINISHED, after, _PAGE, reverse=True)
        for index, _empty in rows:
            if query.since_ms is not None and keys.instant_of(index) < query.since_ms:
                return
            occurrence = reading.get(keys.record_of(index), Occurrence)
            if occurrence is not None:
                yield occurrence
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def _of_job(reading: Reading, job: str, query: HistoryQuery) -> Iterator[Occurrence]:
    before = query.until_ms
    if not _has_history(reading, job):
        job_named(reading, job)
    for _ in range(_MOST_SEARCHED // _PAGE):
        page = reading.occurrences(job, before, _PAGE)
        for occurrence in page:
            if query.since_ms is not None and occurrence.nominal_ms < query.since_ms:
                return
            yield occurrence
        if len(page) < _PAGE:
            return
        before = page[-1].nominal_ms


def _has_history(reading: Reading, job: str) -> bool:
    """A job that was removed still has a history."""
    try:
        return bool(reading.occurrences(job, limit=1))
    except ChronexError:
        return False


# -- for programs -----------------------------------------------------------------------------------------------


class PastRun(NamedTuple):
    """What became of one occurrence, as a program reads it. All times are aware, in UTC."""

    id: str
    job: str
    state: OccurrenceState
    reason: str
    reason_code: ReasonCode
    scheduled: datetime
    due: datetime
    started: datetime | None
    ended: datetime | None
    errors: int
    manual: bool
    recovery: bool
    replay_of: str
    triggered_by: str
    version: int

    @property
    def duration(self) -> timedelta | None:
        return None if self.started is None or self.ended is None else self.ended - self.started

    @property
    def is_good(self) -> bool:
        return self.state is OccurrenceState.COMPLETED


def past_run(occurrence: Occurrence) -> PastRun:
    return PastRun(
        id=occurrence.id,
        job=occurrence.job,
        state=occurrence.state,
        reason=text_of(occurrence.reason),
        reason_code=occurrence.reason.code,
        scheduled=utc_datetime(occurrence.scheduled_ms),
        due=utc_datetime(occurrence.due_ms),
        started=_at(occurrence.started_ms),
        ended=_at(occurrence.finished_ms),
        errors=occurrence.errors,
        manual=occurrence.manual,
        recovery=occurrence.recovery,
        replay_of=occurrence.replay_of,
        triggered_by=occurrence.triggered_by,
        version=occurrence.version,
    )


def _at(ms: int | None) -> datetime | None:
    return None if ms is None else utc_datetime(ms)
