"""The limits of one attempt while it runs: held by a control group where there is one, else by the limits of single
processes and by watching; and what becomes of a command that hits them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from msgspec.structs import replace

from chronex.clock import SYSTEM_CLOCK
from chronex.model import AttemptState
from chronex.model.occurrence import Usage
from chronex.model.policies import ProcessSettings, ResourceLimits, refused_beyond
from chronex.run.control_groups import ControlGroup, control_groups
from chronex.run.process import SupervisedProcess
from chronex.run.request import CommandRules, EndReason, ExitVerdict
from chronex.run.spawn import PreparedCommand
from chronex.text.sizes import size_text

# Watches the memory of a command and its children, where no control group does: one that has more is killed.

_FIRST_S, _SLOWEST_S = 0.02, 0.5
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOST_PROCESSES = 4_096


class MemoryWatch:
    """Calls `on_excess` once, when the process and its descendants have more than `limit` bytes of their own."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, pid: int, limit: int, on_excess: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._pid = pid
        self._limit = limit
        self._on_excess = on_excess
        self._pause = _FIRST_S
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._timer = self._loop.call_later(self._pause, self._check)

    def _check(self) -> None:
        if memory_of(self._pid) > self._limit:
            self._on_excess()
            return
        # Often at first, when most programs take what they need.
        self._pause = min(self._pause * 1.5, _SLOWEST_S)
        self.begin()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def memory_of(pid: int) -> int:
    """Bytes that the process and its descendants have for themselves; what they share with files does not count."""
    todo, total, seen = [pid], 0, 0
    while todo and seen < _MOST_PROCESSES:
        one = todo.pop()
        seen += 1
        fields = _read(f"/proc/{one}/statm").split()
        if len(fields) > 2:
            total += max(0, int(fields[1]) - int(fields[2])) * _PAGE
        todo += _children(one)
    return total


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as source:
            return source.read()
    except OSError:
        return ""


def limits_of_process(limits: ResourceLimits) -> ResourceLimits:
    """What the launcher sets for a process where no control group holds these."""
    memory = None if limits.memory is None else refused_beyond(limits.memory)
    return ResourceLimits(memory=memory, tasks=limits.tasks)


BY_GROUP, BY_PROCESS, BY_BOTH = "cgroup", "process", "cgroup, process"
_KILLED = 128 + signal.SIGKILL  # what a shell makes of it, and `retry_codes` too
_left: list[ControlGroup] = []  # groups in which a process was kept; removed when it is gone


def confinement_of(command: PreparedCommand) -> Confinement | None:
    """None where the command has no limits."""
    limits = command.settings.limits if command.settings is not None else None
    if limits is None:
        return None
    groups = control_groups()
    if groups is None:
        return Confinement(limits, None)
    groups.sweep(SYSTEM_CLOCK.monotonic_ms())
    return Confinement(limits, groups.make(command.rules.attempt_id, limits))


def confinement_left(attempt_id: str, settings: ProcessSettings | None) -> Confinement | None:
    """Of an attempt whose keeper has died; None where it had no group, because nothing else holds its limits then."""
    groups = None if settings is None or settings.limits is None else control_groups()
    group = None if groups is None else groups.find(attempt_id)
    if group is None or settings is None or settings.limits is None:
        return None
    return Confinement(settings.limits, group)


class Confinement:
    """`of_process` is what the launcher must set, because no control group holds it."""

    def __init__(self, limits: ResourceLimits, group: ControlGroup | None) -> None:
        self._limits = limits
        self._group = group
        self._remaining = limits if group is None else group.left_over(limits)
        self.of_process = limits_of_process(self._remaining)
        self._watch: MemoryWatch | None = None
        self._was_killed = False

    @property
    def held_by(self) -> str:
        if self._group is None:
            return BY_PROCESS
        is_whole = self._remaining == ResourceLimits() and self._limits.open_files is None
        return BY_GROUP if is_whole else BY_BOTH

    def join(self, pid: int) -> None:
        """Where the system does not let it in, its memory is watched at least."""
        try:
            if self._group is not None:
                self._group.join(pid)
        except OSError:
            self._remove_group()
            self._group, self._remaining = None, self._limits

    def watch(self, process: SupervisedProcess) -> None:
        limit = self._remaining.memory
        if limit is None:
            return

        def kill() -> None:
            self._was_killed = process.signal_group(signal.SIGKILL)

        self._watch = MemoryWatch(asyncio.get_running_loop(), process.identity.pid, limit, kill)
        self._watch.begin()

    def usage(self, of_main: Usage | None) -> Usage | None:
        used = of_main if self._group is None else self._group.usage(of_main)
        return None if used is None else replace(used, limits_by=self.held_by)

    def kill_rest(self) -> None:
        """Whatever is left of the attempt, also what has left its session."""
        if self._group is not None:
            self._group.kill()

    def verdict(self, found: ExitVerdict, usage: Usage | None, rules: CommandRules) -> ExitVerdict:
        """The same, or that it ended because it wanted too much memory."""
        limit = self._limits.memory
        if found.reason is EndReason.UNKNOWN_EXIT and limit is not None and self._group is not None:
            return self._verdict_of_group(found, self._group, limit, rules)
        if limit is None or found.state is not AttemptState.FAILED or not self._had_too_much(limit, usage):
            return found
        error = f"it wanted more than its {size_text(limit)} of memory"
        if found.signal is not None:
            error = f"killed: {error}"
        retryable = found.retryable if found.signal is None else _may_retry(rules)
        return found._replace(reason=EndReason.MEMORY_LIMIT, error=error, retryable=retryable)

    @staticmethod
    def _verdict_of_group(found: ExitVerdict, group: ControlGroup, limit: int, rules: CommandRules) -> ExitVerdict:
        """Nobody saw how it ended; but a group that was out of memory was killed whole, and it with the others."""
        if not group.was_out_of_memory:
            return found
        error = f"killed: it wanted more than its {size_text(limit)} of memory"
        return ExitVerdict(
            AttemptState.FAILED, EndReason.MEMORY_LIMIT, _may_retry(rules), error, signal=int(signal.SIGKILL)
        )

    def _had_too_much(self, limit: int, usage: Usage | None) -> bool:
        if self._was_killed:
            return True
        if self._group is not None and self._remaining.memory is None:
            return self._group.was_out_of_memory
        # It was quicker than the watch, and was refused more by the system itself.
        return usage is not None and usage.peak_kib is not None and usage.peak_kib * 1024 > limit

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._remove_group()

    def _remove_group(self) -> None:
        if self._group is not None:
            _left.append(self._group)
        _left[:] = [group for group in _left if not group.remove()]


def _may_retry(rules: CommandRules) -> bool:
    return rules.retry_codes is None or _KILLED in rules.retry_codes
