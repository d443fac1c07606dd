"""What becomes of a job file between its text and the store: schedules and directories are made absolute."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chronex.cli.job_file import load_job_file
from chronex.cli.machine_checks import job_file_checks
from chronex.cli.options import UsageError

FILE = """
[jobs.a]
schedule = "@daily"
directory = "{directory}"
[[jobs.a.tasks]]
name = "one"
run = "true"
[[jobs.a.tasks]]
name = "two"
run = "true"
directory = "/elsewhere"
"""


@pytest.mark.parametrize(
    ("directory", "expected"),
    [("data", "{file}/data"), ("../up", "{above}/up"), ("/var", "/var"), ("~/x", "{home}/x"), (".", "{file}")],
)
def test_a_relative_directory_lies_beside_the_job_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, expected: str
) -> None:
    home, beside = tmp_path / "home", tmp_path / "config"
    beside.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (beside / "chronex.toml").write_text(FILE.replace("{directory}", directory))
    monkeypatch.chdir(tmp_path)
    (job,) = load_job_file(Path("config/chronex.toml")).jobs
    assert [task.directory for task in job.tasks] == [
        expected.format(file=beside, above=tmp_path, home=home),
        "/elsewhere",
    ]


def _job_file(tmp_path: Path, mode: int) -> Path:
    path = tmp_path / "chronex.toml"
    path.write_text(FILE)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_a_file_that_only_its_owner_and_group_write_is_read(tmp_path: Path, mode: int) -> None:
    assert load_job_file(_job_file(tmp_path, mode)).jobs


@pytest.mark.parametrize("mode", [0o666, 0o602, 0o777])
def test_a_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(UsageError, match=r"written by every user.*run: chmod o-w"):
        load_job_file(_job_file(tmp_path, mode))


def test_a_file_of_another_user_is_refused_also_by_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _job_file(tmp_path, 0o600)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    found = os.stat_result((*path.stat()[:4], 4242, *path.stat()[5:]))
    monkeypatch.setattr(Path, "stat", lambda self, **_: found)
    with pytest.raises(UsageError, match=rf"belongs to user 4242.*chown {owner + 1} "):
        load_job_file(path)
    (check,) = job_file_checks(path)
    assert (check.topic, check.verdict) == ("job file", "wrong")
