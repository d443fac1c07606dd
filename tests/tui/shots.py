"""`make screenshots`: the pictures of the README, from a fixed store and clock."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from chronex.cli.dashboard import explain_lines
from chronex_tui.app import StartOptions
from chronex_tui.data import StoreAt
from chronex_tui.launch import Picture, take_picture
from chronex_tui.model.display import UNICODE
from tests.tui.world import HOME, FixedClock, make_store

PLACE = Path(__file__).parent.parent.parent / "screenshots"


class Shot(NamedTuple):
    options: StartOptions
    size: tuple[int, int]
    keys: tuple[str, ...] = ()


SHOTS = {
    "jobs": Shot(StartOptions(job="backup-db"), (120, 40)),
    "jobs-wide": Shot(StartOptions(job="backup-db"), (200, 60)),
    "jobs-small-light": Shot(StartOptions(job="backup-db", theme="light"), (80, 24)),
    "runs": Shot(StartOptions(screen="runs"), (120, 40), ("j", "j")),
    "timeline": Shot(StartOptions(screen="timeline"), (120, 30), ("minus",)),
    "clock": Shot(StartOptions(screen="clock"), (120, 40), ("right_square_bracket",)),
    "density": Shot(StartOptions(screen="density", theme="colorblind"), (120, 30), ("down",)),
    "log": Shot(StartOptions(job="backup-db"), (100, 24), ("l",)),
    "explain": Shot(StartOptions(job="backup-db"), (120, 40), ("x",)),
    "trigger": Shot(StartOptions(job="vacuum"), (120, 40), ("t",)),
    "try": Shot(StartOptions(), (120, 34), ("n", *"TZ=America/New_York 30 1 * * SUN")),
}


def main(names: list[str]) -> None:
    PLACE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        for name, shot in SHOTS.items():
            if names and name not in names:
                continue
            store = StoreAt(make_store(Path(directory, name)))
            picture = Picture(shot.size, PLACE / f"{name}.png")
            take_picture(store, HOME, shot.options, UNICODE, picture, explain=explain_lines, clock=FixedClock(),
                         keys=shot.keys)  # fmt: skip
            print(f"wrote screenshots/{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
