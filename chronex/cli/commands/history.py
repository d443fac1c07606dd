"""`chronex history`: what became of every occurrence, also of those that did not run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    print_painted,
    shown_zone,
    timed,
    width,
)
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.occurrence import MissedSpan, Occurrence
    from chronex.model.states import OccurrenceState
    from chronex.storage.records import Reading

_PAGE = 500
# `occ_` and eight characters, which every command accepts for the whole id.
_SHORT_ID = 12
_LEAST_REASON = 30
# A filter that matches nothing must not read a history of millions of occurrences to its end.
_MOST_SEARCHED = 200_000
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
        str | None, typer.Option(help="Nothing older: 2h, 3d, or an ISO 8601 time.", metavar="TIME")
    ] = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Show what became of past occurrences, newest first, each with its reason.

    Example: chronex history --state failed --since 2d
    """

    check_format(form)
    query = HistoryQuery(job, count, _states(states or []), read_since(since, shown_zone()))
    return run_history(query, store, form)


class HistoryQuery(NamedTuple):
    """The newest `most` occurrences of one job or all, in these states or all, none older than `since_ms`."""

    job: str | None
    most: int
    states: frozenset[str]
    since_ms: int | None

    def matches(self, occurrence: Occurrence) -> bool:
        from chronex.views.wording import WITH_ERRORS

        return (
            not self.states
            or occurrence.state in self.states
            or (occurrence.errors > 0 and WITH_ERRORS in self.states)
        )


def run_history(query: HistoryQuery, store: str | None, form: str) -> int:
    from chronex.cli.store_session import read_store

    if form == "json":
        print_json(read_store(store, lambda reading: [_history_json(reading, o) for o in _found(reading, query)]))
        return 0
    lines = read_store(store, lambda reading: _lines(JobZones(reading), list(_found(reading, query))))
    print_painted(lines)
    if not lines:
        out("nothing in the history" + (" fits" if query.states or query.since_ms is not None else " yet"))
    return 0


def _states(texts: list[str]) -> frozenset[str]:
    from chronex.model.states import OccurrenceState
    from chronex.text.suggestions import nearest
    from chronex.views.wording import WITH_ERRORS

    known = [*(state.value for state in OccurrenceState), WITH_ERRORS]
    for text in texts:
        if text not in known:
            meant = nearest(text, known)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            raise UsageError(f"--state: no state {text!r}; {hint}")
    return frozenset(texts)


def _found(reading: Reading, query: HistoryQuery) -> Iterator[Occurrence]:
    left = query.most
    for occurrence in _candidates(reading, query):
        if left == 0:
            return
        if query.matches(occurrence):
            left -= 1
            yield occurrence


def _candidates(reading: Reading, query: HistoryQuery) -> Iterator[Occurrence]:
    """Newest first: of one job by its nominal time; of all jobs what runs, then what ended, by its end."""
    from chronex.engine.commands.names import job_id_named
    from chronex.model.occurrence import Occurrence

    if query.job is not None:
        yield from _of_job(reading, job_id_named(reading, query.job), query.since_ms)
        return
    from chronex.storage import keys

    yield from sorted(reading.active(), key=lambda o: -(o.started_ms or 0))
    after: bytes | None = None
    for _ in range(_MOST_SEARCHED // _PAGE):
        rows = reading.tx.scan(keys.FINISHED, after, _PAGE, reverse=True)
        for index, _empty in rows:
            if query.since_ms is not None and keys.instant_of(index) < query.since_ms:
                return
            occurrence = reading.get(keys.record_of(index), Occurrence)
            if occurrence is not None:
                yield occurrence
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def _of_job(reading: Reading, job: str, since: int | None) -> Iterator[Occurrence]:
    from chronex.engine.commands.names import job_named

    before: int | None = None
    if not _has_history(reading, job):
        job_named(reading, job)
    for _ in range(_MOST_SEARCHED // _PAGE):
        page = reading.occurrences(job, before, _PAGE)
        for occurrence in page:
            if since is not None and occurrence.nominal_ms < since:
                return
            yield occurrence
        if len(page) < _PAGE:
            return
        before = page[-1].nominal_ms


def _has_history(reading: Reading, job: str) -> bool:
    """A job that was removed still has a history."""
    from chronex.errors import ChronexError

    try:
        return bool(reading.occurrences(job, limit=1))
    except ChronexError:
        return False


def _lines(zones: JobZones, found: list[Occurrence]) -> list[str]:
    from chronex.model.reasons import text_of
    from chronex.model.states import OccurrenceState
    from chronex.text.durations import brief_duration
    from chronex.views.wording import column, how_many

    name_width = max((width(zones.name_of(o.job)) for o in found), default=0)
    lines: list[str] = []
    for occurrence in found:
        zone = zones.of(occurrence.job, occurrence.version)
        took = ""
        if occurrence.started_ms is not None and occurrence.finished_ms is not None:
            took = brief_duration(occurrence.finished_ms - occurrence.started_ms)
        name = padded(zones.name_of(occurrence.job), name_width)
        front = f"{column(occurrence.nominal_ms, zone)} {occurrence.id[:_SHORT_ID]} {name}"
        colour = "yellow" if occurrence.errors else _COLOURS.get(occurrence.state)
        lines += _row(front, occurrence.state, f"{took:>7}", _reason(occurrence), colour)
        if (older := occurrence.older) is not None:
            front = f"{column(older.from_ms, zone)} {'':{_SHORT_ID}} {name}"
            reason = f"{how_many(older)} until {column(older.to_ms, zone)}: {text_of(older.reason)}"
            lines += _row(front, OccurrenceState.MISSED, " " * 7, reason, None)
    return lines


def _row(front: str, state: OccurrenceState, took: str, reason: str, colour: str | None) -> list[str]:
    """One line; on a terminal too narrow for the reason, the reason has a line of its own."""
    word = paint(f"{state.value:12}", *filter(None, [colour]))
    head = f"{front} {word} {took}"
    # Output in a pipe is searched rather than read, so nothing is cut there.
    if not sys.stdout.isatty():
        return [f"{head} {terminal_safe(reason)}".rstrip()]
    left = columns() - width(front) - 22
    if width(reason) <= left or left >= _LEAST_REASON:
        return [f"{head} {cut(reason, left)}".rstrip()]
    return [head.rstrip(), *([f"    {cut(reason, columns() - 4)}"] if reason else [])]


def _reason(occurrence: Occurrence) -> str:
    from chronex.model.reasons import text_of
    from chronex.views.wording import state_words

    words = [text_of(occurrence.reason)] if occurrence.reason else []
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


def _history_json(reading: Reading, occurrence: Occurrence) -> dict[str, Any]:
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
        "only": list(occurrence.only),
        "overrides": overrides_json(occurrence),
        "errors": occurrence.errors,
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
