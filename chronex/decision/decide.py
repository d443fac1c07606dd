"""The border of the decision core: datetimes in, datetimes out."""

from __future__ import annotations

from datetime import datetime, timedelta

from chronex.decision.parameters import shown
from chronex.decision.request import DecisionRequest, DecisionResult
from chronex.decision.seed import EPOCH, utc_datetime
from chronex.decision.spread import DECISION_VERSION, Decision, Spread, make_spread
from chronex.errors import DecisionError, NominalTimeError

_MICROSECOND = timedelta(microseconds=1)


def decide(request: DecisionRequest) -> DecisionResult:
    """The start of one period: a pure function of the request. Raises a DecisionError for a bad one."""
    if not isinstance(request, DecisionRequest):
        raise DecisionError(f"decide takes a DecisionRequest, not {shown(request)}", value=request)
    spread = spread_of(request)
    nominal = _microseconds_since_epoch(request.nominal_time)
    return result_of(spread, nominal, spread.decide_at_microsecond(nominal))


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


def result_of(spread: Spread, nominal: int, decision: Decision) -> DecisionResult:
    """The decision with its instants as datetimes; the nominal time is given in microseconds."""
    chosen = decision.chosen
    return DecisionResult(
        period_id=decision.period_id,
        nominal_time=EPOCH + timedelta(microseconds=nominal),
        window_start=utc_datetime(decision.window_start),
        window_end=utc_datetime(decision.window_end),
        chosen_time=None if chosen is None else utc_datetime(chosen),
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
