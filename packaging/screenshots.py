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
from msgspec.structs import replace

from chronex.cli.explain_text import explain_lines
from chronex.model.groups import Group
from chronex.model.job import Task
from chronex.model.occurrence import Attempt, Occurrence, Run
from chronex.model.reasons import Reason, ReasonCode
from chronex.model.records import Record
from chronex.model.states import OccurrenceState, RunState
from chronex.storage.ports import Transaction
from chronex.storage.records import Records
from chronex_store import LmdbStore
from chronex_tui.app import StartOptions
from chronex_tui.data import StoreAt
from chronex_tui.launch import Picture, take_picture
from chronex_tui.model.display import UNICODE
from tests.tui.examples import HOME, HOUR, NOW, FixedClock, job, make_store, node

DIRECTORY = Path(__file__).parent.parent / "screenshots"
FONT = "DejaVu Sans Mono"
CLIP = re.compile(r' clip-path="[^"]*"')


class Shot(NamedTuple):
    """A screen, how large it is, and the keys that are pressed before it is taken."""

    options: StartOptions
    size: tuple[int, int]
    keys: tuple[str, ...] = ()
    has_company: bool = False  # a store with another node, a graph of tasks and groups


SHOTS = {
    "jobs": Shot(StartOptions(job="backup-db"), (120, 40)),
    "jobs-wide": Shot(StartOptions(job="backup-db"), (200, 60)),
    "jobs-small-light": Shot(StartOptions(job="backup-db", theme="light"), (80, 24)),
    "runs": Shot(StartOptions(screen="runs"), (120, 40), ("j", "j")),
    "timeline": Shot(StartOptions(screen="timeline"), (120, 30), ("minus",)),
    "clock": Shot(StartOptions(screen="clock"), (120, 40), ("right_square_bracket",)),
    "density": Shot(StartOptions(screen="density", theme="colorblind"), (120, 30), ("down",)),
    "nodes": Shot(StartOptions(screen="nodes"), (120, 30), has_company=True),
    "graph": Shot(StartOptions(screen="graph", job="release"), (120, 30), has_company=True),
    "groups": Shot(StartOptions(screen="groups"), (120, 30), has_company=True),
    "log": Shot(StartOptions(job="backup-db"), (100, 24), ("l",)),
    "explain": Shot(StartOptions(job="backup-db"), (120, 40), ("x",)),
    "trigger": Shot(StartOptions(job="vacuum"), (120, 40), ("t",)),
    "try": Shot(StartOptions(), (120, 34), ("n", *"TZ=America/New_York 30 1 * * SUN")),
}


def _release() -> list[Record]:
    """A job whose tasks need each other, in the middle of a run; it holds the one place of a group."""
    needs = {"fetch": (), "unit": ("fetch",), "lint": ("fetch",), "build": ("unit", "lint"), "publish": ("build",)}
    spent = {"fetch": 4_000, "unit": 31_000, "lint": 9_000}
    tasks = tuple(Task(name=name, run=f"make {name}", needs=before) for name, before in needs.items())
    at = NOW - 50_000
    runs: list[Record] = []
    for name, before in needs.items():
        start = at + sum(spent.get(one, 0) for one in before) + 100
        ran = spent.get(name)
        state = RunState.SUCCESS if ran else RunState.RUNNING if name == "build" else RunState.SCHEDULED
        began = None if state is RunState.SCHEDULED else start
        end = None if ran is None else start + ran
        runs.append(Run(job="release", nominal_ms=at, task=name, state=state, started_ms=began, finished_ms=end))
        if state is RunState.RUNNING:
            runs.append(_begun("release", at, name, start))
    running = Occurrence(
        job="release", nominal_ms=at, due_ms=at, started_ms=at, state=OccurrenceState.RUNNING, groups={"database": 1},
        owner="node-1",
    )  # fmt: skip
    return [job("release", "0 15 * * FRI", tasks=tasks, groups={"database": 1}), running, *runs]


def _begun(name: str, nominal_ms: int, task: str, at_ms: int) -> Attempt:
    """Its first attempt, which the node of this machine has begun."""
    return Attempt(
        job=name, nominal_ms=nominal_ms, task=task, number=1, owner="node-1", created_ms=at_ms, started_ms=at_ms
    )


def _company(store: Path) -> None:
    """A group with one who holds it and one who waits, a second one with a rate, and another node."""
    queued = Occurrence(
        job="reindex", nominal_ms=NOW - 20_000, due_ms=NOW - 20_000, order_ms=NOW - 20_000,
        state=OccurrenceState.QUEUED, lines=("database",), reason=Reason(ReasonCode.GROUP_FULL, "database"),
    )  # fmt: skip
    records: list[Record] = [
        Group(name="database", limit=1),
        Group(name="mail", limit=4),
        job("reindex", "*/20 * * * *", groups={"database": 1}),
        replace(node(), id="node-2", name="reports", started_ms=NOW - 2 * HOUR, draining=True),
        *_release(),
        _begun("etl-orders", NOW - 42_000, "main", NOW - 42_000),
        queued,
    ]

    def write(tx: Transaction) -> None:
        for record in records:
            Records(tx, NOW).put(record)

    with LmdbStore.open(store, create=False) as opened:
        opened.update(write)


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
            path = make_store(Path(directory, name))
            if shot.has_company:
                _company(path)
            store = StoreAt(path)
            file = Path(directory, f"{name}.svg")
            picture = Picture(shot.size, file)
            take_picture(
                store, HOME, shot.options, UNICODE, picture, explain=explain_lines, clock=FixedClock(), keys=shot.keys
            )
            (DIRECTORY / f"{name}.png").write_bytes(render(file.read_text("utf-8")))
            print(f"wrote screenshots/{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
