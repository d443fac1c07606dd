"""What happened to an occurrence: its attempts from the records, the rest from the journal; and outages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from chronex.model.event import EVENTS, Event
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, Run, is_limited_by_process
from chronex.model.policies import refused_beyond
from chronex.model.reasons import ReasonCode, shown_text, text_of
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.storage import journal, keys
from chronex.storage.records import Reading
from chronex.text.durations import format_duration
from chronex.text.sizes import rough_size, size_text
from chronex.timing.zones import Zone
from chronex.views.why.across_nodes import where
from chronex.views.why.answer import Link, Source, stamp
from chronex.views.why.schedule_versions import MOST_EVENTS

# A transaction writes as many events as it decides instants.
_AT_CREATION = 1_000
# The records show attempts and ends, and are kept as long as the occurrence.
_SHOWN_BY_RECORDS = {
    "TaskRunStarted", "TaskRunCompleted", "TaskRunFailed", "OccurrenceCompleted", "OccurrenceFailed",
    "OccurrenceCanceled", "OccurrenceFailedStale", "OccurrenceSkipped", "OccurrenceMissed",
}  # fmt: skip
_WORDS = {
    "OccurrenceQueued": "queued",
    "OccurrenceStarted": "started",
    "OccurrenceAlreadyClaimed": "another scheduler had claimed it already",
    "TaskRetryPreempted": "its pending retry was pre-empted",
    "CancelRequested": "asked to be canceled",
    "JobTriggered": "triggered",
    "OccurrenceReplayed": "replayed",
    "TaskDropped": "dropped from the dead-letter queue",
    "TaskDeadLettered": "put into the dead-letter queue",
    "TaskRunAdopted": "it outlived its scheduler, and the next one watches it",
    "TaskRetryStarted": "tried again",
    "HookFailed": "its hook failed",
}


def journal_links(reading: Reading, occurrence: Occurrence, zone: Zone, now_ms: int) -> list[Link]:
    """The events of the occurrence that add to its records: those around its creation, then those since its start.

    Between the two, an occurrence may wait for days in its queue; the events of that time are those of other jobs.
    """
    end = occurrence.finished_ms if occurrence.finished_ms is not None else now_ms
    first = journal.first_at(reading.tx, occurrence.created_ms)
    found = dict(_own(reading, occurrence, first, _AT_CREATION, end))
    begun = occurrence.started_ms if occurrence.started_ms is not None else end
    found.update(_own(reading, occurrence, journal.first_at(reading.tx, begun), MOST_EVENTS, end))
    return [link for _, event in sorted(found.items()) for link in _event_links(event, zone)]


def _own(
    reading: Reading, occurrence: Occurrence, number: int, most: int, end_ms: int
) -> Iterator[tuple[int, Event]]:
    for line in journal.onward(reading.tx, number - 1, most):
        if line[1].at_ms > end_ms:
            return
        if (line[1].job, line[1].nominal_ms) == (occurrence.job, occurrence.nominal_ms):
            yield line


def _event_links(event: Event, zone: Zone) -> list[Link]:
    if event.name in _SHOWN_BY_RECORDS and not event.actor:
        return []
    if event.name == "TaskRetryScheduled":
        fact = f"{event.task}: to be tried again at {stamp(event.data.get('at_ms', event.at_ms), zone)}"
        return [Link(fact, event.at_ms, Source.JOURNAL)]
    task = f"{event.task}: " if event.task else ""
    by = f" by {event.actor}" if event.actor else ""
    reason = f": {shown_text(event.reason)}" if event.reason else ""
    words = _WORDS.get(event.name) or EVENTS.get(event.name, event.name)
    return [Link(f"{task}{words}{by}{reason}", event.at_ms, Source.JOURNAL)]


def run_links(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> list[Link]:
    """Each attempt with how it ended, and each run that did not come to one."""
    attempts = reading.attempts(occurrence.job, occurrence.nominal_ms)
    runs = reading.runs(occurrence.job, occurrence.nominal_ms)
    if runs:
        names["attempts"] = [_attempt_names(attempt) for attempt in attempts]
    tried = [_attempt_link(attempt, where(reading, attempt)) for attempt in attempts]
    journaled = [
        Link(f"{one.task}: {one.values_problem}", one.finished_ms, Source.RECORD)
        for one in attempts
        if one.values_problem
    ]
    refused = list(_memory_links(reading, occurrence, attempts))
    return [*tried, *journaled, *refused, *(link for run in runs for link in _run_links(run, zone))]


def _memory_links(reading: Reading, occurrence: Occurrence, attempts: list[Attempt]) -> Iterator[Link]:
    """A program that is refused memory says so in its own way, mostly with exit code 1: whoever asks should know that
    there was a limit, and how near to it the command came. That it was the cause nobody can tell."""
    failed = [one for one in attempts if one.state is AttemptState.FAILED and is_limited_by_process(one.usage)]
    job = reading.version_run(occurrence) if failed else None
    limits = {} if job is None else {task.name: task.limits for task in job.tasks}
    for one in failed:
        limit = limits.get(one.task)
        if limit is None or limit.memory is None or one.reason.code is ReasonCode.MEMORY_LIMIT:
            continue
        fact = f"{one.task}: its memory was limited to {size_text(limit.memory)}, process by process"
        refused = f"a process that asks for more than {size_text(refused_beyond(limit.memory))} is refused it"
        peak = one.usage.peak_kib if one.usage is not None else None
        had = "its peak is not known" if peak is None else f"at its peak it had {rough_size(peak * 1024)}"
        yield Link(f"{fact}: {refused}, and may fail for that; {had}", one.finished_ms, Source.RECORD)


def _attempt_names(attempt: Attempt) -> dict[str, Any]:
    return {
        "task": attempt.task,
        "number": attempt.number,
        "state": attempt.state.value,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "reason": text_of(attempt.reason),
        "node": attempt.owner or None,
    }


def _attempt_link(attempt: Attempt, place: str) -> Link:
    began = attempt.started_ms or attempt.created_ms
    if attempt.state is AttemptState.RUNNING:
        return Link(f"{attempt.task}: attempt {attempt.number} runs{place}", began, Source.RECORD)
    took = format_duration(max((attempt.finished_ms or began) - began, 0))
    end = {AttemptState.SUCCESS: "succeeded", AttemptState.TIMEOUT: "timed out"}.get(
        attempt.state, attempt.state.value
    )
    how = _how(attempt)
    return Link(
        f"{attempt.task}: attempt {attempt.number} {end} after {took}{place}{how}", attempt.finished_ms, Source.RECORD
    )


def _how(attempt: Attempt) -> str:
    parts = []
    if attempt.exit_code:
        parts.append(f"exit code {attempt.exit_code}")
    if attempt.signal is not None:
        parts.append(f"signal {attempt.signal}")
    is_exit_code = attempt.reason.code is ReasonCode.EXIT_CODE and bool(attempt.exit_code)
    words = text_of(attempt.reason) or attempt.error
    if words and not is_exit_code:
        parts.append(words)
    return f" ({', '.join(parts)})" if parts else ""


def _run_links(run: Run, zone: Zone) -> list[Link]:
    if run.state is RunState.RETRY and run.next_attempt_ms is not None:
        return [Link(f"{run.task}: waits for its next attempt", run.next_attempt_ms, Source.RECORD)]
    if run.state in (RunState.CANCELED, RunState.SKIPPED) and run.reason and run.attempts == 0:
        return [Link(f"{run.task}: never started: {text_of(run.reason)}", run.finished_ms, Source.RECORD)]
    if run.reason.code is ReasonCode.IDEMPOTENT:
        key = f" ({run.idempotency_key})" if run.idempotency_key else ""
        return [Link(f"{run.task}: not run, {text_of(run.reason)}{key}", run.finished_ms, Source.RECORD)]
    if run.state is RunState.DLQ:
        return [Link(f"{run.task}: lies in the dead-letter queue", run.finished_ms, Source.RECORD)]
    return []


# An id cannot be turned back into a time, so the neighbours are searched; a job's queue holds a hundred of them.
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
    wanted = occurrence.reason.detail.partition(" ")[0]
    if not wanted:
        return None
    names["other"] = wanted
    found = by_id(reading, occurrence, wanted)
    if found is None:
        return Link(f"{wanted} is no longer on record", None, Source.RECORD)
    return Link(f"the other one is that of {_described(found, zone)}", found.started_ms, Source.RECORD)


def instead_link(reading: Reading, occurrence: Occurrence, zone: Zone, names: dict[str, Any]) -> Link | None:
    """Which of the missed ones was run in its place: the next of them that was not dropped."""
    for found in after(reading, occurrence.job, occurrence.nominal_ms, 1_000):
        if not found.recovery:
            break
        if found.state is not OccurrenceState.MISSED:
            names["other"] = found.id
            return Link(f"in its place stands that of {_described(found, zone)}", found.started_ms, Source.RECORD)
    return None


def _described(found: Occurrence, zone: Zone) -> str:
    text = f"{stamp(found.nominal_ms, zone)} ({found.id})"
    if found.started_ms is None:
        return f"{text}, which is {found.state.value}"
    until = f" until {stamp(found.finished_ms, zone)}" if found.finished_ms is not None else ", still running"
    return f"{text}: started {stamp(found.started_ms, zone)}{until}"


def shift_text(ms: int) -> str:
    """+12m or -3s."""
    return f"{'-' if ms < 0 else '+'}{format_duration(abs(ms))}"


def placement_links(version: Job, occurrence: Occurrence, zone: Zone) -> list[Link]:
    decision, links = occurrence.decision, []
    if decision is not None and decision.window_start_ms is not None and decision.window_end_ms is not None:
        window = f"{stamp(decision.window_start_ms, zone)} to {stamp(decision.window_end_ms, zone)}"
        if decision.chosen_ms is None:
            links.append(_moved(f"spread found no start in {window} ({decision.attempts} tries): {decision.reason}"))
        else:
            shift = shift_text(decision.chosen_ms - occurrence.nominal_ms)
            links.append(_moved(f"spread chose {stamp(decision.chosen_ms, zone)} in {window} ({shift})"))
    if decision is not None and decision.stagger_ms:
        links.append(_moved(f"stagger moved it by {shift_text(decision.stagger_ms)}, always the same for this job"))
    if occurrence.jitter_ms:
        links.append(_moved(f"jitter moved it by {shift_text(occurrence.jitter_ms)}, drawn once and kept"))
    if links and occurrence.due_ms != occurrence.nominal_ms:
        links.append(_moved(f"so it was due at {stamp(occurrence.due_ms, zone)}"))
    return links


def _moved(fact: str) -> Link:
    return Link(fact, None, Source.RECORD)


_STARTED = "SchedulerStarted"


class Outage(NamedTuple):
    """`kind` is asleep, clock (set forward), stalled, full (the store) or down; an unknown beginning is None."""

    kind: str
    from_ms: int | None
    until_ms: int | None


def outage_at(reading: Reading, missed_ms: int, decided_ms: int) -> Outage | None:
    """The outage because of which `missed_ms` was decided only at `decided_ms`: the first that ended between them."""
    down = _down(reading, missed_ms, decided_ms)
    jump = _jump(reading, missed_ms, decided_ms)
    if jump is not None and (down is None or (jump.until_ms or 0) <= (down.until_ms or 0)):
        return jump
    return down


def down_since(reading: Reading, now_ms: int) -> int | None:
    """The last sign of life of any scheduler; None where there never was one."""
    return last_sign(reading, now_ms + 1)


def _jump(reading: Reading, missed_ms: int, decided_ms: int) -> Outage | None:
    number = journal.first_at(reading.tx, missed_ms)
    for _, event in journal.onward(reading.tx, number - 1, MOST_EVENTS):
        if event.at_ms > decided_ms:
            break
        outage = outage_ended_by(event)
        if outage is not None and (outage.from_ms or 0) <= missed_ms < event.at_ms:
            return outage
    return None


def outage_ended_by(event: Event) -> Outage | None:
    """The time in which nothing could be claimed and which ended with this event; None for other events."""
    match event.name:
        case "MachineSlept" | "ClockStepped":
            kind = "asleep" if event.data.get("slept_ms", 0) > 0 else "clock"
            length = event.data.get("by_ms", 0)
        case "SchedulerStalled":
            kind, length = "stalled", event.data.get("stalled_ms", 0)
        case "StoreRoomBack":
            kind, length = "full", event.data.get("full_ms", 0)
        case _:
            return None
    return Outage(kind, event.at_ms - length, event.at_ms) if length > 0 else None


def _down(reading: Reading, missed_ms: int, decided_ms: int) -> Outage | None:
    starts = [node.started_ms for node in reading.nodes() if missed_ms < node.started_ms <= decided_ms]
    if not starts:
        return None
    began = min(starts)
    last = last_sign(reading, began)
    return Outage("down", None if last is None or last > missed_ms else last, began)


def last_sign(reading: Reading, before_ms: int) -> int | None:
    """The latest trace that a scheduler left before `before_ms`: its stop, its heartbeat, or an event."""
    signs = [
        sign
        for node in reading.nodes()
        for sign in (node.started_ms, node.seen_ms, node.stopped_ms or 0)
        if 0 < sign < before_ms
    ]
    number = journal.first_at(reading.tx, before_ms)
    # Commands write events too: those of people have an actor, those of an apply have names that begin with Job.
    for _, event in journal.backward(reading.tx, number, 50):
        if event.at_ms < before_ms and not event.actor and not event.name.startswith("Job"):
            signs.append(event.at_ms)
            break
    return max(signs, default=None)
