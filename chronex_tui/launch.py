"""From the command line to the screen: a session at a terminal, or one picture without any."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import ChronexError
from chronex.timing.zones import Zone
from chronex_tui.model.glyphs import Glyphs
from chronex_tui.terminal import is_terminal

if TYPE_CHECKING:
    from rich.segment import Segment

    from chronex_tui.app import ChronexApp, Engine, Explain, Wishes
    from chronex_tui.live import Source

# A picture is taken when nothing has arrived for a while, and at the latest after this long.
_SETTLED_S, _MOST_S = 0.1, 8.0


class NoTerminalError(ChronexError):
    """The dashboard needs a terminal; `chronex status` and `chronex tui --print` do not."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame instead of a session: as text on standard output, or as an SVG file."""

    size: tuple[int, int]
    file: Path | None = None


def run_dashboard(
    source: Source,
    home: Zone,
    wishes: Wishes,
    glyphs: Glyphs,
    *,
    mouse: bool = True,
    explain: Explain | None = None,
    clock: Clock = SYSTEM_CLOCK,
    engine: Engine | None = None,
) -> int:
    """Until the user quits, or the engine beside it has died."""
    if not is_terminal(os.environ):
        raise NoTerminalError
    from chronex_tui.app import ChronexApp

    app = ChronexApp(source, clock, home, glyphs, wishes, explain, engine)
    app.run(mouse=mouse)
    return app.return_code or 0


def take_picture(
    source: Source,
    home: Zone,
    wishes: Wishes,
    glyphs: Glyphs,
    picture: Picture,
    *,
    explain: Explain | None = None,
    clock: Clock = SYSTEM_CLOCK,
    keys: tuple[str, ...] = (),
) -> str:
    """One frame without a terminal: its text; and the file, where one is wanted."""
    from chronex_tui.app import ChronexApp

    app = ChronexApp(source, clock, home, glyphs, wishes, explain)
    return asyncio.run(_picture(app, picture, keys))


async def _picture(app: ChronexApp, picture: Picture, keys: tuple[str, ...]) -> str:
    async with app.run_test(size=picture.size) as pilot:
        await settle(app)
        for key in keys:
            await pilot.press(key)
            await settle(app)
        await pilot.pause()
        text = frame_text(app)
        if picture.file is not None:
            picture.file.write_text(app.export_screenshot(title="chronex"), encoding="utf-8")
        return text


async def settle(app: ChronexApp) -> None:
    """Until the reader has answered and nothing new has come for a moment."""
    waited, quiet, seen = 0.0, 0.0, -1
    while waited < _MOST_S and quiet < _SETTLED_S:
        await asyncio.sleep(0.02)
        waited += 0.02
        is_idle = app.arrivals == seen and app.arrivals > 0 and app.live.is_idle
        quiet = quiet + 0.02 if is_idle else 0.0
        seen = app.arrivals


def frame_lines(app: ChronexApp) -> list[list[Segment]]:
    """What is on the screen, line by line, dialogs over what lies below them."""
    from textual._compositor import LayoutUpdate

    # The one place that reaches into Textual: it has no public way to the cells of a frame.
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    return [[segment for strip in line for segment in strip] for line in update.strips]


def frame_text(app: ChronexApp) -> str:
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in frame_lines(app))
