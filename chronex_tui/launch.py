"""Starts the dashboard: a session at a terminal, or one frame without a terminal."""

from __future__ import annotations

import asyncio
import locale
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import ChronexError

if TYPE_CHECKING:
    from rich.segment import Segment

    from chronex.timing.zones import Zone
    from chronex_tui.app import ChronexApp, Explain, RunningEngine, StartOptions
    from chronex_tui.data import StoreSource
    from chronex_tui.model.display import Glyphs

# A frame is taken when nothing has arrived for a while, and at the latest after this long.
_QUIET_S = 0.1
_MOST_S = 30.0
_HANDLED_WITHIN_S = 2.0


class NoTerminalError(ChronexError):
    """The dashboard needs a terminal; `chronex status` and `chronex tui --print` do not."""


class DashboardFailedError(ChronexError):
    """A defect of the dashboard has ended it. Nothing but the view is affected."""

    exit_code = 1

    def __init__(self, cause: Exception) -> None:
        what = f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
        super().__init__(f"the dashboard failed ({what}); no job is affected; CHRONEX_DEBUG=1 shows where")


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame instead of a session: as text on standard output, or as an SVG file."""

    size: tuple[int, int]
    file: Path | None = None


def run_dashboard(
    source: StoreSource,
    home: Zone,
    options: StartOptions,
    glyphs: Glyphs,
    *,
    mouse: bool = True,
    explain: Explain | None = None,
    clock: Clock = SYSTEM_CLOCK,
    engine: RunningEngine | None = None,
) -> int:
    """Runs until the user quits, or the engine of the same process has ended."""
    if not options.in_browser and not is_terminal(os.environ):
        raise NoTerminalError
    from chronex_tui.app import ChronexApp

    app = ChronexApp(source, clock, home, glyphs, options, explain, engine)
    app.run(mouse=mouse)
    if app.failure is not None:
        raise DashboardFailedError(app.failure)
    return app.return_code or 0


def take_picture(
    source: StoreSource,
    home: Zone,
    options: StartOptions,
    glyphs: Glyphs,
    picture: Picture,
    *,
    explain: Explain | None = None,
    clock: Clock = SYSTEM_CLOCK,
    keys: tuple[str, ...] = (),
) -> str:
    """One frame without a terminal: its text; and the file, where one is wanted."""
    from chronex_tui.app import ChronexApp

    app = ChronexApp(source, clock, home, glyphs, options, explain)
    return asyncio.run(_picture(app, picture, keys))


async def _picture(app: ChronexApp, picture: Picture, keys: tuple[str, ...]) -> str:
    async with app.run_test(size=picture.size) as pilot:
        await wait_until_idle(app)
        for key in keys:
            await pilot.press(key)
            await wait_until_idle(app)
        await pilot.pause()
        text = frame_text(app)
        if picture.file is not None:
            picture.file.write_text(app.export_screenshot(title="chronex"), encoding="utf-8")
        return text


async def wait_until_idle(app: ChronexApp) -> None:
    """Wait until the reader has answered, its answers are shown, and nothing new has arrived for a moment.

    A slow machine comes to a few messages only between two looks, so that nothing has arrived says little before all
    that wait are handled.
    """
    waited, quiet, seen = 0.0, 0.0, -1
    while waited < _MOST_S and quiet < _QUIET_S:
        await asyncio.sleep(0.02)
        waited += 0.02
        await _until_handled(app)
        is_idle = app.arrivals == seen and app.arrivals > 0 and app.is_idle_now
        quiet = quiet + 0.02 if is_idle else 0.0
        seen = app.arrivals


async def _until_handled(app: ChronexApp) -> None:
    """Until the app is through with the messages that it has now; one that has ended takes none."""
    from textual.events import Callback

    reached = asyncio.Event()
    # Not by `call_later`, which looks at the function's signature each time.
    if app.post_message(Callback(callback=reached.set)):
        with suppress(TimeoutError):
            await asyncio.wait_for(reached.wait(), _HANDLED_WITHIN_S)


def frame_lines(app: ChronexApp) -> list[list[Segment]]:
    """What is on the screen, line by line, with dialogs over the board."""
    from textual._compositor import LayoutUpdate

    # Textual's private parts: it has no public way to the cells of a frame.
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    return [[segment for strip in line for segment in strip] for line in update.strips]


def frame_text(app: ChronexApp) -> str:
    return "\n".join("".join(segment.text for segment in line).rstrip() for line in frame_lines(app))


def is_terminal(environ: Mapping[str, str]) -> bool:
    """Can a full-screen program run here?"""
    return sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "") not in ("", "dumb")


def choose_glyphs(environ: Mapping[str, str], *, ascii_only: bool) -> Glyphs:
    """Signs beyond ASCII need a terminal and a locale that have them; the Linux console has few."""
    from chronex_tui.model.display import ASCII, UNICODE

    # Not the preferred encoding, which Python makes UTF-8 where the locale is C.
    encoding = locale.getencoding().lower().replace("-", "")
    if ascii_only or environ.get("TERM", "").startswith("linux") or encoding != "utf8":
        return ASCII
    return UNICODE


def choose_theme(option: str | None, environ: Mapping[str, str]) -> str:
    """The theme of the option; else none under NO_COLOR, and the terminal's own colours where it has only sixteen."""
    if option:
        return option
    if environ.get("NO_COLOR"):
        return "mono"
    term = environ.get("TERM", "")
    rich_in_colour = environ.get("COLORTERM") in ("truecolor", "24bit") or "256" in term or "direct" in term
    if term and not rich_in_colour and term.startswith(("linux", "vt", "ansi", "xterm", "screen", "rxvt")):
        return "ansi"
    return "dark"
