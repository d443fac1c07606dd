"""The busiest minute of the coming week, and how its jobs could be told apart. Only text: nothing is changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from chronex.engine.schedule import schedule_of
from chronex.errors import ChronexError
from chronex.model.records import Job
from chronex.timing.zones import Zone
from chronex_tui.model.display import DisplaySettings
from chronex_tui.model.heatmap import coming_starts
from chronex_tui.model.layout import Line, fit, terminal_safe
from chronex_tui.model.time_text import HOUR, MINUTE, clock, count, full_stamp

_MOST_LISTED = 12
_SIMPLE = re.compile(r"(\d{1,2}|\*/\d{1,2})((?: \S+){4})", re.ASCII)
_NAMED = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * SUN"}


@dataclass(frozen=True, slots=True)
class Move:
    """A job of the minute: by how many minutes it could start later (0: it stays), and the schedule that does so."""

    job: str
    schedule: str
    minutes: int = 0
    rewritten: str = ""


@dataclass(frozen=True, slots=True)
class BusiestMinute:
    """`after` is how many would still start in the minute."""

    at_ms: int
    starts: int
    after: int
    moves: tuple[Move, ...]


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
    """The jobs of the minute that begins at `at_ms`, and where in the hour after it there is more room."""
    load: Counter[int] = Counter()
    here: list[tuple[Job, int]] = []
    for job in jobs:
        instants = _instants(job, at_ms)
        load.update((ms - at_ms) // MINUTE for ms in instants)
        if instants and instants[0] < at_ms + MINUTE:
            here.append((job, _free_minutes(instants, at_ms)))
    starts = load[0]
    moves = []
    for job, free_minutes in here:
        target = min(range(free_minutes), key=lambda minute: (load[minute] + (minute > 0), minute), default=0)
        rewritten = _checked(job, target, at_ms) if target else ""
        if rewritten:
            load[target] += 1
            load[0] -= 1
        moves.append(Move(job.id, job.schedule, target if rewritten else 0, rewritten))
    return BusiestMinute(
        at_ms, starts, load[0], tuple(sorted(moves, key=lambda move: (move.minutes == 0, move.minutes)))
    )


def _instants(job: Job, at_ms: int) -> list[int]:
    try:
        return list(islice(schedule_of(job).between(at_ms - 1, at_ms + HOUR - 1), 61))
    except ChronexError:  # a schedule of a program's own, which is not this one
        return []


def _free_minutes(instants: Sequence[int], at_ms: int) -> int:
    """How many minutes there are before the job starts again: later than that is no longer the same start."""
    later = next((ms for ms in instants if ms >= at_ms + MINUTE), at_ms + HOUR)
    return (later - at_ms) // MINUTE


def _checked(job: Job, minutes: int, at_ms: int) -> str:
    """The rewritten schedule, only where it does start in the minute that was promised and no longer in this one."""
    text = shifted(job.schedule, minutes)
    if not text:
        return ""
    found = _instants(replace(job, schedule=text), at_ms)
    return text if found and (found[0] - at_ms) // MINUTE == minutes else ""


def fullest_minute(minutes: Sequence[tuple[int, int]]) -> int | None:
    """Of (instant, starts) the fullest, the first of equals; None where no two start together."""
    at_ms, starts = min(minutes, key=lambda found: (-found[1], found[0]), default=(0, 0))
    return at_ms if starts > 1 else None


def find_busiest_minute(jobs: Sequence[Job], now_ms: int, zone: Zone) -> BusiestMinute | None:
    """The fullest minute of the coming week, and how it could be spread; None where no two start together."""
    at_ms = fullest_minute(list(coming_starts(jobs, now_ms, zone).minutes.values()))
    return None if at_ms is None else spread_minute(jobs, at_ms)


def busiest_minute_lines(busiest_minute: BusiestMinute | None, display: DisplaySettings) -> list[Line]:
    if busiest_minute is None:
        return [(("No two jobs start in the same minute of the coming week.", ""),)]
    zone: Zone = display.board_zone
    when = full_stamp(busiest_minute.at_ms, zone)
    lines: list[Line] = [((when, "bold"), (f"  {count(busiest_minute.starts, 'start')} in this minute", "")), ()]
    moved = [move for move in busiest_minute.moves if move.minutes]
    for move in moved[:_MOST_LISTED]:
        to = clock(busiest_minute.at_ms + move.minutes * MINUTE, zone)
        lines.append(((fit(terminal_safe(move.job), 24, display.glyphs.ellipsis), ""), (f"  {to}  ", "key"),
                      (f"{terminal_safe(move.schedule)}  becomes  ", "dim"), (terminal_safe(move.rewritten), "")))  # fmt: skip
    if len(moved) > _MOST_LISTED:
        lines.append(
            ((f"and {len(moved) - _MOST_LISTED:,} more, each a minute of its own where there is one", "dim"),)
        )
    stay = len(busiest_minute.moves) - len(moved)
    if moved:
        lines += [
            (),
            (
                (
                    f"{count(busiest_minute.after, 'start')} would be left in the minute; {count(stay, 'job')} would stay.",
                    "",
                ),
            ),
        ]
    else:
        lines.append((("None of them can start later by its minute alone; give them a spread instead.", ""),))
    return [*lines, (("Nothing is changed: write it into the job file, then chronex apply.", "dim"),)]
