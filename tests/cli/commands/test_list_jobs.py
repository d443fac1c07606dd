"""list on a store with a past: the table, its JSON, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.cli.commands.list_jobs import run_list
from chronex.cli.options import UsageError
from chronex_store import LmdbStore
from tests.cli.past import Past


def test_a_list_is_a_table_of_eighty_columns(past: Past, printed: Callable[..., str]) -> None:
    lines = printed(run_list, str(past.place), "text", "").splitlines()
    assert lines[0].split() == ["STATE", "JOB", "NEXT", "LAST", "SCHEDULE"]
    assert all(len(line) <= 80 for line in lines)
    starts = [line.index(text) for line, text in zip(lines, ("SCHEDULE", "* * *", "* * *", "0 3 1"), strict=False)]
    assert len(set(starts)) == 1, "the columns stand under each other"
    assert lines[-1].startswith("3 jobs; times in ")


@pytest.mark.parametrize(("room", "heads"), [(79, 5), (60, 4), (50, 3), (40, 3)])
def test_a_narrow_terminal_has_fewer_columns_and_no_wrapped_line(
    past: Past, printed: Callable[..., str], monkeypatch: pytest.MonkeyPatch, room: int, heads: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    lines = printed(run_list, str(past.place), "text", "").splitlines()
    assert all(len(line) <= room for line in lines)
    assert len(lines[0].split()) <= heads
    assert lines[0].split()[:2] == ["STATE", "JOB"]


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
