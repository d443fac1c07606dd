"""`show --graph`: the tasks of a job as boxes and lines, and the path that the length of its run depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronex.cli.output import columns, paint, time_text, timed, wants_unicode
from chronex.text.durations import brief_duration
from chronex.text.terminal import terminal_safe
from chronex.timing.zones import Zone
from chronex.views.graph_drawing import draw
from chronex.views.job_graph import UNKNOWN_STATE, JobGraph

_MOST_COLUMNS = 120
_COLOURS = {
    "running": "cyan",
    "claimed": "cyan",
    "success": "green",
    "failed": "red",
    "dlq": "red",
    "retry": "yellow",
    UNKNOWN_STATE: "yellow",
    "canceled": "yellow",
    "skipped": "dim",
    "scheduled": "dim",
    "critical": "bold",
}


def graph_lines(graph: JobGraph, zone: Zone) -> Iterator[str]:
    yield f"{paint(terminal_safe(graph.job), 'bold')}  {_run(graph, zone)}"
    yield ""
    for line in draw(graph.steps, min(columns(), _MOST_COLUMNS), is_unicode=wants_unicode()):
        yield "".join(_styled(text, style) for text, style in line)
    yield ""
    if len(graph.critical) > 1 and graph.critical_ms is not None:
        way = " -> ".join(graph.critical)
        yield f"critical path  {terminal_safe(way)}: {brief_duration(graph.critical_ms)}"
    if graph.parents:
        yield f"follows        {', '.join(graph.parents)}"
    if graph.children:
        yield f"followed by    {', '.join(graph.children)}"


def _styled(text: str, style: str) -> str:
    return paint(terminal_safe(text), _COLOURS[style]) if style in _COLOURS else text


def _run(graph: JobGraph, zone: Zone) -> str:
    one = graph.occurrence
    if one is None:
        return "has not run yet"
    is_unknown = any(step.state == UNKNOWN_STATE for step in graph.steps)
    return f"{UNKNOWN_STATE if is_unknown else one.state.value}, its run of {time_text(one.nominal_ms, zone)}"


def graph_json(graph: JobGraph) -> dict[str, Any]:
    one = graph.occurrence
    return {
        "job": graph.job,
        "occurrence": None if one is None else one.id,
        "state": None if one is None else one.state.value,
        **timed("nominal", None if one is None else one.nominal_ms),
        "steps": [
            {
                "name": step.name,
                "needs": list(step.needs),
                "when": step.when.value,
                "state": step.state or None,
                "combinations": step.combinations,
                "over": step.over,
                "duration_ms": step.duration_ms,
                "is_critical": step.is_critical,
            }
            for step in graph.steps
        ],
        "critical_path": list(graph.critical),
        "critical_ms": graph.critical_ms,
        "after": list(graph.parents),
        "children": list(graph.children),
    }
