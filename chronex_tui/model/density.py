"""The Density screen: starts or run time by day and hour as a heat map, and the busiest minute of the coming week."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import msgspec

from chronex.errors import ChronexError
from chronex.model.job import Job
from chronex.text.durations import DAY_MS, HOUR_MS, MINUTE_MS
from chronex.text.instants import SHORT_MONTHS, SHORT_WEEKDAYS
from chronex.text.terminal import cell_safe
from chronex.timing.job_schedule import is_anchored, schedule_of
from chronex.timing.zones import Zone
from chronex.views.coming_runs import placement_options, starts_at_nominal_times
from chronex_tui.model.display import DisplaySettings, Glyphs, clock_time, count, full_stamp, local_time
from chronex_tui.model.lanes import planned_instants
from chronex_tui.model.layout import Line, Span, fit, wrap
from chronex_tui.model.snapshot import RunItem

# Day of the shown week, and hour on the wall clock.
HourCell = tuple[int, int]

WEEK = 7
_TOP = 5
_DAY_CELLS = 12  # of ` Thu 19 Nov `
_TOTAL_CELLS = 8
_QUARTER_MS = 900_000
# A job that starts more often than this in a week is counted by one minute of each hour.
_MOST_COUNTED = 20_000


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Counts by day and hour. A clock change removes the `missing` hours and repeats the `doubled` ones."""

    first_day_ms: int  # local midnight of the first row
    counts: dict[HourCell, int]
    jobs: dict[HourCell, tuple[tuple[str, int], ...]]  # the busiest of each cell
    minutes: dict[HourCell, tuple[int, int]]  # the fullest minute of each cell, and its starts
    missing: frozenset[HourCell] = frozenset()
    doubled: frozenset[HourCell] = frozenset()
    is_past: bool = False
    is_sampled: bool = False  # some job starts so often that only one minute of each hour was counted
    is_time: bool = False  # minutes of run time instead of starts

    @property
    def busiest(self) -> tuple[HourCell, int] | None:
        return max(self.counts.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]), default=None)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class HeatmapTally:
    """Adds up starts or run time, job after job."""

    def __init__(self, first_day_ms: int, zone: Zone) -> None:
        self.start_ms = first_day_ms
        self.zone = zone
        self.counts: Counter[HourCell] = Counter()
        self._minutes: Counter[int] = Counter()
        self._each_minute: Counter[int] = Counter()  # by hour: starts in every one of its minutes
        self._sampled: dict[int, int] = {}  # by hour: the minute that was counted for all of them
        self._jobs: dict[HourCell, Counter[str]] = {}
        self._cells: dict[int, HourCell] = {}
        self._first_date = local_time(first_day_ms, zone).date()
        self.is_sampled = False

    def cell(self, ms: int) -> HourCell:
        """The cell of an instant; kept for each quarter hour, because the conversion to local time is slow."""
        quarter = ms // _QUARTER_MS
        found = self._cells.get(quarter)
        if found is None:
            moment = local_time(ms, self.zone)
            found = self._cells[quarter] = ((moment.date() - self._first_date).days, moment.hour)
        return found

    def add(self, job: str, instants: Iterable[int]) -> None:
        for ms in instants:
            if self._count(job, ms, 1):
                self._minutes[ms // MINUTE_MS] += 1

    def add_sample(self, job: str, ms: int, minutes: int) -> None:
        """A start that stands for one in each of the minutes that are left of its hour."""
        if self._count(job, ms, minutes):
            self._each_minute[ms // HOUR_MS] += 1
            self._sampled.setdefault(ms // HOUR_MS, ms // MINUTE_MS)

    def _count(self, job: str, ms: int, starts: int) -> bool:
        cell = self.cell(ms)
        if not 0 <= cell[0] < WEEK:
            return False
        self.counts[cell] += starts
        self._jobs.setdefault(cell, Counter())[job] += starts
        return True

    def add_time(self, job: str, start_ms: int, end_ms: int, weight: int = 1) -> None:
        """Add run time to the cells that it falls in. A quarter hour is never in two cells."""
        at, end = max(start_ms, self.start_ms), min(end_ms, self.start_ms + (WEEK + 1) * DAY_MS)
        while at < end:
            until = min((at // _QUARTER_MS + 1) * _QUARTER_MS, end)
            cell = self.cell(at)
            if 0 <= cell[0] < WEEK:
                self.counts[cell] += (until - at) * weight
                self._jobs.setdefault(cell, Counter())[job] += (until - at) * weight
            at = until

    def run_time_heatmap(self, *, is_past: bool = False) -> Heatmap:
        """What `add_time` has added up, in minutes."""
        found = self.starts_heatmap(is_past=is_past)
        counts = {cell: _minutes(ms) for cell, ms in found.counts.items()}
        jobs = {cell: tuple((name, _minutes(ms)) for name, ms in top) for cell, top in found.jobs.items()}
        return replace(found, counts=counts, jobs=jobs, is_time=True)

    def starts_heatmap(self, *, is_past: bool = False) -> Heatmap:
        minutes: dict[HourCell, tuple[int, int]] = {}
        for minute in (*self._minutes, *self._sampled.values()):
            at_ms = minute * MINUTE_MS
            cell, number = self.cell(at_ms), self._minutes[minute] + self._each_minute[at_ms // HOUR_MS]
            if number > minutes.get(cell, (0, 0))[1]:
                minutes[cell] = (at_ms, number)
        missing, doubled = odd_hours(self.start_ms, self.zone)
        top = {cell: tuple(jobs.most_common(_TOP)) for cell, jobs in self._jobs.items()}
        return Heatmap(self.start_ms, dict(self.counts), top, minutes, missing, doubled, is_past, self.is_sampled)


def _minutes(ms: int) -> int:
    """Rounded; a run of any length is at least a minute."""
    return max(round(ms / MINUTE_MS), 1) if ms else 0


def first_midnight(now_ms: int, zone: Zone, *, past: bool = False) -> int:
    """The local midnight at which the shown week begins."""
    moment = local_time(now_ms, zone)
    since = moment.hour * HOUR_MS + moment.minute * 60_000 + moment.second * 1000 + now_ms % 1000
    return now_ms - since - (6 * DAY_MS if past else 0)


def odd_hours(start_ms: int, zone: Zone) -> tuple[frozenset[HourCell], frozenset[HourCell]]:
    """The hours of the week that a clock change removes, and those that it repeats."""
    missing: set[HourCell] = set()
    doubled: set[HourCell] = set()
    first = (start_ms // 1000 + zone.offset_at(start_ms // 1000)) // 86_400
    for change in zone.changes(start_ms // 1000, start_ms // 1000 + 8 * 86_400):
        low, high = sorted((change.at + change.before, change.at + change.after))
        for wall in range(low, high, 1800):
            cell = (wall // 86_400 - first, wall % 86_400 // 3600)
            if not change.is_gap:
                doubled.add(cell)
            elif high - low >= 3600:  # half an hour that is missing leaves the other half of its hour
                missing.add(cell)
    return frozenset(missing), frozenset(doubled)


# -- counting -------------------------------------------------------------------------------------------------


def coming_starts(jobs: Iterable[Job], now_ms: int, zone: Zone) -> Heatmap:
    """Starts by day and hour of the seven days that begin with today, from now on."""
    tally = HeatmapTally(first_midnight(now_ms, zone), zone)
    end = tally.start_ms + 7 * DAY_MS
    known: dict[tuple[object, ...], list[int]] = {}
    for job in jobs:
        anchor_ms = job.progress.anchor_ms if is_anchored(job) else None
        # Where a spread, a pause or a blackout has its say, no other job has the same starts.
        alone = "" if starts_at_nominal_times(job) and placement_options(job).max is None else job.id
        key = (job.schedule, job.timezone, job.dialect, job.dst, job.calendars, anchor_ms, alone, job.enabled)
        instants = known.get(key)
        if instants is None:
            instants = known[key] = list(islice(planned_instants(job, now_ms, end), _MOST_COUNTED + 1))
        if len(instants) <= _MOST_COUNTED:
            tally.add(job.id, instants)
        else:
            tally.is_sampled = True
            for ms, minutes in _sampled_instants(job, now_ms, end):
                tally.add_sample(job.id, ms, minutes)
    return tally.starts_heatmap()


def _sampled_instants(job: Job, now_ms: int, end_ms: int) -> Iterator[tuple[int, int]]:
    """The instants in one minute of each hour, each with the number of minutes that it stands for.

    That is exact where every minute of the hour is alike, as it is for schedules that start so often.
    """
    start = now_ms
    while start < end_ms:
        until = min((start // HOUR_MS + 1) * HOUR_MS, end_ms)
        minutes = max(round((until - start) / MINUTE_MS), 1)
        for ms in islice(planned_instants(job, start - 1, start + MINUTE_MS - 1), 60):
            yield ms, minutes
        start = until


def usual_run_times(items: Iterable[RunItem]) -> dict[str, int]:
    """The median run time of each job, of the runs that are known."""
    found: dict[str, list[int]] = {}
    for item in items:
        if item.started_ms is not None and item.finished_ms is not None:
            found.setdefault(item.key.job, []).append(item.finished_ms - item.started_ms)
    return {name: sorted(times)[len(times) // 2] for name, times in found.items()}


def coming_run_time(jobs: Iterable[Job], usual: dict[str, int], now_ms: int, zone: Zone) -> Heatmap:
    """Minutes of run time of the coming week, if every run takes as long as usual. A job that never ran has none."""
    tally = HeatmapTally(first_midnight(now_ms, zone), zone)
    end = tally.start_ms + 7 * DAY_MS
    for job in jobs:
        took = usual.get(job.id, 0)
        instants = list(islice(planned_instants(job, now_ms, end), _MOST_COUNTED + 1)) if took else []
        if len(instants) > _MOST_COUNTED:
            tally.is_sampled = True
            found = list(_sampled_instants(job, now_ms, end))
        else:
            found = [(ms, 1) for ms in instants]
        for ms, weight in found:
            tally.add_time(job.id, ms, ms + took, weight)
    return tally.run_time_heatmap()


def past_run_time(items: Iterable[RunItem], now_ms: int, zone: Zone) -> Heatmap:
    """Minutes of run time of the last seven days; a run that is not over counts up to now."""
    tally = HeatmapTally(first_midnight(now_ms, zone, past=True), zone)
    for item in items:
        if item.started_ms is not None:
            tally.add_time(item.key.job, item.started_ms, now_ms if item.finished_ms is None else item.finished_ms)
    return tally.run_time_heatmap(is_past=True)


def past_starts(items: Iterable[RunItem], now_ms: int, zone: Zone) -> Heatmap:
    """Starts by day and hour of the last seven days."""
    tally = HeatmapTally(first_midnight(now_ms, zone, past=True), zone)
    for item in items:
        if item.started_ms is not None and item.started_ms >= tally.start_ms:
            tally.add(item.key.job, (item.started_ms,))
    return tally.starts_heatmap(is_past=True)


# -- drawing the heat map -------------------------------------------------------------------------------------


def levels(counts: Iterable[int]) -> tuple[int, int, int, int]:
    """The highest counts of the lower four colours: a fifth of the different counts falls to each colour."""
    found = sorted({number for number in counts if number})
    if not found:
        return (1, 1, 1, 1)
    steps = [found[min(len(found) * part // 5, len(found) - 1)] for part in range(1, 5)]
    return (steps[0], steps[1], steps[2], steps[3])


def level(number: int, steps: Sequence[int]) -> int:
    return 0 if not number else 1 + sum(1 for step in steps if number > step)


@dataclass(frozen=True, slots=True)
class MapShape:
    """How a heat map fits into a panel: with gaps between its hours, without, or with one cell for each of them."""

    hours: range  # those that are shown: all of them, but in a panel of less than 30 cells
    hour_cells: int  # of one hour
    gap: str  # between two of them
    has_totals: bool

    @property
    def labels(self) -> str:
        """As many hours by number as there is room for; the last cell alone has none."""
        if self.gap:
            return "".join(f"{hour:02}{self.gap}" for hour in self.hours)
        every = 2 if self.hour_cells == 2 else 6
        labelled = [hour for hour in self.hours[::every] if (self.hours.stop - hour) * self.hour_cells >= 2]
        return "".join(f"{hour:02}".ljust(every * self.hour_cells) for hour in labelled)


def map_shape(cells: int, cursor: HourCell | None) -> MapShape:
    hours = range(24)
    for hour_cells, gap in ((2, " "), (2, ""), (1, "")):
        width = _DAY_CELLS + 24 * (hour_cells + len(gap))
        if cells >= width + _TOTAL_CELLS:
            return MapShape(hours, hour_cells, gap, has_totals=True)
        if not gap and cells >= width:
            return MapShape(hours, hour_cells, gap, has_totals=False)
    shown = max(cells - _DAY_CELLS, 1)
    first = max(0, min((cursor[1] if cursor else 0) - shown // 2, 24 - shown))
    return MapShape(range(first, first + shown), 1, "", has_totals=False)


def heatmap_lines(heatmap: Heatmap, display: DisplaySettings, cursor: HourCell | None, cells: int) -> list[Line]:
    """The week as a map, as wide as the panel lets it be."""
    shape = map_shape(cells, cursor)
    steps = levels(heatmap.counts.values())
    total = ("total".rjust(_TOTAL_CELLS) if shape.has_totals else "", "dim")
    labels = shape.labels if shape.has_totals else shape.labels.rstrip()
    head: Line = ((" " * _DAY_CELLS, ""), (labels, "dim"), total)
    return [head, *(_day_line(heatmap, day, display, cursor, steps, shape) for day in range(WEEK))]


def _day_line(
    heatmap: Heatmap,
    day: int,
    display: DisplaySettings,
    cursor: HourCell | None,
    steps: Sequence[int],
    shape: MapShape,
) -> Line:
    zone = display.board_zone
    moment = local_time(heatmap.first_day_ms + day * DAY_MS + 12 * HOUR_MS, zone)
    now = local_time(display.now_ms, zone)
    is_today = moment.date() == now.date()
    name = f" {SHORT_WEEKDAYS[moment.weekday()]} {moment.day:2} {SHORT_MONTHS[moment.month - 1]} "
    spans: list[Span] = [(name, "bold" if is_today else "")]
    for hour in shape.hours:
        cell = (day, hour)
        text, style = _cell(heatmap, cell, display.glyphs, steps, is_cursor=cell == cursor)
        spans.append((text[: shape.hour_cells], style))
        if shape.gap:
            spans.append((shape.gap, ""))
    if shape.has_totals:
        total = sum(heatmap.counts.get((day, hour), 0) for hour in range(24))
        spans.append((f"{total:{_TOTAL_CELLS},}", "dim"))
    return tuple(spans)


def _cell(heatmap: Heatmap, cell: HourCell, glyphs: Glyphs, steps: Sequence[int], *, is_cursor: bool) -> Span:
    if cell in heatmap.missing:
        return (glyphs.gap * 2, "cursor" if is_cursor else "failed")
    height = level(heatmap.counts.get(cell, 0), steps)
    style = "cursor" if is_cursor else "clock" if cell in heatmap.doubled else f"heat{height}"
    return (glyphs.ramp[height], style)


def legend_line(heatmap: Heatmap, display: DisplaySettings) -> Line:
    if not any(heatmap.counts.values()):
        return ()
    steps = levels(heatmap.counts.values())
    bounds = [1, *(step + 1 for step in steps)]
    found = set(heatmap.counts.values())
    spans: list[Span] = [("  ", "")]
    seen = 0
    for index in range(5):
        low, high = bounds[index], steps[index] if index < 4 else None
        if (high is not None and high < low) or not any(level(number, steps) == index + 1 for number in found):
            continue
        text = f"{low:,}+" if high is None else f"{low:,}" if low == high else f"{low:,}-{high:,}"
        if high is None and seen == 0:
            text = f"{low:,}"
        spans += [(display.glyphs.ramp[index + 1], f"heat{index + 1}"), (f" {text}   ", "dim")]
        seen += 1
    noun = "minutes of run time" if heatmap.is_time else "started" if heatmap.is_past else "to start"
    spans.append((f"{noun} in the hour", "dim"))
    return tuple(spans)


def hour_lines(heatmap: Heatmap, cursor: HourCell, display: DisplaySettings) -> list[Line]:
    """What starts in the hour under the cursor."""
    zone = display.board_zone
    at = heatmap.first_day_ms + cursor[0] * DAY_MS + 12 * HOUR_MS
    moment = local_time(at, zone)
    number = heatmap.counts.get(cursor, 0)
    head = f"{SHORT_WEEKDAYS[moment.weekday()]} {moment.day} {SHORT_MONTHS[moment.month - 1]} {cursor[1]:02}:00"
    if cursor in heatmap.missing:
        return [((f"{head}  this hour does not exist: the clock goes forward", "failed"),)]
    twice = "  the clock repeats this hour" if cursor in heatmap.doubled else ""
    lines: list[Line] = [((head, "bold"), (f"  {amount(heatmap, number)}", ""), (twice, "clock"))]
    for name, starts in heatmap.jobs.get(cursor, ()):
        lines.append(((f"  {starts:7,}  ", "dim"), (cell_safe(name), "")))
    if cursor in heatmap.minutes:
        minute, starts = heatmap.minutes[cursor]
        fullest = f"  the fullest minute is {local_time(minute, zone):%H:%M} with {count(starts, 'start')}"
        lines.append(((fullest, "dim"),))
    return lines


def busiest_lines(heatmap: Heatmap, display: DisplaySettings, cells: int) -> list[Line]:
    found = heatmap.busiest
    if found is None:
        return [(("  nothing runs in this week" if heatmap.is_time else "  nothing starts in this week", "dim"),)]
    (day, hour), number = found
    moment = local_time(heatmap.first_day_ms + day * DAY_MS + 12 * HOUR_MS, display.board_zone)
    sampled = ", of the most frequent jobs one minute of each hour is counted" if heatmap.is_sampled else ""
    top = f"busiest {SHORT_WEEKDAYS[moment.weekday()]} {hour:02}:00 with {number:,}"
    text = f"{amount(heatmap, heatmap.total)} in all, {top}{sampled}"
    return [((f"  {piece}", ""),) for piece in wrap(text, max(cells - 2, 10))]


def amount(heatmap: Heatmap, number: int) -> str:
    return f"{count(number, 'minute')} of run time" if heatmap.is_time else count(number, "start")


# -- the busiest minute ---------------------------------------------------------------------------------------

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
    found = _instants(msgspec.structs.replace(job, schedule=text), at_ms)
    return text if found and (found[0] - at_ms) // MINUTE_MS == minutes else ""


def fullest_minute(minutes: Sequence[tuple[int, int]]) -> int | None:
    """The instant with the most starts, the first of equals; None where no two jobs start together."""
    at_ms, starts = min(minutes, key=lambda found: (-found[1], found[0]), default=(0, 0))
    return at_ms if starts > 1 else None


def find_busiest_minute(jobs: Sequence[Job], now_ms: int, zone: Zone) -> BusiestMinute | None:
    """The fullest minute of the coming week with its suggestions; None where no two jobs start together."""
    at_ms = fullest_minute(list(coming_starts(jobs, now_ms, zone).minutes.values()))
    return None if at_ms is None else spread_minute(jobs, at_ms)


def busiest_minute_lines(found: BusiestMinute | None, display: DisplaySettings, cells: int = 72) -> list[Line]:
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
        lines += [*_named_jobs(found.moves, display), ()]
        lines += _wrapped("These jobs cannot be moved by changing the minute; use spread.", "", cells)
    return [*lines, *_wrapped("Nothing is changed: write it into the job file, then chronex apply.", "dim", cells)]


def _named_jobs(moves: Sequence[SuggestedMove], display: DisplaySettings) -> list[Line]:
    lines: list[Line] = [
        ((fit(cell_safe(move.job), 24, display.glyphs.ellipsis), ""), (f"  {cell_safe(move.schedule)}", "dim"))
        for move in moves[:_MOST_LISTED]
    ]
    more = len(moves) - _MOST_LISTED
    return [*lines, ((f"and {more:,} more", "dim"),)] if more > 0 else lines


def _wrapped(sentence: str, style: str, cells: int) -> list[Line]:
    return [((piece, style),) for piece in wrap(sentence, max(cells, 10))]
