"""The timeline: one lane a job, with past runs at their true length, planned runs as marks, and a line for now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from chronex.engine.plan import lead_ms
from chronex.model.job import Job
from chronex.text.durations import DAY_MS, HOUR_MS, MINUTE_MS
from chronex.text.instants import SHORT_WEEKDAYS
from chronex.text.terminal import cell_safe
from chronex.timing.job_schedule import excluded_instants
from chronex.timing.zones import Zone
from chronex.views.coming_runs import coming_starts_of, widest_ms
from chronex.views.jobs import Row
from chronex_tui.model.display import STYLES, UNKNOWN, DisplaySettings, Glyphs, local_time, sign
from chronex_tui.model.layout import Line, Span, fit
from chronex_tui.model.snapshot import RunItem, RunKey

ZOOMS = (10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS, DAY_MS, 7 * DAY_MS)
ZOOM_WORDS = ("10 minutes", "an hour", "6 hours", "a day", "a week")
_TICKS = (
    *(minutes * MINUTE_MS for minutes in (1, 5, 10, 15, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 3, 6, 12)),
    *(days * DAY_MS for days in (1, 2)),
)
_LEAST_LABEL, _MOST_LABEL = 10, 24
MOST_LANES = 200
_MOST_PLANNED = 400


class LaneMark(NamedTuple):
    """One run in a lane. `end_ms` is None while it runs, and for a planned run."""

    start_ms: int
    end_ms: int | None
    state: str  # of an occurrence; or `planned`, or `retry-due` for a retry to come
    key: RunKey | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    job: str
    marks: tuple[LaneMark, ...]
    shown_name: str = ""  # where it is not the job's id

    @property
    def label(self) -> str:
        return cell_safe(self.shown_name or self.job)


@dataclass(frozen=True, slots=True)
class Window:
    """The shown time: `half_ms` before and after the middle."""

    middle_ms: int
    half_ms: int

    @property
    def start_ms(self) -> int:
        return self.middle_ms - self.half_ms

    @property
    def end_ms(self) -> int:
        return self.middle_ms + self.half_ms

    def panned(self, steps: int) -> Window:
        return Window(self.middle_ms + steps * self.half_ms // 2, self.half_ms)

    def zoomed(self, step: int) -> Window:
        index = min(range(len(ZOOMS)), key=lambda i: abs(ZOOMS[i] - self.half_ms))
        return Window(self.middle_ms, ZOOMS[max(0, min(index + step, len(ZOOMS) - 1))])


def zoom_text(window: Window) -> str:
    index = min(range(len(ZOOMS)), key=lambda i: abs(ZOOMS[i] - window.half_ms))
    return ZOOM_WORDS[index]


def label_width(lanes: Sequence[Lane], cells: int) -> int:
    longest = max((len(lane.label) for lane in lanes), default=0)
    return max(_LEAST_LABEL, min(longest, _MOST_LABEL, cells // 4)) + 1


def past_marks(items: Iterable[RunItem], window: Window) -> dict[str, list[LaneMark]]:
    """The runs inside the window by job; one that was skipped or missed is a mark of no length."""
    found: dict[str, list[LaneMark]] = {}
    for item in items:
        start = item.started_ms or item.due_ms
        end = item.finished_ms
        if start <= window.end_ms and (end is None or end >= window.start_ms):
            never_started = item.started_ms is None
            mark = LaneMark(start, start if never_started else end, "dlq" if item.is_dead else item.state, item.key)
            found.setdefault(item.key.job, []).append(mark)
    return found


class LanesFound(NamedTuple):
    """The nearest lanes, and how many more there are."""

    lanes: tuple[Lane, ...]
    left_out: int = 0


def lanes_in(window: Window, rows: Sequence[Row], items: Iterable[RunItem], now_ms: int) -> LanesFound:
    """The lanes of all jobs that have a past, present or planned run inside the window."""
    marks = past_marks(items, window)
    for row in rows:
        if found := list(_planned(row, window, now_ms)):
            marks.setdefault(row.job.id, []).extend(found)
    names = {row.job.id: row.job.shown_name for row in rows}
    nearest = sorted_lanes(marks, now_ms, MOST_LANES)
    lanes = tuple(replace(lane, shown_name=names.get(lane.job, "")) for lane in nearest)
    return LanesFound(lanes, len(marks) - len(lanes))


def _planned(row: Row, window: Window, now_ms: int) -> Iterable[LaneMark]:
    if row.retry is not None and window.start_ms <= row.retry.at_ms <= window.end_ms:
        yield LaneMark(row.retry.at_ms, None, "retry-due")
    if row.next is None or row.next.due_ms > window.end_ms:
        return
    dues = (row.next.due_ms, *(run.due_ms for run in row.drawn))
    known = {due for due in dues if window.start_ms <= due <= window.end_ms}
    yield from (LaneMark(due, None, "planned") for due in sorted(known))
    for due in _all_or_sampled(
        lambda since: _undecided(row, since, window, now_ms), _undecided_from(row, window, now_ms), window
    ):
        if due not in known:
            yield LaneMark(due, None, "planned")
    # What a calendar leaves out, or moves.
    since = max(now_ms, window.start_ms)
    for nominal in _all_or_sampled(lambda at: _excluded(row.job, at, window.end_ms), since, window):
        yield LaneMark(nominal, nominal, "skipped")


def _undecided_from(row: Row, window: Window, now_ms: int) -> int:
    """Behind what is on record, and so far before the first mark as a spread may put a run behind its instant."""
    cursor = (row.ahead or row.job).progress.cursor_ms
    return max(now_ms if cursor is None else cursor, _first_mark(row, window) - widest_ms(row.job) - 1)


def _first_mark(row: Row, window: Window) -> int:
    """Nothing starts before the next run: what is due earlier is kept from starting."""
    return window.start_ms if row.next is None else max(row.next.due_ms, window.start_ms)


def _undecided(row: Row, since_ms: int, window: Window, now_ms: int) -> Iterator[int]:
    """The starts inside the window that are not on record yet."""
    begin, until_ms = _first_mark(row, window), window.end_ms + lead_ms(row.job)
    starts = coming_starts_of(
        row.ahead or row.job, since_ms, until_ms, now_ms, row.drawn, row.next and row.next.due_ms
    )
    return (due for due in starts if begin <= due <= window.end_ms)


def _excluded(job: Job, since_ms: int, until_ms: int) -> Iterator[int]:
    return (one.nominal_ms for one in excluded_instants(job, since_ms, until_ms))


def _all_or_sampled(instants: Callable[[int], Iterator[int]], after_ms: int, window: Window) -> Iterator[int]:
    """The instants after a time; of many, a sample over the whole window, less than a column of the screen apart."""
    found = list(islice(instants(after_ms), _MOST_PLANNED + 1))
    if len(found) <= _MOST_PLANNED:
        yield from found
        return
    step = max((window.end_ms - window.start_ms) // _MOST_PLANNED, 1)
    while (instant := next(instants(after_ms), None)) is not None:
        yield instant
        after_ms = max(instant, after_ms + 1) + step - 1  # a spread may start a run before its instant


def planned_instants(job: Job, after_ms: int, until_ms: int) -> Iterator[int]:
    """When the job will start; never where it is defined in another program."""
    return coming_starts_of(job, after_ms, until_ms)


def header(window: Window, display: DisplaySettings, cells: int, label: int) -> Line:
    """Round times above the lanes, as dense as they can be read."""
    zone, plot_width = display.board_zone, cells - label
    tick = _tick(window, plot_width)
    row = [" "] * plot_width
    at = _first_tick(window.start_ms, tick, zone)
    free = 0
    while at < window.end_ms:
        column = _column(at, window, plot_width)
        text = _tick_text(at, tick, zone)
        if column >= free and column + len(text) <= plot_width:
            row[column : column + len(text)] = text
            free = column + len(text) + 1
        at += tick
    return ((" " * label, ""), ("".join(row), "dim"))


def _tick(window: Window, plot_width: int) -> int:
    wanted = (window.end_ms - window.start_ms) * 9 // max(plot_width, 1)
    return next((tick for tick in _TICKS if tick >= wanted), _TICKS[-1])


def _first_tick(start_ms: int, tick: int, zone: Zone) -> int:
    shift = zone.offset_at(start_ms // 1000) * 1000
    return -(-(start_ms + shift) // tick) * tick - shift


def _tick_text(at: int, tick: int, zone: Zone) -> str:
    moment = local_time(at, zone)
    if tick >= DAY_MS:
        return f"{SHORT_WEEKDAYS[moment.weekday()]} {moment.day}"
    if tick >= 3 * HOUR_MS and moment.hour == 0:
        return f"{SHORT_WEEKDAYS[moment.weekday()]} {moment.day}"
    return f"{moment:%H:%M}"


def _column(ms: int, window: Window, plot_width: int) -> int:
    return (ms - window.start_ms) * plot_width // max(window.end_ms - window.start_ms, 1)


def lane_line(lane: Lane, window: Window, display: DisplaySettings, cells: int, label: int) -> Line:
    """One lane. Later marks are drawn over earlier ones, failures over all others."""
    plot_width = cells - label
    row: list[Span] = [(" ", "")] * plot_width
    taken = [0] * plot_width
    for mark in lane.marks:
        _draw(mark, row, taken, window, display, plot_width)
    now = _column(display.now_ms, window, plot_width)
    if 0 <= now < plot_width and row[now][0] == " ":
        row[now] = (display.glyphs.now, "now")
    name = fit(lane.label, label - 1, display.glyphs.ellipsis) + " "
    return ((name, ""), *_joined(row))


def _draw(
    mark: LaneMark, row: list[Span], taken: list[int], window: Window, display: DisplaySettings, plot_width: int
) -> None:
    glyphs = display.glyphs
    start = _column(mark.start_ms, window, plot_width)
    if mark.state in ("planned", "retry-due"):
        if 0 <= start < plot_width and row[start][0] == " ":
            text = glyphs.planned if mark.state == "planned" else sign("retry", glyphs)
            row[start] = (text, "dim" if mark.state == "planned" else "retry")
        return
    end_ms = mark.end_ms
    if end_ms is None:  # without a scheduler nobody knows for how long it ran
        end_ms = display.now_ms if display.is_watched else mark.start_ms
    end = max(_column(end_ms, window, plot_width), start)
    if mark.end_ms is not None and (end_ms - mark.start_ms) * plot_width < window.end_ms - window.start_ms:
        end = start  # shorter than a column: on the border of two columns it is still one mark
    style = "retry" if display.state_word(mark.state) == UNKNOWN else STYLES[mark.state]
    for column in range(max(start, 0), min(end, plot_width - 1) + 1):
        text, priority = _cell(mark, column, start, end, display)
        if taken[column] and mark.end_ms != mark.start_ms and row[column][0] == glyphs.bar and end > start:
            row[column] = (glyphs.overlap, "failed")
        elif priority >= taken[column]:
            row[column] = (text, style)
            taken[column] = priority


def _cell(mark: LaneMark, column: int, start: int, end: int, display: DisplaySettings) -> tuple[str, int]:
    glyphs = display.glyphs
    has_sign = mark.state in ("failed", "failed_stale", "dlq", "canceled", "missed", "skipped", "queued", "pending")
    if has_sign and column == end:
        return sign(mark.state, glyphs), 4
    if mark.end_ms is None and column == end and mark.state == "running":
        return display.sign_of("running"), 3
    if mark.state == "retrying":
        return glyphs.rule, 2
    if start == end:
        return glyphs.short, 1
    return glyphs.bar, 2


def _joined(row: Sequence[Span]) -> Line:
    """Neighbours of one style as one span."""
    spans: list[Span] = []
    for text, style in row:
        if spans and spans[-1][1] == style:
            spans[-1] = (spans[-1][0] + text, style)
        else:
            spans.append((text, style))
    return tuple(spans)


def signs_of_lanes(glyphs: Glyphs, lanes: Sequence[Lane] = (), *, is_watched: bool = True) -> dict[str, str]:
    """Every sign that a lane may show with what it means: those that these lanes show first, then the usual ones."""
    parts = (
        (glyphs.bar, "ran"),
        (sign("running", glyphs), "running"),
        (sign("failed", glyphs), "failed"),
        (sign("retry", glyphs), "retry due"),
        (glyphs.planned, "planned"),
        (glyphs.short, "ran shortly"),
        (sign("queued", glyphs), "waits"),
        (sign("skipped", glyphs), "skipped"),
        (sign("missed", glyphs), "missed"),
        (sign("canceled", glyphs), "canceled"),
        (sign("dlq", glyphs), "gave up"),
        (glyphs.rule, "waits for a retry"),
        (glyphs.overlap, "two at once"),
        (glyphs.now, "now"),
        (glyphs.unsure, "outcome unknown"),
    )
    named: dict[str, str] = {}
    for shown, words in parts:
        named[shown] = f"{named[shown]} or {words}" if shown in named else words
    drawn = {
        text for state in {mark.state for lane in lanes for mark in lane.marks} for text in _drawn(state, glyphs)
    }
    if not is_watched and sign("running", glyphs) in drawn:
        drawn = {*drawn - {sign("running", glyphs)}, glyphs.unsure}
    return dict(sorted(named.items(), key=lambda pair: pair[0] not in drawn))


def _drawn(state: str, glyphs: Glyphs) -> tuple[str, ...]:
    """The signs that a mark of this state may have."""
    special = {
        "planned": (glyphs.planned,),
        "retry-due": (sign("retry", glyphs),),
        "retrying": (glyphs.rule,),
        "completed": (glyphs.bar, glyphs.short),
    }
    return special.get(state, (sign(state, glyphs),))


def timeline_lines(lanes: Sequence[Lane], window: Window, display: DisplaySettings, cells: int) -> list[Line]:
    label = label_width(lanes, cells)
    return [
        header(window, display, cells, label),
        *(lane_line(lane, window, display, cells, label) for lane in lanes),
    ]


def sorted_lanes(marks: dict[str, list[LaneMark]], now_ms: int, most: int) -> list[Lane]:
    """Jobs that run first, then by the time to their nearest run."""

    def nearness(item: tuple[str, list[LaneMark]]) -> tuple[int, int, str]:
        name, found = item
        runs = any(mark.end_ms is None and mark.state == "running" for mark in found)
        return (0 if runs else 1, min(abs(mark.start_ms - now_ms) for mark in found), name)

    chosen = sorted(((name, found) for name, found in marks.items() if found), key=nearness)[:most]
    return [Lane(name, tuple(sorted(found, key=lambda mark: mark.start_ms))) for name, found in chosen]


@dataclass(frozen=True, slots=True)
class LanesTable:
    """The timeline as a table of one wide column, so that a lane can be chosen."""

    lanes: Sequence[Lane]
    window: Window
    display: DisplaySettings

    def __len__(self) -> int:
        return len(self.lanes)

    def identity(self, index: int) -> str:
        return self.lanes[index].job

    def index_of(self, identity: object) -> int | None:
        return next((index for index, lane in enumerate(self.lanes) if lane.job == identity), None)

    def head(self, cells: int, mark: str = "") -> Line:
        return header(self.window, self.display, cells, label_width(self.lanes, cells))

    def line(self, index: int, cells: int, ellipsis: str) -> Line:
        return lane_line(self.lanes[index], self.window, self.display, cells, label_width(self.lanes, cells))
