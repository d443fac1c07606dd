"""Weekday by hour: how much starts when, in the coming week or in the past one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from chronex.timing.zones import Zone
from chronex_tui.model.cells import Line, Span, shown
from chronex_tui.model.glyphs import Glyphs
from chronex_tui.model.look import Look
from chronex_tui.model.wording import DAY, HOUR, MINUTE, MONTHS, WEEKDAYS, count, local

WEEK = 7
_TOP = 5
_QUARTER = 900_000


def _minutes(ms: int) -> int:
    """Rounded; what ran at all is at least a minute."""
    return max(round(ms / MINUTE), 1) if ms else 0


@dataclass(frozen=True, slots=True)
class Density:
    """Starts by (day from the first, hour of the wall). `missing` and `doubled` hours belong to clock changes."""

    first_day_ms: int  # local midnight of the first row
    counts: dict[tuple[int, int], int]
    jobs: dict[tuple[int, int], tuple[tuple[str, int], ...]]  # the busiest of each cell
    minutes: dict[tuple[int, int], tuple[int, int]]  # the fullest minute of each cell, and its starts
    missing: frozenset[tuple[int, int]] = frozenset()
    doubled: frozenset[tuple[int, int]] = frozenset()
    is_past: bool = False
    is_cut: bool = False  # some job fires so often that its count was carried on from a part
    is_time: bool = False  # minutes of run time instead of starts

    @property
    def busiest(self) -> tuple[tuple[int, int], int] | None:
        return max(self.counts.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]), default=None)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class Tally:
    """Counts as they come in, job after job."""

    def __init__(self, first_day_ms: int, zone: Zone) -> None:
        self.start_ms = first_day_ms
        self.zone = zone
        self.counts: Counter[tuple[int, int]] = Counter()
        self._minutes: Counter[int] = Counter()
        self._jobs: dict[tuple[int, int], Counter[str]] = {}
        self._cells: dict[int, tuple[int, int]] = {}
        self._first_date = local(first_day_ms, zone).date()
        self.is_cut = False

    def cell(self, ms: int) -> tuple[int, int]:
        """The cell of an instant; whole quarter hours share one, so the wall is asked seldom."""
        quarter = ms // _QUARTER
        found = self._cells.get(quarter)
        if found is None:
            moment = local(ms, self.zone)
            found = self._cells[quarter] = ((moment.date() - self._first_date).days, moment.hour)
        return found

    def add(self, job: str, instants: Iterable[int], weight: int = 1) -> None:
        for ms in instants:
            cell = self.cell(ms)
            if 0 <= cell[0] < WEEK:
                self.counts[cell] += weight
                self._minutes[ms // 60_000] += weight
                self._jobs.setdefault(cell, Counter())[job] += weight

    def add_time(self, job: str, start_ms: int, end_ms: int, weight: int = 1) -> None:
        """Run time, in the cells that it falls in; a quarter hour is never in two."""
        at, end = max(start_ms, self.start_ms), min(end_ms, self.start_ms + (WEEK + 1) * DAY)
        while at < end:
            until = min((at // _QUARTER + 1) * _QUARTER, end)
            cell = self.cell(at)
            if 0 <= cell[0] < WEEK:
                self.counts[cell] += (until - at) * weight
                self._jobs.setdefault(cell, Counter())[job] += (until - at) * weight
            at = until

    def time(self, *, is_past: bool = False) -> Density:
        """What `add_time` has summed up, in minutes."""
        found = self.density(is_past=is_past)
        counts = {cell: _minutes(ms) for cell, ms in found.counts.items()}
        jobs = {cell: tuple((name, _minutes(ms)) for name, ms in top) for cell, top in found.jobs.items()}
        return replace(found, counts=counts, jobs=jobs, is_time=True)

    def density(self, *, is_past: bool = False) -> Density:
        minutes: dict[tuple[int, int], tuple[int, int]] = {}
        for minute, number in self._minutes.items():
            cell = self.cell(minute * 60_000)
            if number > minutes.get(cell, (0, 0))[1]:
                minutes[cell] = (minute * 60_000, number)
        missing, doubled = odd_hours(self.start_ms, self.zone)
        top = {cell: tuple(jobs.most_common(_TOP)) for cell, jobs in self._jobs.items()}
        return Density(self.start_ms, dict(self.counts), top, minutes, missing, doubled, is_past, self.is_cut)


def first_midnight(now_ms: int, zone: Zone, *, past: bool = False) -> int:
    """The local midnight at which the shown week begins."""
    moment = local(now_ms, zone)
    since = moment.hour * HOUR + moment.minute * 60_000 + moment.second * 1000 + now_ms % 1000
    return now_ms - since - (6 * DAY if past else 0)


def odd_hours(start_ms: int, zone: Zone) -> tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]:
    """Hours of the week that a clock change takes away or gives twice."""
    missing: set[tuple[int, int]] = set()
    doubled: set[tuple[int, int]] = set()
    first = (start_ms // 1000 + zone.offset_at(start_ms // 1000)) // 86_400
    for change in zone.changes(start_ms // 1000, start_ms // 1000 + 8 * 86_400):
        low, high = sorted((change.at + change.before, change.at + change.after))
        for wall in range(low, high, 1800):
            cell = (wall // 86_400 - first, wall % 86_400 // 3600)
            (missing if change.is_gap and high - low >= 3600 else doubled if not change.is_gap else set()).add(cell)
    return frozenset(missing), frozenset(doubled)


def levels(counts: Iterable[int]) -> tuple[int, int, int, int]:
    """Where the ramp steps, by quarters of the cells that are not empty."""
    found = sorted({number for number in counts if number})
    if not found:
        return (1, 1, 1, 1)
    steps = [found[min(len(found) * part // 5, len(found) - 1)] for part in range(1, 5)]
    return (steps[0], steps[1], steps[2], steps[3])


def level(number: int, steps: Sequence[int]) -> int:
    return 0 if not number else 1 + sum(1 for step in steps if number > step)


def density_lines(density: Density, look: Look, cursor: tuple[int, int] | None, cells: int) -> list[Line]:
    """The week as a map; in a narrow panel without gaps between the hours."""
    slim = cells < 12 + 72 + 8
    steps = levels(density.counts.values())
    hours = "".join(f"{hour:02}" + ("" if slim else " ") for hour in range(24) if not slim or hour % 2 == 0)
    if slim:
        hours = "".join(f"{hour:02}  " for hour in range(0, 24, 2))
    lines: list[Line] = [
        ((" " * 12, ""), (hours, "dim"), ("   total" if cells >= 12 + len(hours) + 8 else "", "dim"))
    ]
    for day in range(WEEK):
        lines.append(_day_line(density, day, look, cursor, steps, slim=slim, cells=cells))
    return lines


def _day_line(
    density: Density,
    day: int,
    look: Look,
    cursor: tuple[int, int] | None,
    steps: Sequence[int],
    *,
    slim: bool,
    cells: int,
) -> Line:
    zone = look.board_zone
    moment = local(density.first_day_ms + day * DAY + 12 * HOUR, zone)
    now = local(look.now_ms, zone)
    is_today = moment.date() == now.date()
    name = f" {WEEKDAYS[moment.weekday()]} {moment.day:2} {MONTHS[moment.month - 1]} "
    spans: list[Span] = [(name, "bold" if is_today else "")]
    for hour in range(24):
        cell = (day, hour)
        spans.append(_cell(density, cell, look.glyphs, steps, is_cursor=cell == cursor))
        if not slim:
            spans.append((" ", ""))
    total = sum(density.counts.get((day, hour), 0) for hour in range(24))
    if cells >= 12 + (48 if slim else 72) + 8:
        spans.append((f"{total:8,}", "dim"))
    return tuple(spans)


def _cell(density: Density, cell: tuple[int, int], glyphs: Glyphs, steps: Sequence[int], *, is_cursor: bool) -> Span:
    if cell in density.missing:
        return (glyphs.gap * 2, "cursor" if is_cursor else "failed")
    height = level(density.counts.get(cell, 0), steps)
    style = "cursor" if is_cursor else "clock" if cell in density.doubled else f"heat{height}"
    return (glyphs.ramp[height], style)


def legend_line(density: Density, look: Look) -> Line:
    steps = levels(density.counts.values())
    bounds = [1, *(step + 1 for step in steps)]
    found = set(density.counts.values())
    spans: list[Span] = [("  ", "")]
    seen = 0
    for index in range(5):
        low, high = bounds[index], steps[index] if index < 4 else None
        if (high is not None and high < low) or not any(level(number, steps) == index + 1 for number in found):
            continue
        text = f"{low:,}+" if high is None else f"{low:,}" if low == high else f"{low:,}-{high:,}"
        if high is None and seen == 0:
            text = f"{low:,}"
        spans += [(look.glyphs.ramp[index + 1], f"heat{index + 1}"), (f" {text}   ", "dim")]
        seen += 1
    noun = "minutes of run time" if density.is_time else "started" if density.is_past else "to start"
    spans.append((f"{noun} in the hour", "dim"))
    return tuple(spans)


def cell_lines(density: Density, cursor: tuple[int, int], look: Look) -> list[Line]:
    """What is in the cell under the cursor."""
    zone = look.board_zone
    at = density.first_day_ms + cursor[0] * DAY + 12 * HOUR
    moment = local(at, zone)
    number = density.counts.get(cursor, 0)
    head = f"{WEEKDAYS[moment.weekday()]} {moment.day} {MONTHS[moment.month - 1]} {cursor[1]:02}:00"
    if cursor in density.missing:
        return [((f"{head}  this hour does not exist: the clock goes forward", "failed"),)]
    twice = "  this hour is lived twice" if cursor in density.doubled else ""
    lines: list[Line] = [((head, "bold"), (f"  {amount(density, number)}", ""), (twice, "clock"))]
    for name, starts in density.jobs.get(cursor, ()):
        lines.append(((f"  {starts:7,}  ", "dim"), (shown(name), "")))
    if cursor in density.minutes:
        minute, starts = density.minutes[cursor]
        crowd = f"  the fullest minute is {local(minute, zone):%H:%M} with {count(starts, 'start')}"
        lines.append(((crowd, "dim"),))
    return lines


def busiest_line(density: Density, look: Look) -> Line:
    found = density.busiest
    if found is None:
        return (("nothing runs in this week" if density.is_time else "nothing starts in this week", "dim"),)
    (day, hour), number = found
    moment = local(density.first_day_ms + day * DAY + 12 * HOUR, look.board_zone)
    cut = ", counts of the most frequent jobs are carried on from their first hours" if density.is_cut else ""
    top = f"busiest {WEEKDAYS[moment.weekday()]} {hour:02}:00 with {number:,}"
    return ((f"{amount(density, density.total)} in all, {top}{cut}", ""),)


def amount(density: Density, number: int) -> str:
    return f"{count(number, 'minute')} of run time" if density.is_time else count(number, "start")
