"""Lanes, clock changes and density as plain values and lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chronex.model.reasons import NO_REASON, Reason, ReasonCode, short_text
from chronex.timing.zones import load_zone
from chronex_tui.model.cells import line_width, plain
from chronex_tui.model.clockday import POLICIES, clock_days, picture, title_line
from chronex_tui.model.columns import Column, lay_out
from chronex_tui.model.density import levels, odd_hours
from chronex_tui.model.figures import coming_density, lanes
from chronex_tui.model.filtering import parse_filter
from chronex_tui.model.glyphs import UNICODE
from chronex_tui.model.look import Look
from chronex_tui.model.painted import painted
from chronex_tui.model.snapshot import RunItem, RunKey
from chronex_tui.model.timeline import Lane, Mark, Window, lane_line, past_marks
from chronex_tui.model.trial import trial_lines
from chronex_tui.model.wording import away, countdown, duration, elapsed, stamp
from tests.tui.world import DAY, HOME, HOUR, MINUTE, NOW, job

LOOK = Look(NOW, UNICODE, HOME)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


# -- wording --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(0, "0:00"), (1, "0:01"), (190_000, "3:10"), (HOUR, "1h 00m"), (26 * HOUR, "1d 2h"), (-5, "0:00")],
)
def test_a_countdown_ends_at_the_instant(ms: int, expected: str) -> None:
    assert countdown(ms) == expected


@pytest.mark.parametrize(
    ("ms", "expected"), [(300, "0.3s"), (9_949, "9.9s"), (12_000, "12s"), (62_000, "1m02s"), (7_500_000, "2h05m")]
)
def test_a_duration_in_few_characters(ms: int, expected: str) -> None:
    assert duration(ms) == expected


def test_other_words_of_time() -> None:
    assert (away(240_000), away(50_000), away(3 * HOUR)) == ("4m", "50s", "3h")
    assert elapsed(59_999) == "0:59"
    assert stamp(NOW + 4 * MINUTE, NOW, HOME) == "15:00:04"
    assert stamp(NOW // MINUTE * MINUTE + 13 * HOUR, NOW, HOME) == "Mon 03:56"
    assert stamp(NOW + 400 * DAY, NOW, HOME) == "20 Dec 2027"
    assert short_text(Reason(ReasonCode.EXIT_CODE, "exit code 1", "main")) == "exit 1"
    overlap = Reason(ReasonCode.OVERLAP, "occ_1")
    assert short_text(overlap) == "an earlier occurrence still runs: occ_1"


# -- timeline -------------------------------------------------------------------------------------------------------


def lane(*marks: Mark) -> str:
    window = Window(NOW, HOUR)
    return plain([lane_line(Lane("backup", marks), window, LOOK, 71, 11)])[11:]


def test_a_run_is_as_long_as_it_took() -> None:
    assert lane(Mark(NOW - 40 * MINUTE, NOW - 20 * MINUTE, "completed")).count("█") == 11
    assert lane(Mark(NOW - 40 * MINUTE, NOW - 40 * MINUTE + 5000, "completed")).count("▪") == 1


def test_a_short_run_on_the_border_of_two_columns_is_one_mark() -> None:
    border = NOW - HOUR + 2 * MINUTE
    assert lane(Mark(border - 30_000, border + 30_000, "completed")).strip(" │") == "▪"


def test_what_runs_reaches_the_line_of_now_and_failures_end_in_their_sign() -> None:
    assert lane(Mark(NOW - 10 * MINUTE, None, "running")).rstrip().endswith("▶")
    assert "✖" in lane(Mark(NOW - 10 * MINUTE, NOW - 4 * MINUTE, "failed"))


def test_two_runs_at_once_are_told_from_one() -> None:
    first = Mark(NOW - 40 * MINUTE, NOW - 10 * MINUTE, "completed")
    assert "!" in lane(first, Mark(NOW - 30 * MINUTE, NOW - 20 * MINUTE, "completed"))


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
    assert lanes((), (), Window(NOW, HOUR), NOW) == ()


# -- clock ----------------------------------------------------------------------------------------------------------


def pictured(zone: str, since: str, *schedules: str, policy: int = 0) -> str:
    jobs = [job(f"job-{number}", schedule, zone) for number, schedule in enumerate(schedules)]
    days, calm = clock_days(jobs, at(since), policy=POLICIES[policy])
    lines = [line for day in days[:1] for line in (title_line(day, LOOK), *picture(day, LOOK, 140, 9))]
    return plain([*lines, *(((zone, ""),) for zone in calm)])


def test_the_missing_hour_of_berlin() -> None:
    text = pictured("Europe/Berlin", "2027-03-01", "30 2 * * *", "0 * * * *")
    assert "Sun 28 Mar 2027  Europe/Berlin  1h forward, CET → CEST" in text
    assert "██ ██ ╳╳ ██" in text
    assert "02:30 does not exist: the run fires at 03:00 instead" in text


def test_the_doubled_hour_of_berlin() -> None:
    text = pictured("Europe/Berlin", "2027-10-01", "30 2 * * *")
    assert "00 01 02 02 03" in text
    assert "██ ██ ██ ▒▒ ██" in text
    assert "02:30 happens twice: fires once, on the first pass" in text


def test_half_an_hour_is_missing_on_lord_howe() -> None:
    assert "██ ██ ╳█ ██" in pictured("Australia/Lord_Howe", "2026-09-01", "15 2 * * *")


def test_havana_changes_at_midnight() -> None:
    text = pictured("America/Havana", "2027-03-01", "30 0 * * *")
    assert "Sun 14 Mar 2027" in text or "Sat 13 Mar 2027" in text
    assert "00:30 does not exist" in text


def test_a_zone_that_never_changes_is_named() -> None:
    assert pictured("Etc/UTC", "2027-01-01", "0 0 * * *") == "Etc/UTC"


def test_another_policy_is_a_what_if() -> None:
    assert "1 run skipped" in pictured("Europe/Berlin", "2027-03-01", "30 2 * * *", policy=2)


# -- density --------------------------------------------------------------------------------------------------------


def test_starts_are_counted_by_day_and_hour_from_now_on() -> None:
    density = coming_density([job("a", "30 15 * * *", "Europe/Berlin"), job("b", "0 * * * *")], NOW, HOME)
    assert density.counts[(0, 15)] == 2
    assert (0, 14) not in density.counts
    assert density.counts[(6, 15)] == 2
    assert density.jobs[(0, 15)] == (("a", 1), ("b", 1))
    assert density.busiest is not None


def test_a_job_of_every_second_is_counted_without_living_through_it() -> None:
    density = coming_density([job("fast", "* * * * * *")], NOW, HOME)
    assert density.counts[(1, 12)] == 3600
    assert density.is_cut


def test_the_fullest_minute_is_named() -> None:
    density = coming_density(
        [job("a", "0 9 * * *"), job("b", "0 9 * * *"), job("c", "5 9 * * *")], NOW, load_zone("UTC")
    )
    minute, starts = density.minutes[(1, 9)]
    assert starts == 2
    assert minute % HOUR == 0


def test_hours_that_a_clock_change_takes_or_gives_are_marked() -> None:
    missing, _ = odd_hours(at("2027-03-21T23:00"), HOME)
    assert missing == {(6, 2)}
    _, doubled = odd_hours(at("2027-10-25T22:00"), HOME)
    assert doubled == {(5, 2)}


def test_the_ramp_follows_what_there_is() -> None:
    assert levels([]) == (1, 1, 1, 1)
    assert levels([3, 3, 3]) == (3, 3, 3, 3)
    assert levels(range(1, 11)) == (3, 5, 7, 9)


# -- lists ----------------------------------------------------------------------------------------------------------


def test_columns_give_way_by_rank_and_share_what_is_over() -> None:
    columns = (Column("a", "A", 5, share=1), Column("b", "B", 5, rank=2), Column("c", "C", 5, rank=1))
    assert [(one.column.name, one.cells) for one in lay_out(columns, 30)] == [("a", 16), ("b", 5), ("c", 5)]
    assert [one.column.name for one in lay_out(columns, 14)] == ["a", "c"]
    assert [one.column.name for one in lay_out(columns, 3)] == ["a"]


@pytest.mark.parametrize(
    ("before", "after", "narrows"),
    [("", "b", True), ("ba", "bac", True), ("ba", "ba tag", False), ("bac", "ba", False), ("-b", "-ba", False),
     ("state:fail", "state:failed", False)],
)  # fmt: skip
def test_typing_on_asks_only_what_has_passed(before: str, after: str, narrows: bool) -> None:
    assert parse_filter(after).narrows(parse_filter(before)) is narrows


def test_painted_lines_keep_their_colours_and_nothing_else() -> None:
    assert painted("\x1b[1mhead\x1b[0m rest \x1b]0;x\x07") == (("head", "bold"), (" rest �]0;x�", ""))


@pytest.mark.parametrize(
    "text", ["", "30 2 * * *", "99 2 * * *", "@every 90s", "TZ=Nowhere/No 1 * * * *", "\x1b[31m", "0 0 30 2 *"]
)
def test_whatever_is_typed_as_a_schedule_has_an_answer_that_fits(text: str) -> None:
    lines = trial_lines(text, HOME, NOW, UNICODE, 80)
    assert lines
    assert "\x1b" not in plain(lines)
    assert all(line_width(line) < 200 for line in lines)
