"""Files in YAML: workflows, pipelines, Dependabot's settings, CronJobs and CronWorkflows, also as Helm templates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chronex.lint.findings import Assumptions, Edit, FinderResult, LintFinding, ScheduleSite, ZoneNote
from chronex.lint.hosts import ARGO, AZURE, DEPENDABOT, GITHUB, KUBERNETES, ScheduleHost
from chronex.lint.rules.file_rules import yaml_faults
from chronex.lint.rules.refusals import schedule_of_the_wrong_shape, zone_inside_schedule
from chronex.lint.rules.zone_rules import zone_findings, zone_left_to_the_host
from chronex.lint.source_files import Document, is_template
from chronex.lint.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml

_ZONE_PREFIX = re.compile(r"[ \t]*((?:CRON_)?TZ=([^ \t]*)[ \t]+)")


def _zone_of(zone: YamlScalar) -> Iterator[LintFinding]:
    start = zone.start if zone.content is None else zone.content
    end = zone.end if zone.content is None else start + len(zone.value)
    yield from zone_findings(zone.value, start, end, fixable=zone.editable is not None)


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
        schedule = triggers.get("schedule") if triggers else None
        if isinstance(schedule, YamlMapping):
            found.findings.append(schedule_of_the_wrong_shape(schedule.start, schedule.start + 1, "no list"))
        for entry in schedule.items if isinstance(schedule, YamlSequence) else []:
            if isinstance(entry, YamlMapping):
                _workflow_entry(entry, root, found)
            elif isinstance(entry, YamlScalar) and not is_template(entry.value):
                found.findings.append(schedule_of_the_wrong_shape(entry.start, entry.end, "no mapping"))
    return _each_once(found)


def _workflow_entry(entry: YamlMapping, root: YamlMapping, found: FinderResult) -> None:
    cron, zone = entry.text("cron"), entry.text("timezone")
    keys = [key for key, _ in entry.pairs if isinstance(key, YamlScalar)]
    unknown = [key for key in keys if key.value not in ("cron", "timezone", "<<")]
    for key in unknown:
        found.findings.append(schedule_of_the_wrong_shape(key.start, key.end, "unknown key", key.value))
    if not unknown and not any(key.value in ("cron", "<<") for key in keys):
        end = keys[0].end if keys else entry.start + 1
        found.findings.append(schedule_of_the_wrong_shape(entry.start, end, "no cron"))
    note = ZoneNote("UTC", "a workflow without a timezone is read in UTC")
    if zone is not None:
        found.findings.extend(_zone_of(zone))
        note = ZoneNote(zone.value, "from timezone beside it")
    if cron is None or is_template(cron.value):
        return
    title = root.text("name")
    name = title.value if title else "schedule"
    found.sites.append(_site(cron, GITHUB, note, name))


def _site(cron: YamlScalar, host: ScheduleHost, zone: ZoneNote, name: str) -> ScheduleSite:
    """A block scalar ends with a line end, which hosts leave out; a nickname with one is none to Kubernetes."""
    is_kept = host.key == KUBERNETES.key and cron.value.startswith("@")
    text = cron.value if is_kept else cron.value.rstrip("\r\n")
    return ScheduleSite(text, cron.start, cron.end, cron.content, host, zone, name, is_shared=cron.has_anchor)


# -- Azure Pipelines and Dependabot -----------------------------------------------------------------------


def find_pipeline(document: Document, assume: Assumptions) -> FinderResult:
    """Each `cron` of `schedules`, which Azure Pipelines reads in UTC."""
    found = FinderResult([], [])
    note = ZoneNote("UTC", "Azure Pipelines reads schedules in UTC")
    for root in _roots(document, found, "schedules"):
        for entry in root.sequence("schedules"):
            cron = entry.text("cron") if isinstance(entry, YamlMapping) else None
            if isinstance(entry, YamlMapping) and cron is not None and not is_template(cron.value):
                title = entry.text("displayName")
                found.sites.append(_site(cron, AZURE, note, title.value if title else "schedule"))
    return found


_FIELDS_ONLY = re.compile(r"[0-9*,/-]+(?:[ \t]+[0-9A-Za-z*,/-]+){4}")


def find_dependabot(document: Document, assume: Assumptions) -> FinderResult:
    """Each `cronjob` that is written in fields; Dependabot takes plain English too, which is left alone."""
    found = FinderResult([], [])
    for root in _roots(document, found, "cronjob"):
        for update in root.sequence("updates"):
            schedule = update.mapping("schedule") if isinstance(update, YamlMapping) else None
            cron = schedule.text("cronjob") if schedule else None
            if schedule is None or cron is None or not _FIELDS_ONLY.fullmatch(cron.value.strip()):
                continue
            zone = schedule.text("timezone")
            note = ZoneNote("UTC", "Dependabot without a timezone reads in UTC")
            if zone is not None:
                found.findings.extend(_zone_of(zone))
                note = ZoneNote(zone.value, "from timezone beside it")
            found.sites.append(_site(cron, DEPENDABOT, note, "Dependabot"))
    return found


def _roots(document: Document, found: FinderResult, word: str) -> Iterator[YamlMapping]:
    """The documents of a file that has this word at all; what is wrong with its YAML is told."""
    if word not in document.text:
        return
    roots, problem = read_yaml(document.text)
    if problem is not None and not is_template(document.text):
        found.findings.extend(yaml_faults(document.text, problem.message, problem.offset))
    yield from (root for root in roots if isinstance(root, YamlMapping))


# -- Kubernetes CronJobs ----------------------------------------------------------------------------------


def find_cronjobs(document: Document, assume: Assumptions) -> FinderResult:
    is_filled_in_later = is_template(document.text)
    roots, problem = read_yaml(_without_templates(document.text) if is_filled_in_later else document.text)
    found = FinderResult([], [])
    if problem is not None and not is_filled_in_later:
        found.findings.extend(yaml_faults(document.text, problem.message, problem.offset))
    for root in roots:
        for cron_job in _cron_jobs(root):
            _cron_job(cron_job, document.text, found)
    return _each_once(found)


def _each_once(found: FinderResult) -> FinderResult:
    """What an alias stands for is read again at each of them, and written once."""
    shared = {site.start for site in found.sites if site.is_shared}
    sites = (site._replace(is_shared=site.start in shared) for site in found.sites)
    return FinderResult(list(dict.fromkeys(sites)), found.findings)


_TEMPLATE_LINE = re.compile(r"^[ \t]*\{\{(?:[^{}]|\{[^{]|\}[^}])*\}\}[ \t]*(?=\r?$)", re.MULTILINE)
_TEMPLATE_VALUE = re.compile(r"\{\{(?:[^{}\n]|\{[^{\n]|\}[^}\n])*\}\}")


def _without_templates(text: str) -> str:
    """A Helm template as YAML of the same length: lines of directives become blank, values become a word.

    A schedule that stands there literally is what the cluster will get; one that is filled in is left alone.
    """
    text = _TEMPLATE_LINE.sub(lambda line: re.sub(r"[^\n]", " ", line[0]), text)
    return _TEMPLATE_VALUE.sub(lambda value: "x" * len(value[0]), text)


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
    return kind is not None and kind.value in ("CronJob", "CronWorkflow")


def _cron_job(node: YamlMapping, text: str, found: FinderResult) -> None:
    spec, metadata = node.mapping("spec"), node.mapping("metadata")
    title = metadata.text("name") if metadata else None
    name = title.value if title else "CronJob"
    kind = node.text("kind")
    if spec is not None and kind is not None and kind.value == "CronWorkflow":
        _cron_workflow(spec, text, name, found)
        return
    if spec is None:
        return
    zones = list(_literals(spec, "timeZone", text))
    for zone in zones:
        found.findings.extend(_zone_of(zone))
    schedules = list(_literals(spec, "schedule", text))
    for number, schedule in enumerate(schedules):
        zone_beside = zones[number if len(zones) == len(schedules) else 0] if zones else None
        _schedule_of_cron_job(schedule, zone_beside, spec, text, name, found)


def _literals(spec: YamlMapping, key: str, text: str) -> list[YamlScalar]:
    """The values that stand there: one, or in a template one for each branch of an `if`."""
    written = list(spec.every(key))[: None if is_template(text) else 1]
    return [value for value in written if isinstance(value, YamlScalar) and not _is_filled_in(value, text)]


def _schedule_of_cron_job(
    schedule: YamlScalar, zone: YamlScalar | None, spec: YamlMapping, text: str, name: str, found: FinderResult
) -> None:
    if prefix := _ZONE_PREFIX.match(schedule.value):
        found.findings.append(_zone_in_schedule(prefix, schedule, spec, text))
        return
    note = ZoneNote("UTC", "without timeZone the controller's zone counts, mostly UTC")
    if zone is not None:
        note = ZoneNote(zone.value, "from timeZone beside it")
    site = _site(schedule, KUBERNETES, note, name)
    found.sites.append(site)
    if spec.get("timeZone") is None and _depends_on_zone(site.text):
        found.findings.append(zone_left_to_the_host(site))


def _is_filled_in(value: YamlScalar, text: str) -> bool:
    """Is the value, or a part of it, put in place of a template?"""
    return is_template(text[value.start : value.end]) or is_template(value.value)


def _depends_on_zone(schedule: str) -> bool:
    """What runs in every hour of every day runs at the same instants in nearly all zones."""
    words = schedule.split()
    return words[:1] not in (["@hourly"], ["@every"]) and words[1:] != ["*"] * 4


def _cron_workflow(spec: YamlMapping, text: str, name: str, found: FinderResult) -> None:
    """`schedule`, or several `schedules`, in the zone of `timezone`."""
    note = ZoneNote("UTC", "without timezone the controller's zone counts, mostly UTC")
    for zone in _literals(spec, "timezone", text):
        found.findings.extend(_zone_of(zone))
        note = ZoneNote(zone.value, "from timezone beside it")
    listed = [node for node in spec.sequence("schedules") if isinstance(node, YamlScalar)]
    for schedule in (*_literals(spec, "schedule", text), *listed):
        is_prefixed = _ZONE_PREFIX.match(schedule.value) is not None  # which Argo takes
        if schedule.value and not _is_filled_in(schedule, text) and not is_prefixed:
            found.sites.append(_site(schedule, ARGO, note, name))


def _zone_in_schedule(prefix: re.Match[str], schedule: YamlScalar, spec: YamlMapping, text: str) -> LintFinding:
    start = schedule.start if schedule.content is None else schedule.content + prefix.start(1)
    end = schedule.end if schedule.content is None else schedule.content + prefix.end(1)
    edits: tuple[Edit, ...] = ()
    is_alone = spec.get("timeZone") is None and not is_template(text)  # a template may bring one by an include
    if schedule.editable is not None and spec.column is not None and is_alone:
        line_end = text.find("\n", schedule.end)
        at = len(text) if line_end < 0 else line_end - (text[line_end - 1] == "\r")
        newline = "\r\n" if "\r\n" in text else "\n"
        line = f"{newline}{' ' * spec.column}timeZone: {prefix[2]}"
        edits = (Edit(start, end, ""), Edit(at, at, line))
    return zone_inside_schedule(prefix[2], start, end, edits)
