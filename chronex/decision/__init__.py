"""Where inside its window an occurrence starts: the same job, period and salt give the same second for ever.

The contract is specs/decision.md. `decide` takes and returns datetimes; a `Spread`, made by `make_spread`, gives the
engine the same decision on integers.

    decide           the window and the decision on integers; request and result with datetimes
    seed             from identity, period and salt to the draws
    distributions    from a draw to a second of the window
    parameters       the values of a distribution's parameters, exact
    fixedpoint       exp, ln and the normal curve on integers
    constraints      which seconds `only` and `avoid` allow, and the text of both
"""

from chronex.decision.decide import (
    ALGORITHM,
    DECISION_VERSION,
    MAX_ATTEMPTS,
    DecisionRequest,
    DecisionResult,
    Spread,
    SpreadDecision,
    decide,
    make_spread,
)
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
    "ALGORITHM",
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
