"""The diagrams of the specification are drawn from the transition table."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.model.diagrams import KINDS, state_diagram

SPEC = Path(__file__).parent.parent.parent / "specs" / "engine.md"


@pytest.mark.parametrize("name", KINDS)
def test_the_specification_shows_the_table_as_it_is(name: str) -> None:
    drawn = f"### {name}\n\n```mermaid\n{state_diagram(KINDS[name])}\n```\n"
    assert drawn in SPEC.read_text(), f"put this into {SPEC.name}:\n\n{drawn}"


def test_every_state_is_reached_and_left_or_final() -> None:
    for name, kind in KINDS.items():
        drawn = state_diagram(kind)
        for state in kind:
            assert f"--> {state}" in drawn, f"nothing leads to {state} of {name}"
            assert f"    {state} -->" in drawn, f"nothing leads out of {state} of {name}"
