"""What needs a person: one list of troubles for `status`, `list`, `show`, `why` and the dashboard's top line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote
from typing import NamedTuple

from chronex.engine import outbox
from chronex.engine.membership import seems_alive
from chronex.model.job import Job
from chronex.model.reasons import NodeTrouble, Severity, TroubleCode
from chronex.model.records import ChannelState, Node
from chronex.storage.records import Reading
from chronex.text.durations import brief_duration
from chronex.views.jobs import IsAlive

# One failed try is the network's weather; two in a row are worth a word.
_TRIES_SHOWN = 2
# What was never sent is told for a day after the last of it, also when the channel answers again.
_DROPPED_SHOWN_MS = 86_400_000
# So many jobs say which file they are of; a store of more is not read whole for a hint.
_MOST_JOBS = 1_000


class Trouble(NamedTuple):
    """What is wrong, what to do, and which job it is about, where it is about one."""

    severity: Severity
    code: TroubleCode
    words: str
    hint: str = ""
    job: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.words}: {self.hint}" if self.hint else self.words


# How a trouble that a node has noted is told: its severity, its words around the detail, and what to do.
_OF_NODES: dict[TroubleCode, tuple[Severity, str, str]] = {
    TroubleCode.JOB_FILE_REJECTED: (
        Severity.ERROR,
        "the job file was rejected and the old one holds: {detail}",
        "put it right, then chronex reload",
    ),
    TroubleCode.RESTART_NEEDED: (
        Severity.WARNING,
        "changed settings need a restart: {detail}",
        "chronex restart",
    ),
    TroubleCode.METRICS_UNAVAILABLE: (
        Severity.ERROR,
        "metrics are not served at {detail}",
        "free the port or choose another, then chronex restart",
    ),
    TroubleCode.HEARTBEAT_FAILS: (Severity.WARNING, "the heartbeat is not heard: {detail}", ""),
    TroubleCode.CHORE_FAILS: (Severity.WARNING, "a chore of the daemon fails: {detail}", ""),
    TroubleCode.SPANS_FAIL: (Severity.WARNING, "spans are not taken: {detail}", ""),
    TroubleCode.FAULT: (
        Severity.ERROR,
        "a fault of Chronex: {detail}",
        "please report it; the log says where it was",
    ),
}


class ChannelRow(NamedTuple):
    """A channel's deliveries: how they go, what waits, and what was given up."""

    state: ChannelState
    waiting: int
    undeliverable: int


def channel_rows(reading: Reading) -> list[ChannelRow]:
    rows = []
    for state in outbox.states(reading):
        found = outbox.all_of(reading, state.channel)
        given_up = sum(one.given_up_ms is not None for one in found)
        rows.append(ChannelRow(state, len(found) - given_up, given_up))
    return rows


def no_scheduler(start: str = "chronex run") -> Trouble:
    return Trouble(Severity.ERROR, TroubleCode.NO_SCHEDULER, "no scheduler runs", f"start one with {start}")


def start_command(reading: Reading) -> str:
    """What starts a daemon on this store, from any directory.

    Without its job file the one of the directory where it is typed would be applied to the store, and the settings
    of its own, channels and limits, would not hold. A store that machines share has files of other machines too.
    """
    is_shared = any(node.lease_ms for node in reading.nodes())
    file = "" if is_shared else file_of_all(reading.jobs(limit=_MOST_JOBS))
    return f"chronex run --config {quote(file)}" if file else "chronex run"


def file_of_all(jobs: Iterable[Job]) -> str:
    """The job file that the jobs are of; empty where there are several, or none."""
    files = {job.source for job in jobs if job.source.startswith("/")}
    return files.pop() if len(files) == 1 else ""


def of_nodes(nodes: Iterable[Node]) -> list[Trouble]:
    """What living schedulers have noted of themselves; with several of them, each with its machine."""
    living = list(nodes)
    return [_of_node(node, one, is_alone=len(living) == 1) for node in living for one in node.troubles]


def _of_node(node: Node, found: NodeTrouble, *, is_alone: bool) -> Trouble:
    severity, words, hint = _OF_NODES.get(found.code, (Severity.WARNING, f"{found.code}: {{detail}}", ""))
    where = "" if is_alone else f" (on {node.host})"
    return Trouble(severity, found.code, words.format(detail=found.detail) + where, hint)


def of_channels(rows: Sequence[ChannelRow], now_ms: int) -> list[Trouble]:
    found = []
    for row in rows:
        state, name = row.state, row.state.channel
        hint = f"chronex notify test {name}; chronex notify queue"
        if state.failing_since_ms is not None and state.tries >= _TRIES_SHOWN and row.waiting:
            since = brief_duration(max(0, now_ms - state.failing_since_ms))
            words = f"notices cannot be delivered to {name} for {since}, {row.waiting} wait: {state.problem}"
            found.append(Trouble(Severity.ERROR, TroubleCode.CHANNEL_FAILS, words, hint))
        if row.undeliverable:
            words = f"{row.undeliverable} for {name} could not be delivered"
            found.append(Trouble(Severity.ERROR, TroubleCode.NOTICES_UNDELIVERABLE, words, "chronex notify queue"))
        if state.dropped_ms is not None and now_ms - state.dropped_ms < _DROPPED_SHOWN_MS:
            since = brief_duration(max(0, now_ms - state.dropped_ms))
            words = f"too many waited for {name}: {state.dropped} were dropped, the last {since} ago"
            found.append(Trouble(Severity.ERROR, TroubleCode.NOTICES_DROPPED, words, hint))
    return found


def store_troubles(reading: Reading, now_ms: int, is_alive: IsAlive, *, has_jobs: bool = True) -> list[Trouble]:
    """What is wrong with the store and its schedulers, whatever the jobs: cheap enough for every command."""
    living = [node for node in reading.nodes() if seems_alive(node, now_ms, is_alive)]
    found = [] if living or not has_jobs else [no_scheduler(start_command(reading))]
    return [*found, *of_nodes(living), *of_channels(channel_rows(reading), now_ms)]


def worst_first(found: Iterable[Trouble]) -> list[Trouble]:
    """Errors before warnings, else in their order."""
    return sorted(found, key=lambda one: one.severity is not Severity.ERROR)


def trouble_json(found: Trouble) -> dict[str, str | None]:
    return {
        "severity": found.severity.value,
        "code": found.code.value,
        "words": found.words,
        "hint": found.hint or None,
        "job": found.job or None,
    }
