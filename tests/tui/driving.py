"""The dashboard without a terminal, driven by keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

from chronex.clock import Clock
from chronex.storage.ports import Store
from chronex_tui.app import ChronexApp, StartOptions
from chronex_tui.data import StoreAt, StoreSource
from chronex_tui.launch import frame_text, wait_until_idle
from chronex_tui.model.display import ASCII, UNICODE
from tests.kit.waits import until_async
from tests.tui.examples import HOME, FixedClock

_OPENING = ("1", "2", "3", "4", "5", "6", "7", "l", "enter")
SIZES = ((80, 24), (120, 40), (200, 60))


def app_on(
    place: Path | StoreSource,
    options: StartOptions | None = None,
    *,
    clock: Clock | None = None,
    is_ascii: bool = False,
) -> ChronexApp:
    from chronex.cli.explain_text import explain_lines

    source = StoreAt(place) if isinstance(place, Path) else place
    glyphs = ASCII if is_ascii else UNICODE
    return ChronexApp(source, clock or FixedClock(), HOME, glyphs, options or StartOptions(), explain_lines)


class SharedStore:
    """A store that another part of this process has opened and will close."""

    def __init__(self, store: Store, path: Path) -> None:
        self._store, self.path, self.shown = store, path, str(path)

    def is_missing(self) -> bool:
        return not self.path.exists()

    def open(self) -> Store:
        return self._store

    def release(self, store: Store) -> None:
        """The store stays open: its owner closes it."""


class Driver:
    """Presses keys and reads the frame."""

    def __init__(self, app: ChronexApp, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    async def press(self, *keys: str) -> str:
        """The frame after the last key; screens that open have settled before the next key is pressed."""
        for number, key in enumerate(keys, 1):
            await self.pilot.press(key)
            if key in _OPENING or number == len(keys):
                await wait_until_idle(self.app)
        return self.frame()

    def frame(self) -> str:
        return frame_text(self.app)

    async def until(self, condition: Callable[[str], object]) -> str:
        """The frame for which it holds, once there is one."""

        async def frame_if_so() -> str:
            await self.pilot.pause()
            frame = self.frame()
            return frame if condition(frame) else ""

        return await until_async(frame_if_so, lambda: f"this frame to change:\n{self.frame()}")


@asynccontextmanager
async def driven(app: ChronexApp, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Driver]:
    async with app.run_test(size=size) as pilot:
        await wait_until_idle(app)
        yield Driver(app, pilot)
