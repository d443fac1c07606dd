"""Which events of the journal somebody wants to see: the newest that fit, or those that come after a number."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import NamedTuple

from chronex.model.event import EVENTS, Event
from chronex.storage import journal
from chronex.storage.ports import ReadTransaction
from chronex.text.suggestions import nearest

# A filter that matches nothing must not read a journal of millions of events to its end.
MOST_SEARCHED = 500_000
_PAGE = 1_000


class EventQuery(NamedTuple):
    """Events of one job or of all, of these kinds (patterns of names, in lower case) or of all, in a span of time."""

    job: str | None = None
    kinds: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def matches(self, event: Event) -> bool:
        return (
            (self.job is None or event.job == self.job)
            and (not self.kinds or any(fnmatchcase(event.name.lower(), kind) for kind in self.kinds))
            and (self.since_ms is None or event.at_ms >= self.since_ms)
            and (self.until_ms is None or event.at_ms < self.until_ms)
        )


def newest(tx: ReadTransaction, query: EventQuery, most: int) -> list[journal.Line]:
    """The newest events that fit, oldest first.

    Times are searched by halving, so after a clock was set back, events of that span may be left out.
    """
    before = None if query.until_ms is None else journal.first_at(tx, query.until_ms)
    first = 0 if query.since_ms is None else journal.first_at(tx, query.since_ms)
    return list(islice(_fitting(journal.backward(tx, before, MOST_SEARCHED), query, first), most))[::-1]


def _fitting(lines: Iterator[journal.Line], query: EventQuery, first: int) -> Iterator[journal.Line]:
    for number, event in lines:
        if number < first:
            return
        if query.matches(event):
            yield number, event


def following(tx: ReadTransaction, query: EventQuery, after: int) -> tuple[list[journal.Line], int]:
    """The events after that number that fit, a page at a time, and the number up to which was read."""
    lines = journal.tail(tx, after, _PAGE)
    return [line for line in lines if query.matches(line[1])], lines[-1][0] if lines else after


def kind_pattern(text: str) -> str:
    """`OccurrenceFailed`, in any case, or a pattern such as `task*`; ValueError with a hint where nothing fits it."""
    pattern = text.lower()
    names = {name.lower(): name for name in EVENTS}
    if any(fnmatchcase(name, pattern) for name in names):
        return pattern
    meant = nearest(pattern, names)
    hint = f"did you mean {names[meant]}?" if meant else "`chronex events --kinds` lists them"
    raise ValueError(f"no event {text!r}; {hint}")
