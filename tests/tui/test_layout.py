"""Text in cells: whatever the data, what is shown is safe and as wide as it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from chronex.text.terminal import cell_safe, cell_width
from chronex_tui.model.layout import (
    Column,
    Line,
    ansi_to_lines,
    crop,
    fit,
    fit_columns,
    fit_line,
    line_width,
    spread,
    wrap,
    wrap_line,
)

ANY = st.text(max_size=40)


@given(ANY)
def test_safe_text_is_printable_and_measured_as_the_terminal_draws_it(text: str) -> None:
    safe = cell_safe(text)
    assert all(char.isprintable() for char in safe)
    assert cell_width(safe) == cell_len(safe)


def test_every_character_there_is_has_the_width_it_is_drawn_with() -> None:
    printable = (char for char in map(chr, range(0x20, 0x110000)) if char.isprintable())
    assert [char for char in map(cell_safe, printable) if cell_width(char) != cell_len(char)] == []


@given(ANY, st.integers(0, 30))
def test_fitted_text_is_exactly_as_wide_as_asked(text: str, cells: int) -> None:
    assert cell_width(fit(cell_safe(text), cells)) == cells
    assert cell_width(crop(cell_safe(text), cells)) <= cells


@given(st.lists(st.tuples(ANY.map(cell_safe), st.just("")), max_size=5), st.integers(1, 60))
def test_a_fitted_line_is_exactly_as_wide_as_asked(spans: list[tuple[str, str]], cells: int) -> None:
    assert line_width(fit_line(tuple(spans), cells)) == cells


@given(ANY.map(cell_safe), st.integers(2, 30))
def test_wrapping_keeps_every_character_and_never_exceeds_the_width(text: str, cells: int) -> None:
    lines = wrap(text, cells)
    assert all(cell_width(line) <= cells for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "�[31mred�[0m"),
        ("\x1b]0;title\x07", "�]0;title�"),
        ("a\tb\nc", "a b�c"),
        ("\u202eabc\u202c", "�abc�"),
        ("❤\ufe0f", "❤"),
        ("[bold]not markup[/]", "[bold]not markup[/]"),
        ("👍🏽", "👍�"),
    ],
)
def test_control_characters_are_made_visible(text: str, expected: str) -> None:
    assert cell_safe(text) == expected


def test_the_right_part_of_a_line_keeps_its_place() -> None:
    line = spread((("left", ""),), (("right", ""),), 12)
    assert "".join(text for text, _ in line) == "left   right"


def test_columns_give_way_by_rank_and_share_what_is_over() -> None:
    columns = (Column("a", "A", 5, share=1), Column("b", "B", 5, rank=2), Column("c", "C", 5, rank=1))
    assert [(one.column.name, one.cells) for one in fit_columns(columns, 30)] == [("a", 16), ("b", 5), ("c", 5)]
    assert [one.column.name for one in fit_columns(columns, 14)] == ["a", "c"]
    assert [one.column.name for one in fit_columns(columns, 3)] == ["a"]


def test_coloured_lines_keep_their_colours_and_nothing_else() -> None:
    assert ansi_to_lines(["\x1b[1mhead\x1b[0m rest \x1b]0;x\x07"]) == [(("head", "bold"), (" rest �]0;x�", ""))]


@pytest.mark.parametrize(
    ("line", "cells", "wrapped"),
    [
        ((("short", "bold"),), 10, [(("short", "bold"),)]),
        (
            (("at 03:00 ", ""), ("it is late", "retry")),
            12,
            [(("at 03:00 ", ""), ("it", "retry")), (("  is late", "retry"),)],
        ),
        ((("zone   Europe or", ""),), 14, [(("zone   Europe", ""),), (("       or", ""),)]),
        ((("  ^ two words", "retry"),), 8, [(("  ^ two", "retry"),), (("  words", "retry"),)]),
        ((("abcdefgh", ""),), 3, [(("abc", ""),), (("def", ""),), (("gh", ""),)]),
        ((("你好吗", ""),), 4, [(("你好", ""),), (("吗", ""),)]),
        ((), 5, [()]),
    ],
    ids=["fits", "two styles", "labelled", "indented", "one long word", "wide characters", "empty"],
)
def test_a_line_that_is_too_long_goes_on_below_with_its_styles_and_its_indent(
    line: Line, cells: int, wrapped: list[Line]
) -> None:
    assert wrap_line(line, cells) == wrapped


@given(st.lists(st.tuples(ANY.map(cell_safe), st.sampled_from(["", "bold"])), max_size=4), st.integers(2, 30))
def test_wrapped_lines_lose_nothing_but_blanks_and_fit(spans: list[tuple[str, str]], cells: int) -> None:
    wrapped = wrap_line(tuple(spans), cells)
    assert max(line_width(line) for line in wrapped) <= cells
    shown = "".join(text for line in wrapped for text, _ in line)
    assert shown.replace(" ", "") == "".join(text for text, _ in spans).replace(" ", "")
