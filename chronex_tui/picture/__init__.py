"""A frame as a PNG, with nothing but a monospaced TrueType font of the system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chronex_tui.picture.canvas import Canvas
from chronex_tui.picture.fonts import find_fonts

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

PIXELS = 20  # the height of the letters


def save_png(app: ChronexApp, file: Path) -> None:
    """What is on the screen, cell by cell. Where no font is found, FontError says what to do."""
    from chronex_tui.launch import frame_lines

    width, height = app.size
    theme = app.get_theme_variable_defaults() | app.theme_variables
    ground, ink = (theme.get(name, "") for name in ("background", "foreground"))
    if not ground.startswith("#"):
        ground, ink = "#10141a", "#d3dae3"  # the terminal's own, which a picture does not have
    canvas = Canvas(width, height, find_fonts(), PIXELS, ground, ink)
    for row, line in enumerate(frame_lines(app)):
        column = 0
        for segment in line:
            column = canvas.write(row, column, segment.text, segment.style)
    file.write_bytes(canvas.png())
