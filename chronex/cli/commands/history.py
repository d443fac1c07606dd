"""`chronex history`: what became of every occurrence, also of those that did not run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, read_since
from chronex.cli.output import (
    JobZones,
    columns,
    cut,
    out,
    padded,
    paint,
    print_json,
    print_styled,
    shown_zone,
    timed,
    width,
)
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.engine.usual import RunUsage
    from chronex.model.occurrence import MissedSpan, Occurrence
    from chronex.storage.records import Reading
    from chronex.views.nodes import Watch
    from chronex.views.past_runs import HistoryQuery
    from chronex.views.troubles import Trouble

# `occ_` and eight characters, which every command accepts for the whole id.
_SHORT_ID = 12
_LEAST_REASON = 30
_COLOURS = {
    "completed": "green",
    "failed": "red",
    "failed_stale": "red",
    "running": "cyan",
    "queued": "yellow",
}


def history(
    job: Annotated[str | None, typer.Argument(help="Only this job.", metavar="JOB")] = None,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.", metavar="N", min=1, max=100_000)] = 20,
    states: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only these: failed, missed, …; may be repeated.", metavar="STATE"),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only since then: 2h, 3d, yesterday, or an ISO 8601 time.", metavar="TIME")
    ] = None,
    store: StorePath = None,
    form: Form = "text",
    wide: Annotated[bool, typer.Option("--wide", help="Also the node that ran each, and what it took.")] = False,
    node: Annotated[
        str | None, typer.Option(help="Only what this node ran: its name, host or id.", metavar="NODE")
    ] = None,
) -> int:
    """Show what became of past occurrences, newest first, each with its reason.

    Example: chronex history --state failed --since 2d
    """

    from chronex.views.past_runs import HistoryQuery

    check_format(form)
    query = HistoryQuery(job, count, _states(states or []), read_since(since, shown_zone()))
    if node is not None:
        query = query._replace(owners=_owners(node, store))
    return run_history(query, store, form, wide=wide or node is not None)


def _owners(name: str, store: str | None) -> frozenset[str]:
    """Every node that this name stands for: a machine has had one for each start of its scheduler."""
    from chronex.cli.store_session import read_store
    from chronex.text.suggestions import nearest
    from chronex.views.nodes import called

    nodes = read_store(store, lambda reading: reading.nodes())
    found = frozenset(node.id for node in nodes if called(node, name))
    if found:
        return found
    meant = nearest(name, (word for node in nodes for word in (node.name, node.host, node.id) if word))
    raise UsageError(f"--node: no node is called {name!r}" + (f"; did you mean {meant}?" if meant else ""))


def run_history(query: HistoryQuery, store: str | None, form: str, *, wide: bool = False) -> int:
    from chronex.cli.store_session import print_troubles, read_store, read_store_now, store_watch, troubles_of
    from chronex.model.states import is_final
    from chronex.views.nodes import WATCHED
    from chronex.views.past_runs import past_occurrences

    if form == "json":
        print_json(
            read_store(store, lambda reading: [_history_json(reading, o) for o in past_occurrences(reading, query)])
        )
        return 0

    def find(reading: Reading, now_ms: int) -> tuple[list[str], list[Trouble]]:
        found = list(past_occurrences(reading, query))
        is_open = any(not is_final(one.state) for one in found)  # then it matters whether a scheduler runs
        watch = store_watch(reading, now_ms) if is_open else WATCHED
        troubles = troubles_of(reading, now_ms) if is_open else []
        return _lines(JobZones(reading), found, reading if wide else None, watch), troubles

    (lines, troubles), _ = read_store_now(store, find)
    print_styled(lines)
    print_troubles(troubles)
    if not lines:
        out("nothing in the history" + (" fits" if query.states or query.since_ms is not None else " yet"))
    return 0


def _states(texts: list[str]) -> frozenset[str]:
    from chronex.views.past_runs import STATES, unknown_state

    for text in texts:
        if text not in STATES:
            raise UsageError(f"--state: no state {text!r}; {unknown_state(text)}")
    return frozenset(texts)


def _lines(zones: JobZones, found: list[Occurrence], wide: Reading | None, watch: Watch) -> list[str]:
    """With `wide` what each took is read as well."""
    from chronex.cli.process_output import usage_text
    from chronex.model.reasons import text_of
    from chronex.model.states import OccurrenceState
    from chronex.text.durations import brief_duration
    from chronex.views.wording import column, how_many

    name_width = max((width(zones.name_of(o.job)) for o in found), default=0)
    owners = {} if wide is None else _named_owners(wide, found)
    node_width = max((width(name) for name in owners.values()), default=0)
    lines: list[str] = []
    for occurrence in found:
        zone = zones.of(occurrence.job, occurrence.version)
        took = ""
        if occurrence.started_ms is not None and occurrence.finished_ms is not None:
            took = brief_duration(occurrence.finished_ms - occurrence.started_ms)
        name = padded(zones.name_of(occurrence.job), name_width)
        front = f"{column(occurrence.nominal_ms, zone)} {occurrence.id[:_SHORT_ID]} {name}"
        if node_width:
            front += f" {padded(owners.get(occurrence.owner, ''), node_width)}"
        colour = "yellow" if occurrence.errors else _COLOURS.get(occurrence.state)
        left = watch.left_of(occurrence.job, occurrence.nominal_ms)
        words = " ".join((*(one.words for one in left[:1]), _reason(occurrence)))
        if wide is not None and (used := _used(wide, occurrence)) is not None:
            words = f"[{usage_text(used)}] {words}"
        is_unknown = bool(left) and not any(one.is_alive for one in left)
        state = "unknown" if is_unknown else occurrence.state.value
        lines += _row(front, state, f"{took:>7}", words.strip(), colour)
        if (older := occurrence.older) is not None:
            front = f"{column(older.from_ms, zone)} {'':{_SHORT_ID}} {name}" + " " * (node_width and node_width + 1)
            reason = f"{how_many(older)} until {column(older.to_ms, zone)}: {text_of(older.reason)}"
            lines += _row(front, OccurrenceState.MISSED.value, " " * 7, reason, None)
    return lines


def _named_owners(reading: Reading, found: list[Occurrence]) -> dict[str, str]:
    """What each node is called: on a shared store by its name, where a machine has had many ids."""
    owners = {occurrence.owner for occurrence in found if occurrence.owner}
    nodes = {owner: reading.node(owner) for owner in owners}
    return {
        owner: terminal_safe(node.name) if node is not None and node.lease_ms and node.name else owner
        for owner, node in nodes.items()
    }


def _row(front: str, state: str, took: str, reason: str, colour: str | None) -> list[str]:
    """One line; on a terminal too narrow for the reason, the reason has a line of its own."""
    word = paint(f"{state:12}", *filter(None, [colour]))
    head = f"{front} {word} {took}"
    # Output in a pipe is searched rather than read, so nothing is cut there.
    if not sys.stdout.isatty():
        return [f"{head} {terminal_safe(reason)}".rstrip()]
    left = columns() - width(front) - 22
    if width(reason) <= left or left >= _LEAST_REASON:
        return [f"{head} {cut(reason, left)}".rstrip()]
    return [head.rstrip(), *([f"    {cut(reason, columns() - 4)}"] if reason else [])]


def _reason(occurrence: Occurrence) -> str:
    from chronex.model.reasons import shown_text
    from chronex.views.wording import state_words

    words = [shown_text(occurrence.reason)] if occurrence.reason else []
    if occurrence.errors:
        words.insert(0, f"{state_words(occurrence.state, occurrence.errors)} ({occurrence.errors}):")
    if occurrence.recovery and occurrence.started_ms is not None:
        words.append("(caught up)")
    if occurrence.manual:
        words.append(f"({_asked(occurrence)})")
    return " ".join(words)


def _asked(occurrence: Occurrence) -> str:
    """Who asked for it, for what and why."""
    words = [f"replay of {occurrence.replay_of[:_SHORT_ID]}" if occurrence.replay_of else "triggered"]
    if occurrence.only:
        words.append(f"only {', '.join(occurrence.only)}")
    if occurrence.triggered_by:
        words.append(f"by {occurrence.triggered_by}")
    return " ".join(words) + (f": {occurrence.asked_for}" if occurrence.asked_for else "")


def _used(reading: Reading, occurrence: Occurrence) -> RunUsage | None:
    from chronex.engine.usual import usage_of

    if occurrence.started_ms is None:
        return None
    return usage_of(reading.attempts(occurrence.job, occurrence.nominal_ms))


def _history_json(reading: Reading, occurrence: Occurrence) -> dict[str, Any]:
    from chronex.cli.process_output import usage_json
    from chronex.cli.record_output import attempt_json, overrides_json
    from chronex.model.reasons import text_of

    attempts = reading.attempts(occurrence.job, occurrence.nominal_ms) if occurrence.started_ms is not None else []
    return {
        "id": occurrence.id,
        "job": occurrence.job,
        **timed("nominal", occurrence.nominal_ms),
        **timed("due", occurrence.due_ms),
        **timed("started", occurrence.started_ms),
        **timed("ended", occurrence.finished_ms),
        "state": occurrence.state.value,
        "reason": text_of(occurrence.reason),
        "recovery": occurrence.recovery,
        "manual": occurrence.manual,
        "triggered_by": occurrence.triggered_by or None,
        "replay_of": occurrence.replay_of or None,
        "asked_for": occurrence.asked_for or None,
        **timed("scheduled", occurrence.scheduled_ms),
        "moved_by": occurrence.moved_by or None,
        "only": list(occurrence.only),
        "overrides": overrides_json(occurrence),
        "errors": occurrence.errors,
        "usage": usage_json(_used(reading, occurrence)),
        "node": occurrence.owner or None,
        "version": occurrence.version,
        "older": None if occurrence.older is None else _span_json(occurrence.older),
        "attempts": [attempt_json(attempt) for attempt in sorted(attempts, key=lambda a: a.created_ms)],
    }


def _span_json(span: MissedSpan) -> dict[str, Any]:
    from chronex.model.reasons import text_of

    return {
        **timed("from", span.from_ms),
        **timed("to", span.to_ms),
        "count": span.count,
        "is_more": span.is_more,
        "reason": text_of(span.reason),
    }
