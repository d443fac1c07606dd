"""The table of jobs: one line each, formatted only while it is visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from chronex.model.job import Job
from chronex.model.reasons import short_text
from chronex.text.durations import DAY_MS, HOUR_MS, MINUTE_MS, countdown, elapsed, largest_unit, rounded_duration
from chronex.text.terminal import cell_safe
from chronex.timing.clock_changes import note_of
from chronex.timing.job_schedule import timing_of
from chronex.views.jobs import Outcome, Row, Situation
from chronex.views.wording import WITH_ERRORS
from chronex_tui.model.display import STYLES, DisplaySettings, job_zone, stamp, word
from chronex_tui.model.layout import Column, ColumnTable, Line

COLUMNS = (
    Column("job", "  JOB", 16, share=4, most=40),
    Column("schedule", "SCHEDULE", 14, share=2, rank=8, most=30),
    Column("next", "NEXT", 16, share=1, rank=1, most=24),
    Column("last", "LAST", 18, share=2, rank=2, most=30),
    Column("retry", "RETRY", 7, rank=4, most=10),
    Column("zone", "ZONE", 16, share=2, rank=9, most=24),
)
# The letters that choose a column. The name of the job is always shown.
COLUMN_LETTERS = {column.name[0]: column for column in COLUMNS[1:]}
_RANK = {
    situation: rank
    for rank, situation in enumerate(
        (
            Situation.RUNNING,
            Situation.RETRYING,
            Situation.FAILED,
            Situation.QUEUED,
            Situation.OK,
            Situation.WAITING,
            Situation.PAUSED,
            Situation.DONE,
            Situation.DISABLED,
        )
    )
}
# These two rank equally; among them the next run decides.
_SORTED_BY_NEXT = {Situation.OK, Situation.WAITING}
_NEVER = 1 << 62
_SEARCHED = 200
_JUST_NOW_MS = 5_000


def order(rows: Sequence[Row], by: str, *, reverse: bool = False) -> list[Row]:
    """What needs attention first, then what comes next; or by name, next or last run."""
    keys: dict[str, Callable[[Row], tuple[int, int, str]]] = {
        "state": _by_state,
        "name": lambda row: (0, 0, row.job.id),
        "next": lambda row: (0, _next_ms(row), row.job.id),
        "last": lambda row: (0, -(row.last.finished_ms or 0) if row.last else 0, row.job.id),
    }
    return sorted(rows, key=keys[by], reverse=reverse)


def _by_state(row: Row) -> tuple[int, int, str]:
    rank = _RANK[Situation.OK] if row.situation in _SORTED_BY_NEXT else _RANK[row.situation]
    return (rank, _next_ms(row) if row.situation in _SORTED_BY_NEXT else 0, row.job.id)


def _next_ms(row: Row) -> int:
    return row.next.due_ms if row.next is not None else _NEVER


@dataclass(frozen=True, slots=True)
class JobsTable(ColumnTable):
    """Rows that match the filter, in order. `cells` is called for visible lines only."""

    rows: Sequence[Row]
    display: DisplaySettings
    is_daemon_alive: bool = True
    marked: frozenset[str] = frozenset()
    sorted_by: str = "state"
    pending: dict[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = COLUMNS
    is_exact: bool = False  # the next times of today have seconds

    def __len__(self) -> int:
        return len(self.rows)

    def identity(self, index: int) -> str:
        return self.rows[index].job.id

    def index_of(self, identity: object) -> int | None:
        return next((index for index, row in enumerate(self.rows) if row.job.id == identity), None)

    def cells(self, index: int) -> dict[str, Line]:
        row, display = self.rows[index], self.display
        style = STYLES[row.situation]
        is_marked = row.job.id in self.marked
        shown = cell_safe(row.job.shown_name)
        name = f"{display.glyphs.mark} {shown}" if is_marked else shown
        quiet = "dim" if row.situation in (Situation.PAUSED, Situation.DISABLED, Situation.DONE) else ""
        return {
            "job": ((f"{display.sign_of_job(row.situation)} ", style), (name, "marked" if is_marked else quiet)),
            "schedule": ((cell_safe(_without_zone(row.job.shown_schedule)), "dim"),),
            "next": self._next(row),
            "last": last_words(row, display),
            "retry": ((_retry(row), "retry" if row.retry else "dim"),),
            "zone": ((job_zone(row.job).name, "dim"),),
        }

    def _next(self, row: Row) -> Line:
        if pending := self.pending.get(row.job.id):
            return ((pending, "pending"),)
        return next_words(row, self.display, is_daemon_alive=self.is_daemon_alive, is_exact=self.is_exact)


def _without_zone(schedule: str) -> str:
    """The zone has a column of its own, and would push the times out of this one."""
    first, _, rest = schedule.partition(" ")
    return rest if first.startswith("TZ=") and rest else schedule


def has_seconds(rows: Sequence[Row], now_ms: int) -> bool:
    """Does one of the first rows run at a second that is not the first of its minute, and soon?"""
    coming = (row.next.due_ms for row in rows[:_SEARCHED] if row.next is not None)
    return any(due % MINUTE_MS and due - now_ms < HOUR_MS for due in coming)


def next_words(row: Row, display: DisplaySettings, *, is_daemon_alive: bool = True, is_exact: bool = False) -> Line:
    """What the job does now, or when it does something next."""
    now, style = display.now_ms, STYLES[row.situation]
    match row.situation:
        case Situation.RUNNING if not display.is_watched:
            return (("outcome unknown", "retry"),)
        case Situation.RUNNING:
            since = "" if row.running_since_ms is None else f" {elapsed(now - row.running_since_ms)}"
            return ((f"running{since}", style),)
        case Situation.RETRYING if row.retry is not None:
            left = row.retry.at_ms - now
            return ((f"retry in {countdown(left)}" if left > 0 else "retry due", style),)
        case Situation.QUEUED:
            return ((f"queued {row.queued}" if row.queued > 1 else "queued", style),)
        case Situation.PAUSED:
            until = row.job.progress.paused_until_ms
            return (
                ("paused" if until is None else f"paused to {stamp(until, now, display.zone_of(row.job))}", style),
            )
        case Situation.DISABLED:
            return (("disabled", style),)
    if row.next is None:
        return ((no_time_words(row, display), "dim"),)
    return _upcoming(row, display, is_daemon_alive=is_daemon_alive, is_exact=is_exact)


def no_time_words(row: Row, display: DisplaySettings) -> str:
    """Of a job without a next run: it follows others, or is over, or none was found as far as was looked."""
    if row.not_before_ms is not None:
        return f"not before {stamp(row.not_before_ms, display.now_ms, display.zone_of(row.job))}"
    return f"after {', '.join(map(cell_safe, row.job.after))}" if row.job.follows else "no further run"


def _upcoming(row: Row, display: DisplaySettings, *, is_daemon_alive: bool, is_exact: bool) -> Line:
    assert row.next is not None
    at, now = row.next.due_ms, display.now_ms
    # Of what is hours away the seconds say nothing, and would push the countdown out of the column.
    is_soon = at - now < HOUR_MS
    when = stamp(
        at if is_soon else at // MINUTE_MS * MINUTE_MS, now, display.zone_of(row.job), is_exact=is_exact and is_soon
    )
    if at <= now and is_daemon_alive and now - at < _JUST_NOW_MS:
        return (("due now", ""),)
    if at <= now:  # a daemon that lives and does not start it hangs, or has more to do than it can
        return ((f"due {when}" if is_daemon_alive else f"was due {when}", "retry"),)
    if not is_daemon_alive:
        return ((f"would run {when}" if " " not in when else f"would: {when}", "dim"),)
    if clock_note(row.job, row.next.nominal_ms):
        return ((f"{when} {display.glyphs.clock}", "clock"),)
    if at - now < DAY_MS:
        return ((when, ""), (f" in {largest_unit(at - now)}", "dim"))
    return ((when, ""),)


def clock_note(job: Job, nominal_ms: int) -> str:
    """What a clock change does to this run; empty where it does nothing."""
    timing = timing_of(job)
    return "" if timing is None else note_of(timing, nominal_ms)


def last_words(row: Row, display: DisplaySettings) -> Line:
    """ok 14:45 1m02s, or what went wrong and when."""
    last = row.last
    if last is None:
        return ((row.without_last, "dim"),)
    style = STYLES[last.state]
    at = last.finished_ms or last.nominal_ms
    when = stamp(at // MINUTE_MS * MINUTE_MS, display.now_ms, display.zone_of(row.job))
    if last.errors:
        return (("with errors", STYLES[WITH_ERRORS]), (f" {when}", ""))
    if last.is_good:
        return (("ok", style), (f" {when} ", ""), (_took(last), "dim"))
    if last.state in ("failed", "failed_stale"):
        what = cell_safe(short_text(last.reason)) or "failed"
        return ((what, style), (f" {when}", ""))
    return ((word(last.state), style), (f" {when}", ""))


def _took(last: Outcome) -> str:
    return "" if last.duration_ms is None else rounded_duration(last.duration_ms)


def _retry(row: Row) -> str:
    if row.retry is not None:
        return f"{row.retry.attempt} of {row.retry.most}" if row.retry.most else f"try {row.retry.attempt}"
    if row.situation is Situation.FAILED:
        most = max((row.job.retry_for(task).max or 0 for task in row.job.tasks), default=0)
        return "gave up" if most else "-"
    return "-"
