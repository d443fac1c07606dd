"""What is wrong with an expression, where, and what to write instead."""

from __future__ import annotations

from typing import Any, NamedTuple

ERROR = "error"
WARNING = "warning"
_MOST_GUESSES = 50


class Diagnostic(NamedTuple):
    """One finding. `start` and `end` are 0-based offsets in the given text; `fix` replaces that span."""

    code: str
    field: str
    message: str
    value: str
    start: int
    end: int
    fix: str | None = None
    severity: str = ERROR

    @property
    def is_error(self) -> bool:
        return self.severity == ERROR

    @property
    def position(self) -> int:
        return self.start

    def __str__(self) -> str:
        return self.message if self.field == "expression" else f"{self.field}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        names = ("code", "severity", "field", "message", "value", "start", "end", "fix")
        return {name: getattr(self, name) for name in names}


class ValidationResult(NamedTuple):
    """The verdict on one expression: valid when there are no errors; warnings never block."""

    errors: tuple[Diagnostic, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def is_valid(self) -> bool:
        return not self.errors

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(sorted((*self.errors, *self.warnings), key=lambda d: (d.start, d.end, d.code)))

    def to_list(self) -> list[dict[str, Any]]:
        return [diagnostic.to_dict() for diagnostic in self.diagnostics]


class Report:
    """Collects diagnostics while a text is read."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def error(self, code: str, where: str, message: str, value: str, start: int, *, fix: str | None = None) -> None:
        self.found.append(Diagnostic(code, where, message, value, start, start + len(value), fix))

    def warning(self, code: str, where: str, message: str, value: str, start: int, *, fix: str | None = None) -> None:
        self.found.append(Diagnostic(code, where, message, value, start, start + len(value), fix, WARNING))

    @property
    def may_guess(self) -> bool:
        """Guessing what was meant is slow, and after so many faults nobody made a slip of the pen."""
        return len(self.found) < _MOST_GUESSES

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.found if d.is_error)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.found if not d.is_error)
