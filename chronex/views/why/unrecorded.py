"""An instant without a record: not matched, not yet applied, replaced, disabled, missed in bulk, or forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from chronex.model.job import Job
from chronex.model.occurrence import MissedSpan, Occurrence
from chronex.model.reasons import text_of
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex.timing.job_schedule import options_of
from chronex.views.why.answer import NO_NAMES, Link, Source, WhyAnswer, stamp
from chronex.views.why.asked_instant import is_untraceable, names_instant, next_of, previous_of, zone_of
from chronex.views.why.causes import Cause, cause_of
from chronex.views.why.evidence import Outage, after, down_since, outage_at
from chronex.views.why.job_versions import Lives
from chronex.views.why.recorded import ordered, outage_link
from chronex.views.why.unmatched import unmatched
from chronex.views.wording import how_many

_MOST_EVENTS = 5_000  # of one moment


class Finding(NamedTuple):
    cause: Cause
    summary: str
    links: list[Link]
    names: Mapping[str, Any] = NO_NAMES


def unrecorded(reading: Reading, lives: Lives, instant_ms: int, now_ms: int) -> WhyAnswer:
    job = lives.in_force(instant_ms)
    finding = _gone_or_new(lives, instant_ms) if job is None else _past(reading, lives, job, instant_ms, now_ms)
    return answered(job or lives.last, instant_ms, finding)


def answered(job: Job, instant_ms: int, finding: Finding) -> WhyAnswer:
    return WhyAnswer(
        job.id,
        instant_ms,
        zone_of(job),
        finding.cause,
        finding.summary,
        ordered(finding.links),
        names={"version": job.version, **finding.names},
        previous_ms=previous_of(job, instant_ms),
        next_ms=next_of(job, instant_ms),
    )


def _gone_or_new(lives: Lives, instant_ms: int) -> Finding:
    zone = zone_of(lives.last)
    if lives.removed_ms is not None and instant_ms >= lives.removed_ms:
        link = Link("the job was removed from the job file", lives.removed_ms, Source.JOURNAL)
        return Finding(Cause.JOB_REMOVED, f"the job was removed at {stamp(lives.removed_ms, zone)}", [link])
    link = Link("the job was applied for the first time", lives.first_ms, Source.RECORD)
    return Finding(Cause.NOT_YET_APPLIED, f"the job exists only since {stamp(lives.first_ms, zone)}", [link])


def _past(reading: Reading, lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding:
    zone = zone_of(job)
    if is_untraceable(job):
        fact = f"'{job.schedule}' counts from what happened before, so only its records tell when it fired"
        return Finding(Cause.NOT_MATCHED, "no occurrence is on record here", [Link(fact, None, Source.SCHEDULE)])
    if not names_instant(job, instant_ms):
        return not_named(lives, job, instant_ms)
    named = Link(f"'{job.schedule}' names this instant (version {job.version})", None, Source.SCHEDULE)
    if not job.enabled:
        link = Link(f"version {job.version} disabled the job", job.updated_ms, Source.RECORD)
        return Finding(Cause.DISABLED, f"the job was disabled since {stamp(job.updated_ms, zone)}", [named, link])
    for find in (_told_as_span, _limit_reached, _replaced, _undecided):
        if (finding := find(reading, lives, job, instant_ms, now_ms)) is not None:
            return finding._replace(links=[named, *finding.links])
    fact = "its record was removed by the limits on history"
    return Finding(Cause.FORGOTTEN, "it was decided, and its record is no longer kept", [
        named, Link(fact, None, Source.POLICY)
    ])  # fmt: skip


def not_named(lives: Lives, job: Job, instant_ms: int) -> Finding:
    cause, links = unmatched(job, instant_ms)
    summary = f"'{job.schedule}' does not name this instant"
    if links:
        summary += f": {links[0].fact}"
    newer = lives.last
    if newer.version != job.version and names_instant(newer, instant_ms):
        fact = f"'{newer.schedule}' (version {newer.version}) would, but came later"
        return Finding(Cause.REPLACED, f"the job had another schedule then: '{job.schedule}'", [
            *links, Link(fact, newer.updated_ms, Source.RECORD)
        ], {"newer_version": newer.version})  # fmt: skip
    return Finding(cause, summary, links)


def _told_as_span(reading: Reading, lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """A backlog too long to list is kept by the oldest of it that has a record, and is one event of the journal."""
    following = after(reading, job.id, instant_ms, 1)
    if not following:
        return None
    decided = following[0].created_ms
    span = following[0].older
    if span is None or not span.from_ms <= instant_ms <= span.to_ms:
        span = _span_event(reading, job.id, instant_ms, decided)
    if span is None:
        return None
    zone, names = zone_of(job), {"strategy": job.recovery.strategy.value}
    outage = outage_at(reading, instant_ms, decided) or Outage("down", None, decided)
    bounds = f"{stamp(span.from_ms, zone)} to {stamp(span.to_ms, zone)}"
    fact = f"too many to list one by one: {how_many(span)} from {bounds}: {text_of(span.reason)}"
    told = Link(fact, decided, Source.JOURNAL if following[0].older is None else Source.RECORD)
    cause = cause_of(span.reason.code) or Cause.DOWN
    return Finding(cause, f"it was missed: {text_of(span.reason)}", [outage_link(outage, zone, names), told], names)


def _span_event(reading: Reading, job: str, instant_ms: int, decided_ms: int) -> MissedSpan | None:
    number = journal.first_at(reading.tx, decided_ms)
    for _, event in journal.onward(reading.tx, number - 1, _MOST_EVENTS):
        if event.at_ms > decided_ms:
            return None
        if event.name != "OccurrencesMissed" or event.job != job:
            continue
        told = event.data
        if told["from_ms"] <= instant_ms <= told["to_ms"]:
            return MissedSpan(
                from_ms=told["from_ms"],
                to_ms=told["to_ms"],
                count=told.get("count", 0),
                is_more=told.get("is_more", False),
                reason=event.reason,
            )
    return None


def _limit_reached(reading: Reading, lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    limit, fired = options_of(job).max, lives.last.progress.counters.fired
    if limit is None or fired < limit or after(reading, job.id, instant_ms, 1):
        return None
    last = _last_fired(reading, job.id, instant_ms)
    links = []
    if last is not None:
        fact = f"the last of its {limit} executions was that of {stamp(last.nominal_ms, zone_of(job))}"
        links.append(Link(fact, last.started_ms, Source.RECORD))
    return Finding(Cause.MAX_REACHED, f"its limit of {limit} executions (max) was reached", links, {"max": limit})


def _last_fired(reading: Reading, job: str, before_ms: int) -> Occurrence | None:
    found = reading.occurrences(job, before_ms, 100)
    return next((one for one in found if one.started_ms is not None), None)


def _replaced(reading: Reading, lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """An edit moved the schedule on before this instant was decided."""
    if job.progress.cursor_ms is None or instant_ms <= job.progress.cursor_ms:
        return None
    later = [one for one in lives.versions if one.updated_ms > job.updated_ms]
    if not later:
        return None
    newer = later[0]
    fact = f"version {newer.version} ('{newer.schedule}') took over and counts from its own beginning"
    return Finding(Cause.REPLACED, f"version {newer.version} replaced the schedule before it was decided", [
        Link(fact, newer.updated_ms, Source.RECORD)
    ], {"newer_version": newer.version})  # fmt: skip


def _undecided(reading: Reading, lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """Beyond the cursor: nobody has looked yet, because no scheduler runs or it is just about to."""
    if job.progress.cursor_ms is None or instant_ms <= job.progress.cursor_ms or lives.is_gone:
        return None
    since = down_since(reading, now_ms)
    zone = zone_of(job)
    fact = f"when a scheduler runs again, the recovery strategy {job.recovery.strategy.value} decides it"
    links = [Link(fact, None, Source.POLICY)]
    if since is not None:
        links.append(Link("last sign of life of a scheduler", since, Source.JOURNAL))
        return Finding(
            Cause.UNDECIDED, f"no scheduler has looked at it: none was seen since {stamp(since, zone)}", links
        )
    return Finding(Cause.UNDECIDED, "no scheduler has ever run on this store", links)
