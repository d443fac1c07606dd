"""Clock changes: the local day of each in half hours, and when every job runs on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chronex.model.job import Job
from chronex.text.durations import format_duration, largest_unit
from chronex.text.terminal import cell_safe, cell_width
from chronex.timing.calendar_days import CalendarDays
from chronex.timing.clock_changes import Cell, ClockEffect, day_cells, effect_of
from chronex.timing.dst import DstPolicy
from chronex.timing.job_schedule import timing_of, timings_of
from chronex.timing.occurrences import Occurrences
from chronex.timing.zones import ClockChange, Zone, load_zone
from chronex_tui.model.display import DisplaySettings, Glyphs, abbreviation, count, day_of, job_zone
from chronex_tui.model.layout import Line, Span, crop, fit, line_width

_DAY = 86_400
_YEAR = 366 * _DAY
_MOST_PER_ZONE = 2
_MOST_HOURS = 25  # of a day on which the clock is set back
_LONGEST_NAME = 18
# The policies that the key for "what if" goes through; None is the policy of each job itself.
POLICIES: tuple[DstPolicy | None, ...] = (
    None,
    DstPolicy("end", "by-kind"),
    DstPolicy("skip", "first"),
    DstPolicy("end", "first"),
    DstPolicy("skip", "both"),
)


def signs_of_clock(glyphs: Glyphs) -> dict[str, str]:
    """What the signs of a day mean."""
    return {
        glyphs.runs: "runs",
        glyphs.gap: "does not exist",
        glyphs.second: "second pass",
        glyphs.unsure: "scheduled here",
        glyphs.unused: "not used",
    }


@dataclass(frozen=True, slots=True)
class JobOnChange:
    """One job on the day of a change."""

    job: Job
    effect: ClockEffect
    cells: tuple[Cell, ...]
    midnight: int  # seconds on the wall clock at which the drawn day begins


@dataclass(frozen=True, slots=True)
class ClockDay:
    """A clock change of a zone with the jobs of that zone, those that it affects first."""

    zone: Zone
    change: ClockChange
    jobs: tuple[JobOnChange, ...]

    @property
    def touched(self) -> int:
        return sum(1 for one in self.jobs if one.effect.touches)


def zones_of(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """The zones in use, each with its jobs."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job_zone(job).name, []).append(job)
    return found


def clock_days(
    jobs: Iterable[Job], since_ms: int, only: str = "", policy: DstPolicy | None = None, most_jobs: int = 200
) -> tuple[list[ClockDay], list[str]]:
    """The next changes of every zone in use, soonest first; and the zones that never change."""
    days: list[ClockDay] = []
    unchanging: list[str] = []
    in_use = zones_of(jobs)
    names = [only] if only else sorted(in_use)
    for name in names:
        zone = load_zone(name)
        changes = zone.changes(since_ms // 1000, since_ms // 1000 + 3 * _YEAR)[:_MOST_PER_ZONE]
        if not changes:
            unchanging.append(name)
        days += [_day(zone, change, in_use.get(name, []), policy, most_jobs) for change in changes]
    return sorted(days, key=lambda day: (day.change.at, day.zone.name)), unchanging


def _day(zone: Zone, change: ClockChange, jobs: Sequence[Job], policy: DstPolicy | None, most: int) -> ClockDay:
    found = []
    for job in jobs:
        for own in timings_of(job):
            timing = with_policy(own, policy)
            found.append((job, timing, _left_out(job, change, zone) or effect_of(timing, change)))
    found.sort(key=lambda one: (not one[2].touches, one[0].id))
    midnight = min(change.at + change.before, change.at + change.after) // _DAY * _DAY
    touched = [
        JobOnChange(job, effect, () if _left_out(job, change, zone) else _cells(timing, change), midnight)
        for job, timing, effect in found[:most]
    ]
    return ClockDay(zone, change, tuple(touched))


def _left_out(job: Job, change: ClockChange, zone: Zone) -> ClockEffect | None:
    """The calendar that leaves the whole day of the change out; None where the job runs on it."""
    rules = job.calendars
    if rules is None:
        return None
    first = (change.at + min(change.before, change.after)) // _DAY
    for calendar in (*rules.excluded, *rules.blackout):
        if calendar.day_span(first) is not None:
            return ClockEffect(False, f"no run on this day: {calendar.name}")
    if rules.workday and not CalendarDays(rules, zone).is_wanted_workday(first):
        return ClockEffect(False, "no run on this day: it is none of its working days")
    return None


def with_policy(timing: Occurrences, policy: DstPolicy | None) -> Occurrences:
    return timing if policy is None else Occurrences(timing.meaning, timing.zone, policy)


def _cells(timing: Occurrences, change: ClockChange) -> tuple[Cell, ...]:
    if timing.pattern is None:
        return ()
    return tuple(day_cells(timing, change))


def frame_cells(change: ClockChange) -> tuple[Cell, ...]:
    """The day itself, without any job."""
    from chronex.timing import parse

    return tuple(day_cells(parse("0 0 30 2 *").occurrences(), change))


# -- drawing ---------------------------------------------------------------------------------------------


def title_line(day: ClockDay, display: DisplaySettings, cells: int = 999) -> Line:
    """The day, the zone and what happens; of that only what fits, and how many jobs it affects to the last."""
    change = day.change
    before, after = abbreviation(change.at * 1000 - 1000, day.zone), abbreviation(change.at * 1000, day.zone)
    shift = change.after - change.before
    kind = f"{format_duration(abs(shift) * 1000)} {'forward' if shift > 0 else 'back'}"
    soon = largest_unit(change.at * 1000 - display.now_ms)
    when = f"in {soon}" if change.at * 1000 > display.now_ms else "past"
    names = f"{before} {display.glyphs.arrow} {after}"
    affected = (f"  {count(day.touched, 'job')} affected", "clock") if day.touched else ("  no job affected", "dim")
    first: Line = ((day_of(change.at * 1000 - 1000, day.zone), "bold"), (f"  {day.zone.name}", "clock"))
    ways: list[Line] = [
        ((f"  {kind}, {names}", ""), (f"  {when}", "dim")),
        ((f"  {kind}, {names}", ""),),
        ((f"  {kind}", ""),),
    ]
    fitting = next((way for way in ways if line_width((*first, *way, affected)) <= cells), ways[-1])
    return (*first, *fitting, affected)


def change_lines(day: ClockDay, display: DisplaySettings, cells: int, most: int, label: int = 0) -> list[Line]:
    """Title, hours, the clock's own row, then a row for each job with a sentence at its end."""
    frame = frame_cells(day.change)
    hours = _hours(frame)
    label = label or max([6, *(len(one.job.shown_name) for one in day.jobs[:most])])
    narrow = min(label, _LONGEST_NAME, max(6, cells // 6))
    slim = narrow + 1 + 3 * len(hours) > cells
    # Hours without gaps leave room for names, the same on each day: one of them may have an hour more.
    label = min(label, _LONGEST_NAME, max(narrow, cells - 1 - 2 * _MOST_HOURS)) if slim else narrow
    drawn = _Drawn(
        cells, label, *_around_change(hours, max(1, (cells - label - 1) // 2) if slim else len(hours)), slim
    )
    hours = hours[drawn.hours]
    lines = [
        ((" " * (label + 1), ""), (_spaced([text for text, _ in hours], slim=slim), "dim")),
        ((fit("clock", label) + " ", "label"), *_clock_row(hours, display.glyphs, slim=slim)),
    ]
    for one in day.jobs[:most]:
        lines += _job_rows(one, display, drawn)
    hidden = len(day.jobs) - most
    if hidden > 0:
        lines.append(((f"{'':{label + 1}}and {count(hidden, 'more job')}", "dim"),))
    return lines


class _Drawn(NamedTuple):
    """How wide a day is drawn, and which of its hours; `slim` ones have no gap between them."""

    cells: int
    label: int
    first: int
    after: int
    slim: bool

    @property
    def hours(self) -> slice:
        return slice(self.first, self.after)

    @property
    def free_cells(self) -> int:
        """What is left behind the hours."""
        return self.cells - self.label - 1 - (2 if self.slim else 3) * (self.after - self.first)


def _around_change(hours: Sequence[tuple[str, list[Cell]]], most: int) -> tuple[int, int]:
    """The first of the hours that there is room for, and the one after the last, with the change in their middle."""
    if most >= len(hours):
        return 0, len(hours)
    change = next((number for number, (_, cells) in enumerate(hours) if cells[0].kind != "plain"), 0)
    first = min(max(0, change - most // 2), len(hours) - most)
    return first, first + most


def _hours(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    """Half hours in groups of an hour, in the order in which they pass; a group ends where the clock jumps."""
    groups: list[tuple[str, list[Cell]]] = []
    for cell in cells:
        starts = cell.wall % 3600 == 0
        jumps = bool(groups) and groups[-1][1][-1].kind != cell.kind and len(groups[-1][1]) == 2
        if not groups or starts or jumps or len(groups[-1][1]) == 2:
            groups.append((f"{cell.wall // 3600 % 24:02}", []))
        groups[-1][1].append(cell)
    return groups


def _spaced(texts: Sequence[str], *, slim: bool) -> str:
    if not slim:
        return " ".join(texts)
    # Without gaps only every second hour has a number.
    return "".join(text if number % 2 == 0 else "  " for number, text in enumerate(texts))


def _clock_row(hours: Sequence[tuple[str, list[Cell]]], glyphs: Glyphs, *, slim: bool) -> Iterator[Span]:
    signs = {"plain": (glyphs.plain, "day"), "missing": (glyphs.gap, "failed"), "first": (glyphs.plain, "day"),
             "second": (glyphs.second, "clock")}  # fmt: skip
    for number, (_, cells) in enumerate(hours):
        if number and not slim:
            yield (" ", "")
        for cell in cells:
            yield signs[cell.kind]
        yield (" " * (2 - len(cells)), "")


def _job_rows(one: JobOnChange, display: DisplaySettings, drawn: _Drawn) -> list[Line]:
    label = drawn.label
    name = (fit(cell_safe(one.job.shown_name), label, display.glyphs.ellipsis) + " ", "")
    style = "clock" if one.effect.touches else "dim"
    sentence = one.effect.text
    if not any(cell.runs for cell in one.cells) and not one.effect.touches:
        return [(name, (sentence, style))]
    marks = tuple(_job_marks(one, display.glyphs, drawn))
    if cell_width(sentence) + 2 <= drawn.free_cells:
        return [(name, *marks, (f"  {sentence}", style))]
    if not one.effect.touches:
        return [(name, *marks)]
    return [(name, *marks), ((" " * (label + 1), ""), (crop(sentence, drawn.cells - label - 1), style))]


def _job_marks(one: JobOnChange, glyphs: Glyphs, drawn: _Drawn) -> Iterator[Span]:
    lost = _lost_half_hours(one)
    for number, (_, cells) in enumerate(_hours(one.cells)[drawn.hours]):
        if number and not drawn.slim:
            yield (" ", "")
        for cell in cells:
            yield _mark(cell, lost, glyphs)
        yield (" " * (2 - len(cells)), "")


def _mark(cell: Cell, lost: frozenset[int], glyphs: Glyphs) -> Span:
    if cell.kind == "missing":
        return (glyphs.unsure, "failed") if cell.wall in lost else (" ", "")
    if cell.runs:
        text = glyphs.runs if cell.runs == 1 else str(cell.runs) if cell.runs < 10 else "+"
        return (text, "ok" if cell.kind == "plain" else "clock")
    return (glyphs.unused, "dim") if cell.kind == "second" and cell.wall in lost else (" ", "")


def _lost_half_hours(one: JobOnChange) -> frozenset[int]:
    """Half hours with a scheduled time that does not exist, or exists twice."""
    timing = timing_of(one.job)
    pattern = None if timing is None else timing.pattern
    cells = [cell for cell in one.cells if cell.kind in ("missing", "second")]
    if pattern is None or not cells or not one.effect.touches:
        return frozenset()
    start = one.midnight
    return frozenset(
        cell.wall
        for cell in cells
        if any(True for _ in pattern.walls_between(start + cell.wall, start + cell.wall + 1799))
    )


def no_change_line(zone: str) -> Line:
    return ((f"{zone} never changes its clock", "dim"),)
