"""The only module that reads real clocks."""

from __future__ import annotations

import time


def wall_ms() -> int:
    """Milliseconds since 1970 in UTC, as the machine's clock shows them now."""
    return time.time_ns() // 1_000_000
