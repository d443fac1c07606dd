"""Durations such as `1h30m`, as milliseconds."""

from __future__ import annotations

import re

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Nothing that is scheduled lies further apart than the calendar is long.
MAX_DURATION_MS = 9_999 * 366 * UNITS["d"]

_PART = re.compile(r"([0-9]+)(ms|[smhd])")
_DURATION = re.compile(r"(?:[0-9]+(?:ms|[smhd]))+")
_WORDY = re.compile(r"([0-9]+)\s*([A-Za-z]+)")
_UNIT_WORDS = {
    **dict.fromkeys(("millisecond", "milliseconds", "msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "m"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("week", "weeks", "w", "wk"), "w"),
}


def parse_duration(text: str) -> int | None:
    """Milliseconds, or None when the text is not a duration or is longer than the calendar."""
    if not _DURATION.fullmatch(text) or len(text) > 100:
        return None
    total = sum(int(number) * UNITS[unit] for number, unit in _PART.findall(text))
    return total if total <= MAX_DURATION_MS else None


def format_duration(ms: int) -> str:
    """Canonical text: largest unit first, no empty units; zero is `0ms`."""
    if ms == 0:
        return "0ms"
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, UNITS[unit])
        if count:
            text += f"{count}{unit}"
    return text


def suggest_duration(text: str) -> str | None:
    """What the user may have meant by `30min`, `1 hour`, `2W` or a bare `30`."""
    parts = _WORDY.findall(text)
    if not parts or _WORDY.sub("", text).strip():
        return f"{int(text)}s" if text.isascii() and text.isdigit() and len(text) < 10 else None
    meant = ""
    for number, word in parts:
        unit = word.lower() if word.lower() in UNITS else _UNIT_WORDS.get(word.lower())
        if unit is None or len(number) > 9:
            return None
        meant += f"{int(number) * 7}d" if unit == "w" else f"{number}{unit}"
    return meant if parse_duration(meant) is not None else None
