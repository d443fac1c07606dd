"""`chronex nodes`: the schedulers that work or worked on the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, choose
from chronex.cli.output import hinted, out, padded, paint, print_json, print_result, shown_zone, width
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.records import Node
    from chronex.timing.zones import Zone
    from chronex.views.nodes import NodeRow

_COLOURS = {"alive": "green", "silent": "yellow", "dead": "red"}
_HEAD = ("STATE", "NAME", "NODE", "PID", "HOST", "VERSION", "STARTED", "HEARTBEAT", "RUNNING")
_NAME = _HEAD.index("NAME")


def nodes(
    action: Annotated[
        str | None, typer.Argument(help="drain, undrain or forget; without one they are listed.", metavar="[ACTION")
    ] = None,
    name: Annotated[str | None, typer.Argument(help="The node: its name, id or host.", metavar="NODE]")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that have stopped or died.")] = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """List the schedulers of the store: process, host, version, last heartbeat, and whether each lives.

    On a store that machines share, `drain` lets a node begin nothing more, `undrain` lets it begin again, `forget`
    gives up one that will never come back, so that its work need not wait for it.

    Example: chronex nodes drain db-2
    """

    check_format(form)
    if action is not None:
        choose("nodes", action, ("drain", "undrain", "forget"))
        if name is None:
            raise UsageError(f"which node? chronex nodes {action} NODE; chronex nodes lists them")
        return run_action(action, name, store, form)
    return run_nodes(store, form, every=every)


def run_action(action: str, name: str, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine.commands.nodes import drain_node, forget_node

    with open_session(store) as session:
        actor = session.actor
        if action == "forget":
            node = session.change(lambda records: forget_node(records, name, actor), use_reserve=True)
            text = "given up: what it had started is taken over by the next look of another node"
        else:
            draining = action == "drain"
            node = session.change(lambda records: drain_node(records, name, actor, draining=draining))
            text = _drained_text(node, draining=draining)
    print_result(form, lambda: {"node": node.id, "host": node.host, "action": action}, lambda: [f"{node.id}: {text}"])
    return 0


def _drained_text(node: Node, *, draining: bool) -> str:
    if node.stopped_ms is not None:
        return f"has stopped; once it is back it begins {'nothing' if draining else 'work'}"
    return "begins nothing more; what runs there goes on" if draining else "begins work again"


def run_nodes(store: str | None, form: str, *, every: bool) -> int:
    from chronex.cli.record_output import node_json
    from chronex.cli.store_session import read_store_now
    from chronex.run import is_alive
    from chronex.views.nodes import nodes_of

    rows, now_ms = read_store_now(store, lambda reading, now_ms: nodes_of(reading, now_ms, is_alive))
    found = [row for row in rows if every or row.is_alive]
    if form == "json":
        print_json([node_json(row) for row in found])
    elif not found:
        past = f"; {len(rows)} worked on it before: chronex nodes --all" if rows else ""
        out(hinted(f"no scheduler works on this store{past}"))
    else:
        _print_table(found, now_ms, shown_zone())
    return 0


def _print_table(rows: list[NodeRow], now_ms: int, zone: Zone) -> None:
    from chronex.text.durations import brief_duration
    from chronex.views.wording import moment

    lines: list[tuple[str, ...]] = [_HEAD]
    for row in rows:
        node = row.node
        ended = f"stopped {moment(node.stopped_ms, now_ms, zone)}" if node.stopped_ms is not None else ""
        beat = ended or f"{brief_duration(row.silent_ms)} ago"
        lines.append(
            (row.state.value, terminal_safe(row.title) if node.name else "-", node.id, str(node.process.pid),
             terminal_safe(node.host) or "-", node.chronex or "-", moment(node.started_ms, now_ms, zone), beat,
             str(row.running))
        )  # fmt: skip
    if not any(row.node.name for row in rows):  # as on most stores of one machine
        lines = [(*line[:_NAME], *line[_NAME + 1 :]) for line in lines]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        cells = [padded(text, size) for text, size in zip(line, widths, strict=True)]
        colour = "bold" if number == 0 else _COLOURS.get(line[0], "dim")
        out(" ".join([paint(cells[0], colour), *cells[1:]]).rstrip())
    out(paint(f"times in {zone.name}", "dim"))
