"""GitHub workflows: `on.schedule[*].cron`, each with a zone of its own, else UTC."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.expr.diagnostics import ERROR
from chronex.lint.assumptions import Assumptions
from chronex.lint.document import Document, is_template
from chronex.lint.findings import UNREADABLE, Edit, Finding, Fix, Found, Place, ZoneNote
from chronex.lint.hosts import GITHUB
from chronex.lint.yaml_nodes import Mapping, Scalar, YamlProblem, read_yaml
from chronex.lint.zones import zone_findings

_UNQUOTED_STAR = re.compile(
    r"^[ \t]*(?:-[ \t]+)?(?:cron|schedule):[ \t]+(\*(?:[/, \t][^#\n\r]*?)?)[ \t]*(?:#.*)?\r?$", re.MULTILINE
)


def find_workflow(document: Document, assume: Assumptions) -> Found:
    if "schedule" not in document.text:
        return Found([], [])
    roots, problem = read_yaml(document.text)
    found = Found([], [])
    if problem is not None:
        found.findings.extend(yaml_faults(document.text, problem))
    if roots and isinstance(root := roots[0], Mapping):
        triggers = root.mapping("on")
        for entry in triggers.sequence("schedule") if triggers else []:
            if isinstance(entry, Mapping):
                _entry(entry, root, found)
    return found


def _entry(entry: Mapping, root: Mapping, found: Found) -> None:
    cron, zone = entry.text("cron"), entry.text("timezone")
    note = ZoneNote("UTC", "a workflow without a timezone is read in UTC")
    if zone is not None:
        found.findings.extend(scalar_zone(zone))
        note = ZoneNote(zone.value, "from timezone beside it")
    if cron is None or is_template(cron.value):
        return
    title = root.text("name")
    name = title.value if title else "schedule"
    found.places.append(Place(cron.value, cron.start, cron.end, cron.content, GITHUB, note, name))


def scalar_zone(zone: Scalar) -> Iterator[Finding]:
    start = zone.start if zone.content is None else zone.content
    end = zone.end if zone.content is None else start + len(zone.value)
    yield from zone_findings(zone.value, start, end, fixable=zone.content is not None)


def yaml_faults(text: str, problem: YamlProblem) -> Iterator[Finding]:
    """A star without quotes is the fault that schedules bring into YAML; any other is the YAML's own."""
    stars = list(_UNQUOTED_STAR.finditer(text))
    for star in stars:
        start, end = star.span(1)
        message = "* without quotes is a YAML alias: the file is refused; put the schedule in quotes"
        fix = Fix("put it in quotes", (Edit(start, end, f'"{star[1]}"'),))
        yield Finding("W137", ERROR, message, start, end, fix)
    if not stars:
        yield Finding(UNREADABLE, ERROR, f"not valid YAML: {problem.message}", problem.offset, problem.offset + 1)
