"""A store that takes nothing for a while: since when, told once when that begins and once when it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable

from chronex.clock import Clock
from chronex.daemon.journal_notes import JournalNotes
from chronex.daemon.log_handlers import log_event
from chronex.errors import StoreFullError, StoreUnavailableError

log = logging.getLogger(__name__)


class StoreAway:
    """Meanwhile nothing is claimed, and the store is asked again soon. What runs goes on, retention frees space."""

    def __init__(self, clock: Clock, notes: JournalNotes, is_shared: Callable[[], bool]) -> None:
        self._clock, self._notes, self._is_shared = clock, notes, is_shared
        self.since_ms: int | None = None  # by the monotonic clock

    def __bool__(self) -> bool:
        return self.since_ms is not None

    @property
    def away_ms(self) -> int:
        return 0 if self.since_ms is None else self._clock.monotonic_ms() - self.since_ms

    def begin(self, error: StoreUnavailableError) -> None:
        if self:
            return
        self.since_ms = self._clock.monotonic_ms()
        if isinstance(error, StoreFullError):
            fields = {"so": "no runs start until there is free space", "reason": str(error)}
            self._notes.journal("StoreRoomLow", fields, use_reserve=True)  # `status` tells it from the journal
        else:
            fields = {"so": "no runs start until it answers; what runs goes on", "reason": str(error)}
            log_event(log, "the store does not answer", fields, logging.WARNING)

    def end(self) -> None:
        if not self:
            return
        away_ms, self.since_ms = self.away_ms, None
        if self._is_shared():
            self._notes.journal("StoreBack", {"away_ms": away_ms})
        else:
            self._notes.journal("StoreRoomBack", {"full_ms": away_ms})
