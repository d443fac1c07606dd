"""Chronex: cron you can see, explain and trust. The names below are a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chronex.version import __version__

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from chronex.decision import DECISION_VERSION, DecisionRequest, DecisionResult, decide
    from chronex.declarative import Scheduler
    from chronex.errors import ChronexError, DecisionError, ExpressionError, UnknownZoneError
    from chronex.expr.diagnostics import Diagnostic, ValidationResult
    from chronex.timing import Expression

__all__ = [
    "DECISION_VERSION",
    "ChronexError",
    "DecisionError",
    "DecisionRequest",
    "DecisionResult",
    "Diagnostic",
    "Expression",
    "ExpressionError",
    "Scheduler",
    "UnknownZoneError",
    "ValidationResult",
    "__version__",
    "decide",
    "parse",
    "validate",
]


def parse(
    text: str, dialect: str = "chronex", tz: str | tzinfo | None = None, reference: datetime | None = None
) -> Expression:
    """Read an expression; raises ExpressionError, whose `.diagnostics` has every error.

    `tz` is the zone for expressions without `TZ=` (UTC when absent). `reference` is what a relative
    `@once +20m` counts from; without one it is now.
    """
    from chronex import timing

    expression = timing.parse(text, dialect, tz, None if reference is None else _reference_ms(reference))
    if not expression.meaning.is_relative:
        return expression
    from chronex.clock import wall_ms

    return timing.Expression(expression.meaning.resolved(wall_ms()), tz)


def validate(
    text: str, dialect: str = "chronex", tz: str | tzinfo | None = None, reference: datetime | None = None
) -> ValidationResult:
    """Every error and warning of a text. Warnings that depend on the date need a `reference`."""
    from chronex import timing

    return timing.validate(text, dialect, tz, None if reference is None else _reference_ms(reference))


def _reference_ms(reference: datetime) -> int:
    from chronex.text import instants

    return instants.epoch_ms(reference)


_HOMES = {
    "chronex.decision": ("DECISION_VERSION", "DecisionRequest", "DecisionResult", "decide"),
    "chronex.declarative": ("Scheduler",),
    "chronex.errors": ("ChronexError", "DecisionError", "ExpressionError", "UnknownZoneError"),
    "chronex.expr.diagnostics": ("Diagnostic", "ValidationResult"),
    "chronex.timing": ("Expression",),
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `chronex --help` should not wait for the calendar."""
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module 'chronex' has no attribute {name!r}")
