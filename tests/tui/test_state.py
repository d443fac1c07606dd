"""The filter of the dashboard."""

from __future__ import annotations

import pytest

from chronex_tui.state import parse_filter


@pytest.mark.parametrize(
    ("before", "after", "narrows"),
    [("", "b", True), ("ba", "bac", True), ("ba", "ba tag", False), ("bac", "ba", False), ("-b", "-ba", False),
     ("state:fail", "state:failed", False)],
)  # fmt: skip
def test_typing_on_asks_only_what_has_passed(before: str, after: str, narrows: bool) -> None:
    assert parse_filter(after).narrows(parse_filter(before)) is narrows
