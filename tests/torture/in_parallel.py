"""Several cases in one test: a daemon that is about to be killed mostly waits for its second, and so does the next.

What is random is drawn from `CHRONEX_SEED` (0 unless set) and the case's own name, so that another campaign is one
variable away, and a case that failed can be repeated alone.
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


def run_in_parallel(
    directory: Path, cases: Iterable[tuple[str, Callable[[Machine], None]]], together: int = AT_ONCE
) -> None:
    """Each case on a machine of its own; all run to their end, and then every failure is listed by name."""

    def run(number: int, case: Callable[[Machine], None]) -> None:
        place = directory / str(number)
        place.mkdir()
        with watched(place) as machine:
            case(machine)

    with ThreadPoolExecutor(together) as pool:
        results = [(name, pool.submit(run, number, case)) for number, (name, case) in enumerate(cases)]
    failures = [f"seed {SEED}, {name}: {error!r}" for name, result in results if (error := result.exception())]
    assert not failures, "\n".join(failures)
