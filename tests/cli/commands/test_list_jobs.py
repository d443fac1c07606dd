"""list on a store with a past: the table, its JSON, and what it refuses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.cli.commands.history import history
from chronex.cli.commands.list_jobs import run_list
from chronex.cli.commands.show import run_show
from chronex.cli.commands.status import run_status
from chronex.cli.commands.why import run_why
from chronex.cli.options import UsageError
from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.occurrence import ProcessIdentity
from chronex.run import boot_id, identity_of
from chronex_store import LmdbStore
from tests.cli.past import Past


def test_a_list_is_a_table_of_eighty_columns(past: Past, printed: Callable[..., str]) -> None:
    lines = printed(run_list, str(past.place), "text", "").splitlines()
    assert lines[0].split() == ["STATE", "JOB", "NEXT", "LAST", "SCHEDULE"]
    assert all(len(line) <= 80 for line in lines)
    starts = [line.index(text) for line, text in zip(lines, ("SCHEDULE", "* * *", "* * *", "0 3 1"), strict=False)]
    assert len(set(starts)) == 1, "the columns stand under each other"
    assert lines[-1].startswith("3 jobs; times in ")


def test_without_a_scheduler_a_run_with_jitter_only_would_start_from_its_time_on(
    past: Past, printed: Callable[..., str]
) -> None:
    (line,) = (line for line in printed(run_list, str(past.place), "text", "").splitlines() if " yearly " in line)
    assert " would start from 1 Jan " in line


@pytest.mark.parametrize(("room", "heads"), [(79, 5), (60, 4), (50, 3), (40, 3)])
def test_a_narrow_terminal_has_fewer_columns_and_no_wrapped_line(
    past: Past, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch, room: int, heads: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    lines = printed(run_list, str(past.place), "text", "").splitlines()
    assert all(len(line) <= room for line in lines)
    assert len(lines[0].split()) <= heads
    assert lines[0].split()[:2] == ["STATE", "JOB"]


def test_a_terminal_of_eighty_columns_wraps_no_line_either(
    tmp_path: Path, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a daemon the times are longer by some words; a pipe still has every column."""
    with LmdbStore.open(tmp_path / "store") as store:
        task = Task(name="main", run=("true",))
        job = Job(id="a-backup-of-the-whole-base", schedule="0 3 1 1 * {jitter:30m}", tasks=(task,))
        apply_jobs(store, [job, replace(job, id="hello")], wall_ms())
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "SCHEDULE" in printed(run_list, str(tmp_path / "store"), "text", "").splitlines()[0]
    monkeypatch.setenv("COLUMNS", "80")
    lines = printed(run_list, str(tmp_path / "store"), "text", "").splitlines()
    assert all(len(line) <= 80 for line in lines), lines
    assert lines[0].split() == ["STATE", "JOB", "NEXT", "LAST"]


def test_a_list_in_json_has_one_object_for_each_job(past: Past, printed: Callable[..., str]) -> None:
    rows = {row["id"]: row for row in json.loads(printed(run_list, str(past.place), "json", ""))}
    assert {name: row["state"] for name, row in rows.items()} == {
        "flaky": "running", "hello": "running", "yearly": "waiting",
    }  # fmt: skip
    hello = rows["hello"]
    assert (hello["is_active"], hello["is_enabled"], hello["is_paused"], hello["is_running"]) == (
        True,
        True,
        False,
        True,
    )
    assert (hello["completed"], hello["failed"], hello["tags"]) == (1, 1, ["demo"])
    assert (hello["last"]["state"], hello["last"]["reason"], hello["last"]["duration_ms"]) == (
        "failed", "main: exit code 3", 1_500,
    )  # fmt: skip
    assert rows["yearly"]["last"] is None
    assert rows["yearly"]["next"].endswith("-01-01T03:00:00Z")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["flaky", "hello", "yearly"]),
        ("hlo", ["hello"]),
        ("demo", ["hello"]),
        ("tag:de*", ["hello"]),
        ("state:running -tag:demo", ["flaky"]),
        ("tz:europe/*", ["flaky"]),
        ("cmd:exit", ["flaky"]),
        ("last>1d", ["yearly"]),
        ("next<1h", ["flaky", "hello"]),
        ("state:active state:waiting", ["yearly"]),
        ("nothing-like-it", []),
    ],
)
def test_a_filter_takes(past: Past, printed: Callable[..., str], text: str, names: list[str]) -> None:
    assert printed(run_list, str(past.place), "names", text).split() == names


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("state:faild", "no state 'faild'; did you mean failed?"),
        ("stat:failed", "no filter stat:; did you mean state:?"),
        ("next<soon", "next< is followed by a duration such as 90s, 10m or 1d"),
        ("tag:", "tag: is followed by what to look for"),
    ],
)
def test_a_filter_that_is_not_understood_says_what_is(past: Past, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as told:
        run_list(str(past.place), "text", text)
    assert sentence in str(told.value)


def test_an_empty_store_says_how_to_begin(tmp_path: Path, printed: Callable[..., str]) -> None:
    LmdbStore.open(tmp_path / "store").close()
    assert "chronex apply" in printed(run_list, str(tmp_path / "store"), "text", "")


# -- what a scheduler that was killed left running ----------------------------------------------------------------

UNWATCHED: dict[str, Callable[[str], int | None]] = {
    "status": lambda store: run_status(store, "text", watch=False, check=False),
    "list": lambda store: run_list(store, "text", ""),
    "show": lambda store: run_show("hello", store, "text"),
    "history": lambda store: history("hello", 1, store=store),
    "why": lambda store: run_why("hello", None, store, "text"),
}
STILL_RUNS = "its command still runs"
ENDED = "its command has ended while no scheduler ran; how is unknown until one runs"
# What each of them says of it, where its command lives and where it does not.
SAID = {
    "status": (STILL_RUNS, ENDED),
    "list": ("unwatched, still runs", "outcome unknown"),
    "show": (STILL_RUNS, ENDED),
    "history": (STILL_RUNS, ENDED),
    "why": (STILL_RUNS, ENDED),
}


@pytest.mark.parametrize("command", UNWATCHED)
@pytest.mark.parametrize("lives", [True, False])
def test_what_a_killed_scheduler_left_is_not_said_to_run_as_if_it_were_watched(
    past: Past, capsys: pytest.CaptureFixture[str], command: str, lives: bool
) -> None:
    mine = identity_of(os.getpid())
    gone = ProcessIdentity(pid=os.getpid(), boot_id=boot_id(), start_time=1)
    with LmdbStore.open(past.place) as store:
        for launch in past.left:
            store.update(past.engine.started(launch.attempt, mine if lives else gone, "", past.now))
    assert UNWATCHED[command](str(past.place)) == 0
    found = capsys.readouterr()
    told = found.out + found.err
    assert SAID[command][not lives] in told
    assert "no scheduler runs" in told
    for untrue in ("all is well", "running for", "it is running", "will start", "a task runs", " in 1"):
        assert untrue not in told
    assert "would" in told or "was due" in told or command == "history"


def test_a_store_without_jobs_is_not_called_well(tmp_path: Path, printed: Callable[..., str]) -> None:
    with LmdbStore.open(tmp_path / "store"):
        pass
    told = printed(run_status, str(tmp_path / "store"), "text", watch=False, check=False)
    assert "all is well" not in told
    assert "no jobs yet" in told
