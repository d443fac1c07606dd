"""What runs took, in words; and what history and show tell of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.cli.commands.history import run_history
from chronex.cli.commands.show import run_show
from chronex.cli.process_output import usage_text, usual_lines
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.engine.usual import RunUsage, Usual, UsualBand
from chronex.model.job import Job, Task
from chronex.model.occurrence import Usage
from chronex.model.policies import ResourceLimits
from chronex.model.states import AttemptState
from chronex.text.sizes import rough_size, size_text
from chronex.views.past_runs import HistoryQuery
from chronex_store import LmdbStore

MINUTE = 60_000
BEGIN = 1_772_334_000_000


@pytest.mark.parametrize(
    ("count", "exact", "rough"),
    [
        (0, "0B", "0B"),
        (999, "999B", "999B"),
        (2_000_000_000, "2GB", "1.9GiB"),
        (2**29, "512MiB", "512MiB"),
        (1_500, "1.5KiB", "1.5KiB"),
        (123_456_789, "118MiB", "118MiB"),
        (64 * 2**20, "64MiB", "64MiB"),
    ],
)
def test_sizes(count: int, exact: str, rough: str) -> None:
    assert (size_text(count), rough_size(count)) == (exact, rough)


def test_what_is_nothing_or_not_known_is_left_out() -> None:
    assert (
        usage_text(RunUsage(1_250, 120_832, 4 * 2**20, 512)) == "cpu 1.2s, memory 118MiB, read 4.0MiB, written 512B"
    )
    assert usage_text(RunUsage(0, None, 0, 0)) == "cpu 0ms"
    usual = Usual(7, UsualBand(2_000, 3_400), UsualBand(0, 0), None, UsualBand(0, 1024))
    assert list(usual_lines(usual)) == [
        "2.0s (95% within 3.4s), read 0B (95% within 1.0KiB)",
        "of the last 7 that completed",
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Six runs of a job with limits."""
    job = Job(
        id="a",
        schedule="* * * * *",
        expect_usual=True,
        tasks=(
            Task(
                name="main",
                run=("true",),
                user="www-data",
                umask="027",
                limits=ResourceLimits(memory=2**29, cpu=150),
                secrets=("A", "B"),
                secret_sources={"A": "file:/a"},
                env_file=("/e",),
            ),
        ),
    )
    place = tmp_path / "store"
    with LmdbStore.open(place) as opened:
        apply_jobs(opened, [job], BEGIN)
        engine = Engine(opened, "node-1", 50)
        for number in range(1, 7):
            now = BEGIN + number * MINUTE
            (launch,) = [one for one in engine.tick(now, now).orders if isinstance(one, Launch)]
            opened.update(engine.started(launch.attempt, None, "", now, 1000))
            usage = Usage(number * 100, number * 10_240, 2 * number, 0, "process")
            end = AttemptEnd(AttemptState.SUCCESS, exit_code=0, usage=usage)
            opened.update(engine.ended(launch.attempt, end, now + number * 1_000))
    return place


def test_history_tells_what_each_run_took(store: Path, printed: Callable[..., str]) -> None:
    query = HistoryQuery("a", 2)
    newest, older = json.loads(printed(run_history, query, str(store), "json"))
    assert newest["usage"] == {
        "cpu_ms": 600, "peak_kib": 61_440, "read_bytes": 6_144, "written_bytes": 0, "limits_by": "process",
    }  # fmt: skip
    assert older["usage"]["cpu_ms"] == 500
    assert "cpu" not in printed(run_history, query, str(store), "text")
    first, _ = printed(run_history, query, str(store), "text", wide=True).splitlines()
    assert first.endswith("node-1 completed       6.0s [cpu 0.6s, memory 60MiB, read 6.0KiB]")


def test_show_tells_what_is_usual_and_what_held_the_limits(store: Path, printed: Callable[..., str]) -> None:
    text = printed(run_show, "a", str(store), "text")
    for expected in (
        "took       cpu 0.6s, memory 60MiB, read 6.0KiB\n",
        "usual      3.0s (95% within 6.0s), cpu 0.3s (95% within 0.6s), memory 30MiB (95% within 60MiB), "
        "read 3.0KiB (95% within 6.0KiB)\n           of the last 6 that completed\n",
        "           as www-data, umask 027\n",
        "           at most 512MiB of memory, 150% of a processor\n",
        "           variables from /e\n",
        "           secret A from file:/a\n           secret B from the daemon's environment\n",
        "           limits of the last run: held process by process, because no control group is delegated",
        "           a process is refused memory beyond 1GiB; it had 60MiB at its peak\n",
        "expect     no longer than usual\n",
    ):
        assert expected in text, (expected, text)
    found = json.loads(printed(run_show, "a", str(store), "json"))
    assert found["usual"]["duration_ms"] == {"median": 3_000, "p95": 6_000}
    assert (found["usual"]["runs"], found["usual"]["written_bytes"]) == (6, {"median": 0, "p95": 0})
    assert found["last_usage"]["limits_by"] == "process"
    assert found["policies"]["expect"] == "usual"
    (task,) = found["tasks"]
    assert (task["user"], task["umask"], task["nice"], task["env_file"]) == ("www-data", "027", None, ["/e"])
    assert task["limits"] == {"memory": 2**29, "cpu": 150, "tasks": None, "open_files": None}
    assert (task["secrets"], task["secret_sources"]) == (["A", "B"], {"A": "file:/a"})
