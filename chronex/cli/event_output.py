"""Events of the journal as commands print them, in text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronex.cli.output import timed
from chronex.model.occurrence import occurrence_id
from chronex.model.reasons import text_of
from chronex.storage.journal import Line
from chronex.text.instants import rfc3339

# What is told in words of its own, or twice.
_WORDED = frozenset({"node", "told", "reason", "occurrence"})
_LONGEST_VALUE = 60


def event_text(line: Line, *, with_data: bool = False) -> str:
    """One line: number, time in UTC as in the daemon's log, name, what it speaks of, where, by whom, and why."""
    number, event = line
    subject = event.job
    if event.nominal_ms is not None:
        subject += f" of {rfc3339(event.nominal_ms)}"
    if event.task:
        subject += f", {event.task}" + (f" attempt {event.attempt}" if event.attempt else "")
    node = event.data.get("node")
    parts = [
        f"{number:>7}  {rfc3339(event.at_ms):24} {event.name:24}",
        subject,
        f"on {node}" if node else "",
        f"by {event.actor}" if event.actor else "",
    ]
    text = " ".join(part for part in parts if part).rstrip()
    why = text_of(event.reason) or str(event.data.get("told") or event.data.get("reason") or "")
    text += f": {why}" if why else ""
    return " ".join([text, *_values(event.data)]) if with_data else text


def _values(data: dict[str, Any]) -> Iterator[str]:
    """`lag_ms=3`, as the log has them; long texts and tables are in the JSON."""
    for key, value in data.items():
        if key not in _WORDED and isinstance(value, str | int | float) and len(str(value)) <= _LONGEST_VALUE:
            yield f"{key}={str(value).lower() if isinstance(value, bool) else value}"


def event_json(line: Line) -> dict[str, Any]:
    """The same keys for every event, null where it speaks of no such thing."""
    number, event = line
    has_occurrence = bool(event.job) and event.nominal_ms is not None
    return {
        "number": number,
        "name": event.name,
        **timed("at", event.at_ms),
        "job": event.job or None,
        **timed("nominal", event.nominal_ms),
        "occurrence": occurrence_id(event.job, event.nominal_ms or 0) if has_occurrence else None,
        "task": event.task or None,
        "attempt": event.attempt,
        "reason": text_of(event.reason),
        "reason_code": event.reason.code.value,
        "actor": event.actor or None,
        "data": dict(event.data),
    }
