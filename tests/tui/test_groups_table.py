"""Groups in words: places held, who holds them, who waits and what for."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.model.groups import Group
from chronex.model.reasons import Reason, ReasonCode
from chronex.views.group_rows import GroupHolder, GroupRow, GroupWaiter
from chronex_tui.app import StartOptions
from chronex_tui.model.display import UNICODE, DisplaySettings
from chronex_tui.model.groups_table import GroupsTable, group_lines
from chronex_tui.model.layout import line_width, plain
from tests.tui.driving import app_on, driven
from tests.tui.examples import HOME, MINUTE, NOW

DISPLAY = DisplaySettings(NOW, UNICODE, HOME)
HOLDER = GroupHolder("load", "occ_1", 1, NOW - MINUTE, "node-1")
WAITER = GroupWaiter("report", "occ_2", 1, NOW - 2 * MINUTE, Reason(ReasonCode.GROUP_LINE, "db"))
FULL = GroupRow(Group(name="db", limit=1), 1, (HOLDER,), 3, (WAITER,))
FREE = GroupRow(Group(name="mail", limit=4), 0, (), 0, ())
RATED = GroupRow(Group(name="api"), 0, (), 1, (WAITER,), NOW + 30_000)


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        (FULL, ("db", "1 of 1", " 3  ", "when one ends")),
        (FREE, ("mail", "0 of 4", " 0  ", "now")),
        (RATED, ("api", " 1  ", "in 0:30")),
    ],
    ids=["full", "free", "rated"],
)
def test_a_group_says_what_is_held_and_who_may_start(row: GroupRow, parts: tuple[str, ...]) -> None:
    line = plain([GroupsTable([row], DISPLAY).line(0, 78, "…")])
    assert all(part in line for part in parts), line


def test_holders_and_those_who_wait_are_listed_with_what_they_wait_for() -> None:
    lines = group_lines(FULL, DISPLAY, 60)
    text = plain(lines)
    assert "holds  load  1:00  since 14:55:04 on node-1" in text
    assert "waits  report  2:00" in text
    assert "and 2 more" in text
    assert all(line_width(line) <= 60 for line in lines)
    assert "holds  nobody" in plain(group_lines(FREE, DISPLAY, 60))


def test_that_a_group_is_full_is_told_without_a_time_of_another_clock() -> None:
    reason = Reason(ReasonCode.GROUP_FULL, "db is full: load since 2026-11-15T13:55:14Z")
    text = plain(group_lines(FULL._replace(first=(WAITER._replace(reason=reason),)), DISPLAY, 60))
    assert "group db is full" in text
    assert "13:55:14Z" not in text


async def test_without_groups_the_screen_says_how_one_is_made(example_store: Path) -> None:
    async with driven(app_on(example_store, StartOptions(screen="groups")), (80, 24)) as driver:
        await driver.until(lambda frame: "[groups.NAME]" in frame)
