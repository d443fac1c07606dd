"""The border of the decision core: a request in, a result out, both with datetimes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from chronex.decision.constraints import ConstraintMeta
from chronex.decision.parameters import shown
from chronex.decision.window_spread import DECISION_VERSION, Spread, SpreadDecision, make_spread
from chronex.errors import DecisionError, NominalTimeError
from chronex.text.instants import EPOCH, utc_datetime

_MICROSECOND = timedelta(microseconds=1)


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
            "nominal_time": _iso(self.nominal_time),
            "window_start": _iso(self.window_start),
            "window_end": _iso(self.window_end),
            "chosen_time": None if self.chosen_time is None else _iso(self.chosen_time),
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


def _iso(moment: datetime) -> str:
    """With microseconds where there are some, which is more than the milliseconds of RFC 3339 text elsewhere."""
    return moment.isoformat().replace("+00:00", "Z")


def decide(request: DecisionRequest) -> DecisionResult:
    """The start of one period: a pure function of the request. Raises a DecisionError for a bad one."""
    if not isinstance(request, DecisionRequest):
        raise DecisionError(f"decide takes a DecisionRequest, not {shown(request)}", value=request)
    spread = spread_of(request)
    nominal = _microseconds_since_epoch(request.nominal_time)
    return result_of(spread, nominal, spread.decide_at_microsecond(nominal))


def preview(spread: Spread, nominals_ms: Iterable[int]) -> list[DecisionResult]:
    """The decision for each nominal instant (epoch milliseconds), in the given order."""
    return [result_of(spread, at * 1_000, spread.decide_at(at)) for at in nominals_ms]


def spread_of(request: DecisionRequest) -> Spread:
    """Everything in the request but its nominal time."""
    return make_spread(
        identity=request.identity,
        timezone=request.timezone,
        window_mode=request.window_mode,
        window_duration=request.window_duration,
        distribution=request.distribution,
        distribution_params=request.distribution_params,
        seed_strategy=request.seed_strategy,
        salt=request.salt,
        only=request.only,
        avoid=request.avoid,
    )


def result_of(spread: Spread, nominal: int, decision: SpreadDecision) -> DecisionResult:
    """The decision with its instants as datetimes; the nominal time is given in microseconds."""
    chosen = decision.chosen
    return DecisionResult(
        period_id=decision.period_id,
        nominal_time=EPOCH + timedelta(microseconds=nominal),
        window_start=utc_datetime(decision.window_start * 1_000),
        window_end=utc_datetime(decision.window_end * 1_000),
        chosen_time=None if chosen is None else utc_datetime(chosen * 1_000),
        seed_hash=decision.seed_hash,
        distribution=spread.distribution.name,
        constraint_meta=decision.constraint_meta,
        unschedulable=chosen is None,
        reason=decision.reason,
        attempts=decision.attempts,
        distribution_params=spread.distribution.params,
        period_key=decision.period_key,
        decision_version=DECISION_VERSION,
    )


def _microseconds_since_epoch(moment: object) -> int:
    if not isinstance(moment, datetime):
        raise NominalTimeError(f"the nominal time is a datetime, not {shown(moment)}", value=moment)
    try:
        offset = moment.utcoffset()
    except Exception as trouble:  # a tzinfo is the caller's code and may raise anything
        raise NominalTimeError(f"the nominal time's zone fails: {trouble!r}", value=moment) from trouble
    if offset is None:
        hint = "give an aware datetime, for example with tzinfo=datetime.UTC"
        raise NominalTimeError("the nominal time has no zone", hint=hint, value=moment)
    return (moment.replace(tzinfo=EPOCH.tzinfo) - EPOCH - offset) // _MICROSECOND
