"""The busiest minute of the coming week, and how its jobs could be told apart. Only text: nothing is changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from msgspec.structs import replace

from chronex.errors import ChronexError
from chronex.model.records import Job
from chronex.timing.job_schedule import schedule_of
from chronex.timing.zones import Zone
from chronex_tui.model.cells import Line, fit, shown
from chronex_tui.model.look import Look
from chronex_tui.model.wording import HOUR, MINUTE, clock, count, full_stamp

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
class Crowd:
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


def crowd_of(jobs: Sequence[Job], at_ms: int) -> Crowd:
    """The jobs of the minute that begins at `at_ms`, and where in the hour after it there is more room."""
    load: Counter[int] = Counter()
    here: list[tuple[Job, int]] = []
    for job in jobs:
        instants = _instants(job, at_ms)
        load.update((ms - at_ms) // MINUTE for ms in instants)
        if instants and instants[0] < at_ms + MINUTE:
            here.append((job, _room(instants, at_ms)))
    starts = load[0]
    moves = []
    for job, room in here:
        target = min(range(room), key=lambda minute: (load[minute] + (minute > 0), minute), default=0)
        rewritten = _checked(job, target, at_ms) if target else ""
        if rewritten:
            load[target] += 1
            load[0] -= 1
        moves.append(Move(job.id, job.schedule, target if rewritten else 0, rewritten))
    return Crowd(at_ms, starts, load[0], tuple(sorted(moves, key=lambda move: (move.minutes == 0, move.minutes))))


def _instants(job: Job, at_ms: int) -> list[int]:
    try:
        return list(islice(schedule_of(job).between(at_ms - 1, at_ms + HOUR - 1), 61))
    except ChronexError:  # a schedule of a program's own, which is not this one
        return []


def _room(instants: Sequence[int], at_ms: int) -> int:
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


def busiest_minute(minutes: Sequence[tuple[int, int]]) -> int | None:
    """Of (instant, starts) the fullest, the first of equals; None where no two start together."""
    at_ms, starts = min(minutes, key=lambda found: (-found[1], found[0]), default=(0, 0))
    return at_ms if starts > 1 else None


def crowd_lines(crowd: Crowd | None, look: Look) -> list[Line]:
    if crowd is None:
        return [(("No two jobs start in the same minute of the coming week.", ""),)]
    zone: Zone = look.board_zone
    when = full_stamp(crowd.at_ms, zone)
    lines: list[Line] = [((when, "bold"), (f"  {count(crowd.starts, 'start')} in this minute", "")), ()]
    moved = [move for move in crowd.moves if move.minutes]
    for move in moved[:_MOST_LISTED]:
        to = clock(crowd.at_ms + move.minutes * MINUTE, zone)
        lines.append(((fit(shown(move.job), 24, look.glyphs.ellipsis), ""), (f"  {to}  ", "key"),
                      (f"{shown(move.schedule)}  becomes  ", "dim"), (shown(move.rewritten), "")))  # fmt: skip
    if len(moved) > _MOST_LISTED:
        lines.append(
            ((f"and {len(moved) - _MOST_LISTED:,} more, each a minute of its own where there is one", "dim"),)
        )
    stay = len(crowd.moves) - len(moved)
    if moved:
        lines += [
            (),
            ((f"{count(crowd.after, 'start')} would be left in the minute; {count(stay, 'job')} would stay.", ""),),
        ]
    else:
        lines.append((("None of them can start later by its minute alone; give them a spread instead.", ""),))
    return [*lines, (("Nothing is changed: write it into the job file, then chronex apply.", "dim"),)]
