"""show on a store with a past: one job in full, as text and JSON, and its versions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.cli.commands.apply import run_apply
from chronex.cli.commands.pause import run_pause
from chronex.cli.commands.show import run_graph, run_show, run_versions
from chronex.errors import JobChainError, UnknownJobError
from tests.cli.commands.test_apply import ONE_JOB, Directory
from tests.cli.past import Past
from tests.cli.small_store import Capture, said


def test_show_says_how_a_job_is_and_what_holds_for_it(past: Past, printed: Callable[..., str]) -> None:
    text = printed(run_show, "flaky", str(past.place), "text")
    for expected in (
        "Every minute",
        "zone       Europe/Berlin",
        "task       only  exit 3",
        "retry 2 times every 1h",
        "overlap    skip",
        "left       only, attempt 1",
        "2 failed",
    ):
        assert expected in text, text


def test_show_in_json_answers_every_question_of_the_api(past: Past, printed: Callable[..., str]) -> None:
    found = json.loads(printed(run_show, "yearly", str(past.place), "json"))
    assert (found["is_active"], found["is_enabled"], found["is_paused"], found["is_running"]) == (
        True,
        True,
        False,
        False,
    )
    assert found["next_run"] == {**found["next_runs"][0], "is_drawn": False}
    assert [run["nominal"][5:] for run in found["next_runs"]] == ["01-01T03:00:00Z"] * 5
    assert found["policies"]["recovery"] == {"strategy": "execute_last", "max_count": None, "max_age_ms": None}
    assert found["tasks"][0]["retry"]["max"] == 0
    assert (found["last"], found["retries"], found["running"]) == ([], [], [])


def test_a_paused_job_says_when_it_would_run(tmp_path: Path, printed: Callable[..., str]) -> None:
    place = Directory(tmp_path)
    run_apply(place.options(ONE_JOB))
    run_pause("a", None, str(tmp_path / "store"), "text")
    told = printed(run_show, "a", str(tmp_path / "store"), "text")
    assert re.search(r"next +paused; would run \w{3} \d{4}-\d\d-\d\d 03:00:00", told), told


def test_a_job_that_is_not_there_is_one_sentence_with_the_nearest_name(past: Past) -> None:
    with pytest.raises(UnknownJobError, match="no job 'helo'; did you mean hello"):
        run_show("helo", str(past.place), "text")


def test_show_versions_says_what_each_changed_and_by_whom(tmp_path: Path, capsys: Capture) -> None:
    place = Directory(tmp_path)
    store = str(place.path / "store")
    run_apply(place.options(ONE_JOB))
    run_apply(place.options(ONE_JOB.replace("0 3", "0 5")))
    capsys.readouterr()
    assert run_versions("a", store, "json") == 0
    newest, oldest = said(capsys)
    assert (newest["version"], oldest["version"], oldest["changes"]) == (2, 1, [])
    assert newest["changes"] == [{"field": "schedule", "from": "0 3 * * *", "to": "0 5 * * *"}]
    assert newest["by"].endswith("(cli)")
    run_apply(place.options("", prune=True))
    capsys.readouterr()
    assert run_versions("a", store, "text") == 0, "a job that was removed is still known by its versions"
    assert "chronex apply --rollback a VERSION" in capsys.readouterr().out
    for unknown in ("ghost", "no name at all\x1b"):
        with pytest.raises(UnknownJobError):
            run_versions(unknown, store, "text")


def test_a_task_that_is_gone_is_told_as_retired(tmp_path: Path, capsys: Capture) -> None:
    place = Directory(tmp_path)
    store = str(place.path / "store")
    two = '[jobs.a]\nschedule = "0 3 * * *"\ntasks = [{ name = "dump", run = "x" }, { name = "report", run = "y" }]\n'
    run_apply(place.options(two))
    run_apply(place.options(two.replace(', { name = "report", run = "y" }', "")))
    capsys.readouterr()
    assert run_versions("a", store, "json") == 0
    assert [row["retired_tasks"] for row in said(capsys)] == [["report"], []]
    assert run_versions("a", store, "text") == 0
    assert "task retired         report: no run from this version on has it" in capsys.readouterr().out


GRAPH = (
    ONE_JOB
    + """
[jobs.b]
after = "a"
[jobs.b.parameters]
level = { type = "integer", default = 2, description = "how deep" }
[[jobs.b.tasks]]
name = "x"
run = "true"
needs = []
[[jobs.b.tasks]]
name = "y"
run = "true"
needs = ["x"]
matrix = { region = ["eu", "us"] }
"""
)


def test_show_graph_draws_the_tasks_and_names_who_follows(tmp_path: Path, capsys: Capture) -> None:
    place = Directory(tmp_path)
    store = str(place.path / "store")
    assert run_apply(place.options(GRAPH)) == 0
    capsys.readouterr()
    assert run_graph("b", store, "text") == 0
    text = capsys.readouterr().out
    assert "b  has not run yet" in text
    assert "│ ○ y x2 │" in text or "| . y x2 |" in text
    assert "follows        a" in text
    assert run_graph("a", store, "json") == 0
    found = said(capsys)
    assert (found["children"], found["occurrence"], found["critical_path"]) == (["b"], None, [])
    assert run_graph("b", store, "json") == 0
    assert [(step["name"], step["needs"], step["combinations"]) for step in said(capsys)["steps"]] == [
        ("x", [], 1), ("y", ["x"], 2),
    ]  # fmt: skip


def test_show_says_what_a_job_follows_needs_and_takes(tmp_path: Path, capsys: Capture) -> None:
    place = Directory(tmp_path)
    run_apply(place.options(GRAPH))
    capsys.readouterr()
    run_show("b", str(place.path / "store"), "text")
    text = capsys.readouterr().out
    for expected in (
        "schedule   after a",
        "once for each time at which a completed",
        "next       when those have completed",
        "parameters level (integer, 2 by default): how deep",
        "needs x (success)",
        "tasks      by their needs",
    ):
        assert expected in text, text
    assert "done" not in text


def test_a_dry_run_says_what_a_job_will_follow_and_a_missing_parent_is_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    place = Directory(tmp_path)
    assert run_apply(place.options(GRAPH)._replace(dry_run=True)) == 0
    assert "new        b\n  follows   a\n" in capsys.readouterr().out
    with pytest.raises(JobChainError, match=r"chronex.toml:\d+:\d+: b follows c, and there is no such job"):
        run_apply(place.options(GRAPH.replace('after = "a"', 'after = "c"')))
