"""An instant without a record, past or to come.

A past one was not matched, not yet applied, replaced, disabled, missed in bulk, or its record was removed. Of one to
come, the answer says what will happen and what could prevent it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from chronex.engine.plan import blackout_end, lead_ms, spread_of
from chronex.engine.retries import retry_wait
from chronex.model.job import Job
from chronex.model.occurrence import MissedSpan, Occurrence
from chronex.model.policies import OverlapPolicy, RecoveryStrategy
from chronex.model.reasons import ReasonCode, text_of
from chronex.storage import journal
from chronex.storage.records import Reading
from chronex.text.durations import format_duration
from chronex.timing.job_schedule import is_random, moved_from, options_of
from chronex.timing.occurrences import stagger_offset
from chronex.timing.zones import Zone
from chronex.views.coming_runs import (
    ForecastRun,
    counts_from_ends,
    first_to_start,
    forecast_all,
    forecast_run,
    runs_left,
)
from chronex.views.jobs import lacking_functions, named, unstopped
from chronex.views.known_runs import KnownRuns, known_runs, left_by_max
from chronex.views.nodes import WATCHED, Watch
from chronex.views.why.across_nodes import lacking_node, waits_words
from chronex.views.why.answer import NO_NAMES, Cause, Link, Source, WhyAnswer, cause_of, stamp
from chronex.views.why.evidence import Outage, after, down_since, outage_at
from chronex.views.why.recorded import moved_link, ordered, outage_link, would_start
from chronex.views.why.schedule_versions import (
    VersionHistory,
    clock_note,
    is_untraceable,
    names_instant,
    next_of,
    previous_of,
    unmatched,
    zone_of,
)
from chronex.views.wording import how_many

_MOST_EVENTS = 5_000  # written at the same millisecond


class Finding(NamedTuple):
    cause: Cause
    summary: str
    links: list[Link]
    names: Mapping[str, Any] = NO_NAMES


def unrecorded(reading: Reading, history: VersionHistory, instant_ms: int, now_ms: int) -> WhyAnswer:
    job = history.in_force(instant_ms)
    finding = _gone_or_new(history, instant_ms) if job is None else _past(reading, history, job, instant_ms, now_ms)
    return answered(job or history.last, instant_ms, finding)


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


def _gone_or_new(history: VersionHistory, instant_ms: int) -> Finding:
    zone = zone_of(history.last)
    if history.removed_ms is not None and instant_ms >= history.removed_ms:
        link = Link("the job was removed from the job file", history.removed_ms, Source.JOURNAL)
        return Finding(Cause.JOB_REMOVED, f"the job was removed at {stamp(history.removed_ms, zone)}", [link])
    link = Link("the job was applied for the first time", history.first_ms, Source.RECORD)
    return Finding(Cause.NOT_YET_APPLIED, f"the job exists only since {stamp(history.first_ms, zone)}", [link])


def _past(reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int) -> Finding:
    zone = zone_of(job)
    if job.follows:
        fact = f"it follows {' and '.join(job.after)}, and has no schedule of its own"
        return Finding(Cause.NOT_MATCHED, "no occurrence is on record here", [Link(fact, None, Source.SCHEDULE)])
    if is_untraceable(job):
        fact = f"'{job.schedule}' counts from what happened before, so only its records tell when it fired"
        return Finding(Cause.NOT_MATCHED, "no occurrence is on record here", [Link(fact, None, Source.SCHEDULE)])
    if not names_instant(job, instant_ms):
        return not_named(history, job, instant_ms)
    named = Link(f"'{job.schedule}' matches this time (version {job.version})", None, Source.SCHEDULE)
    if not job.enabled:
        link = Link(f"version {job.version} disabled the job", job.updated_ms, Source.RECORD)
        return Finding(Cause.DISABLED, f"the job was disabled since {stamp(job.updated_ms, zone)}", [named, link])
    for find in (_missed_in_span, _limit_reached, _replaced, _undecided):
        if (finding := find(reading, history, job, instant_ms, now_ms)) is not None:
            return finding._replace(links=[named, *finding.links])
    fact = "its record was removed by the limits on history"
    return Finding(Cause.FORGOTTEN, "it was decided, and its record is no longer kept", [
        named, Link(fact, None, Source.POLICY)
    ])  # fmt: skip


def not_named(history: VersionHistory, job: Job, instant_ms: int) -> Finding:
    cause, links = unmatched(job, instant_ms)
    summary = f"'{job.schedule}' does not name this instant"
    if cause in (Cause.EXCLUDED, Cause.MOVED):
        summary = f"'{job.schedule}' matches this time, and {links[0].fact}"
    elif links:
        summary += f": {links[0].fact}"
    newer = history.last
    if newer.version != job.version and names_instant(newer, instant_ms):
        fact = f"'{newer.schedule}' (version {newer.version}) would, but came later"
        return Finding(Cause.REPLACED, f"the job had another schedule then: '{job.schedule}'", [
            *links, Link(fact, newer.updated_ms, Source.RECORD)
        ], {"newer_version": newer.version})  # fmt: skip
    return Finding(cause, summary, links)


def _missed_in_span(
    reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int
) -> Finding | None:
    """A backlog too long to list: its oldest recorded instant has the span, and the journal has one event of it."""
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
    listed = Link(fact, decided, Source.JOURNAL if following[0].older is None else Source.RECORD)
    cause = cause_of(span.reason.code) or Cause.DOWN
    return Finding(cause, f"it was missed: {text_of(span.reason)}", [outage_link(outage, zone, names), listed], names)


def _span_event(reading: Reading, job: str, instant_ms: int, decided_ms: int) -> MissedSpan | None:
    number = journal.first_at(reading.tx, decided_ms)
    for _, event in journal.onward(reading.tx, number - 1, _MOST_EVENTS):
        if event.at_ms > decided_ms:
            return None
        if event.name != "OccurrencesMissed" or event.job != job:
            continue
        span = event.data
        if span["from_ms"] <= instant_ms <= span["to_ms"]:
            return MissedSpan(
                from_ms=span["from_ms"],
                to_ms=span["to_ms"],
                count=span.get("count", 0),
                is_more=span.get("is_more", False),
                reason=event.reason,
            )
    return None


def _limit_reached(
    reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int
) -> Finding | None:
    limit, fired = options_of(job).max, history.last.progress.counters.fired
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


def _replaced(reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """An edit moved the schedule on before this instant was decided."""
    if job.progress.cursor_ms is None or instant_ms <= job.progress.cursor_ms:
        return None
    later = [one for one in history.versions if one.version > job.version]
    if not later:
        return None
    newer = later[0]
    fact = f"version {newer.version} ('{newer.schedule}') took over and counts from its own beginning"
    return Finding(Cause.REPLACED, f"version {newer.version} replaced the schedule before it was decided", [
        Link(fact, newer.updated_ms, Source.RECORD)
    ], {"newer_version": newer.version})  # fmt: skip


def _undecided(reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """Beyond the cursor: no scheduler has planned it yet, because none runs or its next tick is still to come."""
    if job.progress.cursor_ms is None or instant_ms <= job.progress.cursor_ms or history.is_gone:
        return None
    since = down_since(reading, now_ms)
    zone = zone_of(job)
    fact = f"when a scheduler runs again, the recovery strategy {job.recovery.strategy.value} decides it"
    links = [Link(fact, None, Source.POLICY)]
    lacking = lacking_functions(job, nodes) if (nodes := unstopped(reading)) else ()
    if lacking:
        summary = f"it waits for the program that registers {named(lacking)}: no scheduler here has it"
        return Finding(Cause.UNDECIDED, summary, [Link(f"the job calls {named(job.functions)}", None, Source.RECORD)])
    if since is not None:
        links.append(Link("last sign of life of a scheduler", since, Source.JOURNAL))
        return Finding(
            Cause.UNDECIDED, f"no scheduler has looked at it: none was seen since {stamp(since, zone)}", links
        )
    return Finding(Cause.UNDECIDED, "no scheduler has ever run on this store", links)


def ahead(
    reading: Reading, history: VersionHistory, instant_ms: int, now_ms: int, watch: Watch = WATCHED
) -> WhyAnswer:
    job = history.last
    if history.is_gone:
        return answered(job, instant_ms, Finding(Cause.JOB_REMOVED, "the job was removed", []))
    return answered(job, instant_ms, _coming(reading, history, job, instant_ms, now_ms, watch))


def _coming(
    reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int, watch: Watch
) -> Finding:
    unnamed = _unnamed(reading, history, job, instant_ms, now_ms)
    if unnamed is not None:
        return unnamed
    zone = zone_of(job)
    links = [Link(f"'{job.schedule}' matches this time (version {job.version})", None, Source.SCHEDULE)]
    if note := clock_note(job, instant_ms):
        links.append(Link(note, None, Source.SCHEDULE))
    expected = forecast_run(job, instant_ms, now_ms)
    barred = _barred(reading, job, expected, now_ms, zone)
    if barred is not None:
        return barred._replace(links=[*links, *barred.links])
    if lacking := lacking_node(reading, job, now_ms):
        rule = f"it waits until {waits_words(job)}, and is missed then"
        return Finding(
            Cause.NO_NODE, f"it will wait for a node: {lacking}", [*links, Link(rule, None, Source.POLICY)]
        )
    if (moved := moved_from(job, instant_ms)) is not None:
        links = [moved_link(moved.nominal_ms, moved.calendar, zone)]
    placed, due = _placement(job, instant_ms, zone)
    if due is None:
        return Finding(Cause.UNSCHEDULABLE, "it will be skipped: no start fits its spread", [*links, *placed])
    if (reason := expected.reason).code is ReasonCode.BLACKOUT:
        fact = Link(f"{text_of(reason)} until {stamp(blackout_end(job, due), zone)}", None, Source.POLICY)
        return Finding(Cause.BLACKOUT, f"it will be skipped: {text_of(reason)}", [*links, *placed, fact])
    if reason.code is ReasonCode.WINDOW_EXCEEDED:
        end = f"its window ends at {stamp(instant_ms + (options_of(job).window or 0), zone)}"
        summary = f"it will be skipped: it is due at {stamp(due, zone)}, and {end}"
        return Finding(Cause.WINDOW_EXCEEDED, summary, [*links, *placed, Link(end, None, Source.POLICY)])
    if (skipped := _skipped_for_retry(reading, job, expected, now_ms, zone)) is not None:
        return skipped._replace(links=[*links, *placed, *skipped.links])
    start = f"from {stamp(due, zone)} on" if options_of(job).jitter else f"at {stamp(due, zone)}"
    risks = [Link(f"unless {risk}", None, Source.POLICY) for risk in _risks(reading, job)]
    summary = f"it will start {start}"
    if not watch.has_scheduler:
        summary = would_start(start)
    return Finding(Cause.WILL_RUN, summary, [*links, *placed, *risks], {"due_ms": due})


def _skipped_for_retry(reading: Reading, job: Job, expected: ForecastRun, now_ms: int, zone: Zone) -> Finding | None:
    """An earlier one waits for its retry longer than until this is due."""
    waits = retry_wait(reading, job, now_ms)
    if waits is None or expected.latest_ms >= waits.skips_until_ms:
        return None
    earlier = waits.occurrence
    fact = f"that of {stamp(earlier.nominal_ms, zone)} waits for its retry until {stamp(waits.retry_ms, zone)}"
    links = [Link(fact, None, Source.RECORD), Link("unless that is canceled before", None, Source.POLICY)]
    return Finding(Cause.RETRY_WAITS, "it will be skipped: an earlier occurrence waits for its retry", links)


def _unnamed(reading: Reading, history: VersionHistory, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """The schedule does not lead to this instant."""
    if not is_untraceable(job):
        return None if names_instant(job, instant_ms) else not_named(history, job, instant_ms)
    upcoming = next_of(job, job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms)
    if upcoming == instant_ms or _is_foreseen(reading, job, instant_ms, now_ms):
        return None
    expected = stamp(upcoming, zone_of(job)) if upcoming is not None else "no time"
    fact = f"'{job.schedule}' counts from the run before it; the next is expected at {expected}"
    return Finding(Cause.NOT_MATCHED, "nothing is expected here", [Link(fact, None, Source.SCHEDULE)])


def _is_foreseen(reading: Reading, job: Job, instant_ms: int, now_ms: int) -> bool:
    """An interval that counts from ends goes on from what will be skipped, and that is known beforehand, as distances
    are that are drawn."""
    if not counts_from_ends(job) and not is_random(job):
        return False
    behind = known_runs(job, reading.occurrences(job.id), now_ms).job
    return any(run.nominal_ms == instant_ms for run in forecast_all(behind, now_ms, instant_ms, now_ms))


def _barred(reading: Reading, job: Job, expected: ForecastRun, now_ms: int, zone: Zone) -> Finding | None:
    """The job is disabled, paused, or will have used up its executions."""
    if not job.enabled:
        fact = Link("the job is disabled", job.updated_ms, Source.RECORD)
        return Finding(Cause.DISABLED, "nothing will happen: the job is disabled", [fact])
    if expected.reason.code is ReasonCode.PAUSED:
        by = f" by {job.progress.paused_by}" if job.progress.paused_by else ""
        until = (
            f" until {stamp(job.progress.paused_until_ms, zone)}" if job.progress.paused_until_ms is not None else ""
        )
        fact = Link(f"the job is paused{by}{until}", None, Source.RECORD)
        return Finding(Cause.PAUSED, f"it will be skipped: the job is paused{by}{until}", [fact])
    if runs_left(job) is not None:
        return _max_reached(reading, job, expected, now_ms)
    return None


def _max_reached(reading: Reading, job: Job, expected: ForecastRun, now_ms: int) -> Finding | None:
    """Those that wait for their turn come first, and are counted too."""
    waits = retry_wait(reading, job, now_ms)
    not_before = 0 if waits is None else waits.skips_until_ms
    known = known_runs(job, reading.occurrences(job.id), now_ms, not_before, reading.waiting(job.id))
    if _is_left(known, expected, now_ms, not_before):
        return None
    limit, fired = options_of(job).max, job.progress.counters.fired
    fact = f"{fired} of at most {limit} executions (max) have begun"
    if waiting := known.job.progress.counters.fired - fired:
        fact += f", and {waiting} wait for their turn"
    link = Link(fact, None, Source.RECORD)
    return Finding(Cause.MAX_REACHED, f"its limit of {limit} executions (max) is reached before", [link])


def _is_left(known: KnownRuns, expected: ForecastRun, now_ms: int, not_before: int) -> bool:
    """Is it one of the executions that `max` leaves, beside those on record that wait for their time?"""
    job, drawn = known.job, left_by_max(known, now_ms, not_before)
    left = runs_left(job)
    if not left:
        return left is None
    since = job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms
    until = expected.due_ms + lead_ms(job)  # what is planned later starts later
    coming = forecast_all(job, since, max(until, expected.nominal_ms), now_ms)
    startable = (run for run in coming if run.latest_ms >= not_before or run.nominal_ms == expected.nominal_ms)
    coming = first_to_start(job, startable, left, drawn)
    found = next((run for run in coming if run.nominal_ms == expected.nominal_ms), None)
    return found is not None and found.reason.code is not ReasonCode.MAX_REACHED


def _placement(job: Job, instant_ms: int, zone: Zone) -> tuple[list[Link], int | None]:
    options, due, links = options_of(job), instant_ms, []
    if job.spread is not None:
        chosen = spread_of(job.spread, job.id, job.timezone).decide_at(instant_ms)
        if chosen.chosen_ms is None:
            return [Link(f"spread: {chosen.reason}", None, Source.POLICY)], None
        due = chosen.chosen_ms
        links.append(Link(f"spread chooses {stamp(due, zone)}", None, Source.POLICY))
    if options.stagger:
        offset = stagger_offset(job.id, options.stagger)
        due += offset
        links.append(Link(f"stagger adds {format_duration(offset)}", None, Source.POLICY))
    if options.jitter:
        links.append(Link(f"jitter will add up to {format_duration(options.jitter)}", None, Source.POLICY))
    return links, due


# What becomes of a run that was due while no daemon ran, for somebody who has never read of the strategies.
_MADE_UP = {
    RecoveryStrategy.EXECUTE_ALL: "every missed run is made up when one is back",
    RecoveryStrategy.EXECUTE_LAST: "the latest missed run is made up when one is back",
    RecoveryStrategy.MARK_MISSED: "missed runs are recorded and not made up",
    RecoveryStrategy.BOUNDED: "a number of missed runs is made up when one is back",
    RecoveryStrategy.COMPRESSED: "one run makes up for all missed ones when one is back",
}


def _which(running: Occurrence, zone: Zone) -> str:
    """By its time: an id says nothing to a person."""
    return f"that of {stamp(running.nominal_ms, zone)} is not over"


def _risks(reading: Reading, job: Job) -> list[str]:
    risks = [f"no daemon runs then ({_MADE_UP[job.recovery.strategy]})"]
    if lacking := lacking_functions(job, unstopped(reading)):
        risks.append(f"no scheduler has {named(lacking)} then (none has it now): it waits for the program that does")
    if job.after:
        which = " or ".join(job.after)
        risks.append(f"the newest run of {which} has not completed: then it waits, or is skipped where that failed")
    first = reading.active(job.id, 1) or reading.queued(job.id, 1)
    now = f" ({_which(first[0], zone_of(job))})" if first else ""
    overlap = {
        OverlapPolicy.SKIP: f"an earlier occurrence still runs or waits{now}: then it is skipped",
        OverlapPolicy.QUEUE: f"an earlier occurrence still runs or waits{now}: then it waits",
        OverlapPolicy.QUEUE_ONE: f"an earlier occurrence still runs{now}: then it waits, or is skipped if one waits",
        OverlapPolicy.CANCEL_RUNNING: f"an earlier occurrence still runs{now}: that one is canceled first",
    }.get(job.overlap)
    if overlap:
        risks.append(overlap)
    risks += [f"group {name} is full or used up: then it waits for its turn" for name in sorted(job.groups)]
    if job.wait_for:
        waits = f"then it waits, at most {format_duration(job.wait_at_most_ms)}"
        risks.append(f"one of these does not hold: {', '.join(job.wait_for)}: {waits}")
    risks.append("all slots are busy: it then waits for one")
    if (window := options_of(job).window) is not None:
        risks.append(f"it cannot start within {format_duration(window)} (window): then it is skipped")
    if job.spread is not None or options_of(job).jitter:
        risks.append("the job is changed before it is decided")
    return risks
