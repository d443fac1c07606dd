"""`chronex init` and where files are looked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronex.cli.commands.init import run_init
from chronex.cli.options import UsageError, job_file_path, store_path
from chronex.jobfile import STARTER, read_job_file

pytestmark = pytest.mark.binary


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777])
def any_umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.usefixtures("any_umask")
def test_the_file_is_valid_and_closed_to_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "deep" / "chronex.toml"
    assert run_init(path, force=False) == 0
    assert path.read_text() == STARTER
    assert read_job_file(path.read_bytes(), str(path), "UTC").jobs
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)
    assert os.listdir(path.parent) == ["chronex.toml"]
    assert capsys.readouterr().out == f"wrote {path} with one job; start it with: chronex run --config {path}\n"


def test_what_hangs_is_stopped_in_the_jobs_of_the_first_file() -> None:
    (job,) = read_job_file(STARTER.encode(), "chronex.toml", "UTC").jobs
    assert [job.timeout_for(task) for task in job.tasks] == [3_600_000]


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "chronex.toml"
    path.write_text("mine")
    path.chmod(0o644)
    with pytest.raises(UsageError, match="is there already; --force replaces it"):
        run_init(path, force=False)
    assert path.read_text() == "mine"
    assert run_init(path, force=True) == 0
    assert path.read_text() == STARTER
    assert mode(path) == 0o600


@pytest.mark.parametrize("force", [False, True])
def test_a_link_is_never_written_through(tmp_path: Path, force: bool) -> None:
    target, path = tmp_path / "target", tmp_path / "chronex.toml"
    target.write_text("mine")
    path.symlink_to(target)
    if force:
        run_init(path, force=True)
        assert not path.is_symlink()
    else:
        with pytest.raises(UsageError, match="is there already"):
            run_init(path, force=False)
    assert target.read_text() == "mine"


def test_a_dangling_link_counts_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "chronex.toml"
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is there already"):
        run_init(path, force=False)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("file/chronex.toml", "cannot write .*file/chronex.toml: Not a directory; choose another place"),
        ("x" * 300, "cannot write .*: File name too long; choose"),
        ("directory", "is a directory; name the file itself, such as .*directory/chronex.toml"),
        ("nul\0", "cannot write .*: .*embedded null (byte|character).*; choose"),
    ],
)
def test_errors_are_one_sentence_and_a_hint(tmp_path: Path, place: str, sentence: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "directory").mkdir()
    with pytest.raises(UsageError, match=sentence) as caught:
        run_init(tmp_path / place, force=True)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["directory", "file"]


def test_where_the_job_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert job_file_path("a.toml", {"CHRONEX_CONFIG": "b.toml"}) == Path("a.toml")
    assert job_file_path(None, {"CHRONEX_CONFIG": "b.toml"}) == Path("b.toml")
    assert job_file_path(None, {"CHRONEX_CONFIG": ""}).name == "chronex.toml"
    assert job_file_path(None, {}).is_absolute()
    (tmp_path / "chronex.toml").touch()
    assert job_file_path(None, {}) == Path("chronex.toml")


def test_where_the_store_is() -> None:
    assert store_path("a", {"CHRONEX_STORE": "b"}) == Path("a")
    assert store_path(None, {"CHRONEX_STORE": "b"}) == Path("b")
    assert store_path(None, {}).parts[-2:] == ("chronex", "store")
    assert store_path(None, {}).is_absolute()
