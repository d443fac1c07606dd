"""One rule for times: people read the job's zone with its offset, programs RFC 3339 in UTC and epoch milliseconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from chronex.cli import output
from chronex.cli.commands import dlq, history, list_jobs, pause, report, show, status, why
from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.reasons import free_text
from chronex.timing.zones import load_zone
from chronex_store import LmdbStore

KATHMANDU = load_zone("Asia/Kathmandu")
NOON = 1_798_804_800_000  # 2027-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (NOON, "2027-01-01 17:45+05:45"),
        (NOON + 7_000, "2027-01-01 17:45:07+05:45"),
        (NOON + 7_250, "2027-01-01 17:45:07+05:45"),
        (NOON + 250, "2027-01-01 17:45+05:45"),
    ],
)
def test_people_read_the_wall_clock_of_the_job_and_its_offset(ms: int, text: str) -> None:
    assert output.time_text(ms, KATHMANDU) == text


def test_programs_get_both_forms_and_both_are_missing_together() -> None:
    assert output.timed("due", NOON + 250) == {"due": "2027-01-01T12:00:00.250Z", "due_ms": NOON + 250}
    assert output.timed("due", None) == {"due": None, "due_ms": None}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job of another zone that failed for good a minute ago."""
    place = tmp_path_factory.mktemp("times") / "store"
    now = wall_ms() // 60_000 * 60_000 - 60_000
    with LmdbStore.open(place) as opened:
        job = Job(id="far", schedule="TZ=Asia/Kathmandu * * * * *", tasks=(Task(name="main", run=("false",)),))
        apply_jobs(opened, [job], now - 1)
        engine = Engine(opened, "node", 5)
        (launch,) = engine.tick(now, now).orders
        assert isinstance(launch, Launch)
        opened.update(engine.started(launch.attempt, None, "", now + 1))
        opened.update(
            engine.ended(launch.attempt, AttemptEnd("failed", free_text("exit code 1"), exit_code=1), now + 5)
        )
    return str(place)


COMMANDS: dict[str, Callable[[str, str], int]] = {
    "history": lambda store, form: history.history("far", store=store, form=form),
    "report": lambda store, form: report.run_report("far", store, form),
    "show": lambda store, form: show.run_show("far", store, form),
    "show --versions": lambda store, form: show.run_versions("far", store, form),
    "why": lambda store, form: why.run_why("far", None, store, form),
    "dlq list": lambda store, form: dlq.run_list(None, store, form),
    "pause": lambda store, form: pause.run_pause("far", "2h", store, form),
    "list": lambda store, form: list_jobs.run_list(store, form, ""),
    "status": lambda store, form: status.run_status(store, form, watch=False, check=False),
}
OVERVIEWS = ("list", "status")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in OVERVIEWS])
def test_each_command_tells_the_zone_of_the_job(command: str, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMANDS[command](store, "text") == 0
    text = capsys.readouterr().out
    assert "+05:45" in text
    assert "Z" not in text.replace("TZ=", "")


@pytest.mark.parametrize("command", OVERVIEWS)
def test_an_overview_names_the_zone_of_its_short_times(
    command: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMANDS[command](store, "text") == 0
    assert f"in {output.shown_zone().name}" in capsys.readouterr().out


def pairs(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every text of a time in it, with what stands under its name and `_ms`."""
    if isinstance(value, list):
        for one in value:
            yield from pairs(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if isinstance(one, str) and one[4:5] == "-" and one.endswith("Z"):
                yield name, one, value.get(f"{name}_ms")
            yield from pairs(one)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_time_of_the_json_has_a_twin_in_milliseconds(
    command: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMANDS[command](store, "json") == 0
    found = list(pairs(json.loads(capsys.readouterr().out)))
    assert found
    for name, text, ms in found:
        assert ms == round(datetime.fromisoformat(text).timestamp() * 1000), name


@pytest.mark.parametrize(("encoding", "has_unicode"), [("utf-8", True), ("ascii", False)])
def test_a_stream_without_an_encoding_is_taken_for_the_standard_output_behind_it(
    monkeypatch: pytest.MonkeyPatch, encoding: str, has_unicode: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace())
    monkeypatch.setattr(sys, "__stdout__", SimpleNamespace(encoding=encoding))
    monkeypatch.setenv("TERM", "xterm")
    assert output.wants_unicode() is has_unicode
