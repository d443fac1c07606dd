"""logs --grep over all runs, by job, state and time; and logs -f over all jobs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.cli.commands import logs
from chronex.cli.options import UsageError
from chronex.cli.search_logs import SearchOptions, run_search
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import Attempt
from chronex.model.states import AttemptState
from chronex.run.attempt_log import LogDirectory
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex.testing import HOUR
from chronex_store.lmdb_store import LmdbStore
from tests.kit.machine import START

Capture = pytest.CaptureFixture[str]


def _put(attempt: Attempt, tx: Transaction) -> None:
    Records(tx, START).put(attempt)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three jobs, ten hours, an attempt each: the odd ones failed."""
    place = tmp_path_factory.mktemp("search") / "store"
    directory = LogDirectory(place / "logs")
    with LmdbStore.open(place) as opened:
        names = ("backup", "backup-db", "report")
        jobs = [Job(id=name, schedule="0 * * * *", tasks=(Task(name="main", run="x"),)) for name in names]
        apply_jobs(opened, jobs, START)
        kept: list[Attempt] = []
        for job in names:
            for hour in range(10):
                at = START + hour * HOUR
                state = AttemptState.FAILED if hour % 2 else AttemptState.SUCCESS
                attempt = Attempt(
                    job=job, nominal_ms=at, task="main", number=1, state=state, started_ms=at, created_ms=at
                )
                name, descriptor = directory.create(attempt.id)
                with open(descriptor, "wb") as file:
                    file.write(b"begin\n%s hour %d\n\x1b[31mdisk full\nend\n" % (job.encode(), hour))
                kept.append(replace(attempt, log_path=name))
        for one in kept:
            opened.update(partial(_put, one))
    directory.close()
    return str(place)


def search(store: str, capsys: Capture, *, form: str = "json", code: int = 0, **options: Any) -> str:
    assert run_search(SearchOptions(**options), store, form) == code
    return capsys.readouterr().out


def hits(store: str, capsys: Capture, **options: Any) -> list[tuple[str, int]]:
    rows = json.loads(search(store, capsys, **options))
    return [(row["job"], (row["nominal_ms"] - START) // HOUR) for row in rows]


def test_all_runs_of_all_jobs_are_searched_in_order(store: str, capsys: Capture) -> None:
    assert hits(store, capsys, text="hour 3") == [("backup", 3), ("backup-db", 3), ("report", 3)]
    assert len(hits(store, capsys, text="disk full")) == 30


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"jobs": "report"}, [("report", 3)]),
        ({"jobs": "backup*"}, [("backup", 3), ("backup-db", 3)]),
        ({"states": ("failed",)}, [("backup", 3), ("backup-db", 3), ("report", 3)]),
        ({"since_ms": START + 3 * HOUR, "jobs": "report"}, [("report", 3)]),
    ],
)
def test_filters_choose_attempts(
    store: str, capsys: Capture, options: dict[str, Any], expected: list[tuple[str, int]]
) -> None:
    assert hits(store, capsys, text="hour 3", **options) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"text": "nowhere"},
        {"text": "hour 3", "states": ("success",)},
        {"text": "hour 3", "since_ms": START + 4 * HOUR},
        {"text": "hour 3", "until_ms": START + 3 * HOUR},
    ],
)
def test_nothing_found_is_exit_1_and_an_empty_list(store: str, capsys: Capture, options: dict[str, Any]) -> None:
    assert search(store, capsys, code=1, **options) == "[]\n"


def test_text_names_the_attempt_and_numbers_the_lines_and_obeys_no_escape(store: str, capsys: Capture) -> None:
    text = search(store, capsys, form="text", text="disk", jobs="report", since_ms=START + 9 * HOUR, context=1)
    heading, *lines = text.splitlines()
    assert heading.startswith("== report, ")
    assert "main, attempt 1, failed (attempt_" in heading
    assert lines == ["2- report hour 9", "3: \ufffd[31mdisk full", "4- end"]


def test_mistakes_are_told_and_searching_writes_nothing(store: str, capsys: Capture) -> None:
    before = {path: path.stat().st_mtime_ns for path in Path(store).rglob("*.mdb") if path.name == "data.mdb"}
    with pytest.raises(UsageError, match="not a regular expression"):
        run_search(SearchOptions("(", is_regex=True), store, "text")
    with pytest.raises(UsageError, match="looks for nothing"):
        run_search(SearchOptions(""), store, "text")
    with pytest.raises(UsageError, match="which job"):
        logs.follow_every(store, "text", follow=False, raw=False)
    with pytest.raises(UsageError):
        logs.search(logs.Searched("x", False, False, None, None, None, ("broken",), 0), store, "text")
    search(store, capsys, text="hour")
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_removed_log_is_no_error(store: str, capsys: Capture) -> None:
    victim = next(path for path in (Path(store) / "logs").iterdir())
    victim.rename(victim.with_suffix(".gone"))
    try:
        assert len(hits(store, capsys, text="disk full")) == 29
    finally:
        victim.with_suffix(".gone").rename(victim)
