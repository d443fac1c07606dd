"""The window that a nominal time opens, in whole seconds."""

from __future__ import annotations

from difflib import get_close_matches

from chronex.decision.parameters import MICROSECONDS, shown
from chronex.errors import NominalTimeError, WindowDurationError, WindowModeError
from chronex.timing.zones import FIRST_SECOND, LAST_SECOND

WINDOW_MODES = ("after", "around", "before")
_SYNONYMS = {"center": "around"}

# How many halves of the duration lie before the nominal time.
_HALVES_BEFORE = {"after": 0, "around": 1, "before": 2}


def window_of(mode: str, nominal: int, duration: int) -> tuple[int, int]:
    """First and last second of the window; nominal time and duration in microseconds.

    An odd duration is halved exactly; both ends are floored to whole seconds only then.
    """
    twice_start = 2 * nominal - _HALVES_BEFORE[mode] * duration
    start = twice_start // (2 * MICROSECONDS)
    end = (twice_start + 2 * duration) // (2 * MICROSECONDS)
    if not FIRST_SECOND <= nominal // MICROSECONDS <= LAST_SECOND:
        raise NominalTimeError("the nominal time is outside the years 1 to 9999", value=nominal)
    if start < FIRST_SECOND or end > LAST_SECOND:
        raise WindowDurationError("the window reaches outside the years 1 to 9999", value=duration)
    return start, end


def longest_lead(mode: str, duration: int) -> int:
    """How far before the nominal time the window may start, in microseconds, rounding included."""
    return (_HALVES_BEFORE[mode] * duration + 1) // 2 + MICROSECONDS - 1


def checked_mode(mode: object) -> str:
    if isinstance(mode, str):
        mode = _SYNONYMS.get(mode, mode)
        if mode in WINDOW_MODES:
            return mode
    names = (*WINDOW_MODES, *_SYNONYMS)
    close = get_close_matches(mode[:40].lower(), names, 1, 0.5) if isinstance(mode, str) else []
    raise WindowModeError(
        f"unknown window mode {shown(mode)}",
        hint=f"it is one of {', '.join(names)}",
        value=mode,
        suggestion=close[0] if close else None,
    )
