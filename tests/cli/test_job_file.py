"""What becomes of a job file between its text and the store: schedules and directories are made absolute."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chronex.cli.job_file import load_job_file, load_to_run
from chronex.cli.machine_checks import job_file_checks
from chronex.cli.options import UsageError
from tests.kit.users import needs_root

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


PATHS = """
[jobs.a]
schedule = "@daily"
run = "true"
env_file = ["app.env", "/etc/app.env"]
secrets = { A = "file:a.key", B = "file:~/b.key", C = "env:D", E = "command:cat ./e" }
"""


def test_files_of_variables_and_secrets_lie_beside_the_job_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    (tmp_path / "chronex.toml").write_text(PATHS)
    (job,) = load_job_file(tmp_path / "chronex.toml").jobs
    (task,) = job.tasks
    assert task.env_file == (f"{tmp_path}/app.env", "/etc/app.env")
    assert task.secret_sources == {
        "A": f"file:{tmp_path}/a.key",
        "B": "file:/home/ann/b.key",
        "C": "env:D",
        "E": "command:cat ./e",
    }


@needs_root
@pytest.mark.parametrize("place", ["directory", "link"])
def test_root_reads_no_job_file_that_somebody_could_put_there(tmp_path: Path, place: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    path = _job_file(theirs, 0o600)
    if place == "link":
        path = tmp_path / "link"
        path.symlink_to(_job_file(tmp_path, 0o600))
        os.lchown(path, 4242, 4242)
    else:
        os.chown(theirs, 4242, 4242)
    with pytest.raises(UsageError, match=r"is not read by root: .* belongs to user 4242.*/etc/chronex"):
        load_job_file(path)
    (check,) = job_file_checks(path)
    assert (check.topic, check.verdict) == ("job file", "wrong")


NEEDS_ROOT = {
    'user = "root"': "user = 'root' needs a scheduler that runs as root",
    'group = "root"': "group = 'root' needs a scheduler that runs as root",
    "nice = -5": "nice = -5 needs a scheduler that runs as root",
    'user = "nobody"': None,
    'umask = "077"': None,
    "limits = { tasks = 5 }": None,
}


@pytest.mark.parametrize("line", NEEDS_ROOT)
def test_what_only_root_can_run_is_refused_when_it_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    path = tmp_path / "chronex.toml"
    path.write_text(f'[jobs.a]\nschedule = "@daily"\nrun = "true"\n{line}\n')
    if os.geteuid() == 0:
        assert load_to_run(path).jobs
        os.chown(path, 65_534, 65_534)
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    monkeypatch.setattr(os, "getegid", lambda: 65_534)
    expected = NEEDS_ROOT[line]
    if expected is None:
        assert load_to_run(path).jobs
        return
    with pytest.raises(UsageError, match=f"^job 'a': {expected}, and this is user 65534; apply it as root"):
        load_to_run(path)
