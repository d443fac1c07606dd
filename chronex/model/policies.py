"""What a job wants: when things overlap, fail or were missed, what it waits for, as whom and within what it runs."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from chronex.model.channels import USUAL_EVENTS, Channel, NoticeEvent


class OverlapPolicy(StrEnum):
    """The occurrence is due while an earlier one of the job still runs."""

    SKIP = "skip"
    QUEUE = "queue"
    QUEUE_ONE = "queue_one"
    ALLOW = "allow"
    CANCEL_RUNNING = "cancel_running"


class RecoveryStrategy(StrEnum):
    """What runs of the occurrences that were due while no scheduler ran."""

    EXECUTE_ALL = "execute_all"
    EXECUTE_LAST = "execute_last"
    MARK_MISSED = "mark_missed"
    BOUNDED = "bounded"
    COMPRESSED = "compressed"


class FailureStrategy(StrEnum):
    """A task has failed for good."""

    FAIL_FAST = "fail_fast"
    CONTINUE = "continue"
    RETRY_ON_FAILURE = "retry_on_failure"


class CrashPolicy(StrEnum):
    """The daemon died during an attempt, so its outcome is not known."""

    RETRY = "retry"
    FAIL = "fail"


class CrashCheck(Struct, frozen=True, gc=False):
    """The same, decided by a command that looks: exit code 0 says that the work was done, another that it was not."""

    check: str | tuple[str, ...]


class StopMode(StrEnum):
    """The scheduler is asked to stop while something runs.

    Commands are left running, waited for, or stopped. Functions run in the scheduler itself: left ones have the grace
    period, and are then interrupted.
    """

    LEAVE = "leave"
    DRAIN = "drain"
    CANCEL = "cancel"


class LeftoverPolicy(StrEnum):
    """A command has ended by itself and others of its group or session live on.

    After a timeout or a cancellation they are always killed.
    """

    KEEP = "keep"
    KILL = "kill"


class RunOn(StrEnum):
    """Where machines share a store: one of the nodes that fit runs an occurrence, or each of them one of its own."""

    ANY = "any"
    EACH = "each"


class TaskMode(StrEnum):
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


class When(StrEnum):
    """After what end of the tasks that it needs a task runs: see specs/graphs.md."""

    SUCCESS = "success"
    FAILURE = "failure"
    DONE = "done"
    ALWAYS = "always"


class Cadence(StrEnum):
    """An interval counts from its anchor, or from the end of the last run."""

    FIXED_RATE = "fixed_rate"
    FIXED_DELAY = "fixed_delay"


# No next attempt comes sooner than this after a failed one: a pause of nothing is hundreds of attempts in a second.
SHORTEST_PAUSE_MS = 1_000
# The longest pause of a policy that names none, unless its interval is longer.
USUAL_LONGEST_PAUSE_MS = 600_000
# Ten years: no pause is longer, however often the backoff multiplied it.
LONGEST_PAUSE_MS = 10 * 366 * 86_400_000


class RetryPolicy(Struct, frozen=True, gc=False):
    """`max` retries after the first attempt (None: no end), each pause `backoff` times the one before.

    With `newest_wins` an occurrence that only waits for a retry gives way to the next one of the schedule. What is
    stored has every field, so that other defaults some day change no job that is stored already.
    """

    max: int | None = 0
    interval_ms: int = 30_000
    backoff: float = 2.0
    # None stands for ten minutes, or for the interval where that is longer.
    max_interval_ms: int | None = None
    # The share of a pause that chance adds or takes, so that those which failed together do not return together.
    jitter: float = 0.1
    newest_wins: bool = False

    @property
    def longest_ms(self) -> int:
        """The pause that the backoff does not go beyond, before any jitter."""
        if self.max_interval_ms is not None:
            return self.max_interval_ms
        return max(USUAL_LONGEST_PAUSE_MS, self.interval_ms)


def retry_pause(policy: RetryPolicy, attempts: int, shortest_ms: int = SHORTEST_PAUSE_MS) -> int:
    """The pause after `attempts` failed ones, in milliseconds, before any jitter.

    An interval below the shortest pause counts as that, because nothing would grow from an interval of nothing.
    """
    longest = min(policy.longest_ms, LONGEST_PAUSE_MS)
    pause = float(max(policy.interval_ms, shortest_ms))
    for _ in range(attempts - 1 if policy.backoff > 1 else 0):
        pause *= policy.backoff
        if pause >= longest:
            break
    return max(min(round(pause), longest), shortest_ms)


class RecoveryPolicy(Struct, frozen=True, gc=False, omit_defaults=True):
    """`max_count` and `max_age_ms` bound the strategy `bounded`; at least one is then set."""

    strategy: RecoveryStrategy = RecoveryStrategy.EXECUTE_LAST
    max_count: int | None = None
    max_age_ms: int | None = None


class SpreadPolicy(Struct, frozen=True, gc=False, omit_defaults=True):
    """Where inside its window an occurrence starts; specs/decision.md has the algorithm."""

    mode: str = "after"
    duration_ms: int = 0
    distribution: str = "uniform"
    parameters: dict[str, float | str] = {}
    seed: str = "stable"
    salt: str = ""
    only: str = ""
    avoid: str = ""


class NotifyPolicy(Struct, frozen=True, gc=False, omit_defaults=True):
    """Who is told of what: the job has failed `after_failures` times in a row, is late, slow, or has recovered."""

    # The job's own command for notices; None where there are channels alone.
    run: tuple[str, ...] | str | None = None
    after_failures: int = 1
    on_recovery: bool = True
    # One completed with errors.
    on_errors: bool = False
    # The channels, as their tables were when the job was applied.
    channels: tuple[Channel, ...] = ()
    # Of what they are told; None stands for USUAL_EVENTS.
    on: tuple[NoticeEvent, ...] | None = None
    # A run that takes longer than this is told while it still runs.
    long_after_ms: int | None = None

    @property
    def events(self) -> frozenset[NoticeEvent]:
        """What is told to the command, and to every channel that says nothing else."""
        found = set(USUAL_EVENTS if self.on is None else self.on)
        if not self.on_recovery:
            found.discard(NoticeEvent.RECOVERED)
        if self.on_errors:
            found.add(NoticeEvent.ERRORS)
        return frozenset(found)

    def channel(self, name: str) -> Channel | None:
        return next((one for one in self.channels if one.name == name), None)


class DstSetting(Struct, frozen=True, gc=False, omit_defaults=True):
    """The clock-change policy that a job names; chronex.timing.dst.DstPolicy is what its words mean to the search."""

    gap: str = "end"
    overlap: str = "by-kind"


class Overrides(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Policies that a person gave one occurrence; None leaves the job's."""

    # How long it may take in all; no task has a limit of its own beside it.
    timeout_ms: int | None = None
    # How often a task is tried again.
    retries: int | None = None
    # What a failed task means for the others.
    on_failure: FailureStrategy | None = None


# As whom a command runs and within what: user, group, umask, priority and limits.


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


# What a job waits for before it starts: words, and what they mean to whoever looks.

MOST_CONDITIONS = 16
MAINS, NETWORK, TCP, PATH, COMMAND = "mains", "network", "tcp", "path", "command"
WORDS = (MAINS, NETWORK, TCP, PATH, COMMAND)
_MOST_PORT = 65_535
_PORT = re.compile(r"0*[1-9][0-9]{0,4}", re.ASCII)
_IN_BRACKETS = re.compile(r"\[([^][]*)\]")
_IPV6 = re.compile(r"[0-9A-Fa-f:.]{2,45}(%[\w.-]+)?", re.ASCII)
_NO_NAME = re.compile(r"[\s\x00-\x20\x7f/@?#\[\]]")
_LONGEST_LABEL = 63


class Condition(NamedTuple):
    """`kind` is one of WORDS; `what` is the host, the path or the command line, `port` of `tcp` alone."""

    kind: str
    what: str = ""
    port: int = 0


def _is_host(text: str) -> bool:
    """What may be looked up: a number of IPv6, which alone has colons, or a name of labels as networks have them."""
    if ":" in text:
        return _IPV6.fullmatch(text) is not None
    return not _NO_NAME.search(text) and all(
        0 < len(label) <= _LONGEST_LABEL for label in text.removesuffix(".").split(".")
    )


def read_condition(written: str) -> Condition:
    """Raises ValueError with what to write instead."""
    kind, colon, rest = written.partition(":")
    if kind in (MAINS, NETWORK):
        if colon:
            raise ValueError(f"write {kind} alone")
        return Condition(kind)
    if kind == TCP:
        written_host, _, port = rest.rpartition(":")
        in_brackets = _IN_BRACKETS.fullmatch(written_host)
        host = in_brackets[1] if in_brackets else written_host
        if not _is_host(host) or not _PORT.fullmatch(port) or int(port) > _MOST_PORT:
            raise ValueError("write tcp:HOST:PORT, such as tcp:db:5432")
        return Condition(TCP, host, int(port))
    if kind in (PATH, COMMAND) and rest.strip():
        return Condition(kind, rest)
    if kind in (PATH, COMMAND):
        raise ValueError(f"write {kind}: and behind it the {'path' if kind == PATH else 'command line'}")
    raise ValueError("write mains, network, tcp:HOST:PORT, path:/DIRECTORY or command:LINE")


class Found(NamedTuple):
    """What was found of the conditions of a job, all of them together, and when; `lacking` is the first that does not
    hold, with what was seen."""

    holds: bool
    at_ms: int
    lacking: str = ""
