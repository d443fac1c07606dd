"""Chronex: cron you can see, explain and trust. The names below are a promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chronex.version import __version__

if TYPE_CHECKING:
    from datetime import datetime, tzinfo

    from chronex.daemon.embedded import EmbeddedEngine as Engine
    from chronex.daemon.event_feed import EngineEvent
    from chronex.decision import DECISION_VERSION, DecisionRequest, DecisionResult, decide
    from chronex.declarative import Scheduler
    from chronex.errors import ChronexError, DecisionError, ExpressionError, UnknownZoneError
    from chronex.expr.diagnostics import Diagnostic, ValidationResult
    from chronex.jobfile.program_jobs import InvalidJobError
    from chronex.jobfile.trigger_definition import TriggerDefinition
    from chronex.model.job import Call, Job, Task
    from chronex.run.callables import TaskContext
    from chronex.timing import Expression

__all__ = [
    "DECISION_VERSION",
    "Call",
    "ChronexError",
    "DecisionError",
    "DecisionRequest",
    "DecisionResult",
    "Diagnostic",
    "Engine",
    "EngineEvent",
    "Expression",
    "ExpressionError",
    "InvalidJobError",
    "Job",
    "Scheduler",
    "Task",
    "TaskContext",
    "TriggerDefinition",
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
    "chronex.daemon.event_feed": ("EngineEvent",),
    "chronex.decision": ("DECISION_VERSION", "DecisionRequest", "DecisionResult", "decide"),
    "chronex.declarative": ("Scheduler",),
    "chronex.errors": ("ChronexError", "DecisionError", "ExpressionError", "UnknownZoneError"),
    "chronex.expr.diagnostics": ("Diagnostic", "ValidationResult"),
    "chronex.jobfile.program_jobs": ("InvalidJobError",),
    "chronex.jobfile.trigger_definition": ("TriggerDefinition",),
    "chronex.model.job": ("Call", "Job", "Task"),
    "chronex.run.callables": ("TaskContext",),
    "chronex.timing": ("Expression",),
}
# The engine of the decisions has the short name inside; the one that programs use has it here.
_ENGINE = ("chronex.daemon.embedded", "EmbeddedEngine")


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `chronex --help` should not wait for the calendar."""
    from importlib import import_module

    if name == "Engine":
        home, name = _ENGINE
        return getattr(import_module(home), name)
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'chronex' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is promised, for who looks around in a shell: most of it is not loaded yet."""
    return sorted(__all__)
