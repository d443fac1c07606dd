"""How full the store is, told when it passes a mark; and readers that were killed are let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from chronex.daemon.chores import Chore

EVERY_S = 60.0
# At 15/16 the store takes nothing but the ends of running work, so this leaves time to act twice.
MARKS = (0.7, 0.9)


class _Space(Protocol):
    @property
    def ratio(self) -> float: ...


class RoomyStore(Protocol):
    def space(self) -> _Space:
        """Asking also makes the store look for dead readers, whose snapshots would keep it from reusing its room."""
        ...


def room_chore(store: RoomyStore, report: Callable[[str, dict[str, Any]], None]) -> Chore:
    """Tells `StoreRoomLow` when a mark is passed upwards and `StoreRoomBack` when the last one is left."""
    passed = 0

    async def look() -> None:
        nonlocal passed
        ratio = store.space().ratio
        before, passed = passed, sum(1 for mark in MARKS if ratio >= mark)
        if passed > before:
            report("StoreRoomLow", {"used": f"{ratio:.0%}"})
        elif before and not passed:
            report("StoreRoomBack", {"used": f"{ratio:.0%}"})

    return Chore("store", EVERY_S, look)
