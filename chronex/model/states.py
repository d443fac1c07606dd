"""The one transition table: code asks it, tests walk it, the docs are drawn from it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from msgspec.structs import replace

from chronex.errors import IllegalTransitionError


class OccurrenceState(StrEnum):
    """The state of one firing of a job."""

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    FAILED_STALE = "failed_stale"
    SKIPPED = "skipped"
    MISSED = "missed"


class RunState(StrEnum):
    """One task of an occurrence; a timeout counts as failed."""

    SCHEDULED = "scheduled"
    CLAIMED = "claimed"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    RETRY = "retry"
    DLQ = "dlq"
    CANCELED = "canceled"
    SKIPPED = "skipped"


class AttemptState(StrEnum):
    """One try of a run."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELED = "canceled"
    CRASHED = "crashed"


State = OccurrenceState | RunState | AttemptState


@dataclass(frozen=True, slots=True)
class Transition:
    """From any of `sources` to `destination`; every other pair of the two kinds is illegal."""

    name: str
    sources: frozenset[State]
    destination: State


def _to(name: str, destination: State, *sources: State) -> Transition:
    return Transition(name, frozenset(sources), destination)


_O, _R, _A = OccurrenceState, RunState, AttemptState
_WAITING = (_O.PENDING, _O.QUEUED)

TRANSITIONS: tuple[Transition, ...] = (
    _to("queue", _O.QUEUED, _O.PENDING),
    _to("start", _O.RUNNING, *_WAITING),
    _to("complete", _O.COMPLETED, _O.RUNNING),
    _to("fail", _O.FAILED, _O.RUNNING),
    _to("cancel", _O.CANCELED, _O.RUNNING, *_WAITING),
    _to("reap", _O.FAILED_STALE, _O.RUNNING),
    _to("skip", _O.SKIPPED, *_WAITING),
    _to("miss", _O.MISSED, *_WAITING),
    _to("claim", _R.CLAIMED, _R.SCHEDULED),
    _to("start", _R.RUNNING, _R.CLAIMED),
    _to("succeed", _R.SUCCESS, _R.RUNNING),
    _to("fail", _R.FAILED, _R.RUNNING, _R.RETRY),
    _to("retry", _R.RETRY, _R.RUNNING, _R.FAILED),
    _to("schedule", _R.SCHEDULED, _R.RETRY, _R.FAILED, _R.DLQ),
    _to("bury", _R.DLQ, _R.FAILED),
    _to("cancel", _R.CANCELED, _R.SCHEDULED, _R.CLAIMED, _R.RUNNING),
    _to("skip", _R.SKIPPED, _R.SCHEDULED),
    _to("succeed", _A.SUCCESS, _A.RUNNING),
    _to("fail", _A.FAILED, _A.RUNNING),
    _to("time out", _A.TIMEOUT, _A.RUNNING),
    _to("cancel", _A.CANCELED, _A.RUNNING),
    _to("crash", _A.CRASHED, _A.RUNNING),
)

# Keyed by type as well: states of different kinds share their texts, and a StrEnum equals its text.
_BY_DESTINATION = {(type(t.destination), t.destination): t for t in TRANSITIONS}
_SOURCES = {(type(source), source) for t in TRANSITIONS for source in t.sources}


def transition(source: State, destination: State) -> Transition:
    """The row of the table that leads from `source` to `destination`; IllegalTransitionError without one."""
    row = _BY_DESTINATION.get((type(destination), destination))
    if row is None or type(source) is not type(destination) or source not in row.sources:
        raise IllegalTransitionError(type(destination).__name__, source, destination)
    return row


def is_final(state: State) -> bool:
    """No transition leads out of it."""
    return (type(state), state) not in _SOURCES


R = TypeVar("R")


def advance(record: R, destination: State, **changes: Any) -> R:
    """A copy of `record` in the state `destination`, if the table allows it."""
    transition(record.state, destination)  # type: ignore[attr-defined]
    return replace(record, state=destination, **changes)  # type: ignore[type-var]
