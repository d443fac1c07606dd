"""A table of cases as one test: for tables of hundreds of rows, each of which takes less time than pytest's care for it.

A test of its own costs a few milliseconds in pytest and its workers, and every worker collects it. A row here costs its
call alone, and a failure still names every row that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from traceback import extract_tb
from typing import Any

# A fault of something that all rows use would fill screens.
MOST_SHOWN = 20


def table(cases: Iterable[tuple[str, Any]]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """The decorated test is called with the value of each (name, value); it fails once, after all rows were tried."""

    def one_test(check: Callable[[Any], None]) -> Callable[[], None]:
        def tried() -> None:
            wrong, tried_rows = [], 0
            for name, value in cases:
                tried_rows += 1
                try:
                    check(value)
                except Exception as error:  # whatever a row raises is its failure
                    wrong.append(_told(name, error))
            assert tried_rows, "the table is empty"
            assert not wrong, _summary(wrong, tried_rows)

        tried.__name__, tried.__qualname__ = check.__name__, check.__qualname__
        tried.__module__, tried.__doc__ = check.__module__, check.__doc__
        return tried

    return one_test


def _told(name: str, error: Exception) -> str:
    """The row, the line of the test that noticed, and what it noticed."""
    frames = extract_tb(error.__traceback__)
    place = frames[min(1, len(frames) - 1)]
    return f"{name}  (line {place.lineno}: {place.line})\n    {type(error).__name__}: {error}"


def _summary(wrong: list[str], tried_rows: int) -> str:
    more = [f"and {len(wrong) - MOST_SHOWN} more"] if len(wrong) > MOST_SHOWN else []
    return "\n".join([f"{len(wrong)} of {tried_rows} rows are wrong:", *wrong[:MOST_SHOWN], *more])
