"""A clock with three hands, because a suspend or a clock step moves them apart."""

from __future__ import annotations

from dataclasses import dataclass

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
WEEK = 7 * DAY


@dataclass
class Hands:
    """`boot` is the true time: nobody sets it, and it goes on while the machine sleeps."""

    wall: int
    monotonic: int
    boot: int

    def wall_ms(self) -> int:
        return self.wall

    def monotonic_ms(self) -> int:
        return self.monotonic

    def boottime_ms(self) -> int:
        return self.boot

    def go_on(self, ms: int) -> None:
        self.wall, self.monotonic, self.boot = self.wall + ms, self.monotonic + ms, self.boot + ms

    def sleep(self, ms: int) -> None:
        self.wall, self.boot = self.wall + ms, self.boot + ms

    def step(self, ms: int) -> None:
        self.wall += ms
