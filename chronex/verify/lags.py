"""The real-time bounds: P1 (from due to start) and P2 (from initialization to restart after a crash)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chronex.verify.verdicts import Line, shown

BOUND_MS = 60_000
# A lag is kept to this many binary digits, so that a watch of years needs a few thousand counters.
_DIGITS = 7


@dataclass(frozen=True, slots=True)
class LagSummary:
    """Engineering figures, not verdicts: a loaded machine widens them."""

    name: str
    title: str
    count: int
    within_bound: int
    median_ms: int
    p95_ms: int
    max_ms: int
    worst: Line | None
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "bound_ms": BOUND_MS,
            "count": self.count,
            "within_bound": self.within_bound,
            "median_ms": self.median_ms,
            "p95_ms": self.p95_ms,
            "max_ms": self.max_ms,
            "worst": None if self.worst is None else shown(self.worst),
            "left_out": self.left_out,
        }


class Lags:
    """A histogram with bounded relative error (below one percent) and an exact maximum."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title = name, title
        self._counts: dict[int, int] = {}
        self._count = self._within = self._max = 0
        self._worst: Line | None = None
        self.left_out = 0  # starts that were told to wait, for overlap or for the pool

    def add(self, lag_ms: int, line: Line) -> None:
        lag_ms = max(lag_ms, 0)
        self._count += 1
        self._within += lag_ms <= BOUND_MS
        if self._worst is None or lag_ms > self._max:
            self._max, self._worst = lag_ms, line
        shift = max(lag_ms.bit_length() - _DIGITS, 0)
        rounded = (lag_ms >> shift) << shift
        self._counts[rounded] = self._counts.get(rounded, 0) + 1

    def summary(self) -> LagSummary:
        return LagSummary(
            self.name, self.title, self._count, self._within, self._share(0.5), self._share(0.95), self._max,
            self._worst, self.left_out,
        )  # fmt: skip

    def _share(self, share: float) -> int:
        left = self._count * share
        for lag in sorted(self._counts):
            left -= self._counts[lag]
            if left <= 0:
                return lag
        return 0
