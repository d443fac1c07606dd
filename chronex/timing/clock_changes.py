"""What a clock change does to an expression: in words, and as a picture of the local day."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from chronex.text.instants import EPOCH
from chronex.timing.dst import fires_twice
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import ClockChange

_DAY = 86_400
_HALF_HOUR = 1800
_MOST_TIMES = 4


class ClockEffect(NamedTuple):
    """What a clock change does to the runs of an expression, in words."""

    touches: bool  # is any run moved, merged, skipped or doubled?
    text: str


def wall_clock(wall: int) -> str:
    """The time of day of a wall second: `02:30`, or `02:30:15` when there are seconds."""
    second = wall % _DAY
    text = f"{second // 3600:02}:{second // 60 % 60:02}"
    return f"{text}:{second % 60:02}" if second % 60 else text


def wall_date(wall: int) -> str:
    """`Sun 28 Mar 2027`."""
    return (EPOCH + timedelta(seconds=wall)).strftime("%a %d %b %Y")


def effect_of(timing: Occurrences, change: ClockChange) -> ClockEffect:
    """What happens to the runs of this expression at this clock change."""
    if (pattern := timing.pattern) is None:
        is_interval = timing.meaning.kind == "interval"
        return ClockEffect(False, "counts elapsed time: not touched") if is_interval else _untouched()
    low, high = sorted((change.at + change.before, change.at + change.after))
    walls = [w for w in pattern.walls_between(low, high - 1) if _is_open(timing, w - change.before)]
    if not walls:
        return _untouched()
    return _gap_effect(timing, change, walls) if change.is_gap else _overlap_effect(timing, change, walls)


def _untouched() -> ClockEffect:
    return ClockEffect(False, "no runs affected")


def _is_open(timing: Occurrences, instant: int) -> bool:
    return timing.low <= instant * 1000 <= timing.high


def _gap_effect(timing: Occurrences, change: ClockChange, walls: list[int]) -> ClockEffect:
    missing = _times(walls)
    verb = "do" if len(walls) > 1 else "does"
    if timing.policy.gap == "skip":
        return ClockEffect(True, f"{missing} {verb} not exist: {_runs(len(walls))} skipped")
    end = wall_clock(change.at + change.after)
    pattern = timing.pattern
    assert pattern is not None
    lands_on_run = any(pattern.walls_between(change.at + change.after, change.at + change.after))
    if lands_on_run:
        return ClockEffect(True, f"{missing} {verb} not exist: merged into the run at {end}")
    if len(walls) > 1:
        return ClockEffect(True, f"{missing} {verb} not exist: one run at {end} instead of {len(walls)}")
    return ClockEffect(True, f"{missing} does not exist: the run fires at {end} instead")


def _overlap_effect(timing: Occurrences, change: ClockChange, walls: list[int]) -> ClockEffect:
    pattern = timing.pattern
    assert pattern is not None
    twice = _times(walls)
    verb = "happen" if len(walls) > 1 else "happens"
    if fires_twice(timing.policy, is_interval=pattern.is_interval):
        return ClockEffect(True, f"{twice} {verb} twice: fires on both passes, {_runs(len(walls))} more than usual")
    once = "each fires" if len(walls) > 1 else "fires"
    return ClockEffect(True, f"{twice} {verb} twice: {once} once, on the first pass")


def _runs(count: int) -> str:
    return f"{count} run{'s' if count > 1 else ''}"


def _times(walls: list[int]) -> str:
    """`02:00, 02:15, 02:30, 02:45 and 8 more`."""
    shown = [wall_clock(wall) for wall in walls[:_MOST_TIMES]]
    if len(walls) > _MOST_TIMES:
        return f"{', '.join(shown)} and {len(walls) - _MOST_TIMES} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def note_of(timing: Occurrences, instant_ms: int) -> str:
    """A note on a run that a clock change moved, merged or doubled; empty for all others."""
    pattern = timing.pattern
    if pattern is None or instant_ms % 1000:
        return ""
    second = instant_ms // 1000
    wall = second + timing.zone.offset_at(second)
    for change in timing.zone.changes(second - _DAY, second + _DAY):
        low, high = sorted((change.at + change.before, change.at + change.after))
        if change.is_gap and second == change.at:
            moved = list(pattern.walls_between(low, high - 1)) if timing.policy.gap == "end" else []
            if moved:
                merged = any(pattern.walls_between(high, high)) or len(moved) > 1
                verb = "do" if len(moved) > 1 else "does"
                return f"{'merged' if merged else 'moved'}: {_times(moved)} {verb} not exist on this day"
        elif not change.is_gap and low <= wall < high:
            return _pass_note(timing, is_second=second >= change.at)
    return ""


def _pass_note(timing: Occurrences, *, is_second: bool) -> str:
    pattern = timing.pattern
    assert pattern is not None
    if is_second:
        return "second pass: this hour happens twice"
    if fires_twice(timing.policy, is_interval=pattern.is_interval):
        return "first pass: this hour happens twice"
    return "first pass only: this hour happens twice"


class Cell(NamedTuple):
    """Half an hour of a local day. `kind` is `plain`, `missing`, `first` or `second` (of two passes)."""

    wall: int  # second of the day at which it starts
    kind: str
    runs: int


def day_cells(timing: Occurrences, change: ClockChange) -> list[Cell]:
    """The local day of a clock change in the order of its instants, with the missing half hours in their place."""
    low, high = sorted((change.at + change.before, change.at + change.after))
    start = low // _DAY * _DAY
    end = max(start + _DAY, high)
    cells: list[Cell] = []
    for wall in range(start, low if change.is_gap else high, _HALF_HOUR):
        kind = "first" if wall >= low else "plain"
        cells.append(_cell(timing, wall, wall - change.before, kind, start))
    if change.is_gap:
        cells += [Cell(wall - start, "missing", 0) for wall in range(low, high, _HALF_HOUR)]
    for wall in range(high if change.is_gap else low, end, _HALF_HOUR):
        kind = "second" if wall < high else "plain"
        cells.append(_cell(timing, wall, wall - change.after, kind, start))
    return cells


def _cell(timing: Occurrences, wall: int, instant: int, kind: str, midnight: int) -> Cell:
    runs = sum(1 for _ in timing.between(instant * 1000, (instant + _HALF_HOUR) * 1000 - 1))
    return Cell(wall - midnight, kind, runs)
