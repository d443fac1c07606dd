"""What moved an occurrence from its nominal time: spread, stagger and jitter, each by how much."""

from __future__ import annotations

from chronex.engine.why.answer import Link, Source, stamp
from chronex.expr.durations import format_duration
from chronex.model.records import Job, Occurrence
from chronex.timing.zones import Zone


def shift_text(ms: int) -> str:
    """+12m or -3s."""
    return f"{'-' if ms < 0 else '+'}{format_duration(abs(ms))}"


def placement_links(version: Job, occurrence: Occurrence, zone: Zone) -> list[Link]:
    decision, links = occurrence.decision, []
    if decision is not None and decision.window_start_ms is not None and decision.window_end_ms is not None:
        window = f"{stamp(decision.window_start_ms, zone)} to {stamp(decision.window_end_ms, zone)}"
        if decision.chosen_ms is None:
            links.append(_moved(f"spread found no start in {window} ({decision.attempts} tries): {decision.reason}"))
        else:
            shift = shift_text(decision.chosen_ms - occurrence.nominal_ms)
            links.append(_moved(f"spread chose {stamp(decision.chosen_ms, zone)} in {window} ({shift})"))
    if decision is not None and decision.stagger_ms:
        links.append(_moved(f"stagger moved it by {shift_text(decision.stagger_ms)}, always the same for this job"))
    if occurrence.jitter_ms:
        links.append(_moved(f"jitter moved it by {shift_text(occurrence.jitter_ms)}, drawn once and kept"))
    if links and occurrence.due_ms != occurrence.nominal_ms:
        links.append(_moved(f"so it was due at {stamp(occurrence.due_ms, zone)}"))
    return links


def _moved(fact: str) -> Link:
    return Link(fact, None, Source.RECORD)
