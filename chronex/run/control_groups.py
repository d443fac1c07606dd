"""Control groups (version 2) for commands with limits: one for each attempt, beside the group of the scheduler.

They can be had where the group above the scheduler's own is delegated to it and holds no process itself: a service of
systemd with `Delegate=yes` and `DelegateSubgroup=`. Elsewhere the limits of single processes take their place.
"""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache
from pathlib import Path

from chronex.model.occurrence import Usage
from chronex.model.policies import ResourceLimits

_PERIOD_US = 100_000
_CONTROLLERS = ("memory", "cpu", "pids", "io")
_DELEGATED = ("trusted.delegate", "user.delegate")  # how systemd marks a group that it leaves to a service
_BLOCK = 512
_SWEEP_MS = 60_000


class ControlGroups:
    """The group that is ours to divide. `controllers` are those that its parts can have."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        for name in _CONTROLLERS:
            with contextlib.suppress(OSError):  # this one is not ours
                _write(parent / "cgroup.subtree_control", f"+{name}")
        self.controllers = frozenset(_read(parent / "cgroup.subtree_control").split())
        self._empty: frozenset[Path] = frozenset()
        self._swept_ms: int | None = None

    def find(self, name: str) -> ControlGroup | None:
        """The group that an attempt has already."""
        group = ControlGroup(self._parent / f"{name}.scope", self.controllers)
        return group if group.path.is_dir() else None

    def sweep(self, now_ms: int) -> None:
        """Remove what a killed keeper has left: groups that were empty a minute ago and still are.

        One look is not enough. A group is empty before its command is in it, and again until its end has been read by
        a keeper that serves the commands of an earlier scheduler.
        """
        if self._swept_ms is not None and now_ms - self._swept_ms < _SWEEP_MS:
            return
        groups = [ControlGroup(path, self.controllers) for path in self._parent.glob("*.scope")]
        empty = {group.path: group for group in groups if group.is_empty}
        for path in empty.keys() & self._empty:
            empty[path].remove()
        self._empty, self._swept_ms = frozenset(empty), now_ms

    def make(self, name: str, limits: ResourceLimits) -> ControlGroup | None:
        """A group with these limits, as far as there are controllers for them; None where it cannot be made."""
        group = ControlGroup(self._parent / f"{name}.scope", self.controllers)
        try:
            group.create(limits)
        except OSError:
            group.remove()
            return None
        return group


class ControlGroup:
    """The processes of one attempt."""

    def __init__(self, path: Path, controllers: frozenset[str]) -> None:
        self.path = path
        self._controllers = controllers

    def create(self, limits: ResourceLimits) -> None:
        self.path.mkdir()
        if limits.memory is not None and "memory" in self._controllers:
            _write(self.path / "memory.max", str(limits.memory))
            with contextlib.suppress(OSError):  # a kernel without swap accounting has no such file
                _write(self.path / "memory.swap.max", "0")
            _write(self.path / "memory.oom.group", "1")  # all of it or nothing: half a pipeline helps nobody
        if limits.tasks is not None and "pids" in self._controllers:
            _write(self.path / "pids.max", str(limits.tasks))
        if limits.cpu is not None and "cpu" in self._controllers:
            _write(self.path / "cpu.max", f"{limits.cpu * _PERIOD_US // 100} {_PERIOD_US}")

    def left_over(self, limits: ResourceLimits) -> ResourceLimits:
        """The limits that this group does not hold."""
        return ResourceLimits(
            memory=None if "memory" in self._controllers else limits.memory,
            tasks=None if "pids" in self._controllers else limits.tasks,
            cpu=None if "cpu" in self._controllers else limits.cpu,
        )

    def join(self, pid: int) -> None:
        """Move the process here, while it waits at its barrier; what it starts later is here from the beginning."""
        _write(self.path / "cgroup.procs", str(pid))

    @property
    def is_empty(self) -> bool:
        return _numbers(self.path / "cgroup.events").get("populated") == 0

    @property
    def was_out_of_memory(self) -> bool:
        return _numbers(self.path / "memory.events").get("oom_kill", 0) > 0

    def usage(self, of_main: Usage | None) -> Usage | None:
        """What all of them took, also those that nobody waited for; as far as the system tells it."""
        cpu = _numbers(self.path / "cpu.stat").get("usage_usec")
        if cpu is None:
            return of_main
        known = of_main or Usage()
        peak = _read(self.path / "memory.peak")
        read, written = _disk(_read(self.path / "io.stat"))
        return Usage(
            cpu // 1000,
            int(peak) // 1024 if peak.isdigit() else known.peak_kib,
            known.blocks_read if read is None else read // _BLOCK,
            known.blocks_written if written is None else written // _BLOCK,
        )

    def kill(self) -> None:
        """Every process of it, at once."""
        with contextlib.suppress(OSError):
            _write(self.path / "cgroup.kill", "1")

    def remove(self) -> bool:
        """False while a process is left in it."""
        try:
            self.path.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def _numbers(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _disk(stat: str) -> tuple[int | None, int | None]:
    """Of all disks: `8:0 rbytes=1 wbytes=2 …` in each line."""
    totals: dict[str, int] = {}
    for word in stat.split():
        name, _, value = word.partition("=")
        if value.isdigit():
            totals[name] = totals.get(name, 0) + int(value)
    return totals.get("rbytes"), totals.get("wbytes")


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _write(path: Path, text: str) -> None:
    """In one call, as the kernel wants it; a file that is not there is not made."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


# -- where they are -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def control_groups() -> ControlGroups | None:
    """Those that this process may make; looked for once."""
    parent = delegated_parent(_own_group())
    return None if parent is None else ControlGroups(parent)


def _own_group() -> Path | None:
    """The directory of this process's group, by the system's own tables."""
    mounts = (line.split() for line in _read(Path("/proc/self/mountinfo")).splitlines())
    points = [words[4] for words in mounts if "-" in words and words[words.index("-") + 1] == "cgroup2"]
    lines = _read(Path("/proc/self/cgroup")).splitlines()
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::/")), None)
    if not points or own is None:
        return None
    return Path(points[0]) / own.lstrip("/")


def delegated_parent(own: Path | None) -> Path | None:
    """The group above, where it is ours to divide: delegated, writable, and without a process of its own."""
    if own is None:
        return None
    parent = own.parent
    procs = parent / "cgroup.procs"
    # The group of the whole machine has no type; it is nobody's to divide but the init system's.
    if not (parent / "cgroup.type").exists() or not os.access(procs, os.W_OK) or _read(procs):
        return None
    return parent if _is_delegated(parent) else None


def _is_delegated(group: Path) -> bool:
    for name in _DELEGATED if hasattr(os, "getxattr") else ():
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False
