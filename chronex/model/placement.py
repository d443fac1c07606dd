"""Where a job may run, when several machines share a store: by the names of nodes, and by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from chronex.model.job import JobDefinition
from chronex.model.records import Node

EXCLUDED = "!"
_MOST_SHOWN = 3


def fits(job: JobDefinition, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the job may run on a node of this name with these labels."""
    if job.target and job.target != name:
        return False
    return _is_named(job.nodes, name) and all(labels.get(label) == value for label, value in job.node_labels.items())


def _is_named(patterns: Iterable[str], name: str) -> bool:
    """`["db-*", "!db-3"]`: one of the patterns, and none of those with a mark; only marked ones leave all others."""
    wanted = [pattern for pattern in patterns if not pattern.startswith(EXCLUDED)]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith(EXCLUDED)]
    if any(fnmatchcase(name, pattern) for pattern in unwanted):
        return False
    return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)


def fits_node(job: JobDefinition, node: Node) -> bool:
    return fits(job, node.name or node.host, node.labels)


def lacks(job: JobDefinition, node: Node) -> str:
    """What the node would need to run the job, in a few words; empty where it can."""
    if not fits_node(job, node):
        return describe_placement(job)
    functions = [target for target in job.functions if not node.can_call(target)]
    if functions:
        return f"the function {functions[0]!r}"
    secrets = [source for source in job.secret_sources if source in node.lacking_secrets]
    return f"the secret {secrets[0]}" if secrets else ""


def lacking_everywhere(job: JobDefinition, nodes: Iterable[Node]) -> str:
    """For want of what none of these nodes runs the job, node by node; empty where one of them can."""
    found: dict[str, list[str]] = {}
    for node in nodes:
        missing = lacks(job, node)
        if not missing:
            return ""
        found.setdefault(missing, []).append(node.name or node.host or node.id)
    if not found:
        return describe_placement(job) or "a node"
    first = list(found.items())[:_MOST_SHOWN]
    if len(found) == 1:
        return f"no node here has {first[0][0]}" if not _is_placement(job, first[0][0]) else first[0][0]
    return "; ".join(f"{', '.join(names[:_MOST_SHOWN])}: needs {missing}" for missing, names in first)


def _is_placement(job: JobDefinition, missing: str) -> bool:
    return missing == describe_placement(job)


def describe_placement(job: JobDefinition) -> str:
    """As it is written: `nodes db-*, !db-3 with zone=eu`; empty where it may run anywhere."""
    named = f"nodes {', '.join(job.nodes)}" if job.nodes else ""
    if job.target:
        return f"the node {job.target}"
    labels = ", ".join(f"{label}={value}" for label, value in job.node_labels.items())
    if not labels:
        return named
    return f"{named or 'nodes'} with {labels}"
