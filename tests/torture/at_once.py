"""Several scenes in one test: a daemon that is about to be killed mostly waits for its second, and so does the next.

What is random is drawn from `CHRONEX_SEED` (0 unless set) and the scene's own name, so that another campaign is one
variable away, and a scene that failed can be lived again alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from tests.daemon.conftest import watched
from tests.daemon.machine import Machine

SEED = os.environ.get("CHRONEX_SEED", "0")
AT_ONCE = 4


def drawn_for(name: str) -> Random:
    return Random(f"{SEED} {name}")


def live_at_once(
    directory: Path, scenes: Iterable[tuple[str, Callable[[Machine], None]]], together: int = AT_ONCE
) -> None:
    """Each scene on a machine of its own; all are lived to their end, and then every failure is told by name."""

    def live(number: int, live_one: Callable[[Machine], None]) -> None:
        place = directory / str(number)
        place.mkdir()
        with watched(place) as machine:
            live_one(machine)

    with ThreadPoolExecutor(together) as pool:
        lives = [(name, pool.submit(live, number, scene)) for number, (name, scene) in enumerate(scenes)]
    failures = [f"seed {SEED}, {name}: {error!r}" for name, life in lives if (error := life.exception())]
    assert not failures, "\n".join(failures)
