"""A table of cases as one test: for tables of hundreds of rows, each of which takes less time than pytest's care for it.

A test of its own costs a few milliseconds in pytest and its workers, and every worker collects it. A row here costs its
call alone, and a failure still names every row that is wrong.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import partial
from traceback import extract_tb
from typing import Any

import pytest

# A fault of something that all rows use would fill screens.
MOST_SHOWN = 20
_PARAM = type(pytest.param())


def table(cases: Iterable[tuple[str, Any]]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """The decorated test is called with the value of each (name, value); it fails once, after all rows were tried."""

    def one_test(check: Callable[[Any], None]) -> Callable[[], None]:
        return _named_after(check, lambda: _try_all(check, ((name, partial(check, value)) for name, value in cases)))

    return one_test


def folded(test: Callable[..., None]) -> Callable[[], None] | None:
    """A parametrised test that needs its row and nothing else, as one test that tries every row.

    None for all others: those with fixtures, with marks, with several tables, with none or marked rows.
    """
    marks = getattr(test, "pytestmark", [])
    if [mark.name for mark in marks] != ["parametrize"] or set(marks[0].kwargs) - {"ids"}:
        return None
    given, rows = marks[0].args
    names = [name.strip() for name in given.split(",")] if isinstance(given, str) else list(given)
    has_more = set(inspect.signature(test).parameters) != set(names) or hasattr(test, "hypothesis")
    if has_more or inspect.iscoroutinefunction(test) or not isinstance(rows, Collection):
        return None
    is_bare = isinstance(given, str) and len(names) == 1  # a row is then the value itself
    params = [row if isinstance(row, _PARAM) else pytest.param(*((row,) if is_bare else row)) for row in rows]
    if not params or any(param.marks for param in params):
        return None
    cases = [dict(zip(names, param.values, strict=True)) for param in params]
    return _named_after(test, lambda: _try_all(test, ((repr(case), partial(test, **case)) for case in cases)))


def _named_after(test: Callable[..., None], tries: Callable[[], None]) -> Callable[[], None]:
    def tried() -> None:
        tries()

    tried.__name__, tried.__qualname__ = test.__name__, test.__qualname__
    tried.__module__, tried.__doc__ = test.__module__, test.__doc__
    return tried


def _try_all(test: Callable[..., None], cases: Iterable[tuple[str, Callable[[], None]]]) -> None:
    """Fails, or is skipped, after all rows were tried."""
    wrong, skipped, tried_rows = [], "", 0
    for name, try_row in cases:
        tried_rows += 1
        try:
            try_row()
        except pytest.skip.Exception as reason:
            skipped = str(reason)
        except Exception as error:  # whatever a row raises is its failure
            wrong.append(_told(name, error, test.__code__.co_filename))
    assert tried_rows, "the table is empty"
    assert not wrong, _summary(wrong, tried_rows)
    if skipped:
        pytest.skip(skipped)


def _told(name: str, error: Exception, file: str) -> str:
    """The row, the line of the test that noticed, and what it noticed."""
    frames = extract_tb(error.__traceback__)
    place = next((frame for frame in frames if frame.filename == file), frames[-1])
    return f"{name}  (line {place.lineno}: {place.line})\n    {type(error).__name__}: {error}"


def _summary(wrong: list[str], tried_rows: int) -> str:
    more = [f"and {len(wrong) - MOST_SHOWN} more"] if len(wrong) > MOST_SHOWN else []
    return "\n".join([f"{len(wrong)} of {tried_rows} rows are wrong:", *wrong[:MOST_SHOWN], *more])
