"""Kubernetes CronJobs: any document of that kind, and those in a List."""

from __future__ import annotations

import re

from chronex.expr.diagnostics import ERROR
from chronex.lint.assumptions import Assumptions
from chronex.lint.document import Document, is_template
from chronex.lint.finders.workflows import scalar_zone, yaml_faults
from chronex.lint.findings import INFO, Edit, Finding, Fix, Found, Place, ZoneNote
from chronex.lint.hosts import KUBERNETES
from chronex.lint.yaml_nodes import Mapping, Node, Scalar, read_yaml

_ZONE_PREFIX = re.compile(r"[ \t]*((?:CRON_)?TZ=([^ \t]*)[ \t]+)")


def find_cronjobs(document: Document, assume: Assumptions) -> Found:
    roots, problem = read_yaml(document.text)
    found = Found([], [])
    if problem is not None and not is_template(document.text):
        found.findings.extend(yaml_faults(document.text, problem))
    for root in roots:
        _document(root, document.text, found)
    return found


def _document(root: Node, text: str, found: Found) -> None:
    if not isinstance(root, Mapping):
        return
    kind = root.text("kind")
    if kind is not None and kind.value.endswith("List"):
        for item in root.sequence("items"):
            if isinstance(item, Mapping) and (kind.value == "CronJobList" or _is_cron_job(item)):
                _cron_job(item, text, found)
    elif _is_cron_job(root):
        _cron_job(root, text, found)


def _is_cron_job(node: Mapping) -> bool:
    kind = node.text("kind")
    return kind is not None and kind.value == "CronJob"


def _cron_job(node: Mapping, text: str, found: Found) -> None:
    spec, metadata = node.mapping("spec"), node.mapping("metadata")
    schedule = spec.text("schedule") if spec else None
    if spec is None or schedule is None or is_template(schedule.value):
        return
    title = metadata.text("name") if metadata else None
    name = title.value if title else "CronJob"
    zone = spec.text("timeZone")
    if zone is not None and not is_template(zone.value):
        found.findings.extend(scalar_zone(zone))
    if prefix := _ZONE_PREFIX.match(schedule.value):
        found.findings.append(_zone_in_schedule(prefix, schedule, spec, text))
        return
    if zone is not None and is_template(zone.value):
        zone = None
    note = ZoneNote("UTC", "without timeZone the controller's zone counts, mostly UTC")
    if zone is not None:
        note = ZoneNote(zone.value, "from timeZone beside it")
    place = Place(schedule.value, schedule.start, schedule.end, schedule.content, KUBERNETES, note, name)
    found.places.append(place)
    if spec.get("timeZone") is None:
        message = "no timeZone: the times are read in the zone of the cluster's controller, mostly UTC"
        found.findings.append(Finding("W114", INFO, message, schedule.start, schedule.end, None, place))


def _zone_in_schedule(prefix: re.Match[str], schedule: Scalar, spec: Mapping, text: str) -> Finding:
    """The API server refuses to create such a CronJob; the zone belongs into timeZone."""
    message = f"Kubernetes refuses a zone inside the schedule; write timeZone: {prefix[2]} beside it"
    start = schedule.start if schedule.content is None else schedule.content + prefix.start(1)
    end = schedule.end if schedule.content is None else schedule.content + prefix.end(1)
    fix = None
    if schedule.content is not None and spec.column is not None and spec.get("timeZone") is None:
        line_end = text.find("\n", schedule.end)
        at = len(text) if line_end < 0 else line_end - (text[line_end - 1] == "\r")
        newline = "\r\n" if "\r\n" in text else "\n"
        line = f"{newline}{' ' * spec.column}timeZone: {prefix[2]}"
        fix = Fix("move the zone into timeZone", (Edit(start, end, ""), Edit(at, at, line)))
    return Finding("W133", ERROR, message, start, end, fix)
