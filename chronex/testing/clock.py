"""A clock for tests: time passes only when the test says so."""

from __future__ import annotations

from datetime import datetime, timedelta

from chronex.text.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from chronex.text.instants import epoch_ms

SECOND = SECOND_MS
MINUTE = MINUTE_MS
HOUR = HOUR_MS
DAY = DAY_MS
WEEK = 7 * DAY

Span = int | timedelta
Instant = int | datetime

_MILLISECOND = timedelta(milliseconds=1)
# Any number other than the wall time, so that code that confuses the two clocks fails.
_MONOTONIC_START = 1_000_000


def span_ms(span: Span) -> int:
    """A length of time in milliseconds."""
    return span if isinstance(span, int) else span // _MILLISECOND


def instant_ms(instant: Instant) -> int:
    """An instant in milliseconds since the epoch; a datetime must be aware."""
    return instant if isinstance(instant, int) else epoch_ms(instant)


class FakeClock:
    """The three readings of `chronex.clock.Clock`, which a suspend or a set clock moves apart.

    `boot` is the true time: it cannot be set, and it goes on while the machine sleeps. `monotonic` stands still while
    the machine sleeps. `wall` is what the machine shows, and may be set forward or back.
    """

    def __init__(self, start: Instant) -> None:
        self.wall = instant_ms(start)
        self.monotonic = _MONOTONIC_START
        self.boot = self.wall

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.monotonic

    def boottime_ms(self) -> int:
        return self.boot

    def advance(self, span: Span) -> None:
        """Time passes while the machine is awake."""
        ms = span_ms(span)
        self.wall += ms
        self.monotonic += ms
        self.boot += ms

    def sleep(self, span: Span) -> None:
        """Time passes while the machine is suspended."""
        ms = span_ms(span)
        self.wall += ms
        self.boot += ms

    def step(self, span: Span) -> None:
        """The wall clock is set forward, or back by a negative span."""
        self.wall += span_ms(span)
