"""Two users of this machine for the time of a test run. Only root can make them; without root their tests are skipped."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("useradd") is None,
    reason="needs root and useradd: commands as other users are not tried",
)


class OtherUser(NamedTuple):
    name: str
    uid: int
    gid: int
    home: str


@contextmanager
def two_users() -> Iterator[tuple[OtherUser, OtherUser]]:
    """The first is a member of the second one's group."""
    names = [f"chx{letter}{os.getpid()}" for letter in "ab"]
    try:
        for name in reversed(names):
            groups = ["-G", names[1]] if name == names[0] else []
            subprocess.run(
                ["useradd", "-M", "-U", *groups, "-d", f"/nonexistent/{name}", "-s", "/bin/sh", name],
                check=True,
                capture_output=True,
            )
        found = [pwd.getpwnam(name) for name in names]
        first, second = (OtherUser(one.pw_name, one.pw_uid, one.pw_gid, one.pw_dir) for one in found)
        yield first, second
    finally:
        for name in names:
            # By force: a process of it may still be about to end.
            subprocess.run(["userdel", "-f", name], check=False, capture_output=True)
