"""Where a job may run, when several machines share a store: by the names of nodes, and by their labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from chronex.model.job import JobDefinition
from chronex.model.records import Node

EXCLUDED = "!"


def fits(job: JobDefinition, name: str, labels: Mapping[str, str]) -> bool:
    """Whether the job may run on a node of this name with these labels."""
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


def describe_placement(job: JobDefinition) -> str:
    """As it is written: `nodes db-*, !db-3 with zone=eu`; empty where it may run anywhere."""
    named = f"nodes {', '.join(job.nodes)}" if job.nodes else ""
    labels = ", ".join(f"{label}={value}" for label, value in job.node_labels.items())
    if not labels:
        return named
    return f"{named or 'nodes'} with {labels}"
