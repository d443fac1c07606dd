"""Instants that passed while nothing ran: which of them run now, and the reason of each that does not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from chronex.engine import reasons
from chronex.engine.custom import Schedule
from chronex.model.policies import RecoveryPolicy, RecoveryStrategy

# A per-second job that slept for years must not be listed second by second: the newest are listed one by one,
# all earlier ones are told as one span.
MOST_LISTED = 500


class Fate(NamedTuple):
    """What becomes of one missed instant. `span` is what a compressed run covers."""

    nominal_ms: int
    runs: bool
    reason: str = ""
    span: tuple[int, int] | None = None


class Backlog(NamedTuple):
    """Missed instants in order. `older` is a span too long to list; `has_more` means: look again after these."""

    listed: tuple[int, ...]
    older: tuple[int, int] | None = None
    has_more: bool = False


def backlog_of(schedule: Schedule, cursor_ms: int, until_ms: int, strategy: RecoveryStrategy) -> Backlog:
    """The instants in (cursor, until]. Only `execute_all` needs the oldest first; the others look back from now."""
    if strategy is RecoveryStrategy.EXECUTE_ALL or schedule.previous(until_ms + 1) is None:
        listed = tuple(islice(schedule.between(cursor_ms, until_ms), MOST_LISTED + 1))
        return Backlog(listed[:MOST_LISTED], has_more=len(listed) > MOST_LISTED)
    listed_back: list[int] = []
    found = schedule.previous(until_ms + 1)
    while found is not None and found > cursor_ms and len(listed_back) < MOST_LISTED:
        listed_back.append(found)
        found = schedule.previous(found)
    older = None
    if found is not None and found > cursor_ms:
        older = (schedule.next(cursor_ms) or found, found)
    return Backlog(tuple(reversed(listed_back)), older)


def reason_of_older(strategy: RecoveryStrategy) -> str:
    """Why the instants of a span too long to list do not run."""
    match strategy:
        case RecoveryStrategy.BOUNDED:
            return reasons.TOO_OLD
        case RecoveryStrategy.COMPRESSED:
            return reasons.FOLDED
        case RecoveryStrategy.EXECUTE_LAST:
            return reasons.SUPERSEDED
        case _:
            return reasons.DOWN


def settle(policy: RecoveryPolicy, missed: Sequence[int], older: tuple[int, int] | None, now_ms: int) -> list[Fate]:
    """One fate for each missed instant, in order; the same list gives the same fates."""
    if not missed:
        return []
    match policy.strategy:
        case RecoveryStrategy.EXECUTE_ALL:
            return [Fate(nominal, runs=True) for nominal in missed]
        case RecoveryStrategy.MARK_MISSED:
            return [Fate(nominal, runs=False, reason=reasons.DOWN) for nominal in missed]
        case RecoveryStrategy.BOUNDED:
            return _bounded(policy, missed, now_ms)
        case RecoveryStrategy.COMPRESSED:
            first = older[0] if older else missed[0]
            covered = [Fate(nominal, runs=False, reason=reasons.FOLDED) for nominal in missed[:-1]]
            return [*covered, Fate(missed[-1], runs=True, span=(first, missed[-1]))]
        case RecoveryStrategy.EXECUTE_LAST:
            passed = [Fate(nominal, runs=False, reason=reasons.SUPERSEDED) for nominal in missed[:-1]]
            return [*passed, Fate(missed[-1], runs=True)]


def _bounded(policy: RecoveryPolicy, missed: Sequence[int], now_ms: int) -> list[Fate]:
    oldest_kept = 0 if policy.max_count is None else max(len(missed) - policy.max_count, 0)
    earliest = None if policy.max_age_ms is None else now_ms - policy.max_age_ms
    return [
        Fate(nominal, runs=True)
        if index >= oldest_kept and (earliest is None or nominal >= earliest)
        else Fate(nominal, runs=False, reason=reasons.TOO_OLD)
        for index, nominal in enumerate(missed)
    ]
