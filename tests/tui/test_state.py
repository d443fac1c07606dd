"""The filter of the dashboard."""

from __future__ import annotations

import pytest

from chronex.views.jobs import Row, Situation
from chronex_tui.model.display import UNICODE
from chronex_tui.model.snapshot import Snapshot
from chronex_tui.state import State, parse_filter
from tests.tui.examples import HOME, NOW, job


@pytest.mark.parametrize(
    ("before", "after", "narrows"),
    [("", "b", True), ("ba", "bac", True), ("ba", "ba tag", False), ("bac", "ba", False), ("-b", "-ba", False),
     ("state:fail", "state:failed", False)],
)  # fmt: skip
def test_typing_on_asks_only_what_has_passed(before: str, after: str, narrows: bool) -> None:
    assert parse_filter(after).narrows(parse_filter(before)) is narrows


def rows(*names: str) -> tuple[Row, ...]:
    return tuple(Row(job(name, "@daily"), Situation.OK, False, False, None, None, None, None, 0) for name in names)


def state_of(*names: str) -> State:
    return State(UNICODE, HOME, NOW, snapshot=Snapshot(rows=rows(*names)), sort="name")


def test_the_best_matches_come_first_however_the_text_was_typed() -> None:
    names = ("a-job-0999", "job-0999", "job-09299", "job-09990", "xjob-0999x", "other")
    state = state_of(*names)
    for text in ("j", "jo", "job", "job-0", "job-09", "job-099", "job-0999"):
        state.set_filter(text)
        typed = [row.job.id for row in state.rows]
    assert typed == ["job-0999", "job-09990", "a-job-0999", "xjob-0999x", "job-09299"]
    at_once = state_of(*names)
    at_once.set_filter("job-0999")
    assert [row.job.id for row in at_once.rows] == typed


def test_words_with_a_key_and_negated_ones_keep_the_order() -> None:
    state = state_of("b", "a", "ab")
    for text in ("tz:UTC", "-x", "next>1s"):
        state.set_filter(text)
        assert [row.job.id for row in state.rows] == ["a", "ab", "b"]


def test_nothing_is_selected_that_the_filter_hides() -> None:
    state = state_of("a", "b")
    state.job = "a"
    assert state.is_selection_shown()
    state.set_filter("b")
    assert not state.is_selection_shown()
