"""`chronex report` on a store with a past."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from chronex.cli.commands.report import report
from chronex.cli.commands.show import run_graph
from chronex.cli.options import UsageError
from chronex.errors import UnknownIdError, UnknownJobError
from tests.cli.past import Past


def told(past: Past, printed: Callable[..., str], what: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(printed(report, what, str(past.place), "json"))
    return found


def test_a_job_stands_for_its_newest_run_and_an_id_for_itself(past: Past, printed: Callable[..., str]) -> None:
    newest = told(past, printed, "hello")
    assert (newest["status"], newest["job"]) == ("running", "hello")
    identity = str(newest["occurrence"])
    assert told(past, printed, identity[:12]) == newest
    assert told(past, printed, f"hello@{newest['nominal']}") == newest


def test_the_text_has_the_status_of_each_task_and_the_sum(past: Past, printed: Callable[..., str]) -> None:
    text = printed(report, "flaky", str(past.place), "text")
    assert "task       only  " in text
    assert "1 attempt, on failure " in text
    assert "dlq" not in text
    assert text.splitlines()[-1].startswith("in all     1 task")


def test_what_a_scheduler_that_is_gone_has_left_is_not_said_to_run(past: Past, printed: Callable[..., str]) -> None:
    lines = printed(report, "hello", str(past.place), "text").splitlines()
    assert lines[1] == "status     unknown"
    (task,) = (line for line in lines if line.startswith("task "))
    assert (
        task
        == "task       main  unknown: its command has ended while no scheduler ran; how is unknown until one runs"
    )


def test_nor_is_it_in_the_graph_of_its_tasks(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_graph("hello", str(past.place), "text") == 0
    text = capsys.readouterr().out
    assert text.startswith("hello  unknown, its run of ")
    assert "? main" in text


@pytest.mark.parametrize(
    ("what", "error", "sentence"),
    [
        ("helo", UnknownJobError, "did you mean hello?"),
        ("yearly", UsageError, "yearly has not run yet"),
        ("occ_zzzzzzzz", UnknownIdError, "occ_zzzzzzzz"),
        ("a name with blanks", UnknownJobError, "no job"),
    ],
)
def test_what_names_nothing(past: Past, what: str, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence.replace("?", r"\?")):
        report(what, str(past.place), "text")
