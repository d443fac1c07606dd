"""Hover and hints: what a schedule means, when it runs next, what the next clock change does to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chronex.lint.findings import LintFinding, ScheduleSite
from chronex.lint.host_schedules import schedule_of
from chronex.lint.linter import Analysis
from chronex.lint.rules import explanation_of, title_of
from chronex.lsp.coming_starts import ComingStarts, coming_starts
from chronex.text.durations import DAY_MS, HOUR_MS, MINUTE_MS, format_duration
from chronex.text.instants import local_datetime
from chronex.text.terminal import terminal_safe
from chronex.timing.zones import Zone

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
