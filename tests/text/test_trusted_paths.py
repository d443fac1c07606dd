"""Which files root may act upon: every owner, mode, link and directory on the way counts."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.text.trusted_paths import UntrustedPathError, read_trusted, trust_problem
from tests.kit.users import needs_root

OTHER = 65_534
Arrange = Callable[[Path], Path]


def plain(base: Path) -> Path:
    file = base / "file"
    file.write_text("A=1\n")
    return file


def with_mode(mode: int) -> Arrange:
    def arrange(base: Path) -> Path:
        file = plain(base)
        file.chmod(mode)
        return file

    return arrange


def of_another(base: Path) -> Path:
    file = plain(base)
    os.chown(file, OTHER, 0)
    return file


def inside(mode: int, owner: int = 0, group: int = 0) -> Arrange:
    def arrange(base: Path) -> Path:
        directory = base / "directory"
        directory.mkdir()
        file = plain(directory)
        os.chown(directory, owner, group)
        directory.chmod(mode)
        return file

    return arrange


def a_link(base: Path) -> Path:
    (base / "link").symlink_to(plain(base))
    return base / "link"


def a_planted_link(base: Path) -> Path:
    link = a_link(base)
    os.lchown(link, OTHER, OTHER)
    return link


def a_link_into_their_directory(base: Path) -> Path:
    (base / "link").symlink_to(inside(0o755, OTHER)(base))
    return base / "link"


def a_directory_link(base: Path) -> Path:
    file = inside(0o777)(base)
    (base / "other").symlink_to("directory")
    return base / "other" / file.name


def theirs_in_a_shared_directory(base: Path) -> Path:
    file = inside(0o1777)(base)
    os.chown(file, OTHER, OTHER)
    return file


CASES: dict[str, tuple[Arrange, str | None]] = {
    "a file of root": (plain, None),
    "that all may read": (with_mode(0o644), None),
    "that the group of root may write": (with_mode(0o664), None),
    "that others may write": (with_mode(0o646), "{base}/file can be written by every user"),
    "of another user": (of_another, "{base}/file belongs to user 65534"),
    "in a directory of another": (inside(0o755, OTHER), "{base}/directory belongs to user 65534"),
    "in a directory of a group": (inside(0o775, 0, OTHER), "{base}/directory can be written by group 65534"),
    "in a directory of all": (inside(0o777), "{base}/directory can be written by every user"),
    "in a directory such as /tmp": (inside(0o1777), None),
    "of another in such a one": (theirs_in_a_shared_directory, "{base}/directory/file belongs to user 65534"),
    "a link of root": (a_link, None),
    "a planted link": (a_planted_link, "the link {base}/link belongs to user 65534"),
    "a link into their directory": (a_link_into_their_directory, "{base}/directory belongs to user 65534"),
    "through a linked directory": (a_directory_link, "{base}/directory can be written by every user"),
}


@needs_root
@pytest.mark.parametrize("case", CASES)
def test_what_root_reads(tmp_path: Path, case: str) -> None:
    arrange, expected = CASES[case]
    path = str(arrange(tmp_path))
    told = None if expected is None else expected.format(base=tmp_path)
    assert trust_problem(path, 0) == told
    if told is None:
        assert read_trusted(path, 100) == b"A=1\n"
        return
    with pytest.raises(UntrustedPathError) as refused:
        read_trusted(path, 100)
    assert refused.value.problem == told


@needs_root
def test_another_user_reads_what_that_user_may_read(tmp_path: Path) -> None:
    """The directory is that user's own business; only root acts for others."""
    path = str(inside(0o777, OTHER)(tmp_path))
    assert read_trusted(path, 100, owner=OTHER) == b"A=1\n"


def test_links_without_an_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        trust_problem(str(tmp_path / "a"), os.geteuid())
