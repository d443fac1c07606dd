"""The figures of the last recorded run, and the documents that show them.

`python -m benchmarks --record` replaces the topics that it measured in figures.json, and writes docs/figures.md and
the table of the README anew; a test holds that all three agree.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.measure import Row

ROOT = Path(__file__).parent.parent
FIGURES, PAGE, README = ROOT / "benchmarks" / "figures.json", ROOT / "docs" / "figures.md", ROOT / "README.md"
BEGIN, END = "<!-- figures: written by make figures -->", "<!-- end of figures -->"
# What the README shows: its words, the row, and how many digits.
SHOWN = (
    ("single `next` in New York, beside cronsim", "next, America/New_York: cronsim"),
    ("single `next` in New York, beside croniter", "next, America/New_York: croniter"),
    ("`upcoming` in New York, beside croniter", "upcoming, America/New_York: croniter"),
    ("`chronex explain` starts, beside `import typer`", "chronex explain"),
    ("10,000 due at once, beside APScheduler 3 on SQLite", "10,000 due at once: APScheduler 3 on SQLite"),
    ("1,000 commands on one instant: the last start, beside bare posix_spawn", "1,000 due, argv: last start"),
    ("daemon ready with 10,000 jobs and 100,000 past runs", "10,000 jobs, 100,000 past runs: ready"),
    ("memory with 100,000 jobs", "100,000 jobs: memory"),
    ("first paint of the dashboard", "first paint"),
    ("files linted in a minute", "files a minute"),
)


def record(rows: Iterable[Row]) -> None:
    fresh = [row.to_dict() for row in rows]
    topics = {row["topic"] for row in fresh}
    kept = [row for row in load()["rows"] if row["topic"] not in topics] if FIGURES.exists() else []
    figures = {"python": platform.python_version(), "rows": kept + fresh}
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    PAGE.write_text(page(figures))
    README.write_text(with_table(README.read_text(), figures))


def load() -> dict[str, Any]:
    figures: dict[str, Any] = json.loads(FIGURES.read_text())
    return figures


def page(figures: dict[str, Any]) -> str:
    return "\n".join(_page(figures)) + "\n"


def _page(figures: dict[str, Any]) -> Iterator[str]:
    yield from ("# Figures", "")
    yield f"The last recorded `make bench`, on two cores with Python {figures['python']}. A ratio (×) is taken beside"
    yield "its peer in the same run; absolute figures move with the machine, and by 40 % between runs of one."
    topic = ""
    for row in figures["rows"]:
        if row["topic"] != topic:
            topic = row["topic"]
            yield from ("", f"## {topic}", "", "| what | measured | target | |", "|---|---|---|---|")
        found = Row(**{name: value for name, value in row.items() if name != "holds"})
        yield f"| {found.what} | {shown(found)} | {found.target} | {found.verdict} |"


def shown(row: Row) -> str:
    text = f"{row.value:.3g}" if row.value < 1000 else f"{row.value:,.0f}"
    return f"{text}{row.unit}".strip()


def with_table(readme: str, figures: dict[str, Any]) -> str:
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(figures)}\n{END}{after}"


def table(figures: dict[str, Any]) -> str:
    rows = {row["what"]: Row(**{k: v for k, v in row.items() if k != "holds"}) for row in figures["rows"]}
    lines = ["| | measured | target |", "|---|---|---|"]
    lines += [f"| {words} | {shown(rows[what])} | {rows[what].target} |" for words, what in SHOWN if what in rows]
    return "\n".join(lines)
