"""Which Python functions of a job no scheduler has: such a job waits for the program that registers them."""

from __future__ import annotations

from collections.abc import Iterable

from chronex.model.job import Job
from chronex.model.records import Node
from chronex.storage.records import Reading


def lacking_functions(job: Job, nodes: Iterable[Node]) -> tuple[str, ...]:
    """The functions for want of which none of these nodes can run the job; empty where one of them can."""
    if not job.functions:
        return ()
    nodes = list(nodes)
    if any(all(node.can_call(target) for target in job.functions) for node in nodes):
        return ()
    nowhere = [target for target in job.functions if not any(node.can_call(target) for node in nodes)]
    return tuple(nowhere) or job.functions


def unstopped(reading: Reading) -> list[Node]:
    """The nodes that have not left in good order. Of one that was killed, only its machine could say more."""
    return [node for node in reading.nodes() if node.stopped_ms is None]


def named(functions: Iterable[str]) -> str:
    return ", ".join(repr(target) for target in functions)
