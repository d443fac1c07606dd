"""The decision: the window of a nominal time, and the second of it at which the occurrence starts.

A `Spread` is made once for a job and decides on integers for every nominal instant, in epoch milliseconds. `decide`
takes a request and gives a result, both with datetimes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches

from chronex.decision.constraints import ConstraintMeta, Constraints, local_moment, parse_constraints
from chronex.decision.distributions import Distribution, make_distribution
from chronex.decision.openings import first_open_second
from chronex.decision.parameters import MICROSECONDS, shown
from chronex.decision.seed import (
    checked_identity,
    checked_salt,
    checked_strategy,
    generator_of,
    period_id,
    period_key,
    seed_hash,
)
from chronex.errors import (
    DecisionError,
    DecisionTimezoneError,
    NominalTimeError,
    UnknownZoneError,
    WindowDurationError,
    WindowModeError,
)
from chronex.text.instants import EPOCH, utc_datetime
from chronex.timing.zones import FIRST_SECOND, LAST_SECOND, Zone, load_zone

# What decides: raised by every change that could move a start. Stored decisions carry it.
ALGORITHM = 2
DECISION_VERSION = f"{ALGORITHM}.0.0"
MAX_ATTEMPTS = 64
UNSCHEDULABLE_REASON = "no candidate accepted within MaxAttempts"
WINDOW_MODES = ("after", "around", "before")

_MODE_SYNONYMS = {"center": "around"}
# How many halves of the duration lie before the nominal time.
_HALVES_BEFORE = {"after": 0, "around": 1, "before": 2}
_MICROSECOND = timedelta(microseconds=1)


# -- the window -----------------------------------------------------------------------------------------------


def window_of(mode: str, nominal: int, duration: int) -> tuple[int, int]:
    """First and last second of the window; nominal time and duration in microseconds.

    It is the window of the nominal time's whole second. A fraction of a second is added to whatever is decided in
    it, so that no window opens before its nominal time because of it. An odd duration is halved exactly; both ends
    are floored to whole seconds only then.
    """
    twice_start = 2 * (nominal - nominal % MICROSECONDS) - _HALVES_BEFORE[mode] * duration
    start = twice_start // (2 * MICROSECONDS)
    end = (twice_start + 2 * duration) // (2 * MICROSECONDS)
    if not FIRST_SECOND <= nominal // MICROSECONDS <= LAST_SECOND:
        raise NominalTimeError("the nominal time is outside the years 1 to 9999", value=nominal)
    if start < FIRST_SECOND or end > LAST_SECOND:
        raise WindowDurationError("the window reaches outside the years 1 to 9999", value=duration)
    return start, end


def longest_lead(mode: str, duration: int) -> int:
    """How far before the nominal time the window may start, at most, in microseconds.

    The second for rounding stays although `after` no longer needs it: stored plan times were made with it.
    """
    return (_HALVES_BEFORE[mode] * duration + 1) // 2 + MICROSECONDS - 1


# -- the spread -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SpreadDecision:
    """Where one occurrence starts and why.

    Window and choice are whole seconds since the epoch; `fraction`, in microseconds, is that of the nominal time and
    belongs to each of them.
    """

    period_id: str
    period_key: str
    seed_hash: str
    window_start: int
    window_end: int
    chosen: int | None
    attempts: int
    constraint_meta: ConstraintMeta
    fraction: int = 0

    @property
    def chosen_ms(self) -> int | None:
        return None if self.chosen is None else self._ms(self.chosen)

    @property
    def window_ms(self) -> tuple[int, int]:
        return self._ms(self.window_start), self._ms(self.window_end)

    def _ms(self, second: int) -> int:
        return second * 1_000 + self.fraction // 1_000

    @property
    def reason(self) -> str:
        return UNSCHEDULABLE_REASON if self.chosen is None else ""


@dataclass(frozen=True, slots=True)
class Spread:
    """How a job's occurrences are placed in their windows; every part is already checked."""

    identity: str
    zone: Zone
    mode: str
    duration: int  # microseconds
    distribution: Distribution
    seed_strategy: str
    salt: str
    constraints: Constraints

    @property
    def lead_ms(self) -> int:
        """How much earlier than its nominal time an occurrence may start, at most."""
        return -(-longest_lead(self.mode, self.duration) // 1_000)

    def decide_at(self, nominal_ms: int) -> SpreadDecision:
        """The decision for the occurrence of this nominal time, in epoch milliseconds."""
        if not isinstance(nominal_ms, int) or isinstance(nominal_ms, bool):
            raise NominalTimeError(f"epoch milliseconds are a whole number, not {shown(nominal_ms)}")
        return self.decide_at_microsecond(nominal_ms * 1_000)

    def opening_from(self, nominal_ms: int) -> int | None:
        """The first nominal time from this one on in whose window its constraints let anything start, whatever is
        drawn; None where there is none within forty years."""
        start, end = window_of(self.mode, nominal_ms * 1_000, self.duration)
        second = first_open_second(self.constraints, self.zone, start)
        if second is None or second <= end:
            return None if second is None else nominal_ms
        return (nominal_ms // 1_000 + second - end) * 1_000  # windows move as their nominal times do

    def decide_at_microsecond(self, nominal: int) -> SpreadDecision:
        start, end = window_of(self.mode, nominal, self.duration)
        nominal_second = nominal // MICROSECONDS
        key = period_key(self.seed_strategy, nominal_second, self.zone)
        digest = seed_hash(self.identity, key, self.salt)
        rejected = [0] * (len(self.constraints.only) + len(self.constraints.avoid))
        if start == end:
            chosen, attempts = (start if self._accepts(start, rejected) else None), 0
        else:
            chosen, attempts = self._draw(digest, start, end, nominal_second - start, rejected)
        return SpreadDecision(
            period_id=period_id(nominal_second),
            period_key=key,
            seed_hash=digest,
            window_start=start,
            window_end=end,
            chosen=chosen,
            attempts=attempts,
            constraint_meta=self.constraints.report(rejected),
            fraction=nominal % MICROSECONDS,
        )

    def _draw(self, digest: str, start: int, end: int, nominal: int, rejected: list[int]) -> tuple[int | None, int]:
        generator = generator_of(digest)
        offset_of = self.distribution.sampler(end - start, nominal)
        for attempt in range(1, MAX_ATTEMPTS + 1):
            candidate = start + offset_of(generator.next_unit())
            if self._accepts(candidate, rejected):
                return candidate, attempt
        return None, MAX_ATTEMPTS

    def _accepts(self, candidate: int, rejected: list[int]) -> bool:
        if not self.constraints:
            return True
        rejecting = self.constraints.rejecting(local_moment(self.zone, candidate))
        for clause in rejecting:
            rejected[clause] += 1
        return not rejecting


def histogram(spread: Spread, nominals_ms: Iterable[int], bins: int) -> list[int]:
    """How many of the periods start in each of `bins` equal parts of their window, the earliest part first.

    A period that is unschedulable is in no part.
    """
    if bins < 1:
        raise ValueError(f"a histogram has at least one bin, not {bins}")
    counts = [0] * bins
    for at in nominals_ms:
        decision = spread.decide_at(at)
        if decision.chosen is not None:
            seconds = decision.window_end - decision.window_start + 1
            counts[(decision.chosen - decision.window_start) * bins // seconds] += 1
    return counts


# -- making a spread ------------------------------------------------------------------------------------------


def make_spread(  # noqa: PLR0913 - the fields of a DecisionRequest, by keyword only
    *,
    identity: str,
    timezone: str = "UTC",
    window_mode: str = "after",
    window_duration: timedelta = timedelta(),
    distribution: str = "uniform",
    distribution_params: Mapping[str, object] | None = None,
    seed_strategy: str = "stable",
    salt: str = "",
    only: str = "",
    avoid: str = "",
) -> Spread:
    """Check every part of a spread. Raises the DecisionError that names the wrong one."""
    return Spread(
        identity=checked_identity(identity),
        zone=_zone(timezone),
        mode=_checked_mode(window_mode),
        duration=_duration(window_duration),
        distribution=make_distribution(
            distribution, {} if distribution_params is None else distribution_params, _checked_mode(window_mode)
        ),
        seed_strategy=checked_strategy(seed_strategy),
        salt=checked_salt(salt),
        constraints=parse_constraints(only, avoid),
    )


def _checked_mode(mode: object) -> str:
    if isinstance(mode, str):
        mode = _MODE_SYNONYMS.get(mode, mode)
        if mode in WINDOW_MODES:
            return mode
    names = (*WINDOW_MODES, *_MODE_SYNONYMS)
    close = get_close_matches(mode[:40].lower(), names, 1, 0.5) if isinstance(mode, str) else []
    raise WindowModeError(
        f"unknown window mode {shown(mode)}",
        hint=f"it is one of {', '.join(names)}",
        value=mode,
        suggestion=close[0] if close else None,
    )


def _zone(name: object) -> Zone:
    if not isinstance(name, str):
        raise DecisionTimezoneError(f"a time zone is named by text, not {shown(name)}", value=name)
    try:
        return load_zone(name)
    except UnknownZoneError:
        hint = "use an IANA name such as Europe/Berlin or UTC"
        raise DecisionTimezoneError(f"unknown time zone {shown(name)}", hint=hint, value=name) from None


def _duration(duration: object) -> int:
    if not isinstance(duration, timedelta):
        raise WindowDurationError(f"a duration is a timedelta, not {shown(duration)}", value=duration)
    if duration < timedelta():
        raise WindowDurationError(f"the duration is negative: {duration}", value=duration)
    return duration // _MICROSECOND


# -- requests and results with datetimes ----------------------------------------------------------------------


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
    decision_version: str

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
    fraction = timedelta(microseconds=decision.fraction)
    return DecisionResult(
        period_id=decision.period_id,
        nominal_time=EPOCH + timedelta(microseconds=nominal),
        window_start=utc_datetime(decision.window_start * 1_000) + fraction,
        window_end=utc_datetime(decision.window_end * 1_000) + fraction,
        chosen_time=None if chosen is None else utc_datetime(chosen * 1_000) + fraction,
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
