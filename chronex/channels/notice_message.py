"""What a notice says: its facts as values, one line, and a page of text. Every text in it is safe to show."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from chronex.text.terminal import terminal_safe

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
        lines += ["", f"The last {len(message.output)} lines of output{where}:", "", *message.output]
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
