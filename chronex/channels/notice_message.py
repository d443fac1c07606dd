"""What a notice says, read from the store: its facts as values, one line, and a page of text that is safe to show."""

from __future__ import annotations

from shlex import quote
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

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

# What is told of a notice, by its kind; a number stands where it is counted.
_HEADLINES = {
    "failing": "{job} failed{times}",
    "failed": "{job} failed",
    "recovered": "{job} is well again",
    "late": "{job} is late",
    "on_time": "{job} is on time again",
    "slow": "{job} takes longer than usual",
    "long": "{job} runs for long",
    "missed": "{job} was missed{count}",
    "completed_with_errors": "{job} completed with errors",
    "success": "{job} completed",
    "output": "output of {job}",
    "started": "{job} has started",
    "test": "a test of the channel {channel}",
}
GOOD = ("recovered", "on_time", "success", "output", "started", "test")
LONGEST_LINE = 500
MOST_LINES = 20
MOST_BYTES = 8_000


class NoticeMessage(Struct, frozen=True, kw_only=True):
    """Times are words: those of `at` and `nominal` in RFC 3339, that of `instant` in the zone of the job."""

    delivery: str
    kind: str
    channel: str = ""
    job: str = ""
    at: str
    at_ms: int = 0
    nominal: str | None = None
    instant: str = ""
    occurrence: str | None = None
    host: str = ""
    node: str = ""
    exit_code: int | None = None
    reason: str = ""
    failures_in_a_row: int = 0
    # The last lines of the attempt that it speaks of; and where its whole output is, if that is another machine.
    output: tuple[str, ...] = ()
    output_on: str = ""
    why: str = ""
    replay: str = ""
    # Which try of the delivery this is, from 1.
    number: int = msgspec.field(default=1, name="try")

    @property
    def is_good(self) -> bool:
        return self.kind in GOOD

    @property
    def headline(self) -> str:
        """One line, without the machine."""
        often = self.failures_in_a_row
        times = f" {often} times in a row" if often > 1 else ""
        count = f" {often} times" if often > 1 else ""
        return _HEADLINES.get(self.kind, "{job}: " + self.kind).format(
            job=self.job, times=times, count=count, channel=self.channel
        )


def facts_of(message: NoticeMessage) -> list[tuple[str, str]]:
    """What there is to say, each under its name."""
    rows = [
        ("time", message.instant),
        ("machine", message.host),
        ("exit code", "" if message.exit_code is None else str(message.exit_code)),
        ("reason", message.reason),
        ("why", message.why),
        ("again", message.replay),
    ]
    return [(name, value) for name, value in rows if value]


def page_of(message: NoticeMessage) -> str:
    """The whole message as plain text."""
    lines = [f"{message.headline} on {message.host}" if message.host else message.headline, ""]
    lines += [f"{name + ':':<11}{value}" for name, value in facts_of(message)]
    if message.output:
        where = f" on {message.output_on}" if message.output_on else ""
        shown = "last line" if len(message.output) == 1 else f"last {len(message.output)} lines"
        lines += ["", f"The {shown} of output{where}:", "", *message.output]
    elif message.output_on:
        lines += ["", f"Its output is on {message.output_on}."]
    return "\n".join(lines) + "\n"


def json_of(message: NoticeMessage) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(message)
    return {"headline": message.headline, **found}


def last_lines(data: bytes) -> tuple[str, ...]:
    """The last lines of an output, each cut and safe for any terminal. Secrets were taken out when it was written."""
    text = data[-MOST_BYTES:].decode("utf-8", "replace").replace("\r\n", "\n")
    lines = text.split("\n")
    if len(data) > MOST_BYTES:
        lines = lines[1:]  # the first one may have lost its beginning
    while lines and not lines[-1].strip():
        lines.pop()
    return tuple(terminal_safe(line)[:LONGEST_LINE] for line in lines[-MOST_LINES:])


# A message from the store: what the notice speaks of, how it ended, and the commands that say and do more.

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
    attempt = _attempt_to_show(reading, occurrence)
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
        exit_code=None if attempt is None or notice.kind == "started" else attempt.exit_code,
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


def _attempt_to_show(reading: Reading, occurrence: Occurrence | None) -> Attempt | None:
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
