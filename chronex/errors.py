"""Every error that Chronex raises on purpose.

    ChronexError
    ├── ExpressionError        the text of a schedule is wrong; carries every diagnostic
    └── UnknownZoneError       a time zone that the zone data does not know

The first line of a class's docstring is its message to the user when none is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chronex.expr.diagnostics import Diagnostic


class ChronexError(Exception):
    """Something went wrong in Chronex."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])


class ExpressionError(ChronexError, ValueError):
    """The expression is not valid; run `chronex lint` on it to see every mistake."""

    def __init__(self, text: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.text = text
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(str(d) for d in self.diagnostics if d.is_error))


class UnknownZoneError(ChronexError, LookupError):
    """The time zone is unknown; use an IANA name such as Europe/Berlin or UTC."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"unknown time zone {name!r}; use an IANA name such as Europe/Berlin or UTC")
