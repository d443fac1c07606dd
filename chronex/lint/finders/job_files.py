"""Chronex's own files: the schedules of chronex.toml and of trigger definitions, as their reader gives them."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.jobfile.entries import WrittenSchedule
from chronex.jobfile.reader import Inspection, inspect_job_file, inspect_triggers
from chronex.lint.document import Document
from chronex.lint.findings import Assumptions, FinderResult, LintFinding, ScheduleSite, ZoneNote
from chronex.lint.hosts import CHRONEX, POSIX
from chronex.lint.rules.job_file_rules import job_file_findings, many_jobs_in_a_minute, slow_retries
from chronex.lint.rules.zone_rules import zone_abbreviation
from chronex.timing.dst import DstPolicy, GapRule, OverlapRule

_GAPS: dict[str, GapRule] = {"end": "end", "skip": "skip"}
_OVERLAPS: dict[str, OverlapRule] = {"first": "first", "both": "both", "by-kind": "by-kind"}
_ZONE_REASONS = {"job": "from the job's timezone", "scheduler": "from [scheduler]"}


def find_jobs(document: Document, assume: Assumptions) -> FinderResult:
    inspected = inspect_job_file(document.text, document.path, assume.zone.name)
    sites = [_site(schedule, document, assume) for schedule in inspected.schedules]
    findings = [*_zones(inspected), *job_file_findings(document, inspected)]
    schedules = list(zip(sites, inspected.schedules, strict=True))
    for site, schedule in schedules:
        findings.extend(slow_retries(site, schedule.retry, assume.reference_ms))
    unspread = [site for site, schedule in schedules if not schedule.has_spread]
    findings.extend(many_jobs_in_a_minute(unspread, assume.reference_ms))
    return FinderResult(sites, findings)


def find_triggers(document: Document, assume: Assumptions) -> FinderResult:
    """One object with an id and an expression, or a list of them; a file without any has another purpose."""
    inspected = inspect_triggers(document.text, document.path, assume.zone.name)
    if not inspected.schedules:
        return FinderResult([], [])
    sites = [_site(schedule, document, assume) for schedule in inspected.schedules]
    return FinderResult(sites, list(job_file_findings(document, inspected)))


def _site(schedule: WrittenSchedule, document: Document, assume: Assumptions) -> ScheduleSite:
    start, end = schedule.node.value
    content = schedule.node.content
    if content is not None and not document.text.startswith(schedule.text, content):
        content = None  # a line end inside the text is one character there and two here
    host = POSIX if schedule.dialect == "posix" else CHRONEX
    zone = assume.zone
    if schedule.zone_source != "host":
        zone = ZoneNote(schedule.zone, _ZONE_REASONS[schedule.zone_source])
    policy = None
    if schedule.dst is not None:
        policy = DstPolicy(_GAPS[schedule.dst.gap], _OVERLAPS[schedule.dst.overlap])
    return ScheduleSite(schedule.text, start, end, content, host, zone, schedule.job, policy)


def _zones(inspected: Inspection) -> Iterator[LintFinding]:
    """Zones that are known but name no place; unknown ones are problems of the job file itself."""
    for zone in inspected.zones:
        yield from zone_abbreviation(zone.name, *zone.span)
