"""A schedule that is typed: it always has an answer."""

from __future__ import annotations

import pytest

from chronex_tui.model.layout import line_width, plain
from chronex_tui.model.try_schedule import try_schedule_lines
from tests.tui.examples import HOME, NOW


@pytest.mark.parametrize(
    "text", ["", "30 2 * * *", "99 2 * * *", "@every 90s", "TZ=Nowhere/No 1 * * * *", "\x1b[31m", "0 0 30 2 *"]
)
def test_whatever_is_typed_as_a_schedule_has_an_answer_that_fits(text: str) -> None:
    lines = try_schedule_lines(text, HOME, NOW, 80)
    assert lines
    assert "\x1b" not in plain(lines)
    assert all(line_width(line) < 200 for line in lines)


def test_the_examples_fit_into_a_small_terminal() -> None:
    assert max(line_width(line) for line in try_schedule_lines("", HOME, NOW, 72)) <= 72
