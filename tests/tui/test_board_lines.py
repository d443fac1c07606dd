"""The lines around the tables: the screens, the worst trouble, the notices that wait, and the page of keys."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from chronex.jobfile.keymap import SCREENS
from chronex.model.occurrence import ProcessIdentity
from chronex.model.records import Node
from chronex.views.jobs import NodeStatus, Row, Situation, Summary
from chronex_tui.model.available_actions import ActionContext, available, help_page, key_text
from chronex_tui.model.board_lines import counts_line, no_jobs, stopped_line, top_line, worst_trouble
from chronex_tui.model.clock_days import ClockDay, title_line
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.layout import line_width, plain
from chronex_tui.model.snapshot import Snapshot
from tests.tui.examples import HOME, JOBS, MINUTE, NOW

DISPLAY = DisplaySettings(NOW, UNICODE, HOME)


def row(number: int, situation: Situation = Situation.OK, late_ms: int | None = None) -> Row:
    return Row(JOBS[number].progressed(late_ms=late_ms), situation, False, False, None, None, None, None, 0)


def node(silent_ms: int) -> NodeStatus:
    return NodeStatus(
        Node(id="node-1", process=ProcessIdentity(1, "boot", 1), seen_ms=NOW - silent_ms), is_alive=True
    )


def snapshot(*rows: Row, nodes: tuple[NodeStatus, ...] = (), notices: int = 0) -> Snapshot:
    summary = Summary(len(rows), dict.fromkeys(Situation, 0), 0, 0, 0, 0, nodes)
    return Snapshot(NOW, rows, summary, notices=notices)


# -- the screens ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [20, 40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_has_its_key_at_every_width(cells: int, screen: str) -> None:
    line = plain([top_line(snapshot(), DISPLAY, screen, cells)])
    assert len(line) == cells
    if cells >= 40:
        assert all(f" {number}" in line for number in range(1, len(SCREENS) + 1))
        assert screen.capitalize()[:2] in line


@pytest.mark.parametrize("cells", [80, 84, 89])
def test_a_stopped_daemon_does_not_cost_the_names_of_the_screens(cells: int) -> None:
    line = plain([top_line(snapshot(row(0)), DISPLAY, "jobs", cells)])
    names = "1 Jobs 2 Runs 3 Time 4 Clock 5 Dens 6 Nodes 7 Graph 8 Groups"
    assert " ".join(line.split()).startswith(names)
    assert line.endswith(f"{UNICODE.down} stopped 14:56 ")


@pytest.mark.parametrize(
    ("times", "told"), [("local", " CET "), ("utc", " UTC "), ("job", " job zones ")], ids=lambda value: value.strip()
)
def test_the_smallest_board_names_the_zone_of_its_times_too(times: str, told: str) -> None:
    display = replace(DISPLAY, times=times)
    line = plain([top_line(snapshot(row(0)), display, "jobs", 40, is_alone=True)])
    assert line.endswith(told)
    assert len(line) == 40


REFUSED = Snapshot(NOW, problem="/srv/store is open to other users; run: chmod 700 /srv/store", is_refused=True)


def test_of_a_store_that_cannot_be_opened_the_cause_is_told_whole_and_nothing_of_a_daemon() -> None:
    lines = no_jobs(REFUSED, "--store '/srv/my store'", 40)
    assert all(line_width(line) <= 62 for line in lines)
    words = " ".join(plain(lines).split())
    assert "/srv/store is open to other users; run: chmod 700 /srv/store" in words
    assert "chronex doctor --store '/srv/my store'" in words
    assert "stopped" not in plain([top_line(REFUSED, DISPLAY, "jobs", 120)])


def test_a_problem_that_does_not_fit_is_told_without_half_a_command() -> None:
    problem = "no store at /srv/store: no such file or directory; `chronex apply --store /srv/store` makes one"
    gone = Snapshot(NOW, rows=(row(0),), problem=problem)
    assert problem in plain([counts_line(gone, DISPLAY, 120, "", 1)])
    assert plain([counts_line(gone, DISPLAY, 80, "", 1)]).strip() == problem.partition(";")[0]


# -- the worst trouble ------------------------------------------------------------------------------------------

FAILED_TWICE = row(5, Situation.FAILED)
LATE, LATER = row(6, late_ms=NOW - 10 * MINUTE), row(7, late_ms=NOW - MINUTE)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (snapshot(row(0)), ""),
        (snapshot(LATER, LATE), "worst: vacuum is late"),
        (snapshot(LATE, FAILED_TWICE), "worst: sync-s3, failed 2 times in a row"),
        (snapshot(FAILED_TWICE, nodes=(node(3 * MINUTE),)), "worst: node-1 silent for 3m"),
        (snapshot(FAILED_TWICE, nodes=(node(MINUTE),)), "worst: sync-s3, failed 2 times in a row"),
    ],
    ids=["nothing", "late", "failing", "silent", "heard"],
)
def test_the_worst_trouble_is_the_one_that_needs_a_person_first(found: Snapshot, told: str) -> None:
    assert worst_trouble(found, NOW) == told


@pytest.mark.parametrize(
    ("cells", "told"),
    [(140, "worst: sync-s3, failed 2 times in a row"), (120, "worst: sync-s3 "), (70, "worst: sync-s3 ")],
)
def test_the_worst_trouble_is_named_wherever_there_is_room(cells: int, told: str) -> None:
    found = snapshot(FAILED_TWICE)
    assert found.summary is not None
    counts = dict.fromkeys((Situation.RUNNING, Situation.FAILED, Situation.QUEUED, Situation.PAUSED), 1)
    busy = replace(found, summary=found.summary._replace(counts={**found.summary.counts, **counts}))
    line = plain([counts_line(busy, DISPLAY, cells, "", 1)])
    assert told in line
    assert "Berlin (T)" in line
    assert line.endswith(" 1 job ")
    assert len(line) == cells


@pytest.mark.parametrize("cells", [60, 72, 80, 90, 120])
def test_a_daemon_that_hangs_is_told_at_every_width(cells: int) -> None:
    """At 80 columns the words of the counts had taken its place, beside a sign that said that all is well."""
    hangs = Node(id="node-1", host="build-server", process=ProcessIdentity(1, "boot", 1), seen_ms=NOW - 3 * MINUTE)
    found = snapshot(FAILED_TWICE, nodes=(NodeStatus(hangs, is_alive=True),))
    told = "worst: build-server silent for 3m" in plain([counts_line(found, DISPLAY, cells, "", 1)])
    top = plain([top_line(found, DISPLAY, "jobs", cells)])
    assert told is (cells >= 80)
    soon = replace(DISPLAY, now_ms=NOW - 2 * MINUTE)
    assert "silent" not in plain([top_line(found, soon, "jobs", cells), counts_line(found, soon, cells, "", 1)])
    assert ("? daemon silent" if cells >= 110 else "? silent" if cells >= 72 else "?") in top


def test_notices_that_wait_are_counted_where_there_is_room() -> None:
    assert "2 notices waiting" in plain([counts_line(snapshot(row(0), notices=2), DISPLAY, 160, "", 1)])
    assert "notice" not in plain([counts_line(snapshot(row(0)), DISPLAY, 160, "", 1)])
    assert line_width(counts_line(snapshot(row(0), notices=2), DISPLAY, 60, "", 1)) == 60


COMMAND = "chronex run --headless --config /srv/jobs/chronex.toml --store /srv/jobs/store"


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (150, (" The daemon is stopped: nothing will start until it runs again. ", f" {COMMAND} ")),
        (110, (" The daemon is stopped: ", f" {COMMAND} ")),
        (80, (" The daemon is stopped: nothing will start. ", " y copies the command that starts it ")),
        (50, (" The daemon is stopped. ", " y copies how to start it ")),
        (30, (" Daemon stopped. ", " y copies how ")),
        (20, (" Daemon stopped", " ")),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_the_command_that_starts_a_daemon_is_shown_whole_or_can_be_copied(cells: int, told: tuple[str, str]) -> None:
    ((line, style),) = stopped_line(COMMAND, "y", cells)
    assert style == "bar", "from one edge to the other"
    assert len(line) == cells
    assert line.startswith(told[0])
    assert line.endswith(told[1])


# -- the page of keys -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("screen", SCREENS)
def test_the_keys_of_a_screen_are_one_page_of_a_small_terminal(screen: str) -> None:
    context = ActionContext(screen, job="backup-db", live_run="backup-db@1", is_live=True, node="node-1")
    lines = help_page(context, 72)
    assert len(lines) <= 20
    assert all(line_width(line) <= 72 for line in lines)
    text = plain(lines)
    for action in available(context):
        pair = rf"(?m)(^|\s){re.escape(key_text(action))}\s+{action.title.partition('/')[0]}"
        assert re.search(pair, text), f"{action.title} and the key before it stand apart"


def test_a_page_says_what_its_keys_do_to_what_is_selected() -> None:
    context = ActionContext("jobs", job="newsletter", is_paused=True)
    assert "p      resume" in plain(help_page(context, 72))
    assert "p      pause" in plain(help_page(replace(context, is_paused=False), 72))


# -- the headings of the clock ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [60, 70, 76, 90, 120])
def test_a_clock_change_always_says_how_many_jobs_it_affects(cells: int) -> None:
    (change, *_) = HOME.changes(NOW // 1000, NOW // 1000 + 366 * 86_400)
    line = title_line(ClockDay(HOME, change, ()), DISPLAY, cells)
    assert line_width(line) <= cells
    assert plain([line]).endswith("no job affected")
