"""`chronex list`: every job on one line of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import StorePath, UsageError, choose
from chronex.cli.output import (
    columns,
    cut,
    hinted,
    is_shown_at_a_terminal,
    out,
    padded,
    paint,
    print_json,
    shown_zone,
    timed,
    width,
)

if TYPE_CHECKING:
    from chronex.timing.zones import Zone
    from chronex.views.jobs import Row
    from chronex.views.nodes import Watch

# Columns of the table.
_STATE_WIDTH = 10
_LONGEST_NAME = 28
_LEAST_SCHEDULE = 9
Line = tuple[str, str, str, str, str]


def list_jobs(
    store: StorePath = None,
    form: Annotated[str, typer.Option("--format", help="text, json or names.", metavar="FORMAT")] = "text",
    wanted: Annotated[
        str,
        typer.Option(
            "--filter",
            help="Only jobs that fit: text, state:failed, tag:etl, next<1h; -tag:etl for those that do not.",
            metavar="TEXT",
        ),
    ] = "",
) -> int:
    """List the jobs with state, next run and last result.

    Example: chronex list --filter "state:failed tag:nightly"
    """

    choose("--format", form, ("text", "json", "names"))
    return run_list(store, form, wanted)


def run_list(store: str | None, form: str, filter_text: str) -> int:
    from chronex.cli.store_session import print_troubles, read_store_now, store_watch, troubles_of
    from chronex.views.filters import parse_filter
    from chronex.views.jobs import rows_of

    chosen = parse_filter(filter_text)
    if chosen.problems:
        raise UsageError(f"--filter: {chosen.problems[0]}")
    (rows, troubles, watch), now_ms = read_store_now(
        store,
        lambda reading, at_ms: (rows_of(reading, at_ms), troubles_of(reading, at_ms), store_watch(reading, at_ms)),
    )
    found = [row for row in rows if chosen.matches(row, now_ms)]
    if form == "names":
        for row in found:
            out(row.job.id)
    elif form == "json":
        print_json([row_json(row) for row in found])
    elif not rows:
        out(hinted("no jobs yet; write a chronex.toml and run: chronex apply"))
    else:
        _print_table(found, len(rows), now_ms, shown_zone(), watch)
        print_troubles(troubles)
    return 0


def _print_table(rows: list[Row], total: int, now_ms: int, zone: Zone, watch: Watch) -> None:
    from chronex.cli.record_output import SITUATION_COLOURS, state_text
    from chronex.text.terminal import terminal_safe

    lines: list[Line] = [("STATE", "JOB", "NEXT", "LAST", "SCHEDULE")]
    lines += [
        (state_text(row, watch), terminal_safe(row.job.shown_name), next_text(row, now_ms, zone, watch),
         last_text(row, now_ms, zone), row.job.shown_schedule)
        for row in rows
    ]  # fmt: skip
    widths = [max(width(line[column]) for line in lines) for column in range(4)]
    widths[0] = max(widths[0], _STATE_WIDTH)
    widths[1] = min(widths[1], _LONGEST_NAME)
    shown = _columns_that_fit(widths)
    left = max(_LEAST_SCHEDULE, columns() - sum(widths) - 4)
    for number, line in enumerate(lines):
        # A name is never cut, because the next command needs it. A longer one moves the rest of its line.
        cells = [*(padded(text, size) for text, size in zip(line, widths, strict=False)), cut(line[4], left)][:shown]
        styles = ("bold",) if number == 0 else SITUATION_COLOURS.get(rows[number - 1].situation, ())
        out(f"{paint(cells[0], *styles)} {' '.join(cells[1:])}".rstrip())
    count = f"{total} job{'s' if total != 1 else ''}" if len(rows) == total else f"{len(rows)} of {total} jobs"
    out(paint(f"{count}; times in {zone.name}", "dim"))


def _columns_that_fit(widths: list[int]) -> int:
    """On a narrow terminal the schedule is left out first, then the last run, then the next one; `show` has them.

    Where nobody's terminal would wrap the lines, none is left out.
    """
    available = columns()
    if not is_shown_at_a_terminal() or sum(widths) + 4 + _LEAST_SCHEDULE <= available:
        return 5
    return next((count for count in (4, 3) if sum(widths[:count]) + count - 1 <= available), 2)


def next_text(row: Row, now_ms: int, zone: Zone, watch: Watch) -> str:
    from chronex.text.durations import brief_duration
    from chronex.views.jobs import Situation
    from chronex.views.wording import moment, upcoming_if

    left = watch.left_of(row.job.id)
    if row.situation is Situation.RUNNING and left:
        return "unwatched, still runs" if any(one.is_alive for one in left) else "outcome unknown"
    if row.situation is Situation.RUNNING and row.running_since_ms is not None:
        return f"running {brief_duration(max(0, now_ms - row.running_since_ms))}"
    if row.situation is Situation.RETRYING and row.retry is not None:
        return f"retry {upcoming_if(row.retry.at_ms, now_ms, zone, has_scheduler=watch.has_scheduler)}"
    if row.is_paused and row.job.enabled:
        until = row.job.progress.paused_until_ms
        return "paused" if until is None else f"until {moment(until, now_ms, zone)}"
    if row.not_before_ms is not None:
        return f"not before {moment(row.not_before_ms, now_ms, zone)}"
    if row.next is None:
        return f"after {', '.join(row.job.after)}" if row.job.follows else "-"
    when = upcoming_if(row.next.due_ms, now_ms, zone, has_scheduler=watch.has_scheduler)
    if row.next.is_drawn or row.next.due_ms <= now_ms:
        return when
    return f"from {when}" if watch.has_scheduler else f"would start from {moment(row.next.due_ms, now_ms, zone)}"


def last_text(row: Row, now_ms: int, zone: Zone) -> str:
    from chronex.model.states import OccurrenceState
    from chronex.text.durations import brief_duration
    from chronex.views.wording import moment, state_words

    last = row.last
    if last is None:
        return row.without_last
    word = "ok" if last.state is OccurrenceState.COMPLETED else last.state.value.replace("failed_stale", "stale")
    word = state_words(word, last.errors)
    took = f" {brief_duration(last.duration_ms)}" if last.duration_ms is not None else ""
    return f"{word} {moment(last.finished_ms or last.nominal_ms, now_ms, zone)}{took}"


def row_json(row: Row) -> dict[str, Any]:
    from chronex.cli.record_output import outcome_json, situation_json
    from chronex.views.coming_runs import may_wait_for

    job, counters = row.job, row.job.progress.counters
    return {
        **situation_json(row),
        "schedule": job.schedule,
        "after": list(job.after),
        "timezone": job.timezone,
        "tags": list(job.tags),
        "version": job.version,
        **timed("next", None if row.next is None else row.next.due_ms),
        **timed("next_nominal", None if row.next is None else row.next.nominal_ms),
        **timed("next_not_before", row.not_before_ms),
        "queued": row.queued,
        "may_wait_for": list(may_wait_for(job)),
        "last": None if row.last is None else outcome_json(row.last),
        "fired": counters.fired,
        "completed": counters.completed,
        "failed": counters.failed,
        "skipped": counters.skipped,
        "missed": counters.missed,
        "canceled": counters.canceled,
        "failures_in_a_row": counters.failures_in_a_row,
        "completed_with_errors": counters.completed_with_errors,
    }
