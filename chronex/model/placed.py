"""What an occurrence keeps of how it was planned: why it starts where it does, and what was missed before it."""

from __future__ import annotations

from msgspec import Struct

from chronex.model.reasons import NO_REASON, Reason


class Decision(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Why the occurrence starts where it does inside its window."""

    algorithm: int
    seed_hash: str = ""
    window_start_ms: int | None = None
    window_end_ms: int | None = None
    chosen_ms: int | None = None
    stagger_ms: int = 0
    attempts: int = 0
    reason: str = ""


class MissedSpan(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Missed instants that were too many for a record each. With `is_more` there are more than `count`."""

    from_ms: int
    to_ms: int
    count: int
    is_more: bool = False
    reason: Reason = NO_REASON
