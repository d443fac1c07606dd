"""The tasks of a job as a drawn graph, with the jobs before and after it and the path that its length depends on."""

from __future__ import annotations

from collections.abc import Iterator

from chronex.storage.records import Reading
from chronex.text.durations import rounded_duration
from chronex.text.terminal import cell_safe
from chronex.views.graph_drawing import draw
from chronex.views.job_graph import UNKNOWN_STATE, JobGraph, graph_of, latest_occurrence, unwatched
from chronex_tui.model.display import STYLES, UNKNOWN, DisplaySettings, full_stamp
from chronex_tui.model.layout import Line, wrap

_STYLES = {"line": "dim", "critical": "key", UNKNOWN_STATE: "retry"}


def read_graph(reading: Reading, name: str) -> JobGraph | None:
    """With the states of the occurrence that runs, else of the last one that ran."""
    job = reading.job(name)
    return None if job is None else graph_of(reading, job, latest_occurrence(reading, name))


def graph_lines(graph: JobGraph, display: DisplaySettings, cells: int) -> list[Line]:
    """Which run it shows, what comes before, the tasks, what comes after, and the critical path."""
    lines = [*_run(graph, display), *_jobs("after", graph.parents, cells), ()]
    steps = graph.steps if display.is_watched else unwatched(graph).steps
    for drawn in draw(steps, max(cells, 10), is_unicode=display.glyphs.border != "ascii"):
        lines.append(tuple((cell_safe(text), _STYLES.get(style) or STYLES.get(style, "")) for text, style in drawn))
    lines += [(), *_jobs("then", graph.children, cells), *_critical(graph, display, cells)]
    return lines


def _run(graph: JobGraph, display: DisplaySettings) -> Iterator[Line]:
    occurrence = graph.occurrence
    if occurrence is None:
        yield (("it has not run yet: its tasks as they are defined", "dim"),)
        return
    when = full_stamp(occurrence.nominal_ms, display.board_zone)
    shown = display.state_word(occurrence.state)
    style = "retry" if shown == UNKNOWN else STYLES[occurrence.state]
    yield ((shown, style), (f"  run of {when}", "dim"))


def _jobs(label: str, names: tuple[str, ...], cells: int) -> Iterator[Line]:
    """The jobs whose runs this one follows, or that follow it."""
    for number, piece in enumerate(wrap(cell_safe(", ".join(names)), max(cells - 7, 10)) if names else ()):
        yield ((f"{label if number == 0 else '':7}", "label"), (piece, ""))


def _critical(graph: JobGraph, display: DisplaySettings, cells: int) -> Iterator[Line]:
    if len(graph.critical) < 2:
        return
    took = "" if graph.critical_ms is None else f"  {rounded_duration(graph.critical_ms)}"
    path = f" {display.glyphs.arrow} ".join(cell_safe(name) for name in graph.critical)
    for number, piece in enumerate(wrap(f"{path}{took}", max(cells - 9, 10))):
        yield ((f"{'longest' if number == 0 else '':9}", "label"), (piece, "key"))
