"""When to ask again for a connection that was not had: later and later, and each process at another moment.

A database that comes back after a failover is met by every node at once. Each has several that ask (a tick, its word,
its sleepers, ends that wait), so they share one pause: who asks before it is over is answered without the network.
"""

from __future__ import annotations

import threading
import time
from random import Random

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import StoreAwayError

SHORTEST_MS, LONGEST_MS = 100, 5_000
# A connection that broke is asked for a second time within one call: that call waits so long and fails no sooner.
WAITED_FOR_MS = 200


def pause_after(failures: int, chance: Random) -> int:
    """Milliseconds until the next try, where so many failed before: doubled each time, by chance at least half."""
    most = min(SHORTEST_MS << min(failures, 16), LONGEST_MS)
    return round(chance.uniform(most / 2, most))


class Reconnects:
    """The pause of one process, for whoever of it asks."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, chance: Random | None = None) -> None:
        self._clock = clock
        self._chance = chance or Random()  # noqa: S311  it spreads load, it guards nothing
        self._lock = threading.Lock()
        self._failures = 0
        self._not_before_ms = 0
        self._said = ""

    def check(self) -> None:
        """Wait for the end of a short pause; StoreAwayError, in the words of the last try, in a longer one."""
        with self._lock:
            left_ms, said = self._not_before_ms - self._clock.monotonic_ms() if self._failures else 0, self._said
        if left_ms > WAITED_FOR_MS:
            raise StoreAwayError(said)
        if left_ms > 0:
            time.sleep(left_ms / 1000)

    def failed(self, error: StoreAwayError) -> None:
        """Several that failed at once count as one."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            self._said = str(error)
            if now_ms >= self._not_before_ms:
                self._not_before_ms = now_ms + pause_after(self._failures, self._chance)
                self._failures += 1

    def made(self) -> None:
        with self._lock:
            self._failures = self._not_before_ms = 0
