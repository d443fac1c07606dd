"""`chronex events`: the journal, one line an event."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, read_instant, read_since
from chronex.cli.output import out, print_json, shown_zone
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.storage.journal import Line
    from chronex.storage.ports import Store
    from chronex.storage.records import Reading
    from chronex.views.journal_events import EventQuery

_POLL_S = 1.0


def events(
    job: Annotated[str | None, typer.Argument(help="Only of this job.", metavar="JOB")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only since then: 2h, 3d, yesterday, or an ISO 8601 time.", metavar="TIME")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Nothing from this ISO 8601 time on.", metavar="TIME")] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", help="Only these: OccurrenceFailed, 'task*', …; may be repeated.", metavar="NAME"),
    ] = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", help="How many, the newest.", metavar="N", min=1, max=100_000)
    ] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Stay, and show each event as it comes.")] = False,
    names: Annotated[bool, typer.Option("--kinds", help="List the kinds of events, and what each means.")] = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Show the journal: what the schedulers and people did, one line an event, the newest last.

    Example: chronex events backup --kind 'occurrence*' --since 2h
    """

    check_format(form)
    if names:
        return _print_kinds(form)
    query = _query(job, kinds or [], since, until)
    if follow and until is not None:
        raise UsageError("--follow has no end; leave --until out")
    return run_events(query, limit, store, form, follow=follow)


def _query(job: str | None, kinds: list[str], since: str | None, until: str | None) -> EventQuery:
    from chronex.views.journal_events import EventQuery, kind_pattern

    zone = shown_zone()
    try:
        patterns = tuple(kind_pattern(kind) for kind in kinds)
    except ValueError as error:
        raise UsageError(f"--kind: {error}") from None
    until_ms = None if until is None else read_instant(until, zone, "--until")
    return EventQuery(job, patterns, read_since(since, zone), until_ms)


def _print_kinds(form: str) -> int:
    from chronex.model.event import EVENTS

    if form == "json":
        print_json(EVENTS)
    else:
        for name, meaning in EVENTS.items():
            out(f"{name:34}{meaning}")
    return 0


def run_events(query: EventQuery, limit: int, store: str | None, form: str, *, follow: bool) -> int:
    """Reads only. With `follow` until Ctrl-C, or until nobody reads the output any more."""
    from chronex.cli.event_output import event_json
    from chronex.cli.store_session import open_store
    from chronex.storage import journal
    from chronex.storage.records import Reading
    from chronex.views.journal_events import newest

    with open_store(store, interrupted=0 if follow else 130) as opened:
        opened.view(lambda tx: _must_exist(Reading(tx), query.job))
        head = opened.view(journal.head)
        # What comes meanwhile has a higher number than the head, and is left to following.
        found = [line for line in opened.view(lambda tx: newest(tx, query, limit)) if not follow or line[0] <= head]
        if follow:
            _print_lines(found, form)
            _follow(opened, query, head, form)
        elif form == "json":
            print_json([event_json(line) for line in found])
        else:
            _print_lines(found, form)
            if not found:
                out("no event fits" if any(query) else "the journal is empty")
    return 0


def _must_exist(reading: Reading, job: str | None) -> None:
    """A job that was removed still has events, which only its history tells at once."""
    from chronex.engine.commands.names import job_named
    from chronex.model.job import is_name

    if job is not None and not (is_name(job) and reading.occurrences(job, limit=1)):
        job_named(reading, job)


def _follow(store: Store, query: EventQuery, after: int, form: str, rounds: int | None = None) -> None:
    """Each event as it comes; tests end the loop after so many `rounds`."""
    from chronex.views.journal_events import following

    while (rounds is None or rounds > 0) and not _reader_is_gone():
        rounds = None if rounds is None else rounds - 1
        seen = store.wait(-1, 0)
        while True:
            found, last = store.view(partial(following, query=query, after=after))
            _print_lines(found, form)
            if last == after:
                break
            after = last
        if rounds is None:
            store.wait(seen, _POLL_S)


def _reader_is_gone() -> bool:
    """A pipe whose reader has left is noticed also while there is nothing to write."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def _print_lines(lines: Iterable[Line], form: str) -> None:
    import json

    from chronex.cli.event_output import event_json, event_text

    for line in lines:
        out(json.dumps(event_json(line)) if form == "json" else terminal_safe(event_text(line, with_data=True)))
    sys.stdout.flush()
