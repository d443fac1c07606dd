"""`apply` writes what a file says, of groups too; `status` names files that say something else than was applied."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from chronex.cli.commands import apply, status
from chronex.cli.commands.apply import ApplyOptions
from chronex.clock import wall_ms

Capture = pytest.CaptureFixture[str]
APPLIED = """
[scheduler]
timezone = "UTC"
blackout = ["freeze"]
[groups.database]
limit = 2
[groups.api]
rate = "30/m"
[calendars.closed]
dates = ["2090-12-24..2090-12-31"]
[calendars.freeze]
dates = ["2091-01-01"]
[jobs.backup]
schedule = "0 3 * * *"
groups = ["database"]
except = ["closed"]
run = ["true"]
[jobs.sync]
schedule = "0 4 * * *"
run = ["true"]
"""


class Place:
    def __init__(self, directory: Path, capture: Capture) -> None:
        self.store, self.file, self._capture = str(directory / "store"), directory / "chronex.toml", capture

    def apply(self, text: str) -> None:
        self.file.write_text(text)
        options = ApplyOptions(str(self.file), store=self.store)
        assert apply.run_apply(options) == 0
        self._capture.readouterr()

    def unapplied(self, text: str) -> list[str]:
        """What `status` says after the file was saved, a minute later."""
        self.file.write_text(text)
        later = wall_ms() / 1000 + 60
        os.utime(self.file, (later, later))
        assert status.run_status(self.store, "json", watch=False, check=False) == 0
        troubles = json.loads(self._capture.readouterr().out)["troubles"]
        return [one["words"] for one in troubles if one["code"] == "unapplied_changes"]


CASES = [
    ("nothing, saved again", "", "", ""),
    ("a schedule", "0 3 * * *", "0 5 * * *", "backup"),
    ("a limit", "limit = 2", "limit = 3", "group database"),
    ("a rate", '"30/m"', '"31/m"', "group api"),
    ("a new group", "[groups.api]", "[groups.more]\nlimit = 1\n[groups.api]", "group more"),
    ("a group that is gone", '[groups.api]\nrate = "30/m"\n', "", "group api"),
    ("a calendar", "2090-12-24", "2090-12-23", "backup"),
    ("a blackout", "2091-01-01", "2091-01-02", "backup, sync"),
    ("a job that is gone", '[jobs.sync]\nschedule = "0 4 * * *"\nrun = ["true"]\n', "", "sync"),
]


@pytest.mark.parametrize(("case", "old", "new", "names"), CASES, ids=[case[0] for case in CASES])
def test_a_saved_file_that_differs_is_told_with_what_differs(
    case: str, old: str, new: str, names: str, tmp_path: Path, capsys: Capture
) -> None:
    place = Place(tmp_path, capsys)
    place.apply(APPLIED)
    expected = [f"{place.file} has changes that are not applied: {names}"] if names else []
    assert place.unapplied(APPLIED.replace(old, new) if old else APPLIED) == expected


def test_a_file_with_a_mistake_is_told_with_its_place(tmp_path: Path, capsys: Capture) -> None:
    place = Place(tmp_path, capsys)
    place.apply(APPLIED)
    (told,) = place.unapplied(APPLIED.replace("0 3 * * *", "61 * * * *"))
    assert told.startswith(f"{place.file} has a mistake and is not applied: {place.file}:14:13: ")


def test_a_change_of_groups_that_was_applied_is_told_no_longer(tmp_path: Path, capsys: Capture) -> None:
    """No job has a new version by it, so the file stays newer than they are."""
    place = Place(tmp_path, capsys)
    place.apply(APPLIED)
    changed = APPLIED.replace("limit = 2", "limit = 3")
    place.apply(changed)
    assert place.unapplied(changed) == []


def test_apply_writes_the_groups_of_its_file_and_says_so(tmp_path: Path, capsys: Capture) -> None:
    place = Place(tmp_path, capsys)
    place.file.write_text(APPLIED)
    done = ApplyOptions(str(place.file), store=place.store)
    told = ["new        group api: 30 starts in 1m", "new        group database: 2 at once"]
    for options in (done._replace(dry_run=True), done):
        assert apply.run_apply(options) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line.startswith(("new        group", "changed", "removed"))] == told
    place.file.write_text(APPLIED.replace("limit = 2", "limit = 3").replace('[groups.api]\nrate = "30/m"', ""))
    assert apply.run_apply(done._replace(form="json")) == 0
    assert json.loads(capsys.readouterr().out)["groups"] == [
        {"group": "database", "from": {"limit": 2, "rate": None}, "to": {"limit": 3, "rate": None}},
        {"group": "api", "from": {"limit": None, "rate": {"count": 30, "per_ms": 60_000}}, "to": None},
    ]
    assert apply.run_apply(done) == 0
    assert "group" not in capsys.readouterr().out
