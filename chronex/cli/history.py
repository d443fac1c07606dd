"""`chronex history`: what became of every instant, also of those that did not run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from chronex.cli.arguments import UsageError
from chronex.cli.looking import columns, cut, looked_at, padded, print_json, since_ms
from chronex.cli.terminal import inert, out, paint, width
from chronex.cli.times import Zones, timed
from chronex.engine.commands.names import job_named
from chronex.errors import ChronexError
from chronex.model.placed import MissedSpan
from chronex.model.reasons import text_of
from chronex.model.records import Attempt, Occurrence
from chronex.model.states import OccurrenceState
from chronex.storage import keys
from chronex.storage.records import Reading
from chronex.text.suggestions import nearest
from chronex.views.wording import column, how_many, length

_PAGE = 500
# `occ_` and eight characters, which every command takes for the whole id.
_SHORT_ID = 12
_LEAST_REASON = 30
# A filter that matches nothing must not read a history of millions to the end.
_MOST_SEARCHED = 200_000
COLOURS = {
    OccurrenceState.COMPLETED: "green",
    OccurrenceState.FAILED: "red",
    OccurrenceState.FAILED_STALE: "red",
    OccurrenceState.RUNNING: "cyan",
    OccurrenceState.QUEUED: "yellow",
}


class Wanted(NamedTuple):
    job: str | None
    most: int
    states: frozenset[OccurrenceState]
    since_ms: int | None

    def takes(self, occurrence: Occurrence) -> bool:
        return not self.states or occurrence.state in self.states


def run_history(
    job: str | None, count: int, states: list[str], since: str | None, store: str | None, form: str
) -> int:
    wanted = Wanted(job, count, _states(states), since_ms(since))
    if form == "json":
        print_json(looked_at(store, lambda reading: [occurrence_json(reading, o) for o in _found(reading, wanted)]))
        return 0
    lines = looked_at(store, lambda reading: _lines(Zones(reading), list(_found(reading, wanted))))
    for line in lines:
        out(line)
    if not lines:
        out("nothing in the history" + (" fits" if states or since else " yet"))
    return 0


def _states(texts: list[str]) -> frozenset[OccurrenceState]:
    known = [state.value for state in OccurrenceState]
    for text in texts:
        if text not in known:
            meant = nearest(text, known)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            raise UsageError(f"--state: no state {text!r}; {hint}")
    return frozenset(OccurrenceState(text) for text in texts)


def _found(reading: Reading, wanted: Wanted) -> Iterator[Occurrence]:
    left = wanted.most
    for occurrence in _candidates(reading, wanted):
        if left == 0:
            return
        if wanted.takes(occurrence):
            left -= 1
            yield occurrence


def _candidates(reading: Reading, wanted: Wanted) -> Iterator[Occurrence]:
    """Newest first: of one job by its nominal time; of all jobs what runs, then what ended, by its end."""
    if wanted.job is not None:
        yield from _of_job(reading, wanted.job, wanted.since_ms)
        return
    yield from sorted(reading.active(), key=lambda o: -(o.started_ms or 0))
    after: bytes | None = None
    for _ in range(_MOST_SEARCHED // _PAGE):
        rows = reading.tx.scan(keys.FINISHED, after, _PAGE, reverse=True)
        for index, _empty in rows:
            if wanted.since_ms is not None and keys.instant_of(index) < wanted.since_ms:
                return
            occurrence = reading.get(keys.record_of(index), Occurrence)
            if occurrence is not None:
                yield occurrence
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def _of_job(reading: Reading, job: str, since: int | None) -> Iterator[Occurrence]:
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
    """A job that was removed still has one."""
    try:
        return bool(reading.occurrences(job, limit=1))
    except ChronexError:
        return False


def _lines(zones: Zones, found: list[Occurrence]) -> list[str]:
    room = max((width(o.job) for o in found), default=0)
    lines: list[str] = []
    for occurrence in found:
        zone = zones.of(occurrence.job, occurrence.version)
        took = ""
        if occurrence.started_ms is not None and occurrence.finished_ms is not None:
            took = length(occurrence.finished_ms - occurrence.started_ms)
        name = padded(occurrence.job, room)
        front = f"{column(occurrence.nominal_ms, zone)} {occurrence.id[:_SHORT_ID]} {name}"
        lines += _row(front, occurrence.state, f"{took:>7}", _reason(occurrence))
        if (older := occurrence.older) is not None:
            front = f"{column(older.from_ms, zone)} {'':{_SHORT_ID}} {name}"
            told = f"{how_many(older)} until {column(older.to_ms, zone)}: {text_of(older.reason)}"
            lines += _row(front, OccurrenceState.MISSED, " " * 7, told)
    return lines


def _row(front: str, state: OccurrenceState, took: str, reason: str) -> list[str]:
    """One line; where the terminal has no room for a reason behind it, the reason has a line of its own."""
    word = paint(f"{state.value:12}", *filter(None, [COLOURS.get(state)]))
    head = f"{front} {word} {took}"
    # What is piped somewhere is searched rather than read: there nothing is cut.
    if not sys.stdout.isatty():
        return [f"{head} {inert(reason)}".rstrip()]
    left = columns() - width(front) - 22
    if width(reason) <= left or left >= _LEAST_REASON:
        return [f"{head} {cut(reason, left)}".rstrip()]
    return [head.rstrip(), *([f"    {cut(reason, columns() - 4)}"] if reason else [])]


def _reason(occurrence: Occurrence) -> str:
    words = [text_of(occurrence.reason)] if occurrence.reason else []
    if occurrence.recovery and occurrence.started_ms is not None:
        words.append("(caught up)")
    if occurrence.manual:
        words.append(f"(triggered by {occurrence.triggered_by})" if occurrence.triggered_by else "(triggered)")
    return " ".join(words)


def occurrence_json(reading: Reading, occurrence: Occurrence) -> dict[str, Any]:
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
        "version": occurrence.version,
        "older": None if occurrence.older is None else span_json(occurrence.older),
        "attempts": [attempt_json(attempt) for attempt in sorted(attempts, key=lambda a: a.created_ms)],
    }


def span_json(span: MissedSpan) -> dict[str, Any]:
    return {
        **timed("from", span.from_ms),
        **timed("to", span.to_ms),
        "count": span.count,
        "is_more": span.is_more,
        "reason": text_of(span.reason),
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": attempt.id,
        "task": attempt.task,
        "number": attempt.number,
        "state": attempt.state.value,
        "reason": text_of(attempt.reason),
        **timed("started", attempt.started_ms),
        **timed("ended", attempt.finished_ms),
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "error": attempt.error,
        "log": attempt.log_path or None,
        "log_bytes": attempt.log_bytes,
        "log_dropped": attempt.log_dropped,
        "leftovers": attempt.leftovers,
        "errno": attempt.errno,
    }
