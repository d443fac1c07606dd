"""`chronex list`: every job on one line of the terminal."""

from __future__ import annotations

from typing import Any

from chronex.cli.arguments import UsageError
from chronex.cli.looking import DEFAULT_WIDTH, columns, cut, looked_at, padded, print_json
from chronex.cli.terminal import out, paint, wants_unicode, width
from chronex.cli.times import shown_zone, timed
from chronex.clock import wall_ms
from chronex.model.reasons import text_of
from chronex.model.states import OccurrenceState
from chronex.timing.zones import Zone
from chronex.views.filters import parse_filter
from chronex.views.jobs import GLYPHS, Outcome, Row, Situation, rows_of
from chronex.views.wording import length, moment, upcoming

COLOURS = {
    Situation.RUNNING: ("cyan",),
    Situation.RETRYING: ("yellow",),
    Situation.QUEUED: ("yellow",),
    Situation.FAILED: ("red",),
    Situation.OK: ("green",),
    Situation.PAUSED: ("dim",),
    Situation.DISABLED: ("dim",),
}
_STATE_ROOM, _LONGEST_NAME, _LEAST_SCHEDULE = 10, 28, 9
Line = tuple[str, str, str, str, str]


def run_list(store: str | None, form: str, filter_text: str) -> int:
    wanted = parse_filter(filter_text)
    if wanted.problems:
        raise UsageError(f"--filter: {wanted.problems[0]}")
    now_ms = wall_ms()
    rows = looked_at(store, lambda reading: rows_of(reading, now_ms))
    found = [row for row in rows if wanted.matches(row, now_ms)]
    if form == "names":
        for row in found:
            out(row.job.id)
    elif form == "json":
        print_json([row_json(row) for row in found])
    elif not rows:
        out("no jobs yet; write a chronex.toml and run: chronex apply")
    else:
        _print_table(found, len(rows), now_ms, shown_zone())
    return 0


def _print_table(rows: list[Row], total: int, now_ms: int, zone: Zone) -> None:
    lines: list[Line] = [("STATE", "JOB", "NEXT", "LAST", "SCHEDULE")]
    lines += [
        (state_text(row.situation), row.job.id, next_text(row, now_ms, zone), last_text(row.last, now_ms, zone),
         row.job.schedule)
        for row in rows
    ]  # fmt: skip
    rooms = [max(width(line[column]) for line in lines) for column in range(4)]
    rooms[0], rooms[1] = max(rooms[0], _STATE_ROOM), min(rooms[1], _LONGEST_NAME)
    shown = _columns_that_fit(rooms)
    left = max(_LEAST_SCHEDULE, columns() - sum(rooms) - 4)
    for number, line in enumerate(lines):
        # A name is never cut: it is what the next command is given. A longer one moves the rest of its line.
        cells = [*(padded(text, room) for text, room in zip(line, rooms, strict=False)), cut(line[4], left)][:shown]
        styles = ("bold",) if number == 0 else COLOURS.get(rows[number - 1].situation, ())
        out(f"{paint(cells[0], *styles)} {' '.join(cells[1:])}".rstrip())
    told = f"{total} job{'s' if total != 1 else ''}" if len(rows) == total else f"{len(rows)} of {total} jobs"
    out(paint(f"{told}; times in {zone.name}", "dim"))


def _columns_that_fit(rooms: list[int]) -> int:
    """On a narrow terminal the schedule goes first, then the last run, then the next one; `show` has them."""
    room = columns()
    if room >= DEFAULT_WIDTH or sum(rooms) + 4 + _LEAST_SCHEDULE <= room:
        return 5
    return next((count for count in (4, 3) if sum(rooms[:count]) + count - 1 <= room), 2)


def state_text(situation: Situation) -> str:
    return f"{GLYPHS[situation]} {situation}" if wants_unicode() else situation.value


def next_text(row: Row, now_ms: int, zone: Zone) -> str:
    if row.situation is Situation.RUNNING and row.running_since_ms is not None:
        return f"running {length(max(0, now_ms - row.running_since_ms))}"
    if row.situation is Situation.RETRYING and row.retry is not None:
        return f"retry {upcoming(row.retry.at_ms, now_ms, zone)}"
    if row.is_paused and row.job.enabled:
        until = row.job.paused_until_ms
        return "paused" if until is None else f"until {moment(until, now_ms, zone)}"
    if row.next is None:
        return "-"
    about = "" if row.next.is_drawn else "from "
    return about + upcoming(row.next.due_ms, now_ms, zone)


def last_text(last: Outcome | None, now_ms: int, zone: Zone) -> str:
    if last is None:
        return "never ran"
    word = "ok" if last.state is OccurrenceState.COMPLETED else last.state.value.replace("failed_stale", "stale")
    took = f" {length(last.duration_ms)}" if last.duration_ms is not None else ""
    return f"{word} {moment(last.finished_ms or last.nominal_ms, now_ms, zone)}{took}"


def row_json(row: Row) -> dict[str, Any]:
    job, counters = row.job, row.job.counters
    return {
        "id": job.id,
        "state": row.situation.value,
        "is_active": row.is_active,
        "is_enabled": row.is_enabled,
        "is_paused": row.is_paused,
        "is_running": row.is_running,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "tags": list(job.tags),
        "version": job.version,
        **timed("next", None if row.next is None else row.next.due_ms),
        **timed("next_nominal", None if row.next is None else row.next.nominal_ms),
        "queued": row.queued,
        "last": None if row.last is None else outcome_json(row.last),
        "fired": counters.fired,
        "completed": counters.completed,
        "failed": counters.failed,
        "skipped": counters.skipped,
        "missed": counters.missed,
        "canceled": counters.canceled,
        "failures_in_a_row": counters.failures_in_a_row,
    }


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        **timed("nominal", outcome.nominal_ms),
        "state": outcome.state.value,
        "reason": text_of(outcome.reason),
        **timed("started", outcome.started_ms),
        **timed("ended", outcome.finished_ms),
        "duration_ms": outcome.duration_ms,
        "recovery": outcome.recovery,
        "manual": outcome.manual,
    }
