"""What the decision core is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from chronex.decision.constraints import ConstraintMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """One period of one job. `only` and `avoid` are clause text; `decide` checks every field."""

    identity: str
    nominal_time: datetime
    timezone: str = "UTC"
    window_mode: str = "after"
    window_duration: timedelta = timedelta()
    distribution: str = "uniform"
    distribution_params: Mapping[str, object] = field(default_factory=dict, hash=False)
    seed_strategy: str = "stable"
    salt: str = ""
    only: str = ""
    avoid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionResult:
    """Where the period starts, and everything that led there. All instants are aware and in UTC."""

    period_id: str
    nominal_time: datetime
    window_start: datetime
    window_end: datetime
    chosen_time: datetime | None
    seed_hash: str
    distribution: str
    constraint_meta: ConstraintMeta = field(hash=False)
    unschedulable: bool
    reason: str
    attempts: int
    distribution_params: dict[str, str] = field(hash=False)
    period_key: str
    decision_version: int

    def to_dict(self) -> dict[str, object]:
        """Every field as JSON can carry it; instants in ISO 8601."""
        return {
            "period_id": self.period_id,
            "nominal_time": _instant(self.nominal_time),
            "window_start": _instant(self.window_start),
            "window_end": _instant(self.window_end),
            "chosen_time": None if self.chosen_time is None else _instant(self.chosen_time),
            "seed_hash": self.seed_hash,
            "distribution": self.distribution,
            "distribution_params": dict(self.distribution_params),
            "constraint_meta": {
                "only": [dict(clause) for clause in self.constraint_meta["only"]],
                "avoid": [dict(clause) for clause in self.constraint_meta["avoid"]],
            },
            "unschedulable": self.unschedulable,
            "reason": self.reason,
            "attempts": self.attempts,
            "period_key": self.period_key,
            "decision_version": self.decision_version,
        }


def _instant(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
