"""`chronex logs`: what an attempt has written, and what it goes on writing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from chronex.cli.options import Form, StorePath, UsageError, check_format, choose, store_location
from chronex.cli.output import err, out, paint, print_json
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.cli.remote_logs import RemoteLog
    from chronex.model.occurrence import Attempt
    from chronex.run.attempt_log import LogReader
    from chronex.storage.records import Reading
    from chronex_store.opening import OpenedStore, StoreLocation

_POLL_S = 0.2
_CUT = b" bytes of output dropped here ---"
_KINDS = ("occ_", "run_", "attempt_")
# The latest occurrences may all have been skipped; the search for one that ran ends after this many.
_MOST_WITHOUT_OUTPUT = 1000


def logs(
    what: Annotated[
        str | None,
        typer.Argument(
            help="A job (its last run), the id of an occurrence, run or attempt, a beginning of it, or JOB@TIME.",
            metavar="[JOB|RUN]",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Follow until it ends; without a JOB, of all jobs.")
    ] = False,
    grep: Annotated[
        str | None, typer.Option("--grep", help="Lines with this text, of all runs.", metavar="TEXT")
    ] = None,
    regex: Annotated[bool, typer.Option("--regex", help="The text is a regular expression.")] = False,
    ignore_case: Annotated[
        bool, typer.Option("-i", "--ignore-case", help="Capital and small letters are the same.")
    ] = False,
    context: Annotated[
        int, typer.Option("-C", "--context", help="This many lines around each.", metavar="N", min=0, max=1000)
    ] = 0,
    since: Annotated[
        str | None, typer.Option(help="Only runs since: 7d (ago), yesterday, or an ISO 8601 time.", metavar="TIME")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only runs before it.", metavar="TIME")] = None,
    jobs: Annotated[
        str | None, typer.Option("--job", help="Only these jobs; * stands for any text.", metavar="GLOB")
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="Only attempts that ended so: failed, success, ….", metavar="STATE")
    ] = None,
    lines: Annotated[
        int | None, typer.Option("-n", "--lines", help="Only the last lines.", metavar="N", min=0)
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only of this task.", metavar="TASK")] = None,
    attempt: Annotated[
        int | None, typer.Option(help="Only of the attempt with this number.", metavar="N", min=1)
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Bytes as they are, escape sequences too.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="All of a log that lies on another machine, not only its two ends.")
    ] = False,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Show what attempts have written. Control characters are shown as a mark and never reach your terminal.

    Example: chronex logs --grep "disk full" --since 7d --state failed
    """
    check_format(form)
    if grep is not None:
        if follow:
            raise UsageError("--grep searches what is written; it does not go with --follow")
        searched = Searched(grep, regex, ignore_case, since, until, jobs or what, tuple(state or ()), context)
        return search(searched, store, form)
    if any((regex, ignore_case, context, since, until, jobs, state)):
        raise UsageError("these options go with --grep TEXT")
    if what is None:
        return follow_every(store, form, follow=follow, raw=raw)
    return run_logs(LogsOptions(what, task, attempt, lines, raw, whole), store, form, follow=follow)


class Searched(NamedTuple):
    """What --grep and the options beside it say, as they are typed."""

    text: str
    is_regex: bool
    ignores_case: bool
    since: str | None
    until: str | None
    jobs: str | None
    states: tuple[str, ...]
    context: int


def search(searched: Searched, store: str | None, form: str) -> int:
    from chronex.cli.options import read_since
    from chronex.cli.output import shown_zone
    from chronex.cli.search_logs import SearchOptions, run_search
    from chronex.model.states import AttemptState

    zone = shown_zone()
    states = tuple(part for word in searched.states for part in word.split(","))
    for one in states:
        choose("--state", one, tuple(state.value for state in AttemptState))
    since_ms, until_ms = read_since(searched.since, zone), read_since(searched.until, zone)
    text, is_regex, ignores_case = searched[:3]
    options = SearchOptions(text, is_regex, ignores_case, since_ms, until_ms, searched.jobs, states, searched.context)
    return run_search(options, store, form)


def follow_every(store: str | None, form: str, *, follow: bool, raw: bool) -> int:
    """All jobs at once, which has no end."""
    if not follow:
        raise UsageError("which job? chronex logs JOB; or --follow for all of them, or --grep TEXT")
    if form != "text":
        raise UsageError("--follow is for people; use --format json without it")
    from chronex.cli.search_logs import follow_all

    return follow_all(store, raw=raw)


class LogsOptions(NamedTuple):
    """Which attempts, how many of their last lines, and whether control characters are kept (`raw`)."""

    what: str
    task: str | None
    number: int | None
    lines: int | None
    raw: bool
    whole: bool = False


def run_logs(options: LogsOptions, store: str | None, form: str, *, follow: bool) -> int:
    from chronex.cli.store_session import open_store
    from chronex.run.attempt_log import LogReader
    from chronex.storage.records import Reading
    from chronex_store.opening import state_directory

    with open_store(store) as opened:
        location = store_location(store)
        attempts = opened.view(lambda tx: _attempts(Reading(tx), options))
        elsewhere = _elsewhere(opened, location, attempts)
        reader = LogReader(state_directory(location) / "logs")
        try:
            if form == "json":
                print_json([_log_json(opened, reader, attempt, options, elsewhere) for attempt in attempts])
            elif follow:
                _follow(opened, reader, attempts[-1], options, elsewhere.get(attempts[-1].id))
            elif elsewhere:
                return _print_elsewhere(opened, reader, attempts, options, elsewhere)
            else:
                return _print_all(reader, attempts, options)
        finally:
            reader.close()
    return 0


# -- which attempts -----------------------------------------------------------------------------------------------


def _attempts(reading: Reading, options: LogsOptions) -> list[Attempt]:
    """The attempts in the order in which they began; UsageError where none matches."""
    there = _attempts_named(reading, options.what)
    found = [a for a in there if options.task in (None, a.task) and options.number in (None, a.number)]
    if not found:
        raise UsageError(_no_attempt(options, there))
    return sorted(found, key=lambda attempt: (attempt.created_ms, attempt.task, attempt.number))


def _no_attempt(options: LogsOptions, there: list[Attempt]) -> str:
    """What was asked for in vain, and what there is instead."""
    tasks = sorted({attempt.task for attempt in there})
    if options.task is not None and options.task not in tasks and tasks:
        from chronex.text.suggestions import nearest

        meant = nearest(options.task, tasks)
        hint = f"did you mean {meant}?" if meant else f"there are attempts of {', '.join(tasks)}"
        return f"--task: {options.what} has no attempt of a task {options.task!r}; {hint}"
    numbers = [attempt.number for attempt in there if options.task in (None, attempt.task)]
    if options.number is not None and numbers:
        return f"--attempt: {options.what} has no attempt {options.number}; the last one is {max(numbers)}"
    return f"no attempt of {options.what!r} is on record; chronex history {options.what} shows its runs"


def _attempts_named(reading: Reading, what: str) -> list[Attempt]:
    from chronex.engine.commands.names import find

    if "@" not in what and not what.startswith(_KINDS):
        return _latest(reading, what)
    location = find(reading, what)
    attempts = reading.attempts(location.job, location.nominal_ms, location.task or None)
    if what.startswith("attempt_"):
        return [attempt for attempt in attempts if attempt.id.startswith(what)]
    return attempts


def _latest(reading: Reading, job: str) -> list[Attempt]:
    """The attempts of the job's last occurrence that ran; a job that was removed still has its logs."""
    from chronex.engine.commands.names import job_id_named, job_named
    from chronex.errors import ChronexError

    written, job = job, job_id_named(reading, job)
    try:
        occurrences = reading.occurrences(job, limit=_MOST_WITHOUT_OUTPUT)
    except ChronexError:
        occurrences = []
    if not occurrences:
        job_named(reading, written)
    for occurrence in occurrences:
        if occurrence.started_ms is not None:
            return reading.attempts(job, occurrence.nominal_ms)
    raise UsageError(f"{written} has not run yet; chronex show {written} says when it will")


# -- what they wrote ----------------------------------------------------------------------------------------------


def _print_all(reader: LogReader, attempts: list[Attempt], options: LogsOptions) -> int:
    """1 where an attempt has written something that is not there any more."""
    from chronex.model.reasons import words_beyond
    from chronex.model.states import AttemptState
    from chronex.text.sizes import rough_size

    code = 0
    for attempt in attempts:
        if len(attempts) > 1:
            out(paint(f"== {_heading(attempt)} ==", "bold"))
        found = _whole(reader, attempt)
        _write(_tail(found, options.lines), raw=options.raw)
        if attempt.log_dropped and _CUT not in found and (found or not attempt.log_bytes):
            code = 1
            lost = f"{rough_size(attempt.log_dropped)} of its output could not be kept"
            err(terminal_safe(f"{_heading(attempt)}; {lost}: the scheduler's log says why"))
        elif attempt.log_bytes and not found and attempt.state is not AttemptState.RUNNING:
            code = 1
            size = rough_size(attempt.log_bytes)
            gone = f"its log of {size} is not here: it was removed, or stayed with another store"
            err(terminal_safe(f"{_heading(attempt)}; {gone}"))
        elif not attempt.log_bytes and attempt.state is not AttemptState.RUNNING and len(attempts) == 1:
            more = words_beyond(attempt.reason, attempt.error)
            err(terminal_safe(f"{_heading(attempt)}; no output{f': {more}' if more else ''}"))
    return code


def _heading(attempt: Attempt) -> str:
    from chronex.model.reasons import text_of

    reason = f": {text_of(attempt.reason)}" if attempt.reason else ""
    return terminal_safe(f"{attempt.task}, attempt {attempt.number}, {attempt.state}{reason}")


def _whole(reader: LogReader, attempt: Attempt) -> bytes:
    from chronex.model.states import AttemptState
    from chronex.run.attempt_log import DEFAULT_LIMIT

    is_over = attempt.state is not AttemptState.RUNNING
    return reader.whole(attempt.log_path, attempt.log_limit or DEFAULT_LIMIT, is_over=is_over)


def _tail(data: bytes, lines: int | None) -> bytes:
    if lines is None:
        return data
    kept = data.splitlines(keepends=True)
    return b"".join(kept[max(0, len(kept) - lines) :])


def _write(data: bytes, *, raw: bool) -> None:
    """Escape sequences of a program must not control the reader's terminal, so they are shown as marks."""
    if raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    for line in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")[: None if _is_open(data) else -1]:
        out(terminal_safe(line))
    sys.stdout.flush()


def _is_open(data: bytes) -> bool:
    return bool(data) and not data.endswith(b"\n")


def _log_json(
    store: OpenedStore, reader: LogReader, attempt: Attempt, options: LogsOptions, elsewhere: dict[str, RemoteLog]
) -> dict[str, Any]:
    from chronex.cli.record_output import attempt_json

    remote = elsewhere.get(attempt.id)
    found = _whole(reader, attempt) if remote is None else _remote(store, remote, options)
    data = _tail(found or b"", options.lines)
    shown = {**attempt_json(attempt), "job": attempt.job, "output": data.decode("utf-8", "replace")}
    return shown if remote is None else {**shown, "log_on": remote.node.host}


# -- on another machine -------------------------------------------------------------------------------------------


def _elsewhere(store: OpenedStore, location: StoreLocation, attempts: list[Attempt]) -> dict[str, RemoteLog]:
    """The attempts that another machine ran: a log stays where its command ran.

    A directory has such attempts where it is a copy of a store that machines shared.
    """
    from pathlib import Path

    from chronex.cli.remote_logs import RemoteLog
    from chronex.storage.records import Reading
    from chronex_store.opening import host_identity, state_directory

    here = "" if isinstance(location, Path) else host_identity(state_directory(location), create=False)
    nodes = {node.id: node for node in store.view(lambda tx: Reading(tx).nodes())}
    found = [RemoteLog(one, nodes[one.owner]) for one in attempts if one.owner in nodes]
    return {one.attempt.id: one for one in found if one.node.host_id != here}


def _remote(store: OpenedStore, remote: RemoteLog, options: LogsOptions) -> bytes | None:
    from chronex.cli.remote_logs import excerpt_text, whole_log

    return whole_log(store, remote) if options.whole else excerpt_text(store, remote)


def _print_elsewhere(
    store: OpenedStore,
    reader: LogReader,
    attempts: list[Attempt],
    options: LogsOptions,
    elsewhere: dict[str, RemoteLog],
) -> int:
    """1 where of something that was asked for nothing is to be had from here."""
    code = 0
    for attempt in attempts:
        remote = elsewhere.get(attempt.id)
        if remote is None:
            code |= _print_all(reader, [attempt], options)
            continue
        if len(attempts) > 1:
            out(paint(f"== {_heading(attempt)}, on {terminal_safe(remote.name)} ==", "bold"))
        found = _remote(store, remote, options)
        if found is not None:
            _write(_tail(found, options.lines), raw=options.raw)
        elif not attempt.log_bytes and attempt.finished_ms is not None:
            err(terminal_safe(f"{_heading(attempt)}; no output"))
        else:
            code = 1
            err(terminal_safe(f"{_heading(attempt)}: {_where(remote)}"))
    return code


def _where(remote: RemoteLog) -> str:
    named = remote.attempt.id
    if remote.attempt.finished_ms is None:
        return f"it runs on {remote.name}; from here: chronex logs --follow {named}"
    return f"it ran on {remote.name}; from here: chronex logs --whole {named}"


# -- as it grows --------------------------------------------------------------------------------------------------


def _follow(
    store: OpenedStore, reader: LogReader, attempt: Attempt, options: LogsOptions, remote: RemoteLog | None
) -> None:
    first = True
    for piece in _pieces(store, reader, attempt) if remote is None else _remote_pieces(store, remote):
        _write(_tail(piece, options.lines) if first else piece, raw=options.raw)
        first = False


def _remote_pieces(store: OpenedStore, remote: RemoteLog) -> Iterator[bytes]:
    from chronex.cli.remote_logs import excerpt_text, followed

    if remote.attempt.finished_ms is not None:
        yield excerpt_text(store, remote) or f"it ran on {remote.name}\n".encode()
        return
    yield from followed(store, remote)


def _pieces(store: OpenedStore, reader: LogReader, attempt: Attempt) -> Iterator[bytes]:
    """Whole lines as they come, until the attempt is over.

    Beyond its limit the file is a ring buffer, whose content may be overwritten between two reads: then a mark is
    printed, and what was kept of the output follows when the attempt has ended.
    """
    from chronex.model.states import AttemptState
    from chronex.run.attempt_log import DEFAULT_LIMIT
    from chronex.storage.records import Reading

    shown, is_announced = 0, False
    while True:
        seen = store.wait(-1, 0)
        attempt = store.view(lambda tx: _read_again(Reading(tx), attempt))  # noqa: B023  called at once
        head, limit = (attempt.log_limit or DEFAULT_LIMIT) // 2, attempt.log_limit or DEFAULT_LIMIT
        if attempt.state is not AttemptState.RUNNING:
            yield reader.beyond(attempt.log_path, min(shown, head) if attempt.log_dropped else shown)
            return
        fresh = reader.beyond(attempt.log_path, shown)
        is_ring = shown + len(fresh) >= limit
        fresh = fresh[: max(0, head - shown)] if is_ring else fresh
        fresh = fresh[: fresh.rfind(b"\n") + 1]
        shown += len(fresh)
        yield fresh
        if is_ring and not is_announced:
            is_announced = True
            yield b"--- chronex: more output than is kept; its end follows when the attempt is over ---\n"
        store.wait(seen, _POLL_S)


def _read_again(reading: Reading, attempt: Attempt) -> Attempt:
    """The attempt as it is now; one that retention has removed has ended."""
    from msgspec.structs import replace

    from chronex.model.states import AttemptState

    found = reading.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
    return found or replace(attempt, state=AttemptState.CRASHED)
