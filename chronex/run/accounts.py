"""Users and groups of this machine, and what a scheduler that is not root cannot do."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import NamedTuple

from chronex.model.policies import ProcessSettings

PATH_OF_OTHERS = "/usr/local/bin:/usr/bin:/bin"  # as the launcher gives it to a user


def user_id(user: str) -> int | None:
    """By name or number; None where there is no such user."""
    try:
        return (pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)).pw_uid
    except (KeyError, OverflowError):
        return None


def group_id(group: str) -> int | None:
    """The same for a group."""
    try:
        return (grp.getgrgid(int(group)) if group.isdigit() else grp.getgrnam(group)).gr_gid
    except (KeyError, OverflowError):
        return None


def needs_root(settings: ProcessSettings | None) -> str | None:
    """What of these settings only root can give, in words; None where this user can."""
    if settings is None or os.geteuid() == 0:
        return None
    if settings.user is not None and user_id(settings.user) != os.geteuid():
        return f"user = {settings.user!r} needs a scheduler that runs as root"
    if settings.group is not None and group_id(settings.group) != os.getegid():
        return f"group = {settings.group!r} needs a scheduler that runs as root"
    if settings.nice is not None and settings.nice < os.getpriority(os.PRIO_PROCESS, 0):
        return f"nice = {settings.nice} needs a scheduler that runs as root"
    return None


class Rights(NamedTuple):
    """What the modes of files allow this user; access lists and security modules may say otherwise."""

    uid: int
    groups: frozenset[int]

    def may_enter(self, directory: str) -> bool:
        """The directory and every one above it."""
        real = os.path.realpath(directory)
        try:
            return self._may_execute(os.stat(real)) and (real == "/" or self.may_enter(os.path.dirname(real)))
        except OSError:
            return False

    def may_run(self, path: str) -> bool:
        try:
            is_allowed = self._may_execute(os.stat(path), is_program=True)
        except OSError:
            return False
        return is_allowed and self.may_enter(os.path.dirname(os.path.realpath(path)))

    def _may_execute(self, found: os.stat_result, *, is_program: bool = False) -> bool:
        any_of = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
        if self.uid == 0:
            return not is_program or bool(found.st_mode & any_of)
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid in self.groups:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)


def rights_of(user: str | None, group: str | None) -> Rights | None:
    """Of that user and group, or of this process where none is named; None where there is no such user or group."""
    gid = os.getegid() if group is None else group_id(group)
    if user is None:
        return None if gid is None else Rights(os.geteuid(), frozenset({gid, *os.getgroups()}))
    uid = user_id(user)
    if uid is None or gid is None:
        return None
    entry = pwd.getpwuid(uid)
    first = entry.pw_gid if group is None else gid
    return Rights(uid, frozenset(os.getgrouplist(entry.pw_name, first)))
