"""The nodes of a store: who works here, what each runs, who is late, who was fenced, and who drains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chronex.storage.records import Reading
from chronex.text.durations import elapsed, largest_unit, rounded_duration
from chronex.text.terminal import cell_safe
from chronex.views.jobs import IsAlive, Situation
from chronex.views.nodes import NodeConcern, NodeHealth, NodeRow, NodeWork, concern_words, nodes_of
from chronex_tui.model.display import DisplaySettings, exact_clock_time, full_stamp, stamp
from chronex_tui.model.layout import Column, ColumnTable, Line, wrap

MOST_NODES = 500
COLUMNS = (
    Column("state", "STATE", 10),
    Column("node", "NODE", 14, share=3, most=40),
    Column("host", "HOST", 10, share=2, rank=4, most=30),
    Column("runs", "RUNS", 8, rank=1, right=True),
    Column("beat", "HEARTBEAT", 16, rank=2, share=1, most=24),
    Column("up", "UP", 5, rank=3, right=True),
    Column("version", "VERSION", 8, rank=6, most=12),
    Column("labels", "LABELS", 12, share=3, rank=5),
)
_SIGNS = {
    NodeHealth.ALIVE: (Situation.OK, "ok"),
    NodeHealth.SILENT: (Situation.RETRYING, "retry"),
    NodeHealth.DRAINING: (Situation.PAUSED, "paused"),
    NodeHealth.STOPPED: (Situation.DONE, "dim"),
    NodeHealth.DEAD: (Situation.FAILED, "failed"),
    NodeHealth.LOST: (Situation.FAILED, "failed"),
}
_SAID_BY_STATE = (NodeConcern.LATE, NodeConcern.GIVEN_UP)  # by the sentence about its state
_WORDS = {NodeHealth.SILENT: "late", NodeHealth.LOST: "fenced"}


class NodeKey(NamedTuple):
    """The identity of a node in a selection."""

    id: str


def node_key(row: NodeRow) -> NodeKey:
    return NodeKey(row.node.id)


def node_rows(reading: Reading, now_ms: int, is_alive: IsAlive) -> tuple[NodeRow, ...]:
    """Those that live first, then the others, the youngest first."""
    return tuple(nodes_of(reading, now_ms, is_alive)[:MOST_NODES])


@dataclass(frozen=True, slots=True)
class NodesTable(ColumnTable):
    rows: Sequence[NodeRow]
    display: DisplaySettings
    columns: tuple[Column, ...] = COLUMNS
    sorted_by: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def identity(self, index: int) -> NodeKey:
        return node_key(self.rows[index])

    def index_of(self, identity: object) -> int | None:
        return next((index for index, row in enumerate(self.rows) if node_key(row) == identity), None)

    def cells(self, index: int) -> dict[str, Line]:
        row, display = self.rows[index], self.display
        node = row.node
        situation, style = _SIGNS[_health(row)]
        slots = f" of {node.places}" if node.places and row.is_alive else ""
        return {
            "state": ((f"{display.glyphs.situation[situation]} {_state_word(row)}", style),),
            "node": ((cell_safe(row.title), "" if row.is_alive else "dim"),),
            "host": ((cell_safe(node.host) or "-", "dim"),),
            "runs": ((f"{row.running}{slots}", "running" if row.running else "dim"),),
            "beat": ((_beat(row, display), style if _health(row) is NodeHealth.SILENT else "dim"),),
            "up": ((largest_unit(display.now_ms - node.started_ms) if row.is_alive else "-", "dim"),),
            "version": ((cell_safe(node.chronex) or "-", "dim"),),
            "labels": ((_labels(node.labels) or "-", "dim"),),
        }


def _health(row: NodeRow) -> NodeHealth:
    """One whose word is late is shown as silent before it is given up."""
    is_late = row.state is NodeHealth.ALIVE and NodeConcern.LATE in row.concerns
    return NodeHealth.SILENT if is_late else row.state


def _state_word(row: NodeRow) -> str:
    health = _health(row)
    return _WORDS.get(health, health.value)


def _beat(row: NodeRow, display: DisplaySettings) -> str:
    """How long ago it gave its last sign of life; when it ended, where it has."""
    zone, now, node = display.board_zone, display.now_ms, row.node
    if row.state is NodeHealth.STOPPED and node.stopped_ms is not None:
        return f"stopped {stamp(node.stopped_ms, now, zone)}"
    if row.state is NodeHealth.LOST and node.lost_ms is not None:
        return f"fenced {stamp(node.lost_ms, now, zone)}"
    return f"{rounded_duration(max(now - node.seen_ms, 0))} ago"


def _labels(labels: dict[str, str]) -> str:
    return cell_safe(", ".join(f"{name}={value}" for name, value in sorted(labels.items())))


# -- one node in full -----------------------------------------------------------------------------------------


def node_lines(row: NodeRow, display: DisplaySettings, cells: int) -> list[Line]:
    """What its state means, what it runs, and who it is."""
    lines: list[Line] = []
    situation, style = _SIGNS[_health(row)]
    for number, piece in enumerate(wrap(_meaning(row, display), max(cells - 2, 10))):
        mark = f"{display.glyphs.situation[situation]} " if number == 0 else "  "
        lines.append(((mark, style), (piece, style)))
    for concern in (one for one in row.concerns if one not in _SAID_BY_STATE):
        pieces = wrap(f"it {cell_safe(concern_words(row, concern))}", max(cells - 2, 10))
        lines += [(("  ", ""), (piece, "retry")) for piece in pieces]
    lines += [(), *_runs(row, display), (), *_identity(row, display)]
    return lines


def _meaning(row: NodeRow, display: DisplaySettings) -> str:
    """Its state as a sentence."""
    node, zone = row.node, display.board_zone
    silence = rounded_duration(max(display.now_ms - node.seen_ms, 0))
    match _health(row):
        case NodeHealth.ALIVE:
            return "works on this store"
        case NodeHealth.SILENT:
            outcome = "; when it stays silent, others take over what it runs" if node.lease_ms else ""
            return f"late: no heartbeat for {silence}; it hangs, or is cut off{outcome}"
        case NodeHealth.DRAINING:
            by = f" (asked by {cell_safe(node.drained_by)})" if node.drained_by else ""
            return f"drains: it begins nothing more{by}; what runs here goes on to its end"
        case NodeHealth.LOST:
            when = full_stamp(node.lost_ms or node.seen_ms, zone)
            return f"fenced since {when}: it was silent, others gave it up, and it may change nothing any more"
        case NodeHealth.DEAD:
            return "died: its process is gone, and it did not say that it stops"
        case NodeHealth.STOPPED:
            how = f" to {node.stop_mode}" if node.stop_mode else ""
            by = f", asked{how} by {cell_safe(node.stop_by)}" if node.stop_by else ""
            return f"stopped in good order {full_stamp(node.stopped_ms or node.seen_ms, zone)}{by}"


def _runs(row: NodeRow, display: DisplaySettings) -> Iterator[Line]:
    if not row.work:
        yield (("runs   ", "label"), ("nothing now", "dim"))
    for number, one in enumerate(row.work):
        task = "" if one.task == "main" else f" {cell_safe(one.task)}"
        label = "runs" if row.is_alive else "began"
        yield (
            (f"{label if number == 0 else '':7}", "label"),
            (f"{cell_safe(one.job)}{task}", "running" if row.is_alive else "retry"),
            (f"  {_spent(one, row, display)}", ""),
            (f"  {_since(one, display)}try {one.number}", "dim"),
        )


def _spent(one: NodeWork, row: NodeRow, display: DisplaySettings) -> str:
    """Of what a node began that is gone now nobody counts the time: it may have ended long ago."""
    if one.since_ms is None:
        return "about to start"
    return elapsed(display.now_ms - one.since_ms) if row.is_alive else "outcome unknown"


def _since(one: NodeWork, display: DisplaySettings) -> str:
    return "" if one.since_ms is None else f"since {exact_clock_time(one.since_ms, display.board_zone)}, "


def _identity(row: NodeRow, display: DisplaySettings) -> Iterator[Line]:
    node = row.node
    facts = [
        ("id", cell_safe(node.id)),
        ("host", f"{cell_safe(node.host) or '-'}, pid {node.process.pid}"),
        ("since", full_stamp(node.started_ms, display.board_zone)),
        ("labels", _labels(node.labels)),
        ("epoch", str(node.epoch) if node.lease_ms else ""),
        ("lease", f"{rounded_duration(node.lease_ms)}, renewed by every heartbeat" if node.lease_ms else ""),
    ]
    yield from (((f"{label:7}", "label"), (text, "")) for label, text in facts if text)


def no_nodes(*, is_daemon_expected: bool, command: str) -> list[Line]:
    lines: list[Line] = [(), (("No scheduler has worked on this store yet.", "bold"),)]
    if is_daemon_expected:
        lines += [(), (("Jobs start only while one runs: ", ""), (cell_safe(command), "key"))]
    return lines
