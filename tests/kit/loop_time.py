"""The time of an event loop, moved on by hand: what waits for a timer need not be waited for."""

from __future__ import annotations

import asyncio

import pytest


class LoopTime:
    """Add to `ahead` and every timer of the running loop that falls into that time fires at its next turn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        real, self.ahead = loop.time, 0.0
        monkeypatch.setattr(loop, "time", lambda: real() + self.ahead)
