"""Attempts by their logs: as little of each record as a search of a hundred thousand of them needs."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from chronex.storage import keys
from chronex.storage.codec import HEADER
from chronex.storage.ports import ReadTransaction

PAGE = 4_000


class LoggedAttempt(Struct, frozen=True, gc=False):
    """A part of an attempt's record."""

    job: str
    nominal_ms: int
    task: str
    number: int
    state: str = "running"
    owner: str = ""
    log_path: str = ""
    log_limit: int = 0
    created_ms: int = 0
    started_ms: int | None = None


_decode = msgspec.msgpack.Decoder(LoggedAttempt).decode


def logged_attempts(tx: ReadTransaction, after: bytes | None) -> tuple[list[LoggedAttempt], bytes | None]:
    """A page of the attempts that have a log, by job and time; where the next page begins, None where none follows.

    What cannot be read is left out: the commands that show an attempt say so, and `doctor` names it.
    """
    rows = tx.scan(keys.ATTEMPT, after, PAGE)
    found = []
    for _, raw in rows:
        try:
            one = _decode(raw[HEADER.size :])
        except msgspec.MsgspecError:
            continue
        if one.log_path:
            found.append(one)
    return found, rows[-1][0] if len(rows) == PAGE else None
