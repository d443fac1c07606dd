"""Two answers side by side: when the source fires, and when Chronex would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from chronex.timing.dst import DstPolicy
from chronex.timing.zones import Zone

POLICIES = (
    DstPolicy("end", "by-kind"), DstPolicy("end", "first"), DstPolicy("end", "both"),
    DstPolicy("skip", "first"), DstPolicy("skip", "both"),
)  # fmt: skip
_DAY = 86_400


class Difference(NamedTuple):
    """One instant that only one side has. `who` fires there: the source, or Chronex."""

    second: int
    who: Literal["source", "chronex"]
    reason: str


def differences(theirs: Iterable[int], ours: Iterable[int], zone: Zone) -> list[Difference]:
    """Every second where the two differ, in order."""
    source, own = set(theirs), set(ours)
    return [
        Difference(second, "source" if second in source else "chronex", _reason(second, zone))
        for second in sorted(source ^ own)
    ]


def _reason(second: int, zone: Zone) -> str:
    near = zone.changes(second - _DAY, second + _DAY)
    if near:
        change = near[0]
        before, after = (_wall(change.at, offset) for offset in (change.before, change.after))
        return f"the clock goes from {before} to {after}"
    return "the fields are read differently"


def _wall(at: int, offset: int) -> str:
    return datetime.fromtimestamp(at + offset, UTC).strftime("%H:%M")


def shown(difference: Difference, zone: Zone) -> str:
    wall = datetime.fromtimestamp(difference.second, zone.tzinfo)
    only = "only the source fires" if difference.who == "source" else "only Chronex fires"
    return f"{wall:%a %d %b %Y %H:%M:%S %Z}: {only} ({difference.reason})"


def shortened(lines: list[str], most: int) -> Iterator[str]:
    yield from lines[:most]
    if len(lines) > most:
        yield f"… and {len(lines) - most} more"
