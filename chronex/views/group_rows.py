"""Groups as people see them: who holds places, who waits, and what one that waits is waiting for now."""

from __future__ import annotations

from typing import NamedTuple

from chronex.engine.admit import gives_up_at
from chronex.engine.group_limits import CATCH_UP, CONDITIONS, OWN_LINES, POOL, GroupUse, full, lacking, ready_at
from chronex.engine.lines import GroupReader
from chronex.model.groups import CatchUpPace, Group, GroupSettings
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import OccurrenceState
from chronex.storage.records import EVERYTHING, Reading
from chronex.text.durations import format_duration
from chronex.text.instants import rfc3339

# Of each group so many who wait are listed; all of them are counted.
MOST_LISTED = 10


class GroupHolder(NamedTuple):
    """One that runs and takes places."""

    job: str
    occurrence: str
    places: int
    since_ms: int
    node: str


class GroupWaiter(NamedTuple):
    """One that stands in line; `since_ms` is when it was due, `reason` what it waits for now."""

    job: str
    occurrence: str
    places: int
    since_ms: int
    reason: Reason


class GroupRow(NamedTuple):
    """A group with those who hold places, the longest first, and the first of those who wait.

    `next_ms` is when its rate allows the next start, None where it allows it now.
    """

    group: Group
    held: int
    holders: tuple[GroupHolder, ...]
    waiting: int
    first: tuple[GroupWaiter, ...]
    next_ms: int | None = None

    @property
    def is_full(self) -> bool:
        return self.group.limit is not None and self.held >= self.group.limit


def groups_of(reading: Reading, now_ms: int) -> list[GroupRow]:
    """Every group that people made, by name."""
    return [_row(reading, group, now_ms) for group in reading.groups() if not group.name.startswith(POOL[0])]


def _row(reading: Reading, group: Group, now_ms: int) -> GroupRow:
    holding = sorted(reading.holders(group.name, EVERYTHING), key=lambda one: one.started_ms or 0)
    holders = tuple(
        GroupHolder(one.job, one.id, one.groups.get(group.name, 0), one.started_ms or one.due_ms, one.owner)
        for one in holding
    )
    first = tuple(_waiter(reading, group.name, one, now_ms) for one in reading.in_line(group.name, MOST_LISTED))
    ready_ms = ready_at(group.rate, group.starts, now_ms)
    return GroupRow(
        group,
        sum(one.places for one in holders),
        holders,
        reading.count_in_line(group.name, EVERYTHING),
        first,
        ready_ms if ready_ms > now_ms else None,
    )


def _waiter(reading: Reading, group: str, one: Occurrence, now_ms: int) -> GroupWaiter:
    job = reading.job(one.job)
    places = 1 if job is None else job.groups.get(group, 1)
    return GroupWaiter(one.job, one.id, places, one.due_ms, waits_for(reading, one, now_ms))


def waits_for(reading: Reading, occurrence: Occurrence, now_ms: int) -> Reason:
    """Why it waits now: who holds a group changes while it waits, and its record says who held it when it came."""
    job = reading.job(occurrence.job)
    if occurrence.state is not OccurrenceState.QUEUED or job is None:
        return occurrence.reason
    groups = GroupReader(reading, CatchUpPace(), 1, None)
    for name in occurrence.lines:
        if name in OWN_LINES:
            continue
        use = groups.use(name)
        reason = lacking(use, job.groups.get(name, 1), occurrence.order_ms, reading.first_in_line(name), now_ms)
        if reason:
            return _in_line(reading, use, reason)
    if CONDITIONS in occurrence.lines:
        until = rfc3339(gives_up_at(job, occurrence))
        return Reason(ReasonCode.CONDITION, f"{occurrence.reason.detail}, at the longest until {until}")
    return occurrence.reason if not occurrence.lines else _of_own_line(occurrence)


def _in_line(reading: Reading, use: GroupUse, reason: Reason) -> Reason:
    """Where others come first, the group is usually full as well, and that says more."""
    if reason.code is ReasonCode.GROUP_LINE and use.limit is not None and use.held >= use.limit:
        return full(use)
    return reason


def _of_own_line(occurrence: Occurrence) -> Reason:
    return Reason(ReasonCode.CATCH_UP if CATCH_UP in occurrence.lines else ReasonCode.POOL_FULL)


def limits_text(group: Group | GroupSettings) -> str:
    """`1 at once, 30 in 1m`."""
    parts = [] if group.limit is None else [f"{group.limit} at once"]
    if group.rate is not None:
        parts.append(f"{group.rate.count} starts in {format_duration(group.rate.per_ms)}")
    return ", ".join(parts)
