"""How much work something is, measured without the wall clock: a slow or busy machine makes no difference.

A unit is about a millisecond of plain Python on an idle machine. It is measured beside the work, in processor time,
so both are slowed down alike. Speed itself is judged by the benchmarks; here only what grows out of hand is found,
so limits are several times what is needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_TRIES = 10


def assert_cheap(work: Callable[[], object], units: float, what: str) -> None:
    """Fails when every one of several tries costs more than so many units."""
    costs: list[float] = []
    while not costs or min(costs) > units:
        assert len(costs) < _TRIES, f"{what}: {min(costs):.1f} units of work, at most {units:g} are allowed"
        costs.append(cost(work))


def cost(work: Callable[[], object]) -> float:
    """What it costs in units, measured once."""
    before = _spent(_unit)
    spent = _spent(work)
    return spent / max(before, _spent(_unit))


def _spent(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _unit() -> int:
    """A mix of what parsers do: text, dictionaries, and numbers."""
    seen: dict[str, int] = {}
    for number in range(4_000):
        key = str(number % 97)
        seen[key] = seen.get(key, 0) + len(key)
    return len(seen)
