"""Traces as text, one event a line, so that a test reads as the trace it speaks of.

    10:10:00 TaskRunStarted a@10:10/main#1 node=n1

is the event TaskRunStarted at 10:10:00 for the job a, its occurrence of 10:10, the task main, attempt 1, with the data
{"node": "n1"}. A time stands for an instant of 2027-01-04 (UTC, a Monday). The line's number is the event's.
"""

from __future__ import annotations

import shlex
from typing import Any

from chronex.model.event import Event
from chronex.verify import VerificationReport, verify_events

DAY_MS = 1_799_020_800_000  # 2027-01-04T00:00:00Z


def at_ms(text: str) -> int:
    hours, minutes, *seconds = text.split(":")
    return DAY_MS + round((int(hours) * 3600 + int(minutes) * 60 + float(seconds[0] if seconds else 0)) * 1000)


def trace(text: str) -> list[Event]:
    return [event(line) for line in lines(text)]


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def event(line: str) -> Event:
    when, name, *rest = shlex.split(line)
    data = dict(word.split("=", 1) for word in rest if "=" in word)
    subject = next((word for word in rest if "=" not in word), "")
    actor = data.pop("actor", "")
    head, _, task = subject.partition("/")
    job, _, nominal = head.partition("@")
    task, _, attempt = task.partition("#")
    return Event(
        name=name,
        at_ms=at_ms(when),
        job=job,
        nominal_ms=at_ms(nominal) if nominal else None,
        task=task,
        attempt=int(attempt) if attempt else None,
        actor=actor,
        data={key: _value(value) for key, value in data.items()},
    )


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.isdigit():
        return int(text)
    return at_ms(text) if text[:2].isdigit() and ":" in text else text


def mutated(text: str, change: str) -> list[Event]:
    """`drop 3`, `repeat 3`, `swap 3 4`, `after 3: <event>`, `change 3: <event>`; several with ` ; ` between."""
    found = lines(text)
    for one in change.split(" ; "):
        order, _, new = one.partition(": ")
        verb, *numbers = order.split()
        first = int(numbers[0])
        if verb == "drop":
            del found[first - 1]
        elif verb == "repeat":
            found.insert(first, found[first - 1])
        elif verb == "swap":
            second = int(numbers[1])
            found[first - 1], found[second - 1] = found[second - 1], found[first - 1]
        elif verb == "after":
            found.insert(first, new)
        else:
            assert verb == "change", verb
            found[first - 1] = new
    return [event(line) for line in found]


def complaints(report: VerificationReport) -> list[tuple[str, int]]:
    """(property, event) of every violation that is shown."""
    return [(result.property, finding.number) for result in report.properties for finding in result.findings]


def verdict_of(report: VerificationReport, name: str) -> str:
    return next(result.verdict.value for result in report.properties if result.property == name)


def verified(text: str) -> VerificationReport:
    return verify_events(trace(text))
