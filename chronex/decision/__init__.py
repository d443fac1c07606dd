"""Where inside its window an occurrence starts: the same job, period and salt give the same second for ever.

The contract is specs/decision.md. `decide` speaks in datetimes; `make_spread` gives the same decision on
integers to the engine.
"""

from chronex.decision.decide import decide
from chronex.decision.outcome import Outcome, OutcomeKind, outcome_of
from chronex.decision.request import DecisionRequest, DecisionResult
from chronex.decision.spread import DECISION_VERSION, MAX_ATTEMPTS, Decision, Spread, make_spread
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
    "Decision",
    "DecisionError",
    "DecisionRequest",
    "DecisionResult",
    "DecisionTimezoneError",
    "DistributionError",
    "DistributionParameterError",
    "IdentityError",
    "NominalTimeError",
    "Outcome",
    "OutcomeKind",
    "SaltError",
    "SeedStrategyError",
    "Spread",
    "WindowDurationError",
    "WindowModeError",
    "decide",
    "make_spread",
    "outcome_of",
]
