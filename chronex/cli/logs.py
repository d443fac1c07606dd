"""`chronex logs`: what an attempt has written, and what it goes on writing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from chronex.cli.arguments import UsageError
from chronex.cli.history import attempt_json
from chronex.cli.looking import opened_store, print_json
from chronex.cli.places import store_path
from chronex.cli.terminal import err, inert, out, paint
from chronex.engine.commands.names import find, job_named
from chronex.errors import ChronexError
from chronex.model.reasons import text_of, words_beyond
from chronex.model.records import Attempt
from chronex.model.states import AttemptState
from chronex.run.output import DEFAULT_LIMIT, LogReader
from chronex.storage.records import Reading
from chronex_store import LmdbStore

_LOOK_S = 0.2
_KINDS = ("occ_", "run_", "attempt_")
# The latest occurrences may all have been skipped: so far back one is looked for that ran.
_MOST_WITHOUT_OUTPUT = 1000


class Asked(NamedTuple):
    what: str
    task: str | None
    number: int | None
    lines: int | None
    raw: bool


def run_logs(asked: Asked, store: str | None, form: str, *, follow: bool) -> int:
    with opened_store(store) as opened:
        attempts = opened.view(lambda tx: _attempts(Reading(tx), asked))
        reader = LogReader(store_path(store, os.environ) / "logs")
        try:
            if form == "json":
                print_json([_log_json(reader, attempt, asked) for attempt in attempts])
            elif follow:
                _follow(opened, reader, attempts[-1], asked)
            else:
                _print_all(reader, attempts, asked)
        finally:
            reader.close()
    return 0


# -- which attempts -----------------------------------------------------------------------------------------------


def _attempts(reading: Reading, asked: Asked) -> list[Attempt]:
    """In the order in which they began; UsageError where none is left."""
    found = _named(reading, asked.what)
    found = [a for a in found if asked.task in (None, a.task) and asked.number in (None, a.number)]
    if not found:
        raise UsageError(f"no attempt of {asked.what!r} fits; chronex history {asked.what} --format json shows them")
    return sorted(found, key=lambda attempt: (attempt.created_ms, attempt.task, attempt.number))


def _named(reading: Reading, what: str) -> list[Attempt]:
    if "@" not in what and not what.startswith(_KINDS):
        return _latest(reading, what)
    place = find(reading, what)
    attempts = reading.attempts(place.job, place.nominal_ms, place.task or None)
    if what.startswith("attempt_"):
        return [attempt for attempt in attempts if attempt.id.startswith(what)]
    return attempts


def _latest(reading: Reading, job: str) -> list[Attempt]:
    """Of the job's last occurrence that ran; a job that was removed still has its logs."""
    try:
        occurrences = reading.occurrences(job, limit=_MOST_WITHOUT_OUTPUT)
    except ChronexError:
        occurrences = []
    if not occurrences:
        job_named(reading, job)
    for occurrence in occurrences:
        if occurrence.started_ms is not None:
            return reading.attempts(job, occurrence.nominal_ms)
    raise UsageError(f"{job} has not run yet; chronex show {job} says when it will")


# -- what they wrote ----------------------------------------------------------------------------------------------


def _print_all(reader: LogReader, attempts: list[Attempt], asked: Asked) -> None:
    for attempt in attempts:
        if len(attempts) > 1:
            out(paint(f"== {_heading(attempt)} ==", "bold"))
        _write(_tail(_whole(reader, attempt), asked.lines), raw=asked.raw)
        if not attempt.log_bytes and attempt.state is not AttemptState.RUNNING and len(attempts) == 1:
            more = words_beyond(attempt.reason, attempt.error)
            err(inert(f"{_heading(attempt)}; no output{f': {more}' if more else ''}"))


def _heading(attempt: Attempt) -> str:
    reason = f": {text_of(attempt.reason)}" if attempt.reason else ""
    return inert(f"{attempt.task}, attempt {attempt.number}, {attempt.state}{reason}")


def _whole(reader: LogReader, attempt: Attempt) -> bytes:
    is_over = attempt.state is not AttemptState.RUNNING
    return reader.whole(attempt.log_path, attempt.log_limit or DEFAULT_LIMIT, is_over=is_over)


def _tail(data: bytes, lines: int | None) -> bytes:
    if lines is None:
        return data
    kept = data.splitlines(keepends=True)
    return b"".join(kept[max(0, len(kept) - lines) :])


def _write(data: bytes, *, raw: bool) -> None:
    """Escape sequences of a program must not command the reader's terminal, so they are shown, not sent."""
    if raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    for line in data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")[: None if _is_open(data) else -1]:
        out(inert(line))
    sys.stdout.flush()


def _is_open(data: bytes) -> bool:
    return bool(data) and not data.endswith(b"\n")


def _log_json(reader: LogReader, attempt: Attempt, asked: Asked) -> dict[str, Any]:
    data = _tail(_whole(reader, attempt), asked.lines)
    return {**attempt_json(attempt), "job": attempt.job, "output": data.decode("utf-8", "replace")}


# -- as it grows --------------------------------------------------------------------------------------------------


def _follow(store: LmdbStore, reader: LogReader, attempt: Attempt, asked: Asked) -> None:
    first = True
    for piece in _pieces(store, reader, attempt):
        _write(_tail(piece, asked.lines) if first else piece, raw=asked.raw)
        first = False


def _pieces(store: LmdbStore, reader: LogReader, attempt: Attempt) -> Iterator[bytes]:
    """Whole lines as they come, until the attempt is over.

    Beyond its limit the file is a ring, and what lies between two looks may be gone: then the end is waited for,
    and what was kept of it follows behind the mark.
    """
    shown, is_told = 0, False
    while True:
        seen = store.wait(-1, 0)
        attempt = store.view(lambda tx: _again(Reading(tx), attempt))  # noqa: B023  called at once
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
        if is_ring and not is_told:
            is_told = True
            yield b"--- chronex: more output than is kept; its end follows when the attempt is over ---\n"
        store.wait(seen, _LOOK_S)


def _again(reading: Reading, attempt: Attempt) -> Attempt:
    """The attempt as it is now; one that retention has removed is over."""
    found = reading.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
    return found or replace(attempt, state=AttemptState.CRASHED)
