"""The tasks of a job as a graph: the states of a run, the jobs around it, and the path that its length depends on."""

from __future__ import annotations

from pathlib import Path

from chronex.engine.update import apply_jobs
from chronex.model.job import Task
from chronex.model.occurrence import Occurrence
from chronex.model.states import OccurrenceState
from chronex.views.job_graph import GraphStep, JobGraph
from chronex_store import LmdbStore
from chronex_tui.app import StartOptions
from chronex_tui.model.display import ASCII, UNICODE, DisplaySettings
from chronex_tui.model.graph_lines import graph_lines
from chronex_tui.model.layout import line_width, plain
from tests.tui.driving import app_on, driven
from tests.tui.examples import HOME, NOW, job

DISPLAY = DisplaySettings(NOW, UNICODE, HOME)
STEPS = (
    GraphStep("fetch", state="success", duration_ms=2000, is_critical=True),
    GraphStep("check", ("fetch",), state="success", duration_ms=1000),
    GraphStep("load", ("fetch",), state="running", is_critical=True),
    GraphStep("report", ("check", "load")),
)
RUN = Occurrence(job="etl", nominal_ms=NOW, due_ms=NOW, state=OccurrenceState.RUNNING, started_ms=NOW)


def told(graph: JobGraph, cells: int = 60, display: DisplaySettings = DISPLAY) -> str:
    lines = graph_lines(graph, display, cells)
    assert all(line_width(line) <= cells for line in lines)
    return plain(lines)


def test_tasks_stand_below_what_they_need_with_their_states() -> None:
    text = told(JobGraph("etl", RUN, STEPS))
    assert "running  run of Sun 15 Nov 14:56:04 CET" in text
    assert text.index("● fetch") < text.index("▶ load") < text.index("○ report")


def test_what_runs_is_unknown_where_no_scheduler_would_record_its_end() -> None:
    alone = DisplaySettings(NOW, UNICODE, HOME, is_watched=False)
    text = told(JobGraph("etl", RUN, STEPS), display=alone)
    assert "unknown  run of" in text
    assert "? load" in text


def test_the_jobs_around_it_and_the_critical_path_are_named() -> None:
    text = told(JobGraph("etl", RUN, STEPS, ("fetch", "load"), 62_000, ("extract",), ("mail", "publish")))
    assert "after  extract" in text
    assert "then   mail, publish" in text
    assert "longest  fetch → load  1m02s" in text


def test_a_job_that_never_ran_is_drawn_as_it_is_defined() -> None:
    assert "it has not run yet" in told(JobGraph("etl", None, STEPS[:1]))


def test_a_graph_that_is_too_wide_is_a_list_and_ascii_is_ascii() -> None:
    wide = tuple(GraphStep(f"a-task-with-a-long-name-{number}") for number in range(4))
    assert "a-task-with-a-long-name-3" in told(JobGraph("etl", RUN, wide), 40)
    assert told(JobGraph("etl", RUN, STEPS), 60, DisplaySettings(NOW, ASCII, HOME)).isascii()


async def test_the_screen_follows_the_selected_job(tmp_path: Path) -> None:
    chain = job("chain", "0 5 * * *", tasks=(Task(name="first", run="true"), Task(name="second", run="true")))
    with LmdbStore.open(tmp_path / "store") as store:
        apply_jobs(store, [chain, job("single", "0 6 * * *")], NOW)
    async with driven(app_on(tmp_path / "store", StartOptions(screen="graph", job="chain")), (80, 24)) as driver:
        frame = await driver.until(lambda frame: "second" in frame)
        assert frame.index("○ first") < frame.index("○ second")
        await driver.press("j")
        await driver.until(lambda frame: "Graph of single" in frame and "second" not in frame and "main" in frame)
