"""Other occurrences of the job that a chain leads to, found by the ids that reasons name."""

from __future__ import annotations

from typing import Any

from chronex.engine import keys
from chronex.engine.ledger import Reading
from chronex.engine.reasons import detail_of
from chronex.engine.why.answer import Link, Source, stamp
from chronex.model.records import Occurrence
from chronex.model.states import OccurrenceState
from chronex.timing.zones import Zone

# An id cannot be turned back into a time, so the neighbours are asked; a job's queue holds a hundred of them.
_NEIGHBOURS = 250


def after(reading: Reading, job: str, nominal_ms: int, limit: int = _NEIGHBOURS) -> list[Occurrence]:
    """The occurrences after this one, in order."""
    start = keys.occurrence_key(job, nominal_ms)
    return reading.scan(keys.within_job(keys.OCCURRENCE, job), Occurrence, start, limit)


def by_id(reading: Reading, occurrence: Occurrence, wanted: str) -> Occurrence | None:
    earlier = reading.occurrences(occurrence.job, occurrence.nominal_ms, _NEIGHBOURS)
    for found in [*earlier, *after(reading, occurrence.job, occurrence.nominal_ms)]:
        if found.id == wanted:
            return found
    return None


def blocker_link(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> Link | None:
    """Which occurrence was in the way, and from when to when it ran."""
    wanted = detail_of(occurrence.reason)
    if not wanted:
        return None
    names["other"] = wanted
    found = by_id(reading, occurrence, wanted)
    if found is None:
        return Link(f"{wanted} is no longer on record", None, Source.RECORD)
    return Link(f"the other one is that of {_said(found, zone)}", found.started_ms, Source.RECORD)


def instead_link(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> Link | None:
    """Which of the missed ones was run in its place: the next of them that was not dropped."""
    for found in after(reading, occurrence.job, occurrence.nominal_ms, 1_000):
        if not found.recovery:
            break
        if found.state is not OccurrenceState.MISSED:
            names["other"] = found.id
            return Link(f"in its place stands that of {_said(found, zone)}", found.started_ms, Source.RECORD)
    return None


def _said(found: Occurrence, zone: Zone) -> str:
    text = f"{stamp(found.nominal_ms, zone)} ({found.id})"
    if found.started_ms is None:
        return f"{text}, which is {found.state.value}"
    until = f" until {stamp(found.finished_ms, zone)}" if found.finished_ms is not None else ", still running"
    return f"{text}: started {stamp(found.started_ms, zone)}{until}"
