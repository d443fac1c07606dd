"""What dead nodes left behind, and what outlived its deadline."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import NamedTuple

from msgspec.structs import replace

from chronex.engine import checked_ends
from chronex.engine.clock_steps import allow_for_step
from chronex.engine.lifecycle import Lifecycle
from chronex.engine.membership import Liveness, is_here, liveness_of, lose
from chronex.engine.orders import AttemptEnd, Cancel, Order, StopProcess
from chronex.model.event import Event
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.states import AttemptState, OccurrenceState
from chronex.storage.records import EVERYTHING, Records

# Past its deadline an occurrence has this long to be ended by its owner before it is given up.
STALE_AFTER_MS = 60_000
IsAlive = Callable[[ProcessIdentity], bool]
IsKept = Callable[[str], bool]
# What is to be carried out, and the attempts that go on and are to be watched.
TakenOver = tuple[tuple[Order, ...], list[Attempt]]
AgeOf = Callable[[ProcessIdentity], int | None]
# A process and its record begin a moment apart.
_SAME_TIME_MS = 2_000


def kept_by_nobody(_attempt: str) -> bool:
    """There is no keeper to ask."""
    return False


class _Nodes(NamedTuple):
    """The nodes that will never end what they began, and those that are only silent; and whose processes are here."""

    gone: Set[str]
    lost: Set[str]
    elsewhere: Set[str]

    def sees(self, attempt: Attempt, is_alive: IsAlive) -> bool:
        """Whether its process runs, as far as this machine can see."""
        if attempt.owner in self.elsewhere:
            return attempt.owner not in self.gone
        return attempt.process is not None and is_alive(attempt.process)


def take_over(
    records: Records, lifecycle: Lifecycle, node: str, is_alive: IsAlive, is_kept: IsKept, age_of: AgeOf
) -> list[Attempt]:
    """End or adopt every running attempt whose node is dead; cancel those past their occurrence's deadline.

    A child that outlived its daemon counts as running for the overlap policy until it ends; it is returned, for
    the caller to watch; so is one whose end a keeper knows, or a check is asked for. One that is gone has crashed.
    One without a recorded start never ran: nothing starts before its start is on record. What a silent node of
    another machine has started may run there and is left to it until its time is over.
    """
    nodes = _standings(records, lifecycle, node, is_alive)
    _allow_for_set_clock(records, nodes, is_alive, age_of)
    # First, or else a task that crashed long ago would be followed by the next one of an occurrence given up below.
    for active in records.active(limit=EVERYTHING):
        occurrence = _count_anew(records, active) if active.owner in nodes.gone | nodes.lost else active
        if occurrence.deadline_ms is not None and occurrence.deadline_ms <= records.now_ms:
            _end_overdue(records, lifecycle, occurrence, node, nodes, is_alive, is_kept)
    adopted: list[Attempt] = []
    for attempt in records.active_attempts(limit=EVERYTHING):
        if attempt.owner == node:
            _cancel_overdue(records, lifecycle, attempt)
        elif attempt.owner in nodes.lost and attempt.started_ms is None:
            _crash(records, lifecycle, attempt, elsewhere=True)
        elif attempt.owner in nodes.gone:
            if _has_end(attempt, nodes, is_alive, is_kept) or _is_asked_for(records, lifecycle, attempt):
                adopted.append(_adopt(records, lifecycle, attempt, node))
                _cancel_overdue(records, lifecycle, adopted[-1])
            else:
                _crash(records, lifecycle, attempt, elsewhere=attempt.owner in nodes.elsewhere)
    for attempt in adopted:
        _go_on(records, lifecycle, attempt)
    return adopted


def _allow_for_set_clock(records: Records, nodes: _Nodes, is_alive: IsAlive, age_of: AgeOf) -> None:
    """The clock may have been set forward while nobody watched: what runs has run for as long as its process is
    there, and its deadline moves by the rest. That it was set back is not seen so: a process may be older than its
    start, which waits for its record."""
    steps: dict[tuple[str, int], int] = {}
    for attempt in records.active_attempts(limit=EVERYTHING):
        if attempt.owner not in nodes.gone or attempt.owner in nodes.elsewhere or not nodes.sees(attempt, is_alive):
            continue
        by_ms = _set_forward_by(attempt, records.now_ms, age_of)
        if by_ms is not None:
            key = attempt.job, attempt.nominal_ms
            steps[key] = min(by_ms, steps.get(key, by_ms))
    for (job, nominal_ms), by_ms in steps.items():
        occurrence = records.occurrence(job, nominal_ms)
        if by_ms > _SAME_TIME_MS and occurrence is not None and occurrence.deadline_ms is not None:
            allow_for_step(records, occurrence, by_ms)


def _set_forward_by(attempt: Attempt, now_ms: int, age_of: AgeOf) -> int | None:
    """By how much the clock says that it has run longer than its process has been there."""
    if attempt.process is None or attempt.started_ms is None or (age_ms := age_of(attempt.process)) is None:
        return None
    return now_ms - attempt.started_ms - attempt.clock_set_ms - age_ms


def _count_anew(records: Records, occurrence: Occurrence) -> Occurrence:
    """Its node died between the claim and the start: the downtime is none of its time."""
    if occurrence.deadline_ms is None or has_begun(records, occurrence):
        return occurrence
    counted = replace(occurrence, deadline_ms=deadline_from(records, occurrence, records.now_ms))
    records.put(counted)
    return counted


def has_begun(records: Records, occurrence: Occurrence) -> bool:
    """Whether the start of any of its tasks is on record; nothing runs before that."""
    attempts = records.attempts(occurrence.job, occurrence.nominal_ms)
    return any(attempt.started_ms is not None for attempt in attempts)


def deadline_from(records: Records, occurrence: Occurrence, start_ms: int) -> int | None:
    """When its execution timeout is over, where it begins at `start_ms`."""
    version = records.version_run(occurrence)
    timeout_ms = None if version is None else version.execution_timeout_ms
    return occurrence.deadline_ms if timeout_ms is None else start_ms + timeout_ms


def _has_end(attempt: Attempt, nodes: _Nodes, is_alive: IsAlive, is_kept: IsKept) -> bool:
    """It has not ended, or somebody knows how."""
    return attempt.process is not None and (is_kept(attempt.id) or nodes.sees(attempt, is_alive))


def _is_asked_for(records: Records, lifecycle: Lifecycle, attempt: Attempt) -> bool:
    """Nobody saw its end, and a check says whether its work was done."""
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if occurrence is None or occurrence.cancel_reason or attempt.started_ms is None:
        return False
    return checked_ends.asks(lifecycle.version_of(occurrence))


def _end_overdue(
    records: Records,
    lifecycle: Lifecycle,
    occurrence: Occurrence,
    node: str,
    nodes: _Nodes,
    is_alive: IsAlive,
    is_kept: IsKept,
) -> None:
    """Past its deadline: a retry is not awaited. Past its grace too: it is given up where nothing of it lives.

    What lives on is canceled below where it is this node's or a dead one's. Where its node lives and has not
    stopped it in all that time, that node hangs: the process is stopped from here, and the next pass finds it gone.
    """
    attempts = records.attempts(occurrence.job, occurrence.nominal_ms)
    running = [attempt for attempt in attempts if attempt.state is AttemptState.RUNNING]
    if not running:
        lifecycle.end_overdue_waits(occurrence)
        return
    version = lifecycle.version_of(occurrence)
    grace_ms = None if version is None else version.grace_ms
    if records.now_ms <= (occurrence.deadline_ms or 0) + STALE_AFTER_MS + (grace_ms or 0):
        return
    living = [(one, one.process) for one in running if one.process is not None and nodes.sees(one, is_alive)]
    # One that a keeper knows of may have ended in time, while no scheduler lived: its end is recorded first.
    if not living and not any(is_kept(one.id) for one in running):
        lifecycle.reap(occurrence)
    hanging = [(one, process) for one, process in living if one.owner not in {*nodes.gone, *nodes.elsewhere, node}]
    lifecycle.orders += [StopProcess(one, process, grace_ms) for one, process in hanging]


def _standings(records: Records, lifecycle: Lifecycle, node: str, is_alive: IsAlive) -> _Nodes:
    """How every other node stands. One that died or fell silent unannounced gets one event in the journal."""
    observer = records.node(node)
    gone: set[str] = set()
    lost: set[str] = set()
    elsewhere: set[str] = set()
    for found in records.nodes():
        if found.id == node:
            continue
        if not is_here(found, observer):
            elsewhere.add(found.id)
        liveness = liveness_of(found, observer, records.now_ms, is_alive)
        if liveness is Liveness.LOST:
            lost.add(found.id)
            if found.lost_ms is None and found.stopped_ms is None:
                lifecycle.events.append(lose(records, found))
        elif liveness is Liveness.GONE:
            gone.add(found.id)
            if found.stopped_ms is None:
                records.put(replace(found, stopped_ms=records.now_ms, epoch=found.epoch + 1))
                crashed = Event(name="SchedulerCrashed", at_ms=records.now_ms, data={"node": found.id})
                lifecycle.events.append(crashed)
    return _Nodes(gone, lost, elsewhere)


def _adopt(records: Records, lifecycle: Lifecycle, attempt: Attempt, node: str) -> Attempt:
    ours = replace(attempt, owner=node, epoch=attempt.epoch + 1)
    records.put(ours)
    run = records.run(attempt.job, attempt.nominal_ms, attempt.task)
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if run is not None:
        records.put(replace(run, owner=node, epoch=ours.epoch))
    if occurrence is not None:
        # The dead node may not have read the request to cancel, so this node's next tick reads it again.
        due = records.now_ms if occurrence.cancel_reason else None
        records.put(replace(occurrence, owner=node, epoch=ours.epoch, cancel_ms=due))
        lifecycle.emit("TaskRunAdopted", occurrence, task=attempt.task, attempt=attempt.number, data={"node": node})
    return ours


def _go_on(records: Records, lifecycle: Lifecycle, adopted: Attempt) -> None:
    """A peer may have failed, and the node may have died before it stopped this attempt."""
    occurrence = records.occurrence(adopted.job, adopted.nominal_ms)
    version = None if occurrence is None else lifecycle.version_of(occurrence)
    if occurrence is not None and version is not None and occurrence.state is OccurrenceState.RUNNING:
        lifecycle.continue_or_finish(version, occurrence)


def _crash(records: Records, lifecycle: Lifecycle, attempt: Attempt, *, elsewhere: bool) -> None:
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if occurrence is not None and occurrence.cancel_reason:
        lifecycle.attempt_ended(attempt, AttemptEnd(AttemptState.CANCELED, occurrence.cancel_reason))
        return
    reason = Reason(ReasonCode.NEVER_STARTED if attempt.started_ms is None else ReasonCode.OWNER_DIED)
    if elsewhere:
        node = records.node(attempt.owner)
        host = attempt.owner if node is None else node.name or node.host or node.id
        silent = Reason(ReasonCode.NEVER_STARTED, f"{host} gives no sign of life")
        reason = silent if attempt.started_ms is None else Reason(ReasonCode.TAKEN_OVER, host)
    lifecycle.attempt_ended(attempt, AttemptEnd(AttemptState.CRASHED, reason))


def _cancel_overdue(records: Records, lifecycle: Lifecycle, attempt: Attempt) -> None:
    occurrence = records.occurrence(attempt.job, attempt.nominal_ms)
    if occurrence is not None and occurrence.deadline_ms is not None and occurrence.deadline_ms <= records.now_ms:
        lifecycle.orders.append(Cancel(attempt, Reason(ReasonCode.EXECUTION_TIMEOUT)))
