"""What becomes of a job file between its text and the store: schedules and directories are made absolute."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.cli.job_file import load_job_file

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
