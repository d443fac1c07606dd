"""The table of occurrences, live ones first, then what ended, newest first; and one occurrence in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from chronex.model.job import Job
from chronex.model.occurrence import Attempt
from chronex.model.reasons import ReasonCode, short_text, shown_text
from chronex.text.durations import countdown, rounded_duration
from chronex.text.instants import rfc3339
from chronex.text.terminal import cell_safe
from chronex.timing.zones import Zone
from chronex.views.wording import WITH_ERRORS, state_words
from chronex_tui.model.display import (
    STYLES,
    DisplaySettings,
    abbreviation,
    exact_clock_time,
    full_stamp,
    stamp,
    usage_words,
)
from chronex_tui.model.job_detail import ordered_runs
from chronex_tui.model.layout import Column, ColumnTable, Line, crop, wrap
from chronex_tui.model.snapshot import Firing, RunItem, RunKey

COLUMNS = (
    Column("state", "STATE", 11),
    Column("job", "JOB", 12, share=3, most=36),
    Column("nominal", "SCHEDULED", 12, rank=1),
    Column("started", "STARTED", 9, share=1, rank=5, most=14),
    Column("took", "TOOK", 7, rank=2, right=True),
    Column("why", "WHY", 12, share=6, rank=4),
)


def state_of(item: RunItem) -> str:
    if item.errors:
        return WITH_ERRORS  # it has dead letters too, and did not give up because of them
    return "dlq" if item.is_dead else item.state


def run_name(key: RunKey) -> str:
    """An occurrence as commands take it: JOB@TIME."""
    return f"{key.job}@{rfc3339(key.nominal_ms)}"


@dataclass(frozen=True, slots=True)
class RunsTable(ColumnTable):
    items: Sequence[RunItem]
    display: DisplaySettings
    job_of: Callable[[str], Job | None]
    columns: tuple[Column, ...] = COLUMNS
    sorted_by: str = ""

    def __len__(self) -> int:
        return len(self.items)

    def identity(self, index: int) -> RunKey:
        return self.items[index].key

    def index_of(self, identity: object) -> int | None:
        return next((index for index, item in enumerate(self.items) if item.key == identity), None)

    def cells(self, index: int) -> dict[str, Line]:
        item, display = self.items[index], self.display
        state = state_of(item)
        job = self.job_of(item.key.job)
        zone = display.zone_of(job) if job is not None else display.board_zone
        style = STYLES[state]
        started = "" if item.started_ms is None else stamp(item.started_ms, display.now_ms, zone, is_exact=True)
        return {
            "state": ((f"{display.sign_of(state)} {display.state_word(state)}", style),),
            "job": ((item.key.job if job is None else cell_safe(job.shown_name), ""),),
            "nominal": ((stamp(item.key.nominal_ms, display.now_ms, zone, is_exact=True), ""),),
            "started": ((started, "dim"),),
            "took": ((took(item, display), "" if item.finished_ms else "running"),),
            "why": (
                *_flags(item),
                (cell_safe(short_text(item.reason)), "" if state in ("failed", "dlq") else "dim"),
            ),
        }


def took(item: RunItem, display: DisplaySettings) -> str:
    if item.started_ms is None:
        return ""
    if item.finished_ms is None:
        return display.spent_since(item.started_ms)
    return rounded_duration(item.finished_ms - item.started_ms)


def _flags(item: RunItem) -> Iterator[tuple[str, str]]:
    if item.manual:
        yield ("manual ", "key")
    if item.recovery:
        yield ("catch-up ", "key")


def merged(live: Sequence[RunItem], ended: Sequence[RunItem], dead: Sequence[RunItem]) -> list[RunItem]:
    """Live ones first; an occurrence with a dead letter is marked as dead."""
    dead_keys = {item.key for item in dead}
    running = {item.key for item in live}
    if not dead_keys:
        return list(chain(live, (item for item in ended if item.key not in running)))
    return list(chain(live, (_marked_dead(item, dead_keys) for item in ended if item.key not in running)))


def _marked_dead(item: RunItem, dead: set[RunKey]) -> RunItem:
    return item._replace(is_dead=True) if item.key in dead else item


def firing_detail(firing: Firing, display: DisplaySettings, job: Job | None, cells: int) -> list[Line]:
    """An occurrence in full: when and why, its tasks, their attempts."""
    return list(_firing_detail(firing, display, job, cells))


def _firing_detail(firing: Firing, display: DisplaySettings, job: Job | None, cells: int) -> Iterator[Line]:
    occurrence = firing.occurrence
    zone = display.zone_of(job) if job is not None else display.board_zone
    state = WITH_ERRORS if occurrence.errors else occurrence.state
    style = STYLES[state]
    yield (
        (
            f"{display.sign_of(state)} {display.state_word(state_words(occurrence.state, occurrence.errors))}",
            style,
        ),
        (f"  {occurrence.job if job is None else cell_safe(job.shown_name)}", "bold"),
    )
    for piece in wrap(cell_safe(shown_text(occurrence.reason)), max(cells - 2, 10)) if occurrence.reason else ():
        yield ((f"  {piece}", style),)
    yield ()
    yield _fact("for", full_stamp(occurrence.nominal_ms, zone, now_ms=display.now_ms))
    if occurrence.due_ms != occurrence.nominal_ms:
        yield _fact("due", full_stamp(occurrence.due_ms, zone, now_ms=display.now_ms))
    if occurrence.started_ms is not None:
        late = occurrence.started_ms - occurrence.due_ms
        lag = f"  {rounded_duration(late)} after it was due" if late >= 1000 else ""
        began = f"{exact_clock_time(occurrence.started_ms, zone)} {abbreviation(occurrence.started_ms, zone)}"
        yield _fact("began", began, lag)
    if occurrence.finished_ms is not None and occurrence.started_ms is not None:
        yield _fact("took", rounded_duration(occurrence.finished_ms - occurrence.started_ms))
    if origin := _origin(firing):
        yield _fact("asked", origin)
    yield _fact("id", crop(occurrence.id, cells - 7))
    yield ()
    yield from _tasks(firing, display, job, cells)


def _origin(firing: Firing) -> str:
    occurrence = firing.occurrence
    if occurrence.replay_of:
        return f"a replay of {cell_safe(occurrence.replay_of)}"
    if occurrence.manual:
        return f"by hand{f', by {cell_safe(occurrence.triggered_by)}' if occurrence.triggered_by else ''}"
    return "caught up after downtime" if occurrence.recovery else ""


def _fact(label: str, text: str, more: str = "") -> Line:
    return ((f"{label:7}", "label"), (text, ""), (more, "retry"))


def _tasks(firing: Firing, display: DisplaySettings, job: Job | None, cells: int) -> Iterator[Line]:
    zone = display.zone_of(job) if job is not None else display.board_zone
    if not firing.runs:
        yield (("it never started, so it has no tasks", "dim"),)
    for run in ordered_runs(firing, job):
        yield ((f"{display.sign_of(run.state)} ", STYLES[run.state]), (cell_safe(run.task), "bold"),
               (f"  {display.state_word(run.state)}", STYLES[run.state]))  # fmt: skip
        if run.next_attempt_ms is not None and run.state == "retry":
            left = max(run.next_attempt_ms - display.now_ms, 0)
            yield ((f"  attempt {run.attempts + 1} in {countdown(left)}", "retry"),)
        for attempt in firing.attempts_of(run.task):
            yield from _attempt(attempt, display, zone, cells)


def _attempt(attempt: Attempt, display: DisplaySettings, zone: Zone, cells: int) -> Iterator[Line]:
    at = attempt.started_ms or attempt.created_ms
    end = attempt.finished_ms
    span = rounded_duration(end - at) if end is not None else display.spent_since(at)
    code = "" if attempt.exit_code is None else f"exit {attempt.exit_code}"
    kept = f"{attempt.log_bytes:,} bytes of output" if attempt.log_bytes else ""
    yield (
        (f"  try {attempt.number}  ", "label"),
        (f"{display.sign_of(attempt.state)} {display.state_word(attempt.state):8}", STYLES[attempt.state]),
        (f" {exact_clock_time(at, zone)}  {span:>7}", ""),
        (f"  {code or kept}", "dim"),
    )
    if used := usage_words(attempt.usage):
        yield ((f"         {used}", "dim"),)
    if attempt.reason and attempt.reason.code is not ReasonCode.EXIT_CODE:
        yield ((f"         {crop(cell_safe(shown_text(attempt.reason)), max(cells - 9, 5))}", "dim"),)
