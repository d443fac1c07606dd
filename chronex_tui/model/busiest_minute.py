"""The busiest minute of the coming week, and other minutes in which its jobs could start. Nothing is changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.model.job import Job
from chronex.text.durations import HOUR_MS, MINUTE_MS
from chronex.text.terminal import cell_safe
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import Zone
from chronex_tui.model.display import DisplaySettings
from chronex_tui.model.heatmap import coming_starts
from chronex_tui.model.layout import Line, fit
from chronex_tui.model.time_text import clock_time, count, full_stamp

_MOST_LISTED = 12
_SIMPLE = re.compile(r"(\d{1,2}|\*/\d{1,2})((?: \S+){4})", re.ASCII)
_NAMED = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * SUN"}


@dataclass(frozen=True, slots=True)
class SuggestedMove:
    """A job of the minute, and how it could start later."""

    job: str
    schedule: str
    minutes: int = 0  # by which it would start later; 0 where it stays
    rewritten: str = ""  # the schedule that starts it then


@dataclass(frozen=True, slots=True)
class BusiestMinute:
    """The minute that begins at `at_ms`, with a suggestion for each of its jobs."""

    at_ms: int
    starts: int
    starts_after: int  # how many would be left in the minute
    moves: tuple[SuggestedMove, ...]


def shifted(schedule: str, minutes: int) -> str:
    """The same schedule some minutes later, where that is one change to its minute field; else nothing."""
    match = _SIMPLE.fullmatch(_NAMED.get(schedule, " ".join(schedule.split())))
    if match is None:
        return ""
    minute, rest = match[1], match[2]
    if minute.startswith("*/"):
        step = int(minute[2:])
        return f"{minutes}-59/{step}{rest}" if 0 < minutes < step <= 30 else ""
    return f"{int(minute) + minutes}{rest}" if int(minute) + minutes < 60 else ""


def spread_minute(jobs: Sequence[Job], at_ms: int) -> BusiestMinute:
    """Suggest for each job of the minute the emptiest minute of the hour after it."""
    load: Counter[int] = Counter()  # starts by minute, counted from the busiest
    here: list[tuple[Job, int]] = []
    for job in jobs:
        instants = _instants(job, at_ms)
        load.update((ms - at_ms) // MINUTE_MS for ms in instants)
        if instants and instants[0] < at_ms + MINUTE_MS:
            here.append((job, _free_minutes(instants, at_ms)))
    starts = load[0]
    moves = []
    for job, free_minutes in here:
        target = min(range(free_minutes), key=lambda minute: (load[minute] + (minute > 0), minute), default=0)
        rewritten = _rewritten(job, target, at_ms) if target else ""
        if rewritten:
            load[target] += 1
            load[0] -= 1
        moves.append(SuggestedMove(job.id, job.schedule, target if rewritten else 0, rewritten))
    moves.sort(key=lambda move: (move.minutes == 0, move.minutes))
    return BusiestMinute(at_ms, starts, load[0], tuple(moves))


def _instants(job: Job, at_ms: int) -> list[int]:
    try:
        return list(islice(schedule_of(job).between(at_ms - 1, at_ms + HOUR_MS - 1), 61))
    except ChronexError:  # a schedule that is defined in another program
        return []


def _free_minutes(instants: Sequence[int], at_ms: int) -> int:
    """The minutes until the job starts again: moved by more, it would be another start."""
    later = next((ms for ms in instants if ms >= at_ms + MINUTE_MS), at_ms + HOUR_MS)
    return (later - at_ms) // MINUTE_MS


def _rewritten(job: Job, minutes: int, at_ms: int) -> str:
    """The schedule that starts so many minutes later; empty where a search of its instants does not confirm it."""
    text = shifted(job.schedule, minutes)
    if not text:
        return ""
    found = _instants(replace(job, schedule=text), at_ms)
    return text if found and (found[0] - at_ms) // MINUTE_MS == minutes else ""


def fullest_minute(minutes: Sequence[tuple[int, int]]) -> int | None:
    """The instant with the most starts, the first of equals; None where no two jobs start together."""
    at_ms, starts = min(minutes, key=lambda found: (-found[1], found[0]), default=(0, 0))
    return at_ms if starts > 1 else None


def find_busiest_minute(jobs: Sequence[Job], now_ms: int, zone: Zone) -> BusiestMinute | None:
    """The fullest minute of the coming week with its suggestions; None where no two jobs start together."""
    at_ms = fullest_minute(list(coming_starts(jobs, now_ms, zone).minutes.values()))
    return None if at_ms is None else spread_minute(jobs, at_ms)


def busiest_minute_lines(found: BusiestMinute | None, display: DisplaySettings) -> list[Line]:
    if found is None:
        return [(("No two jobs start in the same minute of the coming week.", ""),)]
    zone: Zone = display.board_zone
    when = full_stamp(found.at_ms, zone)
    lines: list[Line] = [((when, "bold"), (f"  {count(found.starts, 'start')} in this minute", "")), ()]
    moved = [move for move in found.moves if move.minutes]
    for move in moved[:_MOST_LISTED]:
        to = clock_time(found.at_ms + move.minutes * MINUTE_MS, zone)
        lines.append(
            (
                (fit(cell_safe(move.job), 24, display.glyphs.ellipsis), ""),
                (f"  {to}  ", "key"),
                (f"{cell_safe(move.schedule)}  becomes  ", "dim"),
                (cell_safe(move.rewritten), ""),
            )
        )
    if len(moved) > _MOST_LISTED:
        lines.append(
            ((f"and {len(moved) - _MOST_LISTED:,} more, each a minute of its own where there is one", "dim"),)
        )
    stay = len(found.moves) - len(moved)
    if moved:
        left = count(found.starts_after, "start")
        lines += [(), ((f"{left} would be left in the minute; {count(stay, 'job')} would stay.", ""),)]
    else:
        lines.append((("None of them can start later by its minute alone; give them a spread instead.", ""),))
    return [*lines, (("Nothing is changed: write it into the job file, then chronex apply.", "dim"),)]
