"""A message from the store: what the notice speaks of, how it ended, and the commands that say and do more."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from msgspec.structs import replace

from chronex.channels.notice_message import NoticeMessage, last_lines
from chronex.engine.outbox import delivery_of
from chronex.engine.shared_logs import read_excerpt
from chronex.model.job import Job
from chronex.model.occurrence import Attempt, Occurrence, occurrence_id
from chronex.model.reasons import text_of
from chronex.model.records import Excerpt, Notice
from chronex.model.states import AttemptState, OccurrenceState, is_final
from chronex.storage.records import Reading
from chronex.text.instants import local_datetime, rfc3339
from chronex.text.terminal import terminal_safe
from chronex.timing.zones import load_zone

LONGEST_REASON = 2_000
_REPLAYED_BECAUSE = "after the notice"


class Sender(NamedTuple):
    """The machine that sends, and the store as a command names it; empty where that is the reader's own."""

    host: str
    node: str
    host_id: str = ""
    store: str = ""


class Composed(NamedTuple):
    """The message, and the log that has its output where that is on this machine; else the output is in it."""

    message: NoticeMessage
    log: str = ""
    log_limit: int | None = None
    is_over: bool = True


def compose(reading: Reading, notice: Notice, sender: Sender) -> Composed:
    job = reading.job(notice.job)
    nominal_ms = notice.nominal_ms
    occurrence = None if nominal_ms is None else reading.occurrence(notice.job, nominal_ms)
    attempt = _told_attempt(reading, occurrence)
    there = _elsewhere(reading, attempt, sender)
    message = NoticeMessage(
        delivery=delivery_of(notice),
        kind=notice.kind,
        channel=notice.channel,
        job=notice.job if job is None else terminal_safe(job.shown_name),
        at=rfc3339(notice.at_ms),
        at_ms=notice.at_ms,
        nominal=None if nominal_ms is None else rfc3339(nominal_ms),
        instant="" if nominal_ms is None else _in_zone(nominal_ms, job),
        occurrence=None if nominal_ms is None else occurrence_id(notice.job, nominal_ms),
        host=there or sender.host,
        node=sender.node if attempt is None else attempt.owner,
        exit_code=None if attempt is None else attempt.exit_code,
        reason=terminal_safe(text_of(notice.reason))[:LONGEST_REASON],
        failures_in_a_row=notice.failures,
        output_on=there,
        why=_why(notice, occurrence, sender),
        replay=_replay(occurrence, sender),
        number=notice.tries + 1,
    )
    if attempt is None or notice.kind == "started":
        return Composed(message)
    if there:
        excerpt = read_excerpt(reading, attempt)
        return Composed(message if excerpt is None else replace(message, output=_last_of(excerpt)))
    return Composed(message, attempt.log_path, attempt.log_limit, attempt.state is not AttemptState.RUNNING)


def _told_attempt(reading: Reading, occurrence: Occurrence | None) -> Attempt | None:
    """The last attempt that ended badly, else the last one."""
    if occurrence is None:
        return None
    attempts = reading.attempts(occurrence.job, occurrence.nominal_ms)
    attempts.sort(key=lambda one: (one.created_ms, one.number))
    bad = [one for one in attempts if one.state not in (AttemptState.SUCCESS, AttemptState.RUNNING)]
    if occurrence.state is OccurrenceState.COMPLETED and not occurrence.errors:
        bad = []
    return next(reversed(bad or attempts), None)


def _elsewhere(reading: Reading, attempt: Attempt | None, sender: Sender) -> str:
    """The machine that has the output, where that is not this one: a log stays where its command ran."""
    owner = None if attempt is None else reading.node(attempt.owner)
    if owner is None or not sender.host_id or owner.host_id == sender.host_id:
        return ""
    return owner.host


def _last_of(excerpt: Excerpt) -> tuple[str, ...]:
    """Of a tail that was cut out of a line, the lines that are whole."""
    if not excerpt.left_out:
        return last_lines(excerpt.head + excerpt.tail)
    _, is_cut, whole = excerpt.tail.partition(b"\n")
    return last_lines(whole if is_cut else excerpt.tail)


def _why(notice: Notice, occurrence: Occurrence | None, sender: Sender) -> str:
    if occurrence is None:
        return _command(sender, "why", notice.job)
    return _command(sender, "why", notice.job, occurrence.id)


def _replay(occurrence: Occurrence | None, sender: Sender) -> str:
    """Only of what has ended and is not done."""
    if occurrence is None or not is_final(occurrence.state):
        return ""
    if occurrence.state is OccurrenceState.COMPLETED and not occurrence.errors:
        return ""
    return _command(sender, "replay", occurrence.id, "--reason", _REPLAYED_BECAUSE)


def _command(sender: Sender, *words: str) -> str:
    store = ("--store", sender.store) if sender.store else ()
    return " ".join(quote(word) for word in ("chronex", *words, *store))


def _in_zone(ms: int, job: Job | None) -> str:
    """As the job's own clock shows it."""
    zone = "UTC" if job is None else job.timezone
    local = local_datetime(ms, load_zone(zone).tzinfo)
    return f"{local:%a %Y-%m-%d %H:%M:%S %z} ({zone})"
