"""`chronex status`: one screen as text, or the same as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format
from chronex.cli.output import columns, cut, hinted, out, paint, print_json, shown_zone, timed
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.file_changes import StaleCalendar
    from chronex.model.job import Job
    from chronex.timing.zones import Zone
    from chronex.views.jobs import Row, Situation
    from chronex.views.nodes import LeftAttempt, NodeRow, Watch
    from chronex.views.status import OutageCard, StoreStatus
    from chronex.views.troubles import Trouble
    from chronex_store import Space
    from chronex_store.opening import OpenedStore

_CLEAR = "\x1b[H\x1b[2J"
_REFRESH_S = 2.0
_LEAST_DISK_BYTES = 256 * 1024
_NEARLY_FULL = 0.7  # the first mark of daemon/retention.py
_MOST_NAMED = 5
_OUTAGE_WORDS = {
    "asleep": "asleep",
    "clock": "clock set forward",
    "stalled": "stopped or starved",
    "full": "no free space in the store",
    "down": "not running",
}


def status(
    store: StorePath = None,
    form: Form = "text",
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and show every change.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when something needs attention.")] = False,
) -> int:
    """Show on one screen whether a scheduler runs, what runs and comes next, and what needs attention.

    Example: chronex status
    """

    check_format(form)
    return run_status(store, form, watch=watch, check=check)


def run_status(store: str | None, form: str, *, watch: bool, check: bool) -> int:
    """0; with `check` 1 when something needs attention."""
    from chronex.cli.store_session import open_store

    if watch and form != "text":
        raise UsageError("--watch is for people; use --format json without it")
    with open_store(store) as opened:
        while True:
            seen = opened.wait(-1, 0)
            now_ms = opened.now()
            found = _read(opened, now_ms)
            stale = _stale(found, now_ms)
            if form == "json":
                print_json(status_json(found, opened, now_ms, stale))
            else:
                _print(found, opened, now_ms, stale, clear=watch and sys.stdout.isatty())
            if not watch:
                return 1 if check and _attention(found, opened, stale, now_ms) else 0
            opened.wait(seen, _REFRESH_S)


def _read(store: OpenedStore, now_ms: int) -> StoreStatus:
    from chronex.run import boot_id, is_alive
    from chronex.storage.records import Reading
    from chronex.views.status import store_status

    return store.view(lambda tx: store_status(Reading(tx), now_ms, is_alive, boot_id()))


def _stale(found: StoreStatus, now_ms: int) -> list[StaleCalendar]:
    """Calendars whose sources say something else now; a store without any loads nothing."""
    if not found.with_calendars:
        return []
    from chronex.cli.file_changes import stale_calendars

    return stale_calendars(found.with_calendars, now_ms)


def status_json(
    found: StoreStatus, store: OpenedStore, now_ms: int, stale: Sequence[StaleCalendar] = ()
) -> dict[str, Any]:
    from chronex.cli.group_output import group_json
    from chronex.cli.record_output import node_json
    from chronex.model.reasons import text_of
    from chronex.views.troubles import trouble_json

    daemon, space = found.summary.daemon, _space(store)
    troubles = _attention(found, store, stale, now_ms)
    return {
        **timed("at", now_ms),
        "daemon": None if daemon is None else {
            "node": daemon.id, "host": daemon.host, "pid": daemon.process.pid, "version": daemon.chronex,
            **timed("started", daemon.started_ms),
        },
        "nodes": [node_json(row) for row in found.nodes],
        "given_up": [node_json(row) for row in found.fallen],
        "jobs": found.summary.jobs,
        "counts": {situation.value: count for situation, count in found.summary.counts.items()},
        "running": [
            *(_brief(row) | timed("since", row.running_since_ms) for row in found.running),
            *({"job": one.job, **timed("since", one.started_ms)} for one in found.running_removed),
        ],
        "left": [_left_json(one) for one in found.watch.left],
        "queued": found.summary.queued,
        "groups": [group_json(row) for row in found.groups],
        "next": [_brief(row) | timed("due", row.next.due_ms if row.next else None) for row in found.upcoming],
        "failing": [_brief(row) | {"failures": row.job.progress.counters.failures_in_a_row, "reason": _reason(row)}
                    for row in found.failing],
        "with_errors": [_brief(row) | {"errors": row.last.errors, "reason": _reason(row)}
                        for row in found.with_errors if row.last],
        "retrying": [_brief(row) | {"task": retry.task, "attempt": retry.attempt, **timed("at", retry.at_ms),
                                    "reason": text_of(retry.reason)}
                     for row in found.retrying if (retry := row.retry)],
        "late": [{"job": job.id, **timed("since", job.progress.late_ms)} for job in found.late],
        "unserved": [{"job": job.id, "functions": list(functions)} for job, functions in found.unserved],
        "dead_letters": found.summary.dead_letters,
        "notices": found.notices,
        "hooks": found.hooks,
        "outage": None if found.card is None else _outage_json(found.card),
        "store": None if space is None else {
            "used_bytes": space.used_bytes, "map_bytes": space.map_bytes, "disk_bytes": space.disk_bytes,
        },
        "calendars": [
            {"calendar": one.name, "problem": one.problem, "jobs": list(one.jobs), "moved_from": one.moved_from}
            for one in stale
        ],
        "attention": [one.sentence for one in troubles],
        "troubles": [trouble_json(one) for one in troubles],
        "channels": [
            {"channel": row.state.channel, "waiting": row.waiting, "undeliverable": row.undeliverable,
             "dropped": row.state.dropped, "problem": row.state.problem or None}
            for row in found.channels
        ],
    }  # fmt: skip


def _attention(found: StoreStatus, store: OpenedStore, stale: Sequence[StaleCalendar], now_ms: int) -> list[Trouble]:
    """What needs attention; a full disk or map keeps the store from recording it, so that is added here."""
    from chronex.cli.file_changes import unapplied_changes
    from chronex.model.reasons import Severity, TroubleCode
    from chronex.views.troubles import Trouble

    moved = [
        Trouble(Severity.WARNING, TroubleCode.CALENDAR_MOVED, one.problem, "chronex apply --dry-run shows it")
        for one in stale
    ]
    return [*_of_store(found, store), *found.troubles(now_ms), *moved, *unapplied_changes(store)]


def _of_store(found: StoreStatus, store: OpenedStore) -> list[Trouble]:
    from chronex.model.reasons import Severity, TroubleCode
    from chronex.views.troubles import Trouble

    space = _space(store)
    if space is None:
        return []
    if space.disk_bytes < _LEAST_DISK_BYTES:
        words = "the disk of the store is full"
        hint = "no runs start, or soon none will, until there is free space"
        return [Trouble(Severity.ERROR, TroubleCode.DISK_FULL, words, hint)]
    used = f"{space.ratio:.0%} of its space is used"
    if space.is_map_low or found.is_full:
        hint = "no runs start until there is free space; keep less history"
        return [Trouble(Severity.ERROR, TroubleCode.STORE_FULL, f"the store is full ({used})", hint)]
    if space.ratio >= _NEARLY_FULL:
        words = f"the store is nearly full ({used})"
        return [Trouble(Severity.WARNING, TroubleCode.STORE_NEARLY_FULL, words, "keep less history")]
    return []


def _space(store: OpenedStore) -> Space | None:
    """None for a database: its server has its own watch over its disk."""
    from chronex_store.lmdb_store import LmdbStore

    return store.space() if isinstance(store, LmdbStore) else None


def _left_json(left: LeftAttempt) -> dict[str, Any]:
    attempt = left.attempt
    return {
        "job": attempt.job,
        "task": attempt.task,
        "attempt": attempt.number,
        "pid": None if attempt.process is None else attempt.process.pid,
        "is_alive": left.is_alive,
        **timed("since", attempt.started_ms),
    }


def _brief(row: Row) -> dict[str, Any]:
    return {"job": row.job.id}


def _reason(row: Row) -> str:
    from chronex.model.reasons import text_of

    return text_of(row.last.reason) if row.last is not None else ""


def _outage_json(card: OutageCard) -> dict[str, Any]:
    outage = card.outage
    return {
        "kind": outage.kind,
        **timed("from", outage.from_ms),
        **timed("until", outage.until_ms),
        "occurrences": card.occurrences,
        "run": card.run,
        "skipped": card.skipped,
        "is_more": card.is_more,
    }


def _print(
    found: StoreStatus, store: OpenedStore, now_ms: int, stale: Sequence[StaleCalendar], *, clear: bool
) -> None:
    # Output in a pipe is searched rather than read, so nothing is cut there.
    limit = columns() if sys.stdout.isatty() else None
    zone = shown_zone()
    lines = [cut(line, limit) for line in _lines(found, store, now_ms, zone)]
    needed = _attention(found, store, stale, now_ms)
    if clear:
        sys.stdout.write(_CLEAR)
    for line in lines:
        out(line)
    if needed:
        for one in needed:
            colour = "red" if one.severity == "error" else "yellow"
            out(paint(terminal_safe(hinted(f"needs attention: {one.sentence}")), colour))
    elif not found.summary.jobs:
        out(hinted("no jobs yet; write a chronex.toml and run: chronex apply"))
    else:
        out(paint("all is well", "green"))
    sys.stdout.flush()


def _lines(found: StoreStatus, store: OpenedStore, now_ms: int, zone: Zone) -> Iterator[str]:
    from chronex.model.reasons import text_of
    from chronex.text.durations import brief_duration
    from chronex.views.status import MOST_LISTED
    from chronex.views.wording import moment, upcoming_if

    summary = found.summary
    daemon, watch = summary.daemon, found.watch
    if daemon is None:
        yield "scheduler  not running"
    else:
        up = brief_duration(max(0, now_ms - daemon.started_ms))
        yield f"scheduler  running for {up}: {daemon.id}, pid {daemon.process.pid}, chronex {daemon.chronex}"
    yield from _node_lines(found, now_ms)
    counts = ", ".join(
        f"{count} {_counted(situation, watch)}" for situation, count in summary.counts.items() if count
    )
    yield f"jobs       {summary.jobs}" + (f": {counts}" if counts else "")
    yield from _running_lines(found, now_ms, zone)
    yield from _group_lines(found)
    for row in found.retrying[:MOST_LISTED]:
        if (retry := row.retry) is not None:
            when = upcoming_if(retry.at_ms, now_ms, zone, has_scheduler=watch.has_scheduler)
            what = f"{retry.task}, attempt {retry.attempt} {when} ({text_of(retry.reason)})"
            yield f"  retry    {_name(row.job)}: {what}"
    for row in found.failing[:MOST_LISTED]:
        often = row.job.progress.counters.failures_in_a_row
        times = f"{often} times in a row, " if often > 1 else ""
        yield f"  failing  {_name(row.job)}: {times}{_reason(row)}"
    for row in found.with_errors[:MOST_LISTED]:
        yield f"  errors   {_name(row.job)}: completed with errors, {_reason(row)}"
    for job in found.late[:MOST_LISTED]:
        since = moment(job.progress.late_ms or 0, now_ms, zone)
        yield f"  late     {_name(job)}: nothing completed since {since} was due"
    for row in found.upcoming[:5]:
        if row.next is not None:
            when = upcoming_if(row.next.due_ms, now_ms, zone, has_scheduler=watch.has_scheduler)
            yield f"  next     {_name(row.job)}: {when}"
    if found.card is not None:
        yield f"outage     {_outage_text(found.card, now_ms, zone)}"
    yield f"times      in {zone.name}"
    yield from _space_lines(store)


def _counted(situation: Situation, watch: Watch) -> str:
    """What no scheduler watches may have ended."""
    return situation.value if watch.has_scheduler or situation != "running" else "left"


def _running_lines(found: StoreStatus, now_ms: int, zone: Zone) -> Iterator[str]:
    from chronex.text.durations import brief_duration
    from chronex.views.status import MOST_LISTED
    from chronex.views.wording import moment

    summary, watch = found.summary, found.watch
    begun = f"{summary.running} running" if watch.has_scheduler else f"{summary.running} begun and not over"
    yield f"now        {begun}, {summary.queued} queued, {_dead_letters_text(summary.dead_letters)}"
    for left in watch.left[:MOST_LISTED]:
        since = f" since {moment(left.attempt.started_ms, now_ms, zone)}" if left.attempt.started_ms else ""
        yield f"  left     {terminal_safe(left.attempt.job)}{since}: {left.words}"
    listed = {one.attempt.job for one in watch.left} | {row.job.id for row in found.retrying}
    for row in [row for row in found.running if row.job.id not in listed][:MOST_LISTED]:
        since = (
            "" if row.running_since_ms is None else f" for {brief_duration(max(0, now_ms - row.running_since_ms))}"
        )
        yield f"  running  {_name(row.job)}{since}"
    for one in [one for one in found.running_removed if one.job not in listed][:MOST_LISTED]:
        since = brief_duration(max(0, now_ms - (one.started_ms or now_ms)))
        yield f"  running  {one.job} for {since}, whose job is removed"


def _group_lines(found: StoreStatus) -> Iterator[str]:
    """Those for which somebody waits; `chronex groups` lists them all."""
    from chronex.model.reasons import text_of
    from chronex.views.status import MOST_LISTED

    for row in [row for row in found.groups if row.waiting][:MOST_LISTED]:
        first = row.first[0]
        words = terminal_safe(f"{first.job}: {text_of(first.reason)}")
        more = f", and {row.waiting - 1} more wait" if row.waiting > 1 else ""
        yield f"  waiting  {words}{more}"


def _space_lines(store: OpenedStore) -> Iterator[str]:
    space = _space(store)
    if space is not None:
        yield f"store      {space.used_bytes / 1e6:.1f} MB, {space.ratio:.0%} of its space"


def _node_lines(found: StoreStatus, now_ms: int) -> Iterator[str]:
    """Where there are several schedulers, or one gives no sign of life; `chronex nodes` lists them in any case."""
    from chronex.text.durations import brief_duration
    from chronex.views.nodes import NodeHealth, concern_words
    from chronex.views.status import MOST_LISTED

    is_plain = not found.fallen and not any(row.concerns for row in found.nodes)
    if is_plain and len(found.nodes) < 2 and all(row.state is NodeHealth.ALIVE for row in found.nodes):
        return
    for row in found.nodes[:MOST_LISTED]:
        beat = f"heartbeat {brief_duration(row.silent_ms)} ago"
        who = f"{row.node.id}, pid {row.node.process.pid} on {row.node.host}"
        yield f"  {row.state.value:8} {_called(row)}{who}, {beat}{_work_words(row)}"
        yield from (f"           {concern_words(row, one)}" for one in row.concerns)
    for row in found.fallen[:MOST_LISTED]:
        when = f"{brief_duration(max(0, now_ms - (row.node.lost_ms or now_ms)))} ago"
        concerns = "".join(concern_words(row, one) for one in row.concerns)
        yield f"  given up {_called(row)}{row.node.id} on {row.node.host}, {when}: {concerns}"


def _called(row: NodeRow) -> str:
    """The name that a person gave it, where that is not its host's."""
    return "" if row.name in (row.node.host, row.node.id) else f"{terminal_safe(row.name)}: "


def _work_words(row: NodeRow) -> str:
    """Which jobs it runs, on a store that others work on too."""
    if not row.node.lease_ms or not row.work:
        return ""
    names = list(dict.fromkeys(one.job for one in row.work))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f", runs {', '.join(names[:_MOST_NAMED])}{more}"


def _name(job: Job) -> str:
    return terminal_safe(job.shown_name)


def _dead_letters_text(count: int) -> str:
    return f"{count} dead letter{'s' if count != 1 else ''}"


def _outage_text(card: OutageCard, now_ms: int, zone: Zone) -> str:
    from chronex.views.wording import moment

    begin, end = card.outage.from_ms or 0, card.outage.until_ms or now_ms
    span = f"{moment(begin, now_ms, zone)} to {moment(end, now_ms, zone)}"
    more = "more than " if card.is_more else ""
    many = f"{more}{card.occurrences} occurrence{'s' if card.occurrences != 1 else ''}"
    return f"{_OUTAGE_WORDS[card.outage.kind]} {span}: {many}, {card.run} run, {card.skipped} skipped"
