"""`chronex logs --grep`: the lines of all attempts that match, as they are found; and `logs -f` over all jobs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from chronex.cli.options import UsageError, store_location
from chronex.cli.output import err, out, paint, shown_zone, timed, zone_of
from chronex.cli.store_session import open_store
from chronex.errors import LogDirectoryError
from chronex.model.occurrence import Attempt, attempt_id, occurrence_id, run_id
from chronex.model.states import AttemptState
from chronex.run.attempt_log import DEFAULT_LIMIT, LogDirectory, LogReader
from chronex.run.log_search import FoundLine, LogQuery, matching_lines, names_with_matches, pieces_of, query_of
from chronex.storage.logged_attempts import LoggedAttempt, logged_attempts
from chronex.storage.records import Reading
from chronex.text.terminal import terminal_safe
from chronex.views.wording import moment
from chronex_store.opening import OpenedStore, StoreLocation, host_identity, state_directory

_LONGEST_SHOWN = 2_000
_MOST_FOLLOWED = 200
_POLL_S = 0.2


class SearchOptions(NamedTuple):
    """What is looked for, and in which attempts; times are those at which attempts began."""

    text: str
    is_regex: bool = False
    ignores_case: bool = False
    since_ms: int | None = None
    until_ms: int | None = None
    jobs: str | None = None
    states: tuple[str, ...] = ()
    context: int = 0


def run_search(options: SearchOptions, store: str | None, form: str) -> int:
    """0 where something was found, 1 where nothing was, as grep has it."""
    query = _query(options)
    with open_store(store) as opened:
        location = store_location(store)
        logs = state_directory(location) / "logs"
        if not logs.is_dir():
            return _printed((), opened, form)
        directory = LogDirectory(logs)
        try:
            elsewhere = _elsewhere(opened, location)
            return _printed(_found(opened, directory, query, options, elsewhere), opened, form)
        finally:
            directory.close()


def _query(options: SearchOptions) -> LogQuery:
    if not options.text:
        raise UsageError("--grep looks for nothing; write a text")
    try:
        return query_of(options.text, is_regex=options.is_regex, ignores_case=options.ignores_case)
    except re.error as error:
        raise UsageError(f"--grep: {options.text[:60]!r} is not a regular expression: {error}") from None


class Hit(NamedTuple):
    attempt: LoggedAttempt
    line: FoundLine


def _found(
    store: OpenedStore,
    directory: LogDirectory,
    query: LogQuery,
    options: SearchOptions,
    elsewhere: Callable[[str], bool],
) -> Iterator[Hit]:
    """Page by page: at no time more than one page of records is held, nor more than a piece of one log."""
    fits = _filter(options)
    skipped = 0
    for page in _pages(store):
        chosen = [one for one in page if fits(one)]
        here = {one.log_path: one for one in chosen if not elsewhere(one.owner)}
        skipped += len(chosen) - len(here)
        for name in names_with_matches(directory, here, query):
            yield from _lines_of(directory, here[name], query, options.context)
    if skipped:
        err(f"{skipped} logs lie on other machines and were not searched; run it there")


def _pages(store: OpenedStore) -> Iterator[list[LoggedAttempt]]:
    after: bytes | None = None
    while True:
        page, after = store.view(lambda tx, since=after: logged_attempts(tx, since))  # type: ignore[misc]
        yield page
        if after is None:
            return


def _lines_of(directory: LogDirectory, attempt: LoggedAttempt, query: LogQuery, context: int) -> Iterator[Hit]:
    is_over = attempt.state != AttemptState.RUNNING.value
    try:
        pieces = pieces_of(directory, attempt.log_path, attempt.log_limit or DEFAULT_LIMIT, is_over=is_over)
        for line in matching_lines(pieces, query, context):
            yield Hit(attempt, line)
    except LogDirectoryError:
        return  # retention has removed it meanwhile


def _filter(options: SearchOptions) -> Callable[[LoggedAttempt], bool]:
    pattern, states = options.jobs, frozenset(options.states)

    @cache
    def is_wanted(job: str) -> bool:
        return pattern is None or fnmatchcase(job, pattern)

    def fits(one: LoggedAttempt) -> bool:
        began_ms = one.started_ms if one.started_ms is not None else one.created_ms
        return (
            is_wanted(one.job)
            and (not states or one.state in states)
            and (options.since_ms is None or began_ms >= options.since_ms)
            and (options.until_ms is None or began_ms < options.until_ms)
        )

    return fits


def _elsewhere(store: OpenedStore, location: StoreLocation) -> Callable[[str], bool]:
    """Whether the node ran on another machine, which then has the log."""
    if isinstance(location, Path):
        return lambda _owner: False
    nodes = {node.id: node for node in store.view(lambda tx: Reading(tx).nodes())}
    here = host_identity(state_directory(location), create=False)
    return lambda owner: owner in nodes and nodes[owner].host_id != here


# -- as text and as JSON ------------------------------------------------------------------------------------------


def _printed(hits: Iterator[Hit] | tuple[()], store: OpenedStore, form: str) -> int:
    return _print_json(hits) if form == "json" else _print_text(hits, store)


def _print_text(hits: Iterator[Hit] | tuple[()], store: OpenedStore) -> int:
    shown: LoggedAttempt | None = None
    last = 0
    for attempt, line in hits:
        if attempt != shown:
            out(paint(_heading(store, attempt), "bold"))
            shown, last = attempt, 0
        if last and line.number > last + 1:
            out(paint("--", "dim"))
        last = line.number
        text = terminal_safe(line.text.decode("utf-8", "replace"))[:_LONGEST_SHOWN]
        out(f"{line.number}{':' if line.is_match else '-'} {text}")
    sys.stdout.flush()
    return 1 if shown is None else 0


def _heading(store: OpenedStore, one: LoggedAttempt) -> str:
    job = store.view(lambda tx: Reading(tx).job(one.job))
    began = one.started_ms if one.started_ms is not None else one.created_ms
    when = moment(began, store.now(), shown_zone() if job is None else zone_of(job))
    name = one.job if job is None else job.shown_name
    return terminal_safe(f"== {name}, {when}, {one.task}, attempt {one.number}, {one.state} ({_attempt_id(one)}) ==")


def _attempt_id(one: LoggedAttempt) -> str:
    return attempt_id(run_id(occurrence_id(one.job, one.nominal_ms), one.task), one.number)


def _print_json(hits: Iterator[Hit] | tuple[()]) -> int:
    """One document, written as it is found."""
    count = 0
    for count, (attempt, line) in enumerate(hits, 1):
        out(("[" if count == 1 else ",") + json.dumps(_hit_json(attempt, line)))
    out("]" if count else "[]")
    return 0 if count else 1


def _hit_json(one: LoggedAttempt, line: FoundLine) -> dict[str, Any]:
    return {
        "job": one.job,
        "task": one.task,
        "attempt": one.number,
        "id": _attempt_id(one),
        "occurrence": occurrence_id(one.job, one.nominal_ms),
        "state": one.state,
        **timed("nominal", one.nominal_ms),
        **timed("started", one.started_ms),
        "line": line.number,
        "text": line.text.decode("utf-8", "replace"),
        "is_match": line.is_match,
    }


# -- all jobs, as they write --------------------------------------------------------------------------------------


class _Followed(NamedTuple):
    attempt: Attempt
    shown: int
    is_cut: bool = False


def follow_all(store: str | None, *, raw: bool) -> int:
    """What every attempt writes from now on, each line with its job and task, until Ctrl-C."""
    with open_store(store) as opened:
        reader = LogReader(state_directory(store_location(store)) / "logs")
        followed: dict[str, _Followed] = {}
        is_first = True
        while True:
            seen = opened.wait(-1, 0)
            active = opened.view(lambda tx: Reading(tx).active_attempts(limit=_MOST_FOLLOWED))
            for attempt in active:
                if attempt.id not in followed:
                    shown = len(reader.beyond(attempt.log_path, 0)) if is_first else 0
                    followed[attempt.id] = _Followed(attempt, shown)
            is_first = False
            for name in list(followed):
                _step(opened, reader, followed, name, raw=raw)
            opened.wait(seen, _POLL_S)


def _step(store: OpenedStore, reader: LogReader, followed: dict[str, _Followed], name: str, *, raw: bool) -> None:
    """What one attempt has written since; one that has ended is shown to its end and left."""
    kept = followed[name]
    old = kept.attempt
    found = store.view(lambda tx: Reading(tx).attempt(old.job, old.nominal_ms, old.task, old.number))
    attempt = found or old
    is_over = found is None or found.state is not AttemptState.RUNNING
    limit = attempt.log_limit or DEFAULT_LIMIT
    fresh = b"" if kept.is_cut else reader.beyond(attempt.log_path, kept.shown)
    if not is_over:
        fresh = fresh[: fresh.rfind(b"\n") + 1]
    if kept.shown + len(fresh) >= limit // 2 and not kept.is_cut:
        fresh = (
            fresh[: max(0, limit // 2 - kept.shown)] + b"\n--- chronex: more than is followed here: chronex logs ---"
        )
        kept = kept._replace(is_cut=True)
    label = f"{attempt.job}/{attempt.task}: "
    for line in fresh.decode("utf-8", "replace").splitlines():
        out(label + (line if raw else terminal_safe(line)))
    sys.stdout.flush()
    followed[name] = kept._replace(attempt=attempt, shown=kept.shown + len(fresh))
    if is_over:
        out(paint(terminal_safe(f"{label}{attempt.state.value}"), "dim"))
        del followed[name]
