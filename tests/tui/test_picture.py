"""Frames as pixels: outlines are filled, cells lie where they should, and the file is a PNG."""

from __future__ import annotations

import zlib
from struct import unpack

import pytest
from rich.style import Style

from chronex_tui.picture.canvas import Canvas, colour_of
from chronex_tui.picture.fonts import FontError, Fonts, find_fonts, flatten
from chronex_tui.picture.raster import coverage


@pytest.fixture(scope="module")
def fonts() -> Fonts:
    try:
        return find_fonts()
    except FontError:
        pytest.skip("no monospaced TrueType font here")


def test_a_square_covers_whole_pixels_and_parts_of_those_at_its_edge() -> None:
    rows = coverage([[(1.0, 1.0), (1.0, 3.0), (3.5, 3.0), (3.5, 1.0)]], 5, 4)
    assert [list(row) for row in rows] == [[0] * 5, [0, 255, 255, 128, 0], [0, 255, 255, 128, 0], [0] * 5]


def test_a_hole_is_drawn_the_other_way_round() -> None:
    outer = [(0.0, 0.0), (0.0, 3.0), (3.0, 3.0), (3.0, 0.0)]
    inner = [(1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (1.0, 2.0)]
    assert coverage([outer, inner], 3, 3)[1] == bytes([255, 0, 255])


def test_a_curve_becomes_short_lines_that_end_where_it_ends() -> None:
    line = flatten([(0, 0, True), (10, 0, False), (10, 10, True)])
    assert line[0] == (0.0, 0.0)
    assert (10.0, 10.0) in line
    assert len(line) > 4


def pixel(canvas: Canvas, x: int, y: int) -> tuple[int, ...]:
    data = canvas.png()
    at = data.index(b"IDAT")
    raw = zlib.decompress(data[at + 4 : at + 4 + unpack(">I", data[at - 4 : at])[0]])
    start = y * (canvas.width * 3 + 1) + 1 + x * 3
    return tuple(raw[start : start + 3])


def test_cells_have_their_ground_and_frames_meet(fonts: Fonts) -> None:
    canvas = Canvas(10, 3, fonts, 20, "#101010", "#f0f0f0")
    canvas.write(0, 0, "██", Style(color="#ff0000"))
    canvas.write(1, 3, " ", Style(bgcolor="#00ff00"))
    left, top = (canvas.width - 10 * canvas.cell_width) // 2, (canvas.height - 3 * canvas.cell_height) // 2
    assert pixel(canvas, left + canvas.cell_width, top + 10) == (255, 0, 0), "blocks leave no gap between cells"
    assert pixel(canvas, left + 3 * canvas.cell_width + 2, top + canvas.cell_height + 2) == (0, 255, 0)
    assert pixel(canvas, 0, 0) == colour_of("#101010")


def test_wide_letters_take_two_cells_and_marks_none(fonts: Fonts) -> None:
    canvas = Canvas(10, 1, fonts, 20, "#101010", "#f0f0f0")
    assert canvas.write(0, 0, "日a\u0301b", None) == 4


def test_the_signs_of_the_dashboard_are_in_the_font(fonts: Fonts) -> None:
    missing = [char for char in "●▶↻✖‖○◷│┆█▪╳▒░▓▲·…→╭╮╰╯─" if not fonts.regular.glyph(char)]
    assert len(missing) <= 3, missing
