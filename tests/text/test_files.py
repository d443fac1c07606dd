"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chronex.text.files import make_private_directories, replace_file, write_private_file


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.parametrize("replace", [False, True])
def test_a_new_file_is_closed_to_others(tmp_path: Path, replace: bool) -> None:
    write_private_file(tmp_path / "jobs.toml", b"new", replace=replace)
    assert (tmp_path / "jobs.toml").read_bytes() == b"new"
    assert mode_of(tmp_path / "jobs.toml") == 0o600
    assert os.listdir(tmp_path) == ["jobs.toml"]


def test_a_file_that_is_there_stays_unless_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "jobs.toml"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        write_private_file(path, b"new", replace=False)
    assert path.read_bytes() == b"old"
    write_private_file(path, b"new", replace=True)
    assert path.read_bytes() == b"new"


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_bytes(b"not ours")
    link.symlink_to(other)
    with pytest.raises(FileExistsError):
        write_private_file(link, b"new", replace=False)
    write_private_file(link, b"new", replace=True)
    assert not link.is_symlink()
    assert (link.read_bytes(), other.read_bytes()) == (b"new", b"not ours")


def test_what_is_no_file_is_never_replaced(tmp_path: Path) -> None:
    """A pipe stands for every device: as root, /dev/null would have become a plain file for the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="it is not a regular file"):
        write_private_file(pipe, b"new", replace=True)
    with pytest.raises(OSError, match="it is not a regular file"):
        replace_file(pipe, b"new")
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_replaced_file_keeps_its_mode_and_owner(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_bytes(b"old")
    path.chmod(0o640)
    owner = (path.stat().st_uid, path.stat().st_gid)
    replace_file(path, b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o640)
    assert (path.stat().st_uid, path.stat().st_gid) == owner


def test_what_is_not_there_cannot_be_replaced(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "crontab", b"new")
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "crontab"
    path.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    with pytest.raises(OSError, match="No space"):
        write_private_file(path, b"new", replace=True)
    with pytest.raises(OSError, match="No space"):
        write_private_file(tmp_path / "another", b"new", replace=False)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["crontab"]


def test_a_long_name_leaves_space_for_the_name_of_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_private_file(path, b"new", replace=True)
    assert path.read_bytes() == b"new"


def test_missing_directories_are_made_closed_to_others(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        make_private_directories(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert [mode_of(path) for path in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")] == [0o755, 0o700, 0o700]
    make_private_directories(tmp_path / "a" / "b")
