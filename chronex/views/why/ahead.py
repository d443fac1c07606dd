"""An instant that has not come: what will happen, and what could prevent it."""

from __future__ import annotations

from chronex.engine.plan import spread_of
from chronex.model.job import Job
from chronex.model.policies import OverlapPolicy
from chronex.storage.records import Reading
from chronex.text.durations import format_duration
from chronex.timing.job_schedule import options_of, schedule_of
from chronex.timing.occurrences import stagger_offset
from chronex.timing.zones import Zone
from chronex.views.why.answer import Link, Source, WhyAnswer, stamp
from chronex.views.why.asked_instant import clock_note, is_untraceable, names_instant, next_of, zone_of
from chronex.views.why.causes import Cause
from chronex.views.why.job_versions import Lives
from chronex.views.why.unrecorded import Finding, answered, not_named


def ahead(reading: Reading, lives: Lives, instant_ms: int, now_ms: int) -> WhyAnswer:
    job = lives.last
    if lives.is_gone:
        return answered(job, instant_ms, Finding(Cause.JOB_REMOVED, "the job was removed", []))
    return answered(job, instant_ms, _finding(reading, lives, job, instant_ms, now_ms))


def _finding(reading: Reading, lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding:
    unnamed = _unnamed(lives, job, instant_ms, now_ms)
    if unnamed is not None:
        return unnamed
    zone = zone_of(job)
    links = [Link(f"'{job.schedule}' names this instant (version {job.version})", None, Source.SCHEDULE)]
    if note := clock_note(job, instant_ms):
        links.append(Link(note, None, Source.SCHEDULE))
    barred = _barred(job, instant_ms, now_ms, zone)
    if barred is not None:
        return barred._replace(links=[*links, *barred.links])
    placed, due = _placement(job, instant_ms, zone)
    if due is None:
        return Finding(Cause.UNSCHEDULABLE, "it will be skipped: no start fits its spread", [*links, *placed])
    start = f"from {stamp(due, zone)} on" if options_of(job).jitter else f"at {stamp(due, zone)}"
    risks = [Link(f"unless {risk}", None, Source.POLICY) for risk in _risks(reading, job)]
    return Finding(Cause.WILL_RUN, f"it will start {start}", [*links, *placed, *risks], {"due_ms": due})


def _unnamed(lives: Lives, job: Job, instant_ms: int, now_ms: int) -> Finding | None:
    """The schedule does not lead to this instant."""
    if not is_untraceable(job):
        return None if names_instant(job, instant_ms) else not_named(lives, job, instant_ms)
    upcoming = next_of(job, job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms)
    if upcoming == instant_ms:
        return None
    expected = stamp(upcoming, zone_of(job)) if upcoming is not None else "no time"
    fact = f"'{job.schedule}' counts from the run before it; the next is expected at {expected}"
    return Finding(Cause.NOT_MATCHED, "nothing is expected here", [Link(fact, None, Source.SCHEDULE)])


def _barred(job: Job, instant_ms: int, now_ms: int, zone: Zone) -> Finding | None:
    """The job is disabled, paused, or will have used up its executions."""
    if not job.enabled:
        fact = Link("the job is disabled", job.updated_ms, Source.RECORD)
        return Finding(Cause.DISABLED, "nothing will happen: the job is disabled", [fact])
    if job.progress.paused and (job.progress.paused_until_ms is None or instant_ms < job.progress.paused_until_ms):
        by = f" by {job.progress.paused_by}" if job.progress.paused_by else ""
        until = (
            f" until {stamp(job.progress.paused_until_ms, zone)}" if job.progress.paused_until_ms is not None else ""
        )
        fact = Link(f"the job is paused{by}{until}", None, Source.RECORD)
        return Finding(Cause.PAUSED, f"it will be skipped: the job is paused{by}{until}", [fact])
    limit, fired = options_of(job).max, job.progress.counters.fired
    if limit is not None and fired + _before(job, instant_ms, now_ms, limit) >= limit:
        fact = Link(f"{fired} of at most {limit} executions (max) have begun", None, Source.RECORD)
        return Finding(Cause.MAX_REACHED, f"its limit of {limit} executions (max) is reached before", [fact])
    return None


def _before(job: Job, instant_ms: int, now_ms: int, limit: int) -> int:
    """How many executions come before it, as far as the limit makes one ask."""
    count = 0
    for _ in schedule_of(job).between(
        job.progress.cursor_ms if job.progress.cursor_ms is not None else now_ms, instant_ms - 1
    ):
        count += 1
        if count >= limit:
            break
    return count


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


def _risks(reading: Reading, job: Job) -> list[str]:
    risks = [f"no scheduler runs then ({job.recovery.strategy.value} decides when one is back)"]
    running = reading.active(job.id, 1)
    now = f" ({running[0].id} runs now)" if running else ""
    overlap = {
        OverlapPolicy.SKIP: f"an earlier occurrence still runs{now}: then it is skipped",
        OverlapPolicy.QUEUE: f"an earlier occurrence still runs{now}: then it waits",
        OverlapPolicy.QUEUE_ONE: f"an earlier occurrence still runs{now}: then it waits, or is skipped if one waits",
        OverlapPolicy.CANCEL_RUNNING: f"an earlier occurrence still runs{now}: that one is canceled first",
    }.get(job.overlap)
    if overlap:
        risks.append(overlap)
    risks.append("all places of the pool are taken: then it waits for one")
    if (window := options_of(job).window) is not None:
        risks.append(f"it cannot start within {format_duration(window)} (window): then it is skipped")
    if job.spread is not None or options_of(job).jitter:
        risks.append("the job is changed before it is decided")
    return risks
