"""`make screenshots`: the PNG files of the README, from a fixed store and clock.

Chronex itself writes SVG; resvg renders it here. Names that are given are the only ones taken: `screenshots.py jobs`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import resvg_py

from chronex.cli.explain_text import explain_lines
from chronex_tui.app import StartOptions
from chronex_tui.data import StoreAt
from chronex_tui.launch import Picture, take_picture
from chronex_tui.model.display import UNICODE
from tests.tui.examples import HOME, FixedClock, make_store

DIRECTORY = Path(__file__).parent.parent / "screenshots"
FONT = "DejaVu Sans Mono"
CLIP = re.compile(r' clip-path="[^"]*"')


class Shot(NamedTuple):
    """A screen, how large it is, and the keys that are pressed before it is taken."""

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


def render(svg: str) -> bytes:
    """The SVG as a PNG in which the lines of frames meet.

    Rich sizes its rows for Fira Code and clips each to itself. The box drawing of DejaVu fills a row at 21 px, with
    its top in the row above. The title asks for Arial, which a machine may not have.
    """
    svg = CLIP.sub("", svg).replace("font-size: 20px", "font-size: 21px").replace("arial", "monospace")
    return resvg_py.svg_to_bytes(svg_string=svg, monospace_family=FONT)


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for name in names or SHOTS:
            shot = SHOTS[name]
            store = StoreAt(make_store(Path(directory, name)))
            file = Path(directory, f"{name}.svg")
            picture = Picture(shot.size, file)
            take_picture(
                store, HOME, shot.options, UNICODE, picture, explain=explain_lines, clock=FixedClock(), keys=shot.keys
            )
            (DIRECTORY / f"{name}.png").write_bytes(render(file.read_text("utf-8")))
            print(f"wrote screenshots/{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
