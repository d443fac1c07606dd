"""From identity, period and salt to the seed of the generator."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from hashlib import sha256

from chronex.decision.constraints import local_date
from chronex.decision.generator import SplitMix64
from chronex.decision.parameters import shown
from chronex.errors import IdentityError, SaltError, SeedStrategyError
from chronex.timing.zones import Zone

SEED_STRATEGIES = ("stable", "daily", "weekly")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_datetime(second: int) -> datetime:
    return EPOCH + timedelta(seconds=second)


def period_id(second: int) -> str:
    """The nominal second in UTC, as RFC 3339 writes it."""
    return utc_datetime(second).isoformat()[:19] + "Z"


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
    return sha256(f"{identity}\n{key}\n{salt}".encode()).hexdigest()


def generator_of(hexdigest: str) -> SplitMix64:
    """Seeded with the first eight bytes of the hash, the most significant first."""
    return SplitMix64(int(hexdigest[:16], 16))


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
