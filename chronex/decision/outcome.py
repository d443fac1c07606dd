"""What an adapter does with a decision: one pure rule for every caller that acts on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from chronex.decision.spread import Decision


class OutcomeKind(StrEnum):
    """The fate of one period at one instant."""

    WAITING = "waiting"  # its time has not come
    EXECUTED = "executed"  # start it now
    MISSED = "missed"  # its time has passed by more than its deadline allows
    SKIPPED = "skipped"  # no start exists, or another run is in the way
    ALREADY_HANDLED = "already_handled"  # this period has its fate


@dataclass(frozen=True, slots=True)
class Outcome:
    """A fate and its reason."""

    kind: OutcomeKind
    reason: str = ""


def outcome_of(
    decision: Decision,
    now_ms: int,
    *,
    handled: bool = False,
    busy: bool = False,
    deadline_ms: int | None = None,
) -> Outcome:
    """The fate of the decided period at `now_ms`; the rules are tried in this order.

    `handled`: the period's id is on record. `busy`: another run stands in the way. `deadline_ms`: how late
    the start may be, both ends included; None means any lateness.
    """
    if handled:
        return Outcome(OutcomeKind.ALREADY_HANDLED, f"{decision.period_id} is on record")
    if decision.chosen_ms is None:
        return Outcome(OutcomeKind.SKIPPED, decision.reason)
    late = now_ms - decision.chosen_ms
    if late < 0:
        return Outcome(OutcomeKind.WAITING)
    if deadline_ms is not None and late > deadline_ms:
        return Outcome(OutcomeKind.MISSED, f"late by {late} ms, {deadline_ms} ms allowed")
    if busy:
        return Outcome(OutcomeKind.SKIPPED, "another run is in the way")
    return Outcome(OutcomeKind.EXECUTED)
