"""The chain of an occurrence that is on record: where it came from, what moved it, and how it ended."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from chronex.model.job import Job
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import ReasonCode, shown_text, text_of
from chronex.model.states import OccurrenceState, is_final
from chronex.storage.records import Reading
from chronex.text.durations import format_duration
from chronex.timing.zones import Zone
from chronex.views.group_rows import waits_for
from chronex.views.jobs import lacking_functions, named, unstopped
from chronex.views.nodes import WATCHED, Watch, owner_facts
from chronex.views.why.across_nodes import handover_links
from chronex.views.why.answer import Cause, Link, Source, WhyAnswer, cause_of, stamp
from chronex.views.why.evidence import (
    Outage,
    blocker_link,
    instead_link,
    journal_links,
    outage_at,
    placement_links,
    run_links,
)
from chronex.views.why.schedule_versions import VersionHistory, clock_note, last_event, zone_of
from chronex.views.wording import state_words

# What `why` says of jobs that follow each other: what came before an occurrence, and what comes after it.

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


_GOES_ON = "it goes on when a scheduler runs again"
_BY_STATE = {
    _S.COMPLETED: Cause.COMPLETED,
    _S.RUNNING: Cause.RUNNING,
    _S.QUEUED: Cause.QUEUED,
    _S.PENDING: Cause.PENDING,
    _S.FAILED_STALE: Cause.STALE,
}
_OTHERWISE = {_S.FAILED: Cause.FAILED, _S.CANCELED: Cause.CANCELED}
_RUNS_INSTEAD = {Cause.SUPERSEDED, Cause.FOLDED}
_IN_THE_WAY = {
    Cause.OVERLAP,
    Cause.EARLIER_WAITS,
    Cause.RETRY_WAITS,
    Cause.PREEMPTED,
    Cause.QUEUE_FULL,
    Cause.GAVE_WAY,
}
_OUTAGE_WORDS = {
    "asleep": "the machine slept",
    "clock": "the clock was set forward",
    "stalled": "the scheduler was stopped or starved",
    "full": "the store had no free space",
    "down": "no scheduler ran",
}


def cause_of_record(occurrence: Occurrence) -> Cause:
    if occurrence.state in _BY_STATE:
        return _BY_STATE[occurrence.state]
    code = occurrence.reason.code
    if occurrence.state is _S.FAILED and code not in (ReasonCode.PREEMPTED, ReasonCode.EXECUTION_TIMEOUT):
        return Cause.FAILED  # whatever its task ended of
    return cause_of(code) or _OTHERWISE.get(occurrence.state, Cause.SKIPPED)


def recorded(
    reading: Reading, history: VersionHistory, occurrence: Occurrence, now_ms: int, watch: Watch = WATCHED
) -> WhyAnswer:
    if occurrence.state is _S.QUEUED:  # what is in its way now, not when it came
        occurrence = replace(occurrence, reason=waits_for(reading, occurrence, now_ms))
    version = next((job for job in history.versions if job.version == occurrence.version), history.last)
    zone = zone_of(version)
    cause = cause_of_record(occurrence)
    names: dict[str, Any] = {
        "state": occurrence.state.value,
        "reason": text_of(occurrence.reason),
        "version": version.version,
    }
    if (owner := owner_facts(reading, occurrence.owner)) is not None:
        names["node"] = owner
    links = [
        *_origin(history, version, occurrence, zone),
        *placement_links(version, occurrence, zone),
        *_recovery(reading, version, occurrence, zone, names),
        *journal_links(reading, occurrence, zone, now_ms),
        *run_links(reading, occurrence, zone, names),
        *handover_links(reading, occurrence, zone, names),
        *_others(reading, occurrence, cause, zone, names),
        *parent_links(reading, occurrence, zone, names),
        *child_links(reading, occurrence, zone, names),
        *_functions(reading, version, occurrence),
        _outcome_link(occurrence, now_ms, watch),
    ]
    summary = _summary(occurrence, cause, zone, now_ms, watch)
    return WhyAnswer(
        occurrence.job, occurrence.nominal_ms, zone, cause, summary, ordered(links), occurrence.id, names
    )  # fmt: skip


def ordered(links: list[Link]) -> tuple[Link, ...]:
    """What always holds first, then what happened, in the order it happened."""
    timeless = [link for link in links if link.at_ms is None]
    return (*timeless, *sorted((link for link in links if link.at_ms is not None), key=lambda link: link.at_ms or 0))


def _functions(reading: Reading, version: Job, occurrence: Occurrence) -> list[Link]:
    """What is not over waits for a scheduler that has its functions."""
    lacking = () if is_final(occurrence.state) else lacking_functions(version, unstopped(reading))
    fact = f"it waits for the program that registers {named(lacking)}: no scheduler here has it"
    return [Link(fact, None, Source.RECORD)] if lacking else []


def _origin(history: VersionHistory, version: Job, occurrence: Occurrence, zone: Zone) -> list[Link]:
    if occurrence.replay_of:
        who = f" by {occurrence.triggered_by}" if occurrence.triggered_by else ""
        return [Link(f"replayed{who}: a repetition of {occurrence.replay_of}", occurrence.created_ms, Source.RECORD)]
    if occurrence.manual:
        return [Link(f"triggered by {occurrence.triggered_by or 'hand'}", occurrence.created_ms, Source.RECORD)]
    if version.follows:
        return [origin_link(version)]
    links = [Link(f"'{version.schedule}' matches this time (version {version.version})", None, Source.SCHEDULE)]
    if occurrence.moved_by:
        links = [moved_link(occurrence.scheduled_ms, occurrence.moved_by, zone)]
    if note := clock_note(version, occurrence.nominal_ms):
        links.append(Link(note, None, Source.SCHEDULE))
    if history.last.version > version.version:
        newer = f"version {history.last.version} is in force since {stamp(history.last.updated_ms, zone)}"
        links.append(Link(f"decided under version {version.version}, which it keeps; {newer}", None, Source.RECORD))
    return links


def moved_link(from_ms: int, calendar: str, zone: Zone) -> Link:
    return Link(
        f"moved here from {stamp(from_ms, zone)}, which the calendar {calendar} excludes", None, Source.POLICY
    )


def _recovery(
    reading: Reading, version: Job, occurrence: Occurrence, zone: Zone, names: dict[str, Any]
) -> list[Link]:
    if not occurrence.recovery:
        return []
    names["strategy"] = version.recovery.strategy.value
    decided_ms = occurrence.created_ms
    outage = outage_at(reading, occurrence.nominal_ms, decided_ms)
    began_ms = occurrence.started_ms if occurrence.started_ms is not None else occurrence.finished_ms
    if outage is None and began_ms is not None:  # it was planned before, and its time came in the outage
        outage = outage_at(reading, occurrence.due_ms, began_ms)
        decided_ms = began_ms if outage is None or outage.until_ms is None else outage.until_ms
    links = [] if outage is None else [outage_link(outage, zone, names)]
    rule = f"the recovery strategy {_rule(version)} decided what becomes of it"
    links.append(Link(rule, decided_ms, Source.POLICY))
    if occurrence.span_start_ms is not None and occurrence.span_end_ms is not None:
        span = f"{stamp(occurrence.span_start_ms, zone)} to {stamp(occurrence.span_end_ms, zone)}"
        links.append(Link(f"it stands for every missed instant from {span}", occurrence.created_ms, Source.RECORD))
    return links


def outage_link(outage: Outage, zone: Zone, names: dict[str, Any]) -> Link:
    names["outage"] = {"kind": outage.kind, "from_ms": outage.from_ms, "until_ms": outage.until_ms}
    since = f"from {stamp(outage.from_ms, zone)} " if outage.from_ms is not None else ""
    until = f"until {stamp(outage.until_ms, zone)}" if outage.until_ms is not None else "until now"
    return Link(f"{_OUTAGE_WORDS[outage.kind]} {since}{until}", outage.until_ms, Source.JOURNAL)


def _rule(version: Job) -> str:
    policy = version.recovery
    bounds = []
    if policy.max_count is not None:
        bounds.append(f"at most {policy.max_count}")
    if policy.max_age_ms is not None:
        bounds.append(f"none older than {format_duration(policy.max_age_ms)}")
    return f"{policy.strategy.value} ({', '.join(bounds)})" if bounds else policy.strategy.value


def _others(reading: Reading, occurrence: Occurrence, cause: Cause, zone: Zone, names: dict[str, Any]) -> list[Link]:
    """The occurrence that blocked it or ran instead of it, or the pause because of which it was skipped."""
    if cause in _IN_THE_WAY:
        found = blocker_link(reading, occurrence, zone, names)
        return [found] if found else []
    if cause in _RUNS_INSTEAD:
        found = instead_link(reading, occurrence, zone, names)
        return [found] if found else []
    ended = occurrence.finished_ms or occurrence.created_ms
    return pause_links(reading, occurrence.job, ended, names) if cause is Cause.PAUSED else []


def pause_links(reading: Reading, job: str, before_ms: int, names: dict[str, Any]) -> list[Link]:
    from chronex.storage.journal import first_at

    found = last_event(reading, first_at(reading.tx, before_ms + 1), job, {"JobPaused"})
    if found is None:
        return []
    event = found[1]
    names["paused_by"], names["paused_ms"] = event.actor, event.at_ms
    why = f": {shown_text(event.reason)}" if event.reason else ""
    return [Link(f"paused by {event.actor or 'someone'}{why}", event.at_ms, Source.JOURNAL)]


def _outcome_link(occurrence: Occurrence, now_ms: int, watch: Watch) -> Link:
    reason = f": {shown_text(occurrence.reason)}" if occurrence.reason else ""
    if occurrence.finished_ms is not None:
        words = state_words(occurrence.state.value, occurrence.errors).replace("_", " ")
        return Link(f"{words}{reason}", occurrence.finished_ms, Source.RECORD)
    if occurrence.state is _S.RUNNING and (left := watch.left_of(occurrence.job, occurrence.nominal_ms)):
        return Link(left[0].words, now_ms, Source.RECORD)
    if occurrence.state is _S.RUNNING and not watch.has_scheduler:
        return Link(_GOES_ON, now_ms, Source.RECORD)
    return Link(f"it is {occurrence.state.value} now{reason}", now_ms, Source.RECORD)


def _summary(occurrence: Occurrence, cause: Cause, zone: Zone, now_ms: int, watch: Watch) -> str:
    reason = shown_text(occurrence.reason) or "no reason is on record"
    match occurrence.state:
        case _S.COMPLETED if occurrence.errors:
            return f"it ran and completed with errors: {reason}; {_times(occurrence, zone)}"
        case _S.COMPLETED:
            return f"it ran and completed: {_times(occurrence, zone)}"
        case _S.FAILED | _S.FAILED_STALE:
            return f"it ran and failed: {reason}; {_times(occurrence, zone)}"
        case _S.RUNNING:
            return _running_summary(occurrence, zone, now_ms, watch)
        case _S.QUEUED | _S.PENDING:
            return _waiting_summary(occurrence, reason, zone, now_ms, watch)
        case _S.CANCELED:
            return f"it was canceled: {reason}"
        case _S.MISSED:
            return f"it was missed: {reason}"
        case _:
            return f"it was skipped: {_skipped(occurrence, cause, reason, zone)}"


def _running_summary(occurrence: Occurrence, zone: Zone, now_ms: int, watch: Watch) -> str:
    began = stamp(occurrence.started_ms or now_ms, zone)
    if left := watch.left_of(occurrence.job, occurrence.nominal_ms):
        return f"it began at {began}: {left[0].words}"
    if not watch.has_scheduler:
        return f"it began at {began} and is not over: {_GOES_ON}"
    return f"it is running since {began}"


def _waiting_summary(occurrence: Occurrence, reason: str, zone: Zone, now_ms: int, watch: Watch) -> str:
    if occurrence.state is _S.QUEUED and occurrence.waits_for:
        return f"it {reason}"
    if occurrence.state is _S.QUEUED:
        where = "for its turn" if occurrence.lines else "in its job's queue"
        return f"it waits {where}: {reason}"
    due = stamp(occurrence.due_ms, zone)
    if occurrence.due_ms <= now_ms:
        return f"it is due since {due} and waits for a scheduler"
    return f"it will start at {due}" if watch.has_scheduler else would_start(f"at {due}")


def would_start(start: str) -> str:
    return f"it would start {start} if a scheduler ran then; none runs now"


def _skipped(occurrence: Occurrence, cause: Cause, reason: str, zone: Zone) -> str:
    if cause is Cause.WINDOW_EXCEEDED and occurrence.finished_ms is not None:
        late = format_duration(max(occurrence.finished_ms - occurrence.nominal_ms, 0))
        return f"{reason}, it could start only {late} after its time"
    return reason


def _times(occurrence: Occurrence, zone: Zone) -> str:
    if occurrence.started_ms is None:
        return "when it started is not on record"
    late = occurrence.started_ms - occurrence.due_ms
    took = (occurrence.finished_ms or occurrence.started_ms) - occurrence.started_ms
    lag = f", {format_duration(late)} after it was due" if late > 0 else ""
    return f"started {stamp(occurrence.started_ms, zone)}{lag}, took {format_duration(max(took, 0))}"
