"""The timeline: lanes as plain values and lines."""

from __future__ import annotations

from msgspec.structs import replace

from chronex.model.calendars import CalendarRules, JobCalendar
from chronex.model.reasons import NO_REASON
from chronex.views.jobs import NextRun, Row, Situation
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.lanes import (
    MOST_LANES,
    Lane,
    LaneMark,
    Window,
    lane_line,
    lanes_in,
    past_marks,
    signs_of_lanes,
)
from chronex_tui.model.layout import legend, plain
from chronex_tui.model.snapshot import RunItem, RunKey
from tests.tui.examples import HOME, HOUR, MINUTE, NOW, job

DISPLAY = DisplaySettings(NOW, UNICODE, HOME)


def lane(*marks: LaneMark) -> str:
    window = Window(NOW, HOUR)
    return plain([lane_line(Lane("backup", marks), window, DISPLAY, 71, 11)])[11:]


def test_a_run_is_as_long_as_it_took() -> None:
    assert lane(LaneMark(NOW - 40 * MINUTE, NOW - 20 * MINUTE, "completed")).count("█") == 11
    assert lane(LaneMark(NOW - 40 * MINUTE, NOW - 40 * MINUTE + 5000, "completed")).count("▪") == 1


def test_a_short_run_on_the_border_of_two_columns_is_one_mark() -> None:
    border = NOW - HOUR + 2 * MINUTE
    assert lane(LaneMark(border - 30_000, border + 30_000, "completed")).strip(" │") == "▪"


def test_what_runs_reaches_the_line_of_now_and_failures_end_in_their_sign() -> None:
    assert lane(LaneMark(NOW - 10 * MINUTE, None, "running")).rstrip().endswith("▶")
    assert "✖" in lane(LaneMark(NOW - 10 * MINUTE, NOW - 4 * MINUTE, "failed"))


def test_what_waits_for_its_turn_is_not_drawn_as_if_it_had_run() -> None:
    due = NOW - 10 * MINUTE
    for state, sign in (("queued", "◔"), ("pending", "○")):
        item = RunItem(RunKey("backup", due), state, NO_REASON, due, None, None, False, False)
        (mark,) = past_marks([item], Window(NOW, HOUR))["backup"]
        assert lane(mark).strip(" │") == sign


def test_without_a_scheduler_nobody_knows_how_long_it_ran() -> None:
    mark = LaneMark(NOW - 40 * MINUTE, None, "running")
    unwatched = lane_line(
        Lane("backup", (mark,)), Window(NOW, HOUR), DisplaySettings(NOW, UNICODE, HOME, is_watched=False), 71, 11
    )
    assert plain([unwatched])[11:].strip(" │") == "?"
    assert next(iter(signs_of_lanes(UNICODE, [Lane("backup", (mark,))], is_watched=False))) == "?"


def test_two_runs_at_once_differ_from_one() -> None:
    first = LaneMark(NOW - 40 * MINUTE, NOW - 10 * MINUTE, "completed")
    assert "!" in lane(first, LaneMark(NOW - 30 * MINUTE, NOW - 20 * MINUTE, "completed"))


def test_the_window_takes_what_overlaps_it() -> None:
    def item(start: int, end: int | None) -> RunItem:
        return RunItem(RunKey("a", start), "completed", NO_REASON, start, start, end, recovery=False, manual=False)

    window = Window(NOW, HOUR)
    items = [item(NOW - 3 * HOUR, NOW - 2 * HOUR), item(NOW - 2 * HOUR, NOW - 30 * MINUTE), item(NOW - MINUTE, None)]
    assert len(past_marks(items, window)["a"]) == 2


def test_panning_and_zooming_keep_the_middle_or_move_it() -> None:
    window = Window(NOW, HOUR)
    assert window.zoomed(1) == Window(NOW, 6 * HOUR)
    assert window.zoomed(-5) == Window(NOW, 10 * MINUTE)
    assert window.panned(1).middle_ms == NOW + HOUR // 2


def test_no_job_and_no_run_make_no_lane() -> None:
    assert lanes_in(Window(NOW, HOUR), (), (), NOW).lanes == ()


def test_a_frequent_job_is_planned_over_the_whole_window() -> None:
    """Every five seconds is 720 times an hour: the marks may be thinned out, but must not stop halfway."""
    frequent = job("heartbeat", "*/5 * * * * *")
    row = Row(frequent, Situation.OK, False, False, NextRun(NOW + 5000, NOW + 5000), None, None, None, 0)
    (found,) = lanes_in(Window(NOW, HOUR), (row,), (), NOW).lanes
    drawn = plain([lane_line(found, Window(NOW, HOUR), DISPLAY, 191, 11)])[11:]
    assert drawn[91:] == "┆" * 89


def test_what_a_calendar_leaves_out_is_a_faint_mark_and_no_planned_run() -> None:
    dark = JobCalendar(name="dark", times=((NOW + 20 * MINUTE) // 1000, (NOW + 40 * MINUTE) // 1000))
    one = replace(job("poll", "*/5 * * * *"), calendars=CalendarRules(excluded=(dark,)))
    first = NOW // (5 * MINUTE) * 5 * MINUTE + 5 * MINUTE
    row = Row(one, Situation.WAITING, False, False, NextRun(first, first), None, None, None, 0)
    (lane,) = lanes_in(Window(NOW, HOUR), [row], [], NOW).lanes
    planned = [mark.start_ms for mark in lane.marks if mark.state == "planned"]
    left_out = [mark.start_ms for mark in lane.marks if mark.state == "skipped"]
    assert len(left_out) == 4
    assert all(NOW + 20 * MINUTE <= at < NOW + 40 * MINUTE for at in left_out)
    assert not set(planned) & set(left_out)
    assert len(planned) + len(left_out) == 12


def test_the_legend_has_every_sign_or_says_where_the_others_are() -> None:
    signs = signs_of_lanes(UNICODE)
    for mark in ("‖", "!", "▪", "◌", "─", "│", "┆", "█", "▶", "✖", "↻"):
        assert mark in signs
    assert all(words in legend(signs, 200) for words in signs.values())
    for cells in (30, 60, 100):
        assert len(legend(signs, cells)) <= cells
        assert legend(signs, cells).endswith("? more")


def test_the_legend_begins_with_the_signs_that_are_drawn() -> None:
    lanes = (Lane("a", (LaneMark(NOW, NOW, "skipped"), LaneMark(NOW + MINUTE, None, "planned"))),)
    assert list(signs_of_lanes(UNICODE, lanes))[:2] == ["┆", "‖"]


def test_what_a_calendar_leaves_out_of_a_frequent_job_is_marked_to_the_end() -> None:
    dark = JobCalendar(name="dark", times=(NOW // 1000 - 60, (NOW + HOUR) // 1000 + 60))
    one = replace(job("beat", "*/5 * * * * *"), calendars=CalendarRules(excluded=(dark,)))
    row = Row(one, Situation.WAITING, False, False, NextRun(NOW + 1000, NOW + 1000), None, None, None, 0)
    (lane,) = lanes_in(Window(NOW, HOUR), [row], [], NOW).lanes
    left_out = [mark.start_ms for mark in lane.marks if mark.state == "skipped"]
    assert len(left_out) <= 401
    assert max(left_out) > NOW + HOUR - MINUTE


def test_jobs_beyond_the_most_lanes_are_counted() -> None:
    rows = [
        Row(job(f"job-{number:03}", "0 * * * *"), Situation.OK, False, False, NextRun(at, at), None, None, None, 0)
        for number in range(MOST_LANES + 3)
        for at in [NOW + number * 1000]
    ]
    found = lanes_in(Window(NOW, HOUR), rows, [], NOW)
    assert len(found.lanes) == MOST_LANES
    assert found.left_out == 3
