"""Hover and hints: what a schedule means, when it runs next, what the next clock change does to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from chronex.lint.findings import LintFinding, ScheduleSite
from chronex.lint.host_schedules import HostSchedule, schedule_of
from chronex.lint.linter import Analysis
from chronex.lint.rules import explanation_of, title_of
from chronex.text.durations import DAY_MS, HOUR_MS, MINUTE_MS, format_duration
from chronex.text.instants import local_datetime
from chronex.text.terminal import terminal_safe
from chronex.timing.zones import Zone

if TYPE_CHECKING:
    from chronex.model.job import Job
    from chronex.timing.calendar_schedule import MovedFrom


# When a schedule in an editor starts next, and what keeps it from starting.
#
# Of a job of Chronex that is asked of `chronex/views/coming_runs.py`, as every other view does: calendars,
# blackouts and spread decide with the expression. Of what other programs read, and of a job that cannot be read,
# the expression alone is known.


class ComingStart(NamedTuple):
    """`latest_ms` is later than `due_ms` where chance decides; `moved` says from where a calendar moved it."""

    due_ms: int
    latest_ms: int
    moved: MovedFrom | None = None


class ComingStarts(NamedTuple):
    """The next starts, and in words what may keep one of them waiting."""

    starts: list[ComingStart]
    may_wait_for: tuple[str, ...] = ()
    is_disabled: bool = False
    not_before_ms: int | None = None  # where none was found up to here, and what comes then was not looked at


def coming_starts(
    analysis: Analysis, site: ScheduleSite, schedule: HostSchedule, now_ms: int, count: int
) -> ComingStarts:
    job = analysis.jobs.get(site.name)
    if job is None:
        return ComingStarts([ComingStart(ms, ms) for ms in schedule.upcoming(now_ms, count)])
    return _starts_of(job, site.text, now_ms, count)


def _starts_of(job: Job, expression: str, now_ms: int, count: int) -> ComingStarts:
    from msgspec.structs import replace

    from chronex.timing.job_schedule import absolute_schedule, schedule_of
    from chronex.views.coming_runs import RunSearch, in_order_of_start, may_wait_for

    if not job.enabled:
        return ComingStarts([], is_disabled=True)
    # Of several expressions of a job each has its own starts; one that counts, counts from now.
    alone = absolute_schedule(replace(job, schedule=expression), now_ms).progressed(anchor_ms=now_ms)
    search = RunSearch()
    runs = islice(in_order_of_start(alone, schedule_of(alone).next(now_ms), now_ms, search=search), count)
    starts = [ComingStart(run.due_ms, run.latest_ms, run.moved) for run in runs]
    waits = (*(f"job {parent}" for parent in job.after), *may_wait_for(job))
    return ComingStarts(starts, waits, not_before_ms=search.stopped_ms)


_HOVER_RUNS = 5


class Hover(NamedTuple):
    markdown: str
    start: int
    end: int


class Hint(NamedTuple):
    offset: int
    label: str
    tooltip: str


def hover_at(analysis: Analysis, offset: int, now_ms: int, local: Zone) -> Hover | None:
    """What there is to know about the expression, or the finding, at this offset."""
    site = site_at(analysis, offset)
    findings = [f for f in analysis.findings if f.start <= offset <= f.end]
    if site is None and not findings:
        return None
    parts = list(_site_parts(analysis, site, now_ms, local)) if site is not None else []
    parts.extend(_rule_part(finding) for finding in findings)
    start, end = (site.start, site.end) if site is not None else (findings[0].start, findings[0].end)
    return Hover("\n\n".join(parts), start, end)


def site_at(analysis: Analysis, offset: int) -> ScheduleSite | None:
    return next((site for site in analysis.sites if site.start <= offset <= site.end), None)


def _site_parts(analysis: Analysis, site: ScheduleSite, now_ms: int, local: Zone) -> Iterator[str]:
    schedule = schedule_of(site, now_ms)
    if schedule is None:
        yield f"`{code_safe(site.text)}` has no next run."
    else:
        yield f"**{schedule.words()}**"
        yield from _runs(coming_starts(analysis, site, schedule, now_ms, _HOVER_RUNS), schedule.zone, now_ms, local)
        yield schedule.clock_note(now_ms)
    zone = schedule.zone.name if schedule is not None else site.zone.name
    why = site.zone.why if zone == site.zone.name else "written in the expression"
    yield f"Zone {zone}: {why}. Language: {site.host.title}, because {site.host.why}."


def _runs(coming: ComingStarts, zone: Zone, now_ms: int, local: Zone) -> Iterator[str]:
    if coming.is_disabled:
        yield "It does not run: `enabled = false`."
        return
    if not coming.starts and coming.not_before_ms is not None:
        yield f"It does not start before {_shown(coming.not_before_ms, zone)}; what comes then was not looked at."
        return
    if not coming.starts:
        yield "It will not run again."
        return
    lines = []
    for start in coming.starts:
        line = f"- {_shown(start.due_ms, zone)} (in {distance(start.due_ms - now_ms)})"
        if zone.name != local.name:
            line += f", {_shown(start.due_ms, local)} here"
        if start.latest_ms > start.due_ms:
            line += f", or up to {distance(start.latest_ms - start.due_ms + 1)} later"
        if start.moved is not None:
            line += f", moved by `{code_safe(start.moved.calendar)}` from {_shown(start.moved.nominal_ms, zone)}"
        lines.append(line)
    yield "\n".join(lines)
    if coming.may_wait_for:
        yield f"Each may wait for {', '.join(f'`{code_safe(one)}`' for one in coming.may_wait_for)}."


def _rule_part(finding: LintFinding) -> str:
    return f"`{finding.code}` {title_of(finding.code)}: {explanation_of(finding.code)}"


def code_safe(text: str) -> str:
    """Text that may stand between backticks."""
    return terminal_safe(text).replace("`", "'")[:200]


def _shown(ms: int, zone: Zone) -> str:
    moment = local_datetime(ms, zone.tzinfo)
    seconds = f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"
    return f"{moment:%a %d %b %Y} {seconds} {moment.tzname()}"


def distance(ms: int) -> str:
    """Two units at most: 3d 4h, 11h 5m, 40s."""
    if ms < MINUTE_MS:
        return format_duration(max(ms // 1000 * 1000, 0)).replace("0ms", "0s")
    unit = DAY_MS if ms >= 2 * DAY_MS else HOUR_MS if ms >= DAY_MS else MINUTE_MS
    return format_duration(ms // unit * unit)


def hints(analysis: Analysis, start: int, end: int, now_ms: int) -> Iterator[Hint]:
    """The next run behind each expression of this part of the file."""
    for site in analysis.sites:
        if site.end < start or site.start > end:
            continue
        schedule = schedule_of(site, now_ms)
        coming = coming_starts(analysis, site, schedule, now_ms, 1).starts if schedule is not None else []
        if schedule is None or not coming:
            continue
        due_ms = coming[0].due_ms
        moment = local_datetime(due_ms, schedule.zone.tzinfo)
        day = f"{moment:%a}" if due_ms - now_ms < 6 * DAY_MS else f"{moment:%a %d %b %Y}"
        label = f"{day} {moment:%H:%M} {moment.tzname()} (in {distance(due_ms - now_ms)})"
        yield Hint(site.end, label, schedule.words())
