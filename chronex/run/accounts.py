"""Users and groups of this machine, and what a scheduler that is not root cannot do."""

from __future__ import annotations

import grp
import os
import pwd

from chronex.model.process_settings import ProcessSettings


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
