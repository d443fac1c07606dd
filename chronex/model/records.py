"""Every kind of record that the store holds; the smaller ones are defined here. Times are epoch milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from chronex.model.event import Event
from chronex.model.groups import Group
from chronex.model.job import Job, JobProgress, JobVersion
from chronex.model.occurrence import Attempt, Occurrence, ProcessIdentity, Run
from chronex.model.reasons import NO_REASON, NodeTrouble, Reason


class Node(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Written when the process begins to work on the store, and while it lives."""

    id: str
    # The process itself, so that other processes of this machine can find out whether it lives.
    process: ProcessIdentity
    host: str = ""
    epoch: int = 0
    # The version of the program.
    chronex: str = ""
    # The Python functions that it can call by name, and whether it imports those that are called "module:function";
    # None where that is not known.
    functions: tuple[str, ...] | None = None
    imports: bool = False
    # The program that it is a part of, which may be asked nothing by a signal; empty for `chronex run`.
    program: str = ""
    # How many occurrences it runs at once (its slots); 0 where that is not known.
    places: int = 0
    started_ms: int = 0
    # When it last said that it lives.
    seen_ms: int = 0
    # When it left in good order; None while it works, and for one that died.
    stopped_ms: int | None = None
    # How it was asked to stop: leave, drain or cancel, or restart; how long it may drain; by whom, and when.
    stop_mode: str = ""
    stop_within_ms: int | None = None
    stop_by: str = ""
    stop_asked_ms: int | None = None
    # Why it went on all the same: what it was to be restarted with has a mistake.
    stop_refused: str = ""
    # Where several machines share the store: the machine that it runs on, for how long a heartbeat of it holds
    # (0: only its process tells), since when it has given it without a gap, and since when it slept through nothing.
    host_id: str = ""
    # The newest layout of a shared store that it knows.
    layout: int = 0
    # By what jobs choose where they run.
    name: str = ""
    labels: dict[str, str] = {}
    lease_ms: int = 0
    steady_since_ms: int = 0
    awake_since_ms: int | None = None
    # It is to begin nothing, by whom that was asked; what runs there goes on to its end.
    draining: bool = False
    drained_by: str = ""
    # When others gave it up because it was silent: its epoch was raised, and it may change nothing any more.
    lost_ms: int | None = None
    # When a person said that it will never come back: nobody waits for it any more.
    forgotten_ms: int | None = None
    # When one that was given up came back, was refused, and began anew under another name.
    refused_ms: int | None = None
    # The sources of secrets that it has met in jobs and does not have, such as "env:PGPASSWORD".
    lacking_secrets: tuple[str, ...] = ()
    # The version of the zone data by which it finds instants; empty where that is not known.
    tzdata: str = ""
    # By how much its own clock is ahead of the store's, and how far off its reading of the store's clock may be.
    clock_ahead_ms: int | None = None
    clock_within_ms: int | None = None
    # While it doubts its clock, which has jumped ahead: the time of ages, and how much longer the clock must hold.
    aged_ms: int = 0
    doubt_ms: int = 0
    # What goes wrong there and nobody else could know.
    troubles: tuple[NodeTrouble, ...] = ()

    def can_call(self, target: str) -> bool:
        """True also where it is not known: such a node may have it."""
        return self.functions is None or target in self.functions or (self.imports and ":" in target)


def newest_by_machine(nodes: Iterable[Node]) -> dict[tuple[str, str, str], Node]:
    """Of each machine, name and program the node that began last: the next one there takes its place."""
    return {place_of(node): node for node in sorted(nodes, key=lambda one: one.started_ms)}


def place_of(node: Node) -> tuple[str, str, str]:
    """What a node has in common with those before it and after it, and with no other."""
    return node.host_id, node.name, node.program


class Idempotency(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A key that must not execute again before `expires_ms`. `holder` is the id of who took it.

    A trigger's key is held by the occurrence of `job` at `nominal_ms`: one that never ran gives it back.
    """

    key: str
    expires_ms: int
    holder: str = ""
    job: str = ""
    nominal_ms: int | None = None
    created_ms: int = 0


HOOKS = ("on_start", "on_complete")


class Notice(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A message about a job, kept until the command, the channel or the hook that it is for has taken it.

    `kind` is failing, recovered, late, on_time, slow, long, missed, completed_with_errors, success, for checks also
    started and failed, or the name of a hook; `at_ms` is when it came to be so.
    """

    job: str
    kind: str
    at_ms: int
    nominal_ms: int | None = None
    reason: Reason = NO_REASON
    failures: int = 0
    tries: int = 0
    next_ms: int = 0
    # The node that calls the hook now; others leave it alone until `next_ms`, or until that node is gone.
    owner: str = ""
    # The channel that it is for; empty for the job's own command and for hooks.
    channel: str = ""
    # Of a channel's notice: why the last try failed, and when it was given up for a person to look at.
    problem: str = ""
    given_up_ms: int | None = None

    @property
    def is_hook(self) -> bool:
        return self.kind in HOOKS


class ChannelState(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """How deliveries to one channel go."""

    channel: str
    # The node that delivers now; others leave the channel alone until then, or until that node is gone.
    owner: str = ""
    claimed_until_ms: int = 0
    # Since when every try has failed, how many those were, why the last one did, and when the next one is due.
    failing_since_ms: int | None = None
    tries: int = 0
    problem: str = ""
    next_ms: int = 0
    # How many it has taken, and when the last of them.
    delivered: int = 0
    delivered_ms: int | None = None
    # How many were never sent because too many waited or were kept, when the last of them; and whether that goes on.
    dropped: int = 0
    dropped_ms: int | None = None
    is_dropping: bool = False


class TaskState(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A small value that a task keeps between its runs, or, staged, what an attempt wants to become of it."""

    value: str
    updated_ms: int = 0
    is_removed: bool = False


class Excerpt(NamedTuple):
    """What is kept of the log of an attempt that has ended; `left_out` bytes lie between the two."""

    head: bytes
    tail: bytes
    left_out: int


class LogPiece(Struct, frozen=True, gc=False, omit_defaults=True):
    """Some bytes of a log on a shared store. `at` is where in the log they lie; of a tail, how much is left out."""

    data: bytes
    written_ms: int = 0
    at: int = 0


class LogRequest(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Somebody wants the log of an attempt that lies on another machine: what it writes from now on, or all of it."""

    job: str
    nominal_ms: int
    task: str
    number: int
    # The machine that has the log.
    host_id: str
    whole: bool = False
    until_ms: int = 0
    # What the machine has sent so far, and whether no more will come.
    sent_pieces: int = 0
    sent_bytes: int = 0
    is_done: bool = False


class Quarantined(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A damaged record, kept as it was found so that it can be examined."""

    reason: str
    at_ms: int
    raw: bytes = b""
    size: int = 0


class StoreMeta(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """What the store says of itself."""

    format: int
    map_size: int
    store_id: str
    engine: str
    created_ms: int
    chronex: str = ""
    migrated_from: tuple[int, ...] = ()


class Sequence(Struct, frozen=True, gc=False):
    """The last number given out."""

    last: int


Record = (
    Job
    | JobProgress
    | JobVersion
    | Occurrence
    | Run
    | Attempt
    | Node
    | Group
    | Event
    | Idempotency
    | Notice
    | ChannelState
    | LogPiece
    | LogRequest
    | TaskState
    | Quarantined
    | StoreMeta
    | Sequence
)
