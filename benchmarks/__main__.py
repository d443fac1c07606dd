"""`python -m benchmarks [topic…] [--json]`: every target with its measured value, from one run."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

from benchmarks import daemon, dashboard, decision, engine, expression, lint, logs, machines, startup, store
from benchmarks import run as attempts
from benchmarks import verify as formal_model
from benchmarks.measure import FULL, TINY, Row, Size, show
from benchmarks.record import record

Topic = tuple[Callable[[Size], Iterator[Row]], Callable[[], list[str]]]
TOPICS: dict[str, Topic] = {
    "expression": (expression.run, expression.notes),
    "startup": (startup.run, startup.notes),
    "decision": (decision.run, decision.notes),
    "lint": (lint.run, lint.notes),
    "run": (attempts.run, attempts.notes),
    "engine": (engine.run, engine.notes),
    "daemon": (daemon.run, daemon.notes),
    "store": (store.run, store.notes),  # after starts: the disk is busy with what it leaves for a while
    "logs": (logs.run, logs.notes),
    "machines": (machines.run, machines.notes),
    "verify": (formal_model.run, formal_model.notes),
    "dashboard": (dashboard.run, dashboard.notes),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when every target holds, 1 otherwise."""
    asked = _arguments(arguments)
    began = perf_counter()
    size = TINY if asked.tiny else FULL
    rows: list[Row] = []
    for name in asked.topics or TOPICS:
        run, notes = TOPICS[name]
        found = list(run(size))
        rows += found
        if not asked.json:
            print("\n".join([name, *(f"  {note}" for note in notes()), "", show(found), ""]))
    if asked.json:
        print(json.dumps({"python": platform.python_version(), "rows": [row.to_dict() for row in rows]}, indent=2))
    if asked.record:
        record(rows)
    missed = [row for row in rows if row.holds is False]
    if not asked.json:
        met = sum(row.holds is True for row in rows)
        print(f"{met} targets met, {len(missed)} missed, in {perf_counter() - began:.0f} s")
    return 1 if missed else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "topics", nargs="*", metavar="topic", help=f"any of {', '.join(TOPICS)}; all when none is named"
    )
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    parser.add_argument(
        "--tiny", action="store_true", help="the smallest run that touches everything; figures mean little"
    )
    parser.add_argument("--record", action="store_true", help="keep the figures for docs/figures.md and the README")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.topics) - set(TOPICS)):
        parser.error(f"unknown topic {', '.join(unknown)}; the topics are {', '.join(TOPICS)}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
