"""The state diagrams of specs/engine.md are drawn from the transition table. CHRONEX_UPDATE_SPECS=1 draws them anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from chronex.model.states import TRANSITIONS, AttemptState, OccurrenceState, RunState, State, is_final

PAGE = Path(__file__).parents[2] / "specs" / "engine.md"
BETWEEN = re.compile(r"(<!-- states: generated -->\n).*?(<!-- states: end -->)", re.DOTALL)


def diagram(kind: type[State]) -> str:
    states: list[State] = list(kind)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {states[0]}"]
    for row in TRANSITIONS:
        lines += [
            f"    {source} --> {row.destination}: {row.name}"
            for source in states
            if isinstance(row.destination, kind) and source in row.sources
        ]
    lines += [f"    {state} --> [*]" for state in states if is_final(state)]
    return "\n".join([*lines, "```"])


def test_the_page_shows_the_table() -> None:
    drawn = "\n\n".join(
        f"{word}\n\n{diagram(kind)}"
        for word, kind in (("An occurrence:", OccurrenceState), ("A run:", RunState), ("An attempt:", AttemptState))
    )
    fresh = BETWEEN.sub(lambda match: f"{match[1]}\n{drawn}\n\n{match[2]}", PAGE.read_text())
    if os.environ.get("CHRONEX_UPDATE_SPECS"):
        PAGE.write_text(fresh)
    assert PAGE.read_text() == fresh
    assert "pending --> running: start" in fresh
