"""Where inside its window an occurrence starts: the same job, period and salt give the same second for ever.

The contract is specs/decision.md. `decide` takes and returns datetimes; a `Spread`, made by `make_spread`, gives the
engine the same decision on integers.

    decide           request and result, with datetimes
    window_spread    the window, and the decision on integers
    seed             from identity, period and salt to the draws
    distributions    from a draw to a second of the window
    parameters       the values of a distribution's parameters, exact
    fixedpoint       exp, ln and the normal curve on integers
    constraints      which seconds `only` and `avoid` allow
    clauses          the text of `only` and `avoid`
"""

from chronex.decision.decide import DecisionRequest, DecisionResult, decide
from chronex.decision.window_spread import DECISION_VERSION, MAX_ATTEMPTS, Spread, SpreadDecision, make_spread
from chronex.errors import (
    ConstraintError,
    DecisionError,
    DecisionTimezoneError,
    DistributionError,
    DistributionParameterError,
    IdentityError,
    NominalTimeError,
    SaltError,
    SeedStrategyError,
    WindowDurationError,
    WindowModeError,
)

__all__ = [
    "DECISION_VERSION",
    "MAX_ATTEMPTS",
    "ConstraintError",
    "DecisionError",
    "DecisionRequest",
    "DecisionResult",
    "DecisionTimezoneError",
    "DistributionError",
    "DistributionParameterError",
    "IdentityError",
    "NominalTimeError",
    "SaltError",
    "SeedStrategyError",
    "Spread",
    "SpreadDecision",
    "WindowDurationError",
    "WindowModeError",
    "decide",
    "make_spread",
]
