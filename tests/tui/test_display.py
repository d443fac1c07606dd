"""Instants in few characters."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from chronex.engine.usual import Usual, UsualBand
from chronex.model.job import Task
from chronex.model.occurrence import Attempt, Occurrence, Run, Usage
from chronex.model.policies import Cadence
from chronex.model.reasons import Reason, ReasonCode, of_task, short_text
from chronex.model.states import AttemptState, OccurrenceState, RunState
from chronex.text.durations import countdown, elapsed, largest_unit, rounded_duration
from chronex.timing.zones import utc_zone
from chronex.views.jobs import NextRun, Row, Situation
from chronex_tui.model.attempt_output import no_output
from chronex_tui.model.display import (
    UNICODE,
    DisplaySettings,
    band_words,
    full_stamp,
    have_seconds,
    memory_words,
    stamp,
    usage_words,
)
from chronex_tui.model.job_detail import detail_lines, firing_lines, ordered_runs, tries_lines, usual_lines
from chronex_tui.model.jobs_table import next_words
from chronex_tui.model.layout import plain
from chronex_tui.model.snapshot import Firing, JobDetail
from tests.tui.examples import DAY, EXIT_1, HOME, HOUR, JOBS, MINUTE, NOW, job


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
    assert rounded_duration(ms) == expected


def test_other_words_of_time() -> None:
    assert (largest_unit(240_000), largest_unit(50_000), largest_unit(3 * HOUR)) == ("4m", "50s", "3h")
    assert elapsed(59_999) == "0:59"
    assert stamp(NOW + 4 * MINUTE, NOW, HOME) == "15:00:04"
    assert stamp(NOW // MINUTE * MINUTE + 13 * HOUR, NOW, HOME) == "Mon 03:56"
    assert stamp(NOW + 400 * DAY, NOW, HOME) == "20 Dec 2027"
    assert short_text(Reason(ReasonCode.EXIT_CODE, "exit code 1", "main")) == "exit 1"
    assert short_text(Reason(ReasonCode.OVERLAP, "occ_1")) == "an earlier occurrence still runs"


def test_what_a_command_took_of_the_machine() -> None:
    assert usage_words(None) == ""
    assert usage_words(Usage(cpu_ms=1_250)) == "cpu 1.2s"
    assert usage_words(Usage(cpu_ms=1_250, peak_kib=45 * 1024)) == "cpu 1.2s, 45 MiB"
    assert usage_words(Usage(peak_kib=2_560)) == "cpu 0.0s, 2.5 MiB"


def test_tasks_are_listed_in_their_order_and_a_state_stands_apart_from_its_reason() -> None:
    tasks = tuple(Task(name=name, run="true") for name in ("fetch", "build", "publish"))
    pipeline = job("pipeline", "@daily", tasks=tasks)
    occurrence = Occurrence(job="pipeline", nominal_ms=NOW, due_ms=NOW, state=OccurrenceState.FAILED)
    runs = tuple(
        Run(job="pipeline", nominal_ms=NOW, task=name, state=RunState.CANCELED, reason=of_task("fetch", EXIT_1))
        for name in ("build", "fetch", "publish")
    )
    firing = Firing(occurrence, runs, ())
    assert [run.task for run in ordered_runs(firing, pipeline)] == ["fetch", "build", "publish"]
    display = DisplaySettings(NOW, UNICODE, HOME)
    shown = plain(firing_lines(firing, display, pipeline, 60))
    assert shown.index("fetch") < shown.index("build") < shown.index("publish")
    assert "canceled  fetch: exit code 1" in plain(tries_lines(firing, display, pipeline, with_reason=True))


def test_a_dead_letter_that_was_dropped_still_failed_for_its_own_reason() -> None:
    nightly = job("nightly", "@daily")
    dropped = Reason(ReasonCode.DROPPED, "known", "maria")
    run = Run(job="nightly", nominal_ms=NOW, task="main", state=RunState.CANCELED, reason=dropped)
    tried = Attempt(
        job="nightly", nominal_ms=NOW, task="main", number=1, state=AttemptState.FAILED, created_ms=NOW, reason=EXIT_1
    )
    occurrence = Occurrence(job="nightly", nominal_ms=NOW, due_ms=NOW, state=OccurrenceState.FAILED)
    firing = Firing(occurrence, (run,), (tried,))
    display = DisplaySettings(NOW, UNICODE, HOME)
    assert "exit code 1; dropped by maria: known" in plain(tries_lines(firing, display, nightly, with_reason=True))
    assert "exit code 1; dropped by maria: known" in plain(firing_lines(firing, display, nightly, 60))


def test_what_runs_has_another_sign_where_nobody_records_its_end() -> None:
    alone = DisplaySettings(NOW, UNICODE, HOME, is_watched=False)
    assert (alone.sign_of(OccurrenceState.RUNNING), alone.sign_of_job(Situation.RUNNING)) == ("?", "?")
    assert (alone.sign_of(OccurrenceState.FAILED), alone.sign_of_job(Situation.OK)) == ("✖", "●")
    assert DisplaySettings(NOW, UNICODE, HOME).sign_of_job(Situation.RUNNING) == "▶"


@pytest.mark.parametrize(
    ("state", "story"),
    [
        (OccurrenceState.SKIPPED, "this run was skipped (exit code 1): nothing was started, so there is no output"),
        (OccurrenceState.MISSED, "this run was missed (exit code 1): nothing was started, so there is no output"),
        (OccurrenceState.PENDING, "this run has not started yet (exit code 1), so there is no output"),
    ],
)
def test_a_run_without_output_tells_its_own_story(state: OccurrenceState, story: str) -> None:
    occurrence = Occurrence(job="a", nominal_ms=NOW, due_ms=NOW, state=state, reason=EXIT_1)
    assert no_output(Firing(occurrence, (), ())) == story
    assert no_output(None) == "this job has not run yet, so there is no output"


@pytest.mark.parametrize(
    ("band", "words"),
    [
        (None, ""),
        (UsualBand(1200, 9000), "cpu 1.2s to 9.0s"),
        (UsualBand(1200, 1200), "cpu 1.2s"),
    ],
)
def test_a_usual_band_is_what_half_and_nearly_all_runs_take(band: UsualBand | None, words: str) -> None:
    assert band_words("cpu ", band, rounded_duration) == words


def test_memory_is_told_as_precisely_as_it_matters() -> None:
    assert [memory_words(kib) for kib in (512, 3174, 46_080, 4_194_304)] == [
        "0.5 MiB",
        "3.1 MiB",
        "45 MiB",
        "4,096 MiB",
    ]


def test_times_of_one_column_are_all_exact_or_none() -> None:
    full_minute = NOW // 60_000 * 60_000
    assert stamp(full_minute, NOW, HOME) == "14:56"
    assert stamp(full_minute, NOW, HOME, is_exact=True) == "14:56:00"
    assert stamp(full_minute + DAY, NOW, HOME, is_exact=True) == "Mon 14:56"


@pytest.mark.parametrize(
    ("late_ms", "is_alive", "told"),
    [(1_000, True, "due now"), (90_000, True, "due 14:54:34"), (90_000, False, "was due 14:54:34")],
)
def test_a_daemon_that_does_not_start_what_is_due_is_not_believed(late_ms: int, is_alive: bool, told: str) -> None:
    due = NextRun(NOW - late_ms, NOW - late_ms)
    waiting = Row(JOBS[0], Situation.OK, False, False, due, None, None, None, 0)
    words = next_words(waiting, DisplaySettings(NOW, UNICODE, HOME), is_daemon_alive=is_alive)
    assert plain([words]) == told


USAGE = Usage(cpu_ms=5000, peak_kib=20_480)


@pytest.mark.parametrize(
    ("usual", "told"),
    [
        (None, "used   cpu 5.0s, 20 MiB by the newest attempt"),
        (Usual(3, UsualBand(1000, 2000)), "used   cpu 5.0s, 20 MiB by the newest attempt"),
        (Usual(20, UsualBand(1000, 2000), UsualBand(900, 6000), UsualBand(10_240, 10_240)),
         "usual  1.0s to 2.0s, cpu 0.9s to 6.0s, 10 MiB\nused   cpu 5.0s, 20 MiB by the newest attempt; more memory than usual"),
        (Usual(20, None, UsualBand(900, 4000), UsualBand(10_240, 10_240)),
         "usual  cpu 0.9s to 4.0s, 10 MiB\nused   cpu 5.0s, 20 MiB by the newest attempt; more processor and memory than usual"),
    ],
    ids=["unknown", "too few runs", "more memory", "more of both"],
)  # fmt: skip
def test_what_a_run_took_stands_beside_what_is_usual(usual: Usual | None, told: str) -> None:
    attempt = Attempt(job="a", nominal_ms=NOW, task="main", number=1, started_ms=NOW, usage=USAGE)
    firing = Firing(Occurrence(job="a", nominal_ms=NOW, due_ms=NOW), (), (attempt,))
    row = Row(JOBS[0], Situation.OK, False, False, None, None, None, None, 0)
    detail = JobDetail(row, (), (), firing, None, None, usual=usual)
    assert plain(usual_lines(detail, 120)) == told


def test_a_job_that_follows_others_is_not_said_to_be_over() -> None:
    follower = replace(job("report", ""), after=("etl", "load"))
    for one, words in ((follower, "after etl, load"), (job("once", "0 3 * * *"), "no further run")):
        row = Row(one, Situation.OK, False, False, None, None, None, None, 0)
        assert next_words(row, DisplaySettings(NOW, UNICODE, HOME)) == ((words, "dim"),)


def test_an_interval_that_counts_from_its_end_is_not_said_to_be_over_while_its_run_goes_on() -> None:
    counts = replace(job("sync", "@every 1h"), cadence=Cadence.FIXED_DELAY)
    for one, words in ((counts, "counted from the end of its run"), (job("once", "0 3 * * *"), "no further run")):
        row = Row(one, Situation.RUNNING, False, True, None, None, NOW, None, 0)
        lines = detail_lines(JobDetail(row, (), (), None, None, None), DisplaySettings(NOW, UNICODE, HOME), 100, 30)
        assert f"next   {words}" in plain(lines)


def test_times_of_other_years_have_their_year() -> None:
    new_years = [
        round(datetime.fromisoformat(f"{year}-01-01T00:00+00:00").timestamp() * 1000) for year in (2027, 2028)
    ]
    told = [full_stamp(ms, utc_zone(), now_ms=NOW) for ms in new_years]
    assert told == ["Fri  1 Jan 00:00 UTC", "Sat  1 Jan 2028 00:00 UTC"]


@pytest.mark.parametrize(
    ("times", "shown"),
    [
        (("2027-01-01T10:04:50", "2027-01-01T10:05:00"), ["10:04:50", "10:05:00"]),
        (("2027-01-01T10:05:00", "2027-01-01T10:10:00"), ["10:05", "10:10"]),
    ],
)
def test_times_that_stand_together_have_seconds_all_or_none(times: tuple[str, ...], shown: list[str]) -> None:
    instants = [round(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000) for text in times]
    told = [full_stamp(ms, utc_zone(), is_exact=have_seconds(instants)) for ms in instants]
    assert told == [f"Fri  1 Jan {text} UTC" for text in shown]
