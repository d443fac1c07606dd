"""The journal: what happened, in order. Numbers are given in the transaction that writes the event, so they
have no gaps that a crash could make and no order but that of the commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from chronex.errors import DamagedRecordError
from chronex.model.event import Event
from chronex.model.reasons import free_text
from chronex.model.records import Sequence
from chronex.storage import keys
from chronex.storage.codec import decode, encode
from chronex.storage.ports import SCAN_LIMIT, ReadTransaction, Transaction

Line = tuple[int, Event]
_PAGE = 64


def append(tx: Transaction, *events: Event) -> None:
    """Write the events in this order. A store that several machines share numbers them when it commits."""
    number = head(tx)
    for event in events:
        number += 1
        key = keys.event_key(number)
        tx.put(key, encode(key, event))
    if events:
        tx.put(keys.JOURNAL_HEAD, encode(keys.JOURNAL_HEAD, Sequence(number)))


def head(tx: ReadTransaction) -> int:
    """The number of the last event, 0 before the first. It outlives the events that retention removes."""
    raw = tx.get(keys.JOURNAL_HEAD)
    if raw is not None:
        try:
            return cast("Sequence", decode(keys.JOURNAL_HEAD, raw)).last
        except DamagedRecordError:
            pass  # the events themselves still say where the journal ends
    last = tx.scan(keys.EVENT, None, 1, reverse=True)
    return keys.sequence_of(last[0][0]) if last else 0


def tail(tx: ReadTransaction, after: int = 0, limit: int = SCAN_LIMIT) -> list[Line]:
    """The events after number `after`, oldest first; a damaged one is named `Unreadable`."""
    rows = tx.scan(keys.EVENT, keys.event_key(after), limit)
    return _readable(rows)


def latest(tx: ReadTransaction, before: int | None = None, limit: int = SCAN_LIMIT) -> list[Line]:
    """The last events, newest first."""
    start = keys.event_key(before) if before is not None else None
    return _readable(tx.scan(keys.EVENT, start, limit, reverse=True))


def onward(tx: ReadTransaction, after: int, most: int) -> Iterator[Line]:
    """The events after number `after`, read page by page as they are asked for, `most` of them at the utmost."""
    while most > 0 and (lines := tail(tx, after, min(most, _PAGE))):
        yield from lines
        after, most = lines[-1][0], most - len(lines)


def backward(tx: ReadTransaction, before: int | None, most: int) -> Iterator[Line]:
    """The events below number `before`, the newest first."""
    while most > 0 and (lines := latest(tx, before, min(most, _PAGE))):
        yield from lines
        before, most = lines[-1][0], most - len(lines)


def first_at(tx: ReadTransaction, at_ms: int) -> int:
    """The number of the first event not before `at_ms`, found by halving: numbers and times grow together.

    Where the clock was set back they do not; then the answer is off by the events of that span.
    """
    low, high = 1, head(tx) + 1
    while low < high:
        middle = (low + high) // 2
        found = tail(tx, middle - 1, 1)
        if found and found[0][1].at_ms < at_ms:
            low = found[0][0] + 1
        else:
            high = middle
    return low


def _readable(rows: list[tuple[bytes, bytes]]) -> list[Line]:
    lines: list[Line] = []
    for key, raw in rows:
        try:
            lines.append((keys.sequence_of(key), cast("Event", decode(key, raw))))
        except DamagedRecordError as error:
            lines.append((keys.sequence_of(key), Event(name="Unreadable", at_ms=0, reason=free_text(error.reason))))
    return lines
