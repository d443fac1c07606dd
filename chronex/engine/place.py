"""From nominal to due: spread, then stagger, then jitter. Drawn once, and stored with the occurrence."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from chronex.decision import DECISION_VERSION, make_spread
from chronex.decision.window_spread import Spread
from chronex.expr.option_block import Options
from chronex.model.definition import Job
from chronex.model.occurrence import Decision
from chronex.model.policies import SpreadPolicy
from chronex.model.reasons import NO_REASON, Reason, ReasonCode
from chronex.timing.occurrences import stagger_offset


class Chance(Protocol):
    """Where jitter comes from; tests and simulations bring a seeded one."""

    def randrange(self, stop: int, /) -> int: ...


class NoChance:
    """Draws nothing: previews show what is not on record yet without its jitter."""

    def randrange(self, stop: int, /) -> int:
        return 0


NO_CHANCE = NoChance()


class Placement(NamedTuple):
    """When an occurrence may start. `impossible` says why it cannot, where no start satisfies its spread."""

    due_ms: int
    jitter_ms: int
    decision: Decision | None
    impossible: Reason = NO_REASON


def place(job: Job, options: Options, nominal_ms: int, chance: Chance) -> Placement:
    stagger = stagger_offset(job.id, options.stagger) if options.stagger else 0
    jitter = chance.randrange(options.jitter) if options.jitter else 0
    if job.spread is None:
        decision = Decision(algorithm=DECISION_VERSION, stagger_ms=stagger) if stagger else None
        return Placement(nominal_ms + stagger + jitter, jitter, decision)
    chosen = spread_of(job.spread, job.id, job.timezone).decide_at(nominal_ms)
    decision = Decision(
        algorithm=DECISION_VERSION,
        seed_hash=chosen.seed_hash,
        window_start_ms=chosen.window_start * 1000,
        window_end_ms=chosen.window_end * 1000,
        chosen_ms=chosen.chosen_ms,
        stagger_ms=stagger,
        attempts=chosen.attempts,
        reason=chosen.reason,
    )
    if chosen.chosen_ms is None:
        return Placement(nominal_ms, jitter, decision, Reason(ReasonCode.UNSCHEDULABLE))
    return Placement(chosen.chosen_ms + stagger + jitter, jitter, decision)


def lead_ms(job: Job) -> int:
    """How long before its nominal time an occurrence must be decided: a spread may start before it."""
    return spread_of(job.spread, job.id, job.timezone).lead_ms if job.spread is not None else 0


def spread_of(policy: SpreadPolicy, identity: str, zone: str) -> Spread:
    return _spread(msgspec.json.encode(policy, order="sorted"), identity, zone)


@lru_cache(maxsize=1024)
def _spread(encoded: bytes, identity: str, zone: str) -> Spread:
    policy = msgspec.json.decode(encoded, type=SpreadPolicy)
    return make_spread(
        identity=identity,
        timezone=zone,
        window_mode=policy.mode,
        window_duration=timedelta(milliseconds=policy.duration_ms),
        distribution=policy.distribution,
        distribution_params={name: str(value) for name, value in policy.parameters.items()},
        seed_strategy=policy.seed,
        salt=policy.salt,
        only=policy.only,
        avoid=policy.avoid,
    )
