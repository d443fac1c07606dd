"""What `why` says of jobs that follow each other: what came before an occurrence, and what comes after it."""

from __future__ import annotations

from typing import Any

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import text_of
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.records import Reading
from chronex.timing.zones import Zone
from chronex.views.why.answer import Link, Source, stamp
from chronex.views.wording import state_words

_S = OccurrenceState
_SO = {_S.SKIPPED: ", so it was skipped", _S.QUEUED: ", and it waits for that"}


def origin_link(version: Job) -> Link:
    """Why there is an occurrence of a job that has no schedule."""
    fact = f"it follows {' and '.join(version.after)}, and has no schedule of its own"
    return Link(fact, None, Source.SCHEDULE)


def parent_links(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> list[Link]:
    """How each occurrence that it follows stands, and what that meant for it."""
    links: list[Link] = []
    for parent, nominal_ms in occurrence.parents.items():
        found = reading.occurrence(parent, nominal_ms)
        if found is None:
            links.append(Link(f"{parent} of {stamp(nominal_ms, zone)} is no longer on record", None, Source.RECORD))
            continue
        so = "" if found.state is _S.COMPLETED else _SO.get(occurrence.state, "")
        links.append(Link(f"{_standing(found, zone)}{so}", found.finished_ms, Source.RECORD))
        names.setdefault("parents", []).append({"job": parent, "occurrence": found.id, "state": found.state.value})
    if occurrence.waits_for:
        names["waits_for"] = list(occurrence.waits_for)
    return links


def _standing(occurrence: Occurrence, zone: Zone) -> str:
    of = f"{occurrence.job} of {stamp(occurrence.nominal_ms, zone)}"
    if not is_final(occurrence.state):
        return f"{of} is {occurrence.state.value}"
    words = state_words(occurrence.state.value, occurrence.errors).replace("_", " ")
    is_said = occurrence.state is _S.COMPLETED or not occurrence.reason
    return f"{of} {_was(words)}" + ("" if is_said else f" ({text_of(occurrence.reason)})")


def _was(words: str) -> str:
    return words if words.startswith(("completed", "failed")) else f"was {words}"


def child_links(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> list[Link]:
    """The jobs that follow it, and what became of their occurrence."""
    links: list[Link] = []
    for child in reading.children(occurrence.job):
        found = reading.occurrence(child, occurrence.nominal_ms)
        job = reading.job(child)
        if found is not None and occurrence.job in found.parents:
            links.append(Link(f"{_standing(found, zone)}: it follows this", found.finished_ms, Source.RECORD))
            names.setdefault("children", []).append({"job": child, "occurrence": found.id})
        elif job is not None and job.follows and not is_final(occurrence.state):
            links.append(Link(f"{child} follows, when this has completed", None, Source.POLICY))
    return links
