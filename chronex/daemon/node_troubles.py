"""What goes wrong in this scheduler and is no job's: kept in its record, so that others can tell it."""

from __future__ import annotations

from collections.abc import Callable

from chronex.clock import Clock
from chronex.model.trouble_codes import NodeTrouble, TroubleCode

MOST_TROUBLES = 20
LONGEST_DETAIL = 300


class NodeTroubles:
    """Those that last. `tell` is called when one begins, changes or ends."""

    def __init__(self, clock: Clock, tell: Callable[[], None]) -> None:
        self._clock, self._tell = clock, tell
        self._found: dict[tuple[TroubleCode, str], NodeTrouble] = {}

    @property
    def found(self) -> tuple[NodeTrouble, ...]:
        return tuple(self._found.values())

    def begin(self, code: TroubleCode, detail: str, about: str = "") -> None:
        """It is so, or still so. `about` tells those of one code apart."""
        detail = detail[:LONGEST_DETAIL]
        before = self._found.get((code, about))
        if before is not None and before.detail == detail:
            return
        if before is None and len(self._found) >= MOST_TROUBLES:
            return
        since_ms = self._clock.wall_ms() if before is None else before.since_ms
        self._found[code, about] = NodeTrouble(code, detail, since_ms)
        self._tell()

    def end(self, code: TroubleCode, about: str = "") -> None:
        """It is not so, or not any more."""
        if self._found.pop((code, about), None) is not None:
            self._tell()
