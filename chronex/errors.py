"""Every error that Chronex raises on purpose.

    ChronexError
    ├── ExpressionError        the text of a schedule is wrong; carries every diagnostic
    ├── UnknownZoneError       a time zone that the zone data does not know
    └── DecisionError          a request to the decision core is wrong; names the field
        ├── IdentityError               empty, or not UTF-8 text
        ├── NominalTimeError            no zone, or outside years 1 to 9999
        ├── DecisionTimezoneError       a time zone that the zone data does not know
        ├── WindowModeError             none of after, around (center), before
        ├── WindowDurationError         negative, no duration, or reaching outside years 1 to 9999
        ├── DistributionError           an unknown distribution
        ├── DistributionParameterError  an unknown parameter, or a bad value of a known one
        ├── SeedStrategyError           none of stable, daily, weekly
        ├── SaltError                   not UTF-8 text
        └── ConstraintError             a clause of only or avoid; carries its position in the text

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


class DecisionError(ChronexError, ValueError):
    """The request to the decision core is not valid."""

    field = "request"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        value: object = None,
        suggestion: str | None = None,
    ) -> None:
        self.field = field or type(self).field
        self.value = value
        self.suggestion = suggestion
        advice = f"; did you mean {suggestion}?" if suggestion else ""
        reason = message or (type(self).__doc__ or "").partition("\n")[0]
        super().__init__(f"{self.field}: {reason}{advice}")


class IdentityError(DecisionError):
    """The identity must be text that is not empty and can be written as UTF-8."""

    field = "identity"


class NominalTimeError(DecisionError):
    """The nominal time must be a datetime with a time zone, within the years 1 to 9999."""

    field = "nominal_time"


class DecisionTimezoneError(DecisionError):
    """The time zone is unknown; use an IANA name such as Europe/Berlin or UTC."""

    field = "timezone"


class WindowModeError(DecisionError):
    """The window mode is after, around (or center), or before."""

    field = "window_mode"


class WindowDurationError(DecisionError):
    """The window's duration must be a timedelta that is not negative and stays within the years 1 to 9999."""

    field = "window_duration"


class DistributionError(DecisionError):
    """The distribution is uniform, skewEarly, skewLate, normal or exponential."""

    field = "distribution"


class DistributionParameterError(DecisionError):
    """The distribution does not take this parameter or this value."""

    field = "distribution_params"


class SeedStrategyError(DecisionError):
    """The seed strategy is stable, daily or weekly."""

    field = "seed_strategy"


class SaltError(DecisionError):
    """The salt must be text that can be written as UTF-8."""

    field = "salt"


class ConstraintError(DecisionError):
    """A clause is not valid; write for example dow=MON-FRI;between=08:00-20:00."""

    field = "only"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        value: object = None,
        suggestion: str | None = None,
        position: int = 0,
    ) -> None:
        self.position = position
        super().__init__(message, field=field, value=value, suggestion=suggestion)
