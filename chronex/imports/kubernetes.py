"""Import of Kubernetes CronJobs: schedule, policies and command. What lives in the cluster is named as lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chronex.errors import ExpressionError, UnknownZoneError
from chronex.imports.import_result import Import, Imported, JobNames, Lost
from chronex.imports.oracle import KUBERNETES, instants, pattern_of
from chronex.lint.kubernetes_grammar import read_for_kubernetes
from chronex.lint.yaml_nodes import YamlMapping, YamlNode, YamlScalar, YamlSequence, read_yaml
from chronex.timing import parse
from chronex.timing.zones import Zone, load_zone, utc_zone

_CONCURRENCY = {"Allow": "allow", "Forbid": "skip", "Replace": "cancel_running"}
_DEFAULT_BACKOFF_LIMIT = 6
_UNREAD = "what stands after this fault could not be read"
_TEMPLATE = "it is a template; import what it becomes: helm template CHART | chronex import k8s -"


def read_cronjobs(text: str, zone: Zone) -> Import:
    """`zone` is the zone of the new job file; a CronJob without timeZone is read in UTC, as most controllers do."""
    roots, problem = read_yaml(text)
    found = Import("kubernetes", zone.name, {}, [], [])
    if problem is not None:
        found.lost.append(Lost("the file", problem.message, _TEMPLATE if "{{" in text else _UNREAD))
    names = JobNames()
    for node in _cron_jobs(roots):
        entry = _cron_job(node, names)
        found.add(entry)
    return found


def _cron_jobs(roots: list[YamlNode]) -> Iterator[YamlMapping]:
    for root in roots:
        if not isinstance(root, YamlMapping):
            continue
        kind = _text(root, "kind")
        if kind == "CronJob":
            yield root
        elif kind.endswith("List"):
            items = [item for item in root.sequence("items") if isinstance(item, YamlMapping)]
            yield from (item for item in items if kind == "CronJobList" or _text(item, "kind") == "CronJob")


def _text(node: YamlMapping | None, *path: str) -> str:
    for key in path[:-1]:
        node = node.mapping(key) if node is not None else None
    found = node.text(path[-1]) if node is not None else None
    return found.value if found is not None else ""


def _cron_job(node: YamlMapping, names: JobNames) -> Imported | Lost:
    name, spec = _text(node, "metadata", "name") or "cronjob", node.mapping("spec")
    written = _text(spec, "schedule")
    schedule = _as_taken(written)
    namespace = _text(node, "metadata", "namespace")
    origin = f"CronJob {namespace}/{name}" if namespace else f"CronJob {name}"
    pattern = pattern_of(written, KUBERNETES)
    if spec is not None and schedule.startswith("@every "):
        table, lost = _table(spec, schedule)
        note = ("counts from when it is applied",)
        why = "an interval has no times to compare"
        return Imported(
            names.give(name, namespace), origin, table, utc_zone(), differs=note, lost=tuple(lost), times=why
        )
    if spec is None or pattern is None:
        return Lost(origin, " ".join(written.split()), "Kubernetes itself does not understand this schedule")
    zone_name = _text(spec, "timeZone")
    try:
        zone = load_zone(zone_name) if zone_name else utc_zone()
    except UnknownZoneError:
        return Lost(origin, f"timeZone: {zone_name}", "the zone is unknown here")
    table, lost = _table(spec, f"TZ={zone.name} {schedule}")
    notes = () if zone_name else ("it has no timeZone: read in UTC, as most controllers do",)
    return Imported(
        id=names.give(name, namespace),
        origin=origin,
        table=table,
        zone=zone,
        source_instants=lambda start, end: instants(pattern, KUBERNETES, zone, start, end),
        notes=notes,
        lost=tuple(lost),
    )


def _as_taken(written: str) -> str:
    """The text as it stands where Chronex reads it as the controller does, else in words that mean the same; empty
    where the controller refuses it."""
    taken = read_for_kubernetes(written)
    if taken is None or taken.text is None:
        return ""
    plain = " ".join(written.split())
    try:
        return plain if parse(plain) == parse(taken.text) else taken.text
    except ExpressionError:
        return taken.text


def _table(spec: YamlMapping, schedule: str) -> tuple[dict[str, Any], list[str]]:
    job = spec.mapping("jobTemplate")
    job = job.mapping("spec") if job else None
    deadline = _number(_text(spec, "startingDeadlineSeconds"))
    window = f" {{window:{deadline}s}}" if deadline else ""
    table: dict[str, Any] = {"schedule": f"{schedule}{window}"}
    if _text(spec, "suspend") == "true":
        table["enabled"] = False
    table["overlap"] = _CONCURRENCY.get(_text(spec, "concurrencyPolicy") or "Allow", "allow")
    table["recovery"] = "execute_last"
    backoff = _number(_text(job, "backoffLimit"))
    retries = _DEFAULT_BACKOFF_LIMIT if backoff is None else backoff
    table["retry"] = {"max": retries, "interval": "10s", "backoff": 2.0, "max_interval": "6m"}
    if limit := _number(_text(job, "activeDeadlineSeconds")):
        table["execution_timeout"] = f"{limit}s"
    return table, _containers(job, table)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


# What is carried over of a job, a pod and a container, and what says nothing to a command here. All else is named.
_OF_THE_JOB = frozenset({"template", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "selector"})
_OF_THE_POD = frozenset({"containers", "restartPolicy", "imagePullSecrets", "serviceAccount", "enableServiceLinks",
                         "terminationGracePeriodSeconds"})  # fmt: skip
_OF_THE_CONTAINER = frozenset({"name", "image", "imagePullPolicy", "command", "args", "env", "terminationMessagePath",
                               "terminationMessagePolicy"})  # fmt: skip
_ORDINARY = ("1", "NonIndexed", "false", "ClusterFirst", "default-scheduler", "", "null", "~")
_REFERENCE = re.compile(r"(?<!\$)\$\([A-Za-z_][A-Za-z0-9_.-]*\)")


def _left_behind(node: YamlMapping | None, known: frozenset[str], whose: str) -> Iterator[str]:
    if node is not None:
        left = (key for key in node.names() if key not in known and not _is_usual(node.get(key)))
        yield from (f"{key} of {whose}" for key in left)


def _is_usual(value: YamlNode | None) -> bool:
    match value:
        case YamlMapping():
            return not value.pairs
        case YamlSequence():
            return not value.items
        case YamlScalar():
            return value.value in _ORDINARY
        case _:
            return value is None


def _containers(job: YamlMapping | None, table: dict[str, Any]) -> list[str]:
    """Put the commands into the table as tasks; what cannot be carried over, in words."""
    template = job.mapping("template") if job else None
    pod = template.mapping("spec") if template else None
    containers = [node for node in (pod.sequence("containers") if pod else []) if isinstance(node, YamlMapping)]
    if (grace := _number(_text(pod, "terminationGracePeriodSeconds"))) is not None:
        table["grace_period"] = f"{grace}s"
    lost = [f"the image {_text(node, 'image')}: its command runs on this machine" for node in containers]
    lost += _left_behind(job, _OF_THE_JOB, "the job")
    lost += _left_behind(pod, _OF_THE_POD, "the pod")
    names, tasks = JobNames(), []
    for node in containers:
        name = names.give(_text(node, "name") or "main")
        command = (*_strings(node.get("command")), *_strings(node.get("args")))
        if not command:
            lost.append("a container has no command of its own (its image has): put one into run")
            command = ("false",)
        if any(_REFERENCE.search(word) for word in command):
            lost.append(f"$(…) of the container {name}: Kubernetes puts the variable there, a shell would run it")
        task: dict[str, Any] = {"name": name, "run": [word.replace("$$(", "$(") for word in command]}
        task |= _environment(node, lost)
        tasks.append(task)
        lost += _left_behind(node, _OF_THE_CONTAINER, f"the container {name}")
    if len(tasks) > 1:
        table["mode"] = "parallel"  # as in a pod
    table["tasks"] = tasks or [{"name": "main", "run": ["false"]}]
    return lost if tasks else [*lost, "no container was found: put a command into run"]


def _environment(node: YamlMapping, notes: list[str]) -> dict[str, Any]:
    env: dict[str, str] = {}
    for entry in node.sequence("env"):
        if not isinstance(entry, YamlMapping) or not (name := _text(entry, "name")):
            continue
        if entry.text("value") is None and entry.get("valueFrom") is not None:
            notes.append(f"the variable {name} comes from the cluster: set it in env or secrets")
            continue
        value = _text(entry, "value")
        if _REFERENCE.search(value):
            notes.append(f"the variable {name}: Kubernetes puts other variables into {value}, here it stays")
        env[name] = value.replace("$$(", "$(")
    return {"env": env} if env else {}


def _strings(node: YamlNode | None) -> tuple[str, ...]:
    items = node.items if isinstance(node, YamlSequence) else []
    return tuple(item.value for item in items if isinstance(item, YamlScalar))
