"""Chronex's own schedules: in chronex.toml, in trigger definitions, and in calls of chronex.parse in Python."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from chronex.jobfile.entries import WrittenSchedule
from chronex.jobfile.positions import LineIndex
from chronex.jobfile.reader import Inspection, inspect_job_file, inspect_triggers
from chronex.lint.findings import Assumptions, FinderResult, LintFinding, ScheduleSite, ZoneNote
from chronex.lint.hosts import CHRONEX, POSIX
from chronex.lint.rules.job_file_rules import (
    job_file_findings,
    jobs_without_timeout,
    many_jobs_in_a_minute,
    slow_retries,
)
from chronex.lint.rules.zone_rules import zone_abbreviation
from chronex.lint.source_files import Document, is_trigger_name
from chronex.timing.dst import DstPolicy, GapRule, OverlapRule

_GAPS: dict[str, GapRule] = {"end": "end", "skip": "skip"}
_OVERLAPS: dict[str, OverlapRule] = {"first": "first", "both": "both", "by-kind": "by-kind"}
_UNREADABLE = ("J001", "J002", "J003")
_ZONE_REASONS = {"job": "from the job's timezone", "scheduler": "from [scheduler]"}

# -- chronex.toml and trigger definitions ---------------------------------------------------------------------


def find_jobs(document: Document, assume: Assumptions) -> FinderResult:
    inspected = inspect_job_file(document.text, document.path, assume.zone.name)
    sites = [_job_file_site(schedule, document, assume) for schedule in inspected.schedules]
    findings = [*_zones(inspected), *job_file_findings(document, inspected)]
    schedules = list(zip(sites, inspected.schedules, strict=True))
    for site, schedule in schedules:
        findings.extend(slow_retries(site, schedule.retry, assume.reference_ms))
    unspread = [site for site, schedule in schedules if not schedule.has_spread]
    findings.extend(many_jobs_in_a_minute(unspread, assume.reference_ms))
    if not inspected.problems:  # what is refused is put right first
        findings.extend(jobs_without_timeout(document, [site for site, one in schedules if not one.has_timeout]))
    return FinderResult(sites, findings)


def find_triggers(document: Document, assume: Assumptions) -> FinderResult:
    """One object with an id and an expression, or a list of them; a file without any has another purpose.

    A file that is no JSON has none to find: it is told as broken where its name or its text says what it was to be.
    """
    inspected = inspect_triggers(document.text, document.path, assume.zone.name)
    if not inspected.schedules:
        is_broken = any(problem.code in _UNREADABLE for problem in inspected.problems)
        if not is_broken or not (is_trigger_name(document.path) or '"expression"' in document.text):
            return FinderResult([], [])
    sites = [_job_file_site(schedule, document, assume) for schedule in inspected.schedules]
    return FinderResult(sites, list(job_file_findings(document, inspected)))


def _job_file_site(schedule: WrittenSchedule, document: Document, assume: Assumptions) -> ScheduleSite:
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


# -- calls of chronex.parse in Python -------------------------------------------------------------------------

_UTC = ZoneNote("UTC", "chronex.parse without tz reads in UTC")


def find_calls(document: Document, assume: Assumptions) -> FinderResult:
    tree = _parsed(document.text)
    if tree is None:
        return FinderResult([], [])
    names = _Names(tree)
    source = _Source(document.text)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and names.is_parse(node.func))
    sites = [site for call in calls if (site := _call_site(call, source)) is not None]
    return FinderResult(sorted(sites, key=lambda site: site.start), [])


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in someone's string is not this linter's subject
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


class _Names:
    """What the file calls the module `chronex` and its function `parse`."""

    def __init__(self, tree: ast.Module) -> None:
        self.modules: set[str] = set()
        self.functions: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.modules.update(a.asname or a.name for a in node.names if a.name == "chronex")
            elif isinstance(node, ast.ImportFrom) and node.module == "chronex" and not node.level:
                self.functions.update(a.asname or a.name for a in node.names if a.name == "parse")

    def is_parse(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id in self.functions
        if not isinstance(function, ast.Attribute) or function.attr != "parse":
            return False
        return isinstance(function.value, ast.Name) and function.value.id in self.modules


class _Source:
    """Offsets of nodes, whose columns Python counts in bytes of UTF-8."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = LineIndex(text.replace("\x0c", " "))

    def offset(self, line: int, byte_column: int) -> int:
        start = self.lines.start_of_line(line)
        whole = self.text[start : self.lines.end_of_line(line)]
        return start + len(whole.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))


def _call_site(call: ast.Call, source: _Source) -> ScheduleSite | None:
    given = dict(zip(("text", "dialect", "tz"), call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    node = given.get("text")
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    dialect, zone = given.get("dialect"), given.get("tz")
    host = POSIX if isinstance(dialect, ast.Constant) and dialect.value == "posix" else CHRONEX
    note = _UTC
    if isinstance(zone, ast.Constant) and isinstance(zone.value, str):
        note = ZoneNote(zone.value, "from tz= of the call")
    start = source.offset(node.lineno, node.col_offset)
    end = source.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return ScheduleSite(
        node.value, start, end, _content(node.value, source.text[start:end], start), host, note, "parse"
    )


def _content(value: str, raw: str, start: int) -> int | None:
    """Where the value begins, when it stands in the source as it is: no escapes, no pieces put together."""
    for at in _quote_ends(raw):
        quotes = at - len(raw[:at].rstrip("\"'"))
        if raw[at : len(raw) - quotes] == value:
            return start + at
    return None


def _quote_ends(raw: str) -> Iterator[int]:
    prefix = len(raw) - len(raw.lstrip("rRuU"))
    yield from (prefix + quotes for quotes in (3, 1) if raw[prefix : prefix + quotes] in ('"""', "'''", '"', "'"))
