"""Spans of time as systemd writes them."""

from __future__ import annotations

import re

_UNITS_MS = {
    "us": 0.001, "usec": 0.001, "ms": 1, "msec": 1, "": 1000, "s": 1000, "sec": 1000, "second": 1000, "seconds": 1000,
    "m": 60_000, "min": 60_000, "minute": 60_000, "minutes": 60_000, "h": 3_600_000, "hr": 3_600_000,
    "hour": 3_600_000, "hours": 3_600_000, "d": 86_400_000, "day": 86_400_000, "days": 86_400_000,
    "w": 604_800_000, "week": 604_800_000, "weeks": 604_800_000,
}  # fmt: skip
_SPAN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")


def span_ms(text: str) -> int:
    """Milliseconds of a time span as systemd writes it: `1h 30min`, `90` (seconds), `2days`; 0 for any other text."""
    total, at = 0.0, 0
    for match in _SPAN.finditer(text):
        if match.start() != at or match[2] not in _UNITS_MS:
            return 0
        total += float(match[1]) * _UNITS_MS[match[2]]
        at = match.end()
    return round(total) if at == len(text.rstrip()) else 0
