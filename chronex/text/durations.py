"""Durations in milliseconds: the form that Chronex reads and writes, and short forms for people.

| function            | 300 ms  | 12.4 s  | 62 s    | 2 h 5 m  | 2 d 4 h  |
|---------------------|---------|---------|---------|----------|----------|
| `format_duration`   | `300ms` | `12s400ms` | `1m2s` | `2h5m` | `2d4h`   |
| `brief_duration`    | `0.3s`  | `12s`   | `1m02s` | `2h05m`  | `2d04h`  |
| `rounded_duration`  | `0.3s`  | `12s`   | `1m02s` | `2h05m`  | `2d4h`   |
| `countdown`         | `0:01`  | `0:13`  | `1:02`  | `2h 05m` | `2d 4h`  |
| `elapsed`           | `0:00`  | `0:12`  | `1:02`  | `2h 05m` | `2d 4h`  |
| `largest_unit`      | `1s`    | `13s`   | `1m`    | `2h`     | `2d`     |
| `time_until`        | `in <1s` | `in 12s` | `in 1m 2s` | `in 2h 5m` | `in 2d 4h` |
"""

from __future__ import annotations

import re

SECOND_MS = 1000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
UNITS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
# Nothing that is scheduled lies further apart than the calendar is long.
MAX_DURATION_MS = 9_999 * 366 * DAY_MS

_LONGEST_TEXT = 100
# Text, which re compiles when it is first needed: every command loads this module, and few read a duration.
_PART = r"([0-9]+)(ms|[smhd])"
_DURATION = r"(?:[0-9]+(?:ms|[smhd]))+"
_WORDY = r"([0-9]+)\s*([A-Za-z]+)"
_UNIT_WORDS = {
    **dict.fromkeys(("millisecond", "milliseconds", "msec", "msecs", "millis"), "ms"),
    **dict.fromkeys(("second", "seconds", "sec", "secs"), "s"),
    **dict.fromkeys(("minute", "minutes", "min", "mins"), "m"),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
    **dict.fromkeys(("week", "weeks", "w", "wk"), "w"),
}
_UNITS_FOR_PEOPLE = (("d", DAY_MS), ("h", HOUR_MS), ("m", MINUTE_MS), ("s", SECOND_MS))

# -- the form that is read and written ------------------------------------------------------------------------


def parse_duration(text: str) -> int | None:
    """Milliseconds of `1h30m`; None when the text is not a duration or is longer than the calendar."""
    parts: list[tuple[str, str]] = re.findall(_PART, text) if len(text) <= _LONGEST_TEXT else []
    if not parts or sum(len(number) + len(unit) for number, unit in parts) != len(text):
        return None  # something lies between the parts, or there are none
    total = sum(int(number) * UNITS[unit] for number, unit in parts)
    return total if total <= MAX_DURATION_MS else None


def is_too_long(text: str) -> bool:
    """Is this a duration, but one beyond the calendar?"""
    return parse_duration(text) is None and re.fullmatch(_DURATION, text) is not None


def format_duration(ms: int) -> str:
    """The canonical text, exact: `1h30m`, `12s400ms`. Largest unit first, no empty units; zero is `0ms`."""
    if ms == 0:
        return "0ms"
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, ms = divmod(ms, UNITS[unit])
        if count:
            text += f"{count}{unit}"
    return text


def suggest_duration(text: str) -> str | None:
    """What the user may have meant by `30min`, `1 hour`, `2W` or a bare `30`: `30m`, `1h`, `14d`, `30s`."""
    parts = re.findall(_WORDY, text)
    if not parts or re.sub(_WORDY, "", text).strip():
        return f"{int(text)}s" if text.isascii() and text.isdigit() and len(text) < 10 else None
    meant = ""
    for number, word in parts:
        unit = word.lower() if word.lower() in UNITS else _UNIT_WORDS.get(word.lower())
        if unit is None or len(number) > 9:
            return None
        meant += f"{int(number) * 7}d" if unit == "w" else f"{number}{unit}"
    return meant if parse_duration(meant) is not None else None


# -- how long something took ----------------------------------------------------------------------------------


def brief_duration(ms: int) -> str:
    """To about two figures, rounded down: `40ms`, `0.3s`, `42s`, `1m02s`, `3h10m`, `2d04h`, `2d`."""
    if ms < 10_000:
        return f"{ms / 1000:.1f}s" if ms >= 100 else f"{ms}ms"
    (first, unit), *rest = _units_of(ms)[:2]
    return f"{first}{unit}" + "".join(f"{count:02d}{unit}" for count, unit in rest if count)


def rounded_duration(ms: int) -> str:
    """To the nearest second: `0.0s`, `0.3s`, `12s`, `1m02s`, `2h05m`, `3d4h`, `3d0h`."""
    if ms < 9_950:
        return f"{ms / 1000:.1f}s"
    seconds = round(ms / 1000)
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    if seconds < 86_400:
        return f"{seconds // 3600}h{seconds // 60 % 60:02}m"
    return f"{seconds // 86_400}d{seconds // 3600 % 24}h"


# -- a clock that runs ----------------------------------------------------------------------------------------


def countdown(ms: int) -> str:
    """`3:10` below an hour, `4h 12m` below a day, else `2d 4h`. Rounded up, so that it ends at the instant."""
    return _running_clock(max(0, -(-ms // SECOND_MS)))


def elapsed(ms: int) -> str:
    """The same for time that has passed, rounded down: `3:10`, `4h 12m`, `2d 4h`."""
    return _running_clock(max(0, ms // SECOND_MS))


def _running_clock(seconds: int) -> str:
    if seconds < 3600:
        return f"{seconds // 60}:{seconds % 60:02}"
    if seconds < 86_400:
        return f"{seconds // 3600}h {seconds // 60 % 60:02}m"
    return f"{seconds // 86_400}d {seconds // 3600 % 24}h"


# -- how far away something is --------------------------------------------------------------------------------


def largest_unit(ms: int) -> str:
    """`50s`, `4m`, `3h`, `12d`: one unit. Seconds are rounded up, so that an instant to come is never `0s`."""
    seconds = max(0, -(-ms // SECOND_MS))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def time_until(ms: int) -> str:
    """`in 3d 4h`, `in 3d 0h`, `in 12s`, `in <1s`: the two largest units, rounded down."""
    parts = [f"{count}{unit}" for count, unit in _units_of(ms)[:2]]
    return "in " + (" ".join(parts) if parts else "<1s")


def _units_of(ms: int) -> list[tuple[int, str]]:
    """Days, hours, minutes and seconds, from the largest that is not zero on; empty below a second."""
    parts: list[tuple[int, str]] = []
    for unit, size in _UNITS_FOR_PEOPLE:
        count, ms = divmod(ms, size)
        if count or parts:
            parts.append((count, unit))
    return parts
