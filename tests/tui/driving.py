"""The dashboard without a terminal, driven by keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from chronex.clock import Clock
from chronex_tui.app import ChronexApp, Wishes
from chronex_tui.launch import frame_text, settle
from chronex_tui.live import Source, StoreAt
from chronex_tui.model.glyphs import ASCII, UNICODE
from tests.tui.world import HOME, FixedClock

_OPENING = ("1", "2", "3", "4", "5", "l", "enter")
SIZES = ((80, 24), (120, 40), (200, 60))


def app_on(
    place: Path | Source, wishes: Wishes | None = None, *, clock: Clock | None = None, is_ascii: bool = False
) -> ChronexApp:
    from chronex.cli.dashboard import explain_lines

    source = StoreAt(place) if isinstance(place, Path) else place
    glyphs = ASCII if is_ascii else UNICODE
    return ChronexApp(source, clock or FixedClock(), HOME, glyphs, wishes or Wishes(), explain_lines)


class Driver:
    """Presses keys and reads the frame."""

    def __init__(self, app: ChronexApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> str:
        """The frame after the last key; screens that open have settled before the next key is pressed."""
        for number, key in enumerate(keys, 1):
            await self.pilot.press(key)
            if key in _OPENING or number == len(keys):
                await settle(self.app)
        return self.frame()

    def frame(self) -> str:
        return frame_text(self.app)

    async def until(self, condition: Callable[[str], bool], seconds: float = 15.0) -> str:
        """Wait for the screen to say so."""
        for _ in range(int(seconds / 0.05)):
            await self.pilot.pause()
            if condition(self.frame()):
                return self.frame()
            await asyncio.sleep(0.05)
        raise AssertionError(f"waited too long for this frame to change:\n{self.frame()}")


@asynccontextmanager
async def driven(app: ChronexApp, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Driver]:
    async with app.run_test(size=size) as pilot:
        await settle(app)
        yield Driver(app, pilot)
