"""Offsets and positions, both ways, beside characters of one, two, three and four bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chronex.lsp.editor_positions import UTF8, UTF16, UTF32, Positions

TEXT = "aé😀b\n火x\n"


@pytest.mark.parametrize(
    ("encoding", "offset", "position"),
    [
        (UTF16, 0, (0, 0)),
        (UTF16, 3, (0, 4)),  # behind the emoji: two units
        (UTF8, 3, (0, 7)),
        (UTF32, 3, (0, 3)),
        (UTF16, 5, (1, 0)),
        (UTF8, 6, (1, 3)),
        (UTF16, len(TEXT), (2, 0)),
        ("unknown", 3, (0, 4)),
    ],
)
def test_both_ways(encoding: str, offset: int, position: tuple[int, int]) -> None:
    positions = Positions(TEXT, encoding)
    assert positions.of(offset) == position
    assert positions.offset(*position) == offset


@pytest.mark.parametrize(
    ("position", "offset"),
    [((0, 3), 3), ((0, 99), 4), ((99, 0), len(TEXT)), ((-1, 0), 0), ((1, 99), 7)],
)
def test_any_position_has_an_offset(position: tuple[int, int], offset: int) -> None:
    assert Positions(TEXT).offset(*position) == offset


@given(st.text(alphabet="a\n\ré😀火\u2028\ud800", max_size=30), st.sampled_from([UTF8, UTF16, UTF32]))
def test_every_offset_comes_back(text: str, encoding: str) -> None:
    positions = Positions(text, encoding)
    for offset in range(len(text) + 1):
        assert positions.offset(*positions.of(offset)) == offset
