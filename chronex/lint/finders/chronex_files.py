"""Chronex's own schedules: in chronex.toml, in trigger definitions, and in Python by chronex.parse or an Engine."""

from __future__ import annotations

import ast
import re
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

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
    inspected = inspect_job_file(document.text, document.path, assume.zone.name, assume.reference_ms)
    sites = [_job_file_site(schedule, document, assume) for schedule in inspected.schedules]
    findings = [*_zones(inspected), *job_file_findings(document, inspected)]
    findings = [one for one in findings if one.code != "J104" or not _is_job_beside(document, one)]
    schedules = list(zip(sites, inspected.schedules, strict=True))
    for site, schedule in schedules:
        findings.extend(slow_retries(site, schedule.retry, assume.reference_ms))
    unspread = [site for site, schedule in schedules if not schedule.has_spread]
    findings.extend(many_jobs_in_a_minute(unspread, assume.reference_ms))
    if not inspected.problems:  # what is refused is put right first
        findings.extend(jobs_without_timeout(document, [site for site, one in schedules if not one.has_timeout]))
    return FinderResult(sites, findings, inspected.jobs)


# So many files of a directory of jobs are read for the name of one that another follows.
_MOST_BESIDE, _MOST_BYTES_BESIDE = 200, 1 << 20


def _is_job_beside(document: Document, unknown: LintFinding) -> bool:
    """Has another file of the directory the job of this name? A directory of job files is applied as one."""
    name = document.text[unknown.start : unknown.end].strip("\"'")
    own = Path(document.path)
    others = (path for path in sorted(own.parent.glob("*.toml"))[:_MOST_BESIDE] if path.name != own.name)
    return any(name in _jobs_of(path) for path in others)


def _jobs_of(path: Path) -> Mapping[str, object]:
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES_BESIDE:
            return {}
        jobs = tomllib.loads(path.read_text("utf-8")).get("jobs")
    except (OSError, ValueError, RecursionError):
        return {}
    return jobs if isinstance(jobs, dict) else {}


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
    return FinderResult(sites, list(job_file_findings(document, inspected)), inspected.jobs)


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
    return ScheduleSite(schedule.text, start, end, content, host, zone, schedule.job, policy, schedule.calendars)


def _zones(inspected: Inspection) -> Iterator[LintFinding]:
    """Zones that are known but name no place; unknown ones are problems of the job file itself."""
    for zone in inspected.zones:
        yield from zone_abbreviation(zone.name, *zone.span)


# -- schedules in Python: chronex.parse, and the jobs of a chronex.Engine ---------------------------------------


class _CallShape(NamedTuple):
    """Where a call has its schedule and zone: the names of its arguments, those of both, and its zone without one."""

    arguments: tuple[str, ...]
    text: str
    zone: str
    note: ZoneNote


_PARSE = _CallShape(("text", "dialect", "tz"), "text", "tz", ZoneNote("UTC", "chronex.parse without tz reads in UTC"))
_UTC = ZoneNote("UTC", "a job without timezone reads in UTC")
_OF_ENGINE = {
    "job": _CallShape(("schedule",), "schedule", "timezone", _UTC),
    "add": _CallShape(("job", "schedule"), "schedule", "timezone", _UTC),
}


def find_calls(document: Document, assume: Assumptions) -> FinderResult:
    tree = _parsed(document.text)
    if tree is None:
        return FinderResult([], [])
    names = _Names(tree)
    source = _Source(document.text)
    calls = ((node, names.shape_of(node.func)) for node in ast.walk(tree) if isinstance(node, ast.Call))
    sites = [site for call, shape in calls if shape and (site := _call_site(call, shape, source)) is not None]
    return FinderResult(sorted(sites, key=lambda site: site.start), [])


def _parsed(text: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in someone's string is not this linter's subject
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


class _Names:
    """What the file calls the module `chronex`, its `parse`, its `Engine`, and the engines of that class."""

    def __init__(self, tree: ast.Module) -> None:
        self.modules: set[str] = set()
        self.imported: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.modules.update(a.asname or a.name for a in node.names if a.name == "chronex")
            elif isinstance(node, ast.ImportFrom) and node.module == "chronex" and not node.level:
                self.imported.update({a.asname or a.name: a.name for a in node.names})
        self.engines = {name for node in ast.walk(tree) for name in self._engines_of(node)}

    def _engines_of(self, node: ast.AST) -> Iterator[str]:
        """Names that an engine is given: `engine = Engine(…)`, `with Engine(…) as engine`."""
        pairs: list[tuple[ast.expr | None, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.withitem):
            pairs = [(node.optional_vars, node.context_expr)]
        for target, value in pairs:
            is_engine = isinstance(value, ast.Call) and self._promised(value.func) == "Engine"
            if is_engine and isinstance(target, ast.Name):
                yield target.id

    def _promised(self, function: ast.expr) -> str:
        """The name in `chronex` that this is, or nothing."""
        if isinstance(function, ast.Name):
            return self.imported.get(function.id, "")
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return ""
        return function.attr if function.value.id in self.modules else ""

    def shape_of(self, function: ast.expr) -> _CallShape | None:
        if self._promised(function) == "parse":
            return _PARSE
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return None
        return _OF_ENGINE.get(function.attr) if function.value.id in self.engines else None


class _Source:
    """Offsets of nodes, whose columns Python counts in bytes of UTF-8; a carriage return alone ends a line for it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = LineIndex(re.sub("\r(?!\n)", "\n", text))

    def offset(self, line: int, byte_column: int) -> int:
        start = self.lines.start_of_line(line)
        whole = self.text[start : self.lines.end_of_line(line)]
        return start + len(whole.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))


def _call_site(call: ast.Call, shape: _CallShape, source: _Source) -> ScheduleSite | None:
    given = dict(zip(shape.arguments, call.args, strict=False)) | {k.arg: k.value for k in call.keywords}
    node = given.get(shape.text)
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    dialect, zone = _constant(given.get("dialect")), _constant(given.get(shape.zone))
    if dialect == "custom":
        return None  # the name of a schedule that the program has
    host = POSIX if dialect == "posix" else CHRONEX
    note = ZoneNote(zone, f"from {shape.zone}= of the call") if isinstance(zone, str) else shape.note
    start = source.offset(node.lineno, node.col_offset)
    end = source.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return ScheduleSite(
        node.value,
        start,
        end,
        _content(node.value, source.text[start:end], start),
        host,
        note,
        "parse" if shape is _PARSE else "job",
    )


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


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
