"""From identity, period and salt to a seed, and from the seed to the draws.

The generator, SplitMix64, is the one source of numbers: a pure function of its seed.
"""

from __future__ import annotations

from datetime import timedelta
from difflib import get_close_matches
from hashlib import sha256

from chronex.decision.constraints import local_date
from chronex.decision.parameters import shown
from chronex.errors import IdentityError, SaltError, SeedStrategyError
from chronex.text.instants import EPOCH
from chronex.timing.zones import Zone

SEED_STRATEGIES = ("stable", "daily", "weekly")
UNIT_BITS = 53
UNIT = 1 << UNIT_BITS

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_INCREMENT = 0x9E37_79B9_7F4A_7C15
_FIRST_MULTIPLIER = 0xBF58_476D_1CE4_E5B9
_SECOND_MULTIPLIER = 0x94D0_49BB_1331_11EB


class SplitMix64:
    """Draws in a fixed order; two generators with one seed agree for ever."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def next(self) -> int:
        """The next 64 bits."""
        self._state = z = (self._state + _INCREMENT) & _MASK
        z = ((z ^ (z >> 30)) * _FIRST_MULTIPLIER) & _MASK
        z = ((z ^ (z >> 27)) * _SECOND_MULTIPLIER) & _MASK
        return z ^ (z >> 31)

    def next_unit(self) -> int:
        """The numerator u of U = u / 2**53, so that 0 <= U < 1 holds exactly."""
        return self.next() >> (64 - UNIT_BITS)


# -- the seed -------------------------------------------------------------------------------------------------


def period_id(second: int) -> str:
    """The nominal second in UTC, as RFC 3339 writes it; computed for every decision, so without a further call."""
    return (EPOCH + timedelta(seconds=second)).isoformat()[:19] + "Z"


def period_key(strategy: str, second: int, zone: Zone) -> str:
    """What must change for a new draw: the instant, the local date, or the local ISO week."""
    if strategy == "stable":
        return period_id(second)
    day = local_date(zone, second)
    if strategy == "daily":
        return day.isoformat()
    year, week, _ = day.isocalendar()
    return f"{year:04}-W{week:02}"


def seed_hash(identity: str, key: str, salt: str) -> str:
    """SHA-256 of the three, each on its own line, in hexadecimal digits."""
    return sha256(f"{identity}\n{key}\n{salt}".encode()).hexdigest()


def generator_of(hexdigest: str) -> SplitMix64:
    """Seeded with the first eight bytes of the hash, the most significant first."""
    return SplitMix64(int(hexdigest[:16], 16))


# -- checks ---------------------------------------------------------------------------------------------------


def checked_identity(identity: object) -> str:
    if not isinstance(identity, str) or not identity or not _is_utf8(identity):
        raise IdentityError(value=identity)
    return identity


def checked_salt(salt: object) -> str:
    if not isinstance(salt, str) or not _is_utf8(salt):
        raise SaltError(value=salt)
    return salt


def checked_strategy(strategy: object) -> str:
    if isinstance(strategy, str) and strategy in SEED_STRATEGIES:
        return strategy
    close = get_close_matches(strategy[:40].lower(), SEED_STRATEGIES, 1, 0.5) if isinstance(strategy, str) else []
    raise SeedStrategyError(
        f"unknown seed strategy {shown(strategy)}",
        hint=f"it is one of {', '.join(SEED_STRATEGIES)}",
        value=strategy,
        suggestion=close[0] if close else None,
    )


def _is_utf8(text: str) -> bool:
    """Lone surrogates are the only text that UTF-8 cannot carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
