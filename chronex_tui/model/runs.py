"""The table of occurrences: what lives first, then what ended, newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from chronex.model.reasons import ReasonCode, short_text, text_of
from chronex.model.records import Attempt, Job
from chronex.timing.zones import Zone
from chronex_tui.model.cells import Line, crop, shown, wrap
from chronex_tui.model.columns import Column, Columned
from chronex_tui.model.glyphs import STYLES, sign, word
from chronex_tui.model.look import Look
from chronex_tui.model.snapshot import Firing, RunItem, RunKey
from chronex_tui.model.wording import (
    abbreviation,
    countdown,
    duration,
    elapsed,
    exact_clock,
    full_stamp,
    stamp,
)

COLUMNS = (
    Column("state", "STATE", 11),
    Column("job", "JOB", 12, share=3, most=36),
    Column("nominal", "SCHEDULED", 12, rank=1),
    Column("started", "STARTED", 9, share=1, rank=5, most=14),
    Column("took", "TOOK", 7, rank=2, right=True),
    Column("why", "WHY", 12, share=6, rank=4),
)


def state_of(item: RunItem) -> str:
    return "dlq" if item.is_dead else item.state


@dataclass(frozen=True, slots=True)
class RunsTable(Columned):
    items: Sequence[RunItem]
    look: Look
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
        item, look = self.items[index], self.look
        state = state_of(item)
        job = self.job_of(item.key.job)
        zone = look.zone_of(job) if job is not None else look.board_zone
        style = STYLES[state]
        started = "" if item.started_ms is None else stamp(item.started_ms, look.now_ms, zone)
        return {
            "state": ((f"{sign(state, look.glyphs)} {word(state)}", style),),
            "job": ((item.key.job, ""),),
            "nominal": ((stamp(item.key.nominal_ms, look.now_ms, zone), ""),),
            "started": ((started, "dim"),),
            "took": ((took(item, look.now_ms), "" if item.finished_ms else "running"),),
            "why": (*_flags(item), (shown(short_text(item.reason)), "" if state in ("failed", "dlq") else "dim")),
        }


def took(item: RunItem, now_ms: int) -> str:
    if item.started_ms is None:
        return ""
    if item.finished_ms is None:
        return elapsed(now_ms - item.started_ms)
    return duration(item.finished_ms - item.started_ms)


def _flags(item: RunItem) -> Iterator[tuple[str, str]]:
    if item.manual:
        yield ("manual ", "key")
    if item.recovery:
        yield ("catch-up ", "key")


def merged(live: Sequence[RunItem], ended: Sequence[RunItem], dead: Sequence[RunItem]) -> list[RunItem]:
    """Live ones first; a dead letter takes the place of its occurrence."""
    buried = {item.key for item in dead}
    running = {item.key for item in live}
    if not buried:
        return list(chain(live, (item for item in ended if item.key not in running)))
    return list(chain(live, (_buried(item, buried) for item in ended if item.key not in running)))


def _buried(item: RunItem, dead: set[RunKey]) -> RunItem:
    return item._replace(is_dead=True) if item.key in dead else item


def firing_detail(firing: Firing, look: Look, job: Job | None, cells: int) -> list[Line]:
    """An occurrence in full: when and why, its tasks, their attempts."""
    return list(_firing_detail(firing, look, job, cells))


def _firing_detail(firing: Firing, look: Look, job: Job | None, cells: int) -> Iterator[Line]:
    occurrence = firing.occurrence
    zone = look.zone_of(job) if job is not None else look.board_zone
    style = STYLES[occurrence.state]
    yield (
        (f"{sign(occurrence.state, look.glyphs)} {word(occurrence.state)}", style),
        (f"  {occurrence.job}", "bold"),
    )
    for piece in wrap(shown(text_of(occurrence.reason)), max(cells - 2, 10)) if occurrence.reason else ():
        yield ((f"  {piece}", style),)
    yield ()
    yield _fact("for", full_stamp(occurrence.nominal_ms, zone))
    if occurrence.due_ms != occurrence.nominal_ms:
        yield _fact("due", full_stamp(occurrence.due_ms, zone))
    if occurrence.started_ms is not None:
        late = occurrence.started_ms - occurrence.due_ms
        lag = f"  {duration(late)} after it was due" if late >= 1000 else ""
        began = f"{exact_clock(occurrence.started_ms, zone)} {abbreviation(occurrence.started_ms, zone)}"
        yield _fact("began", began, lag)
    if occurrence.finished_ms is not None and occurrence.started_ms is not None:
        yield _fact("took", duration(occurrence.finished_ms - occurrence.started_ms))
    if origin := _origin(firing):
        yield _fact("asked", origin)
    yield _fact("id", crop(occurrence.id, cells - 7))
    yield ()
    yield from _tasks(firing, look, zone, cells)


def _origin(firing: Firing) -> str:
    occurrence = firing.occurrence
    if occurrence.replay_of:
        return f"a replay of {shown(occurrence.replay_of)}"
    if occurrence.manual:
        return f"by hand{f', by {shown(occurrence.triggered_by)}' if occurrence.triggered_by else ''}"
    return "caught up after downtime" if occurrence.recovery else ""


def _fact(label: str, text: str, more: str = "") -> Line:
    return ((f"{label:7}", "label"), (text, ""), (more, "retry"))


def _tasks(firing: Firing, look: Look, zone: Zone, cells: int) -> Iterator[Line]:
    if not firing.runs:
        yield (("it never started, so it has no tasks", "dim"),)
    for run in firing.runs:
        yield ((f"{sign(run.state, look.glyphs)} ", STYLES[run.state]), (shown(run.task), "bold"),
               (f"  {word(run.state)}", STYLES[run.state]))  # fmt: skip
        if run.next_attempt_ms is not None and run.state == "retry":
            left = max(run.next_attempt_ms - look.now_ms, 0)
            yield ((f"  attempt {run.attempts + 1} in {countdown(left)}", "retry"),)
        for attempt in firing.attempts_of(run.task):
            yield from _attempt(attempt, look, zone, cells)


def _attempt(attempt: Attempt, look: Look, zone: Zone, cells: int) -> Iterator[Line]:
    at = attempt.started_ms or attempt.created_ms
    end = attempt.finished_ms
    span = duration(end - at) if end is not None else elapsed(look.now_ms - at)
    code = "" if attempt.exit_code is None else f"exit {attempt.exit_code}"
    kept = f"{attempt.log_bytes:,} bytes of output" if attempt.log_bytes else ""
    yield (
        (f"  try {attempt.number}  ", "label"),
        (f"{sign(attempt.state, look.glyphs)} {word(attempt.state):8}", STYLES[attempt.state]),
        (f" {exact_clock(at, zone)}  {span:>7}", ""),
        (f"  {code or kept}", "dim"),
    )
    if attempt.reason and attempt.reason.code is not ReasonCode.EXIT_CODE:
        yield ((f"         {crop(shown(text_of(attempt.reason)), max(cells - 9, 5))}", "dim"),)
