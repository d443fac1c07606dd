"""Advice on a valid expression: what will happen that its writer may not expect."""

from __future__ import annotations

from chronex.expr.diagnostics import Diagnostic
from chronex.expr.parser import Parsed
from chronex.timing.zones import Zone


def advise(parsed: Parsed, zone: Zone, reference_ms: int | None) -> tuple[Diagnostic, ...]:
    """Warnings in the order of the text."""
    return ()
