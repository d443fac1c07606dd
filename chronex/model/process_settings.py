"""As whom a command runs and within what: user, group, umask, priority and limits."""

from __future__ import annotations

from msgspec import Struct


class ResourceLimits(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What all processes of an attempt may take together; None where there is no limit."""

    # Bytes of memory.
    memory: int | None = None
    # Percent of one processor: 150 is one and a half.
    cpu: int | None = None
    # Processes and threads at once.
    tasks: int | None = None
    # Files that each process may have open.
    open_files: int | None = None


# Where no control group holds the memory: some programs ask for more than they use.
_HEADROOM = 2


def refused_beyond(memory: int) -> int:
    """What the system refuses each process, where its limit of memory is held process by process."""
    return memory * _HEADROOM


class ProcessSettings(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What a command is started with in place of what its scheduler has; None stands for the scheduler's own."""

    user: str | None = None
    group: str | None = None
    # Octal digits, as `umask` of a shell takes them.
    umask: str | None = None
    nice: int | None = None
    limits: ResourceLimits | None = None
