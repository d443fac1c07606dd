"""The transition table as diagrams, for the pages that show it."""

from __future__ import annotations

from chronex.model.states import TRANSITIONS, AttemptState, OccurrenceState, RunState, State, is_final

Kind = type[OccurrenceState] | type[RunState] | type[AttemptState]
# The first state of each kind is where a record begins.
KINDS: dict[str, Kind] = {"occurrence": OccurrenceState, "run": RunState, "attempt": AttemptState}


def state_diagram(kind: Kind) -> str:
    """Mermaid's words for every transition of one kind, in the order of the states."""
    states: list[State] = list(kind)
    lines = ["stateDiagram-v2", f"    [*] --> {states[0]}"]
    for source in states:
        for row in TRANSITIONS:
            if isinstance(row.destination, kind) and source in row.sources:
                lines.append(f"    {source} --> {row.destination}: {row.name}")
    lines += [f"    {state} --> [*]" for state in states if is_final(state)]
    return "\n".join(lines)
