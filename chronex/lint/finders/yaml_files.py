"""Files in YAML: GitHub workflows (`on.schedule[*].cron`) and Kubernetes CronJobs, alone or in a List."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.lint.findings import Assumptions, Edit, FinderResult, LintFinding, ScheduleSite, ZoneNote
from chronex.lint.hosts import GITHUB, KUBERNETES
from chronex.lint.rules.file_rules import yaml_faults
from chronex.lint.rules.refusals import zone_inside_schedule
from chronex.lint.rules.zone_rules import zone_findings, zone_left_to_the_host
from chronex.lint.source_files import Document, is_template
from chronex.lint.yaml_nodes import YamlMapping, YamlNode, YamlScalar, read_yaml

_ZONE_PREFIX = re.compile(r"[ \t]*((?:CRON_)?TZ=([^ \t]*)[ \t]+)")


def _zone_of(zone: YamlScalar) -> Iterator[LintFinding]:
    start = zone.start if zone.content is None else zone.content
    end = zone.end if zone.content is None else start + len(zone.value)
    yield from zone_findings(zone.value, start, end, fixable=zone.content is not None)


# -- GitHub workflows -------------------------------------------------------------------------------------


def find_workflow(document: Document, assume: Assumptions) -> FinderResult:
    """Each `cron` with the `timezone` beside it, else UTC."""
    if "schedule" not in document.text:
        return FinderResult([], [])
    roots, problem = read_yaml(document.text)
    found = FinderResult([], [])
    if problem is not None:
        found.findings.extend(yaml_faults(document.text, problem.message, problem.offset))
    if roots and isinstance(root := roots[0], YamlMapping):
        triggers = root.mapping("on")
        for entry in triggers.sequence("schedule") if triggers else []:
            if isinstance(entry, YamlMapping):
                _workflow_entry(entry, root, found)
    return found


def _workflow_entry(entry: YamlMapping, root: YamlMapping, found: FinderResult) -> None:
    cron, zone = entry.text("cron"), entry.text("timezone")
    note = ZoneNote("UTC", "a workflow without a timezone is read in UTC")
    if zone is not None:
        found.findings.extend(_zone_of(zone))
        note = ZoneNote(zone.value, "from timezone beside it")
    if cron is None or is_template(cron.value):
        return
    title = root.text("name")
    name = title.value if title else "schedule"
    found.sites.append(ScheduleSite(cron.value, cron.start, cron.end, cron.content, GITHUB, note, name))


# -- Kubernetes CronJobs ----------------------------------------------------------------------------------


def find_cronjobs(document: Document, assume: Assumptions) -> FinderResult:
    roots, problem = read_yaml(document.text)
    found = FinderResult([], [])
    if problem is not None and not is_template(document.text):
        found.findings.extend(yaml_faults(document.text, problem.message, problem.offset))
    for root in roots:
        for cron_job in _cron_jobs(root):
            _cron_job(cron_job, document.text, found)
    return found


def _cron_jobs(root: YamlNode) -> Iterator[YamlMapping]:
    """The CronJobs of one document: itself, or the items of a List."""
    if not isinstance(root, YamlMapping):
        return
    kind = root.text("kind")
    if kind is not None and kind.value.endswith("List"):
        for item in root.sequence("items"):
            if isinstance(item, YamlMapping) and (kind.value == "CronJobList" or _is_cron_job(item)):
                yield item
    elif _is_cron_job(root):
        yield root


def _is_cron_job(node: YamlMapping) -> bool:
    kind = node.text("kind")
    return kind is not None and kind.value == "CronJob"


def _cron_job(node: YamlMapping, text: str, found: FinderResult) -> None:
    spec, metadata = node.mapping("spec"), node.mapping("metadata")
    schedule = spec.text("schedule") if spec else None
    if spec is None or schedule is None or is_template(schedule.value):
        return
    title = metadata.text("name") if metadata else None
    name = title.value if title else "CronJob"
    zone = spec.text("timeZone")
    if zone is not None and is_template(zone.value):
        zone = None
    if zone is not None:
        found.findings.extend(_zone_of(zone))
    if prefix := _ZONE_PREFIX.match(schedule.value):
        found.findings.append(_zone_in_schedule(prefix, schedule, spec, text))
        return
    note = ZoneNote("UTC", "without timeZone the controller's zone counts, mostly UTC")
    if zone is not None:
        note = ZoneNote(zone.value, "from timeZone beside it")
    site = ScheduleSite(schedule.value, schedule.start, schedule.end, schedule.content, KUBERNETES, note, name)
    found.sites.append(site)
    if spec.get("timeZone") is None:
        found.findings.append(zone_left_to_the_host(site))


def _zone_in_schedule(prefix: re.Match[str], schedule: YamlScalar, spec: YamlMapping, text: str) -> LintFinding:
    start = schedule.start if schedule.content is None else schedule.content + prefix.start(1)
    end = schedule.end if schedule.content is None else schedule.content + prefix.end(1)
    edits: tuple[Edit, ...] = ()
    if schedule.content is not None and spec.column is not None and spec.get("timeZone") is None:
        line_end = text.find("\n", schedule.end)
        at = len(text) if line_end < 0 else line_end - (text[line_end - 1] == "\r")
        newline = "\r\n" if "\r\n" in text else "\n"
        line = f"{newline}{' ' * spec.column}timeZone: {prefix[2]}"
        edits = (Edit(start, end, ""), Edit(at, at, line))
    return zone_inside_schedule(prefix[2], start, end, edits)
