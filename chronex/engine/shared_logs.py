"""Logs on a store that machines share: the whole log stays on its machine, its beginning and end are for everybody.

When an attempt ends, its node writes the head and the tail of its log into the store, without secrets, as the log
has none. Who wants more writes a request: the machine that has the log sends what the command writes while that is
requested, or the whole log once. What was sent for a request is removed when the request is over (specs/machines.md).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec.structs import replace

from chronex.model.occurrence import Attempt
from chronex.model.records import Excerpt, LogPiece, LogRequest
from chronex.model.states import AttemptState
from chronex.storage import keys
from chronex.storage.records import Reading, Records

# One record: with its header well below what a store takes.
PIECE_BYTES = 48 * 1024
# The share of an excerpt that is its beginning.
HEAD_SHARE = 4
# What is sent for one request lies in the store at most so long, and of one that follows no more than so much.
REQUEST_LASTS_MS = 3_600_000
FOLLOW_LASTS_MS = 30_000
MOST_LIVE_PIECES = 24
# A log is larger than this only where somebody has set a limit of their own.
MOST_WHOLE_BYTES = 64 * 1024 * 1024
MOST_REQUESTS = 200
_MOST_PIECES = 10_000


class PieceKind(StrEnum):
    """What a piece of a log in the store is of; one letter, because it is part of the key."""

    HEAD = "h"
    TAIL = "t"
    LIVE = "l"
    WHOLE = "w"


def cut_excerpt(log: bytes, shared_bytes: int) -> Excerpt:
    """The first quarter of what may be shared and the last three, whole where it fits."""
    if len(log) <= shared_bytes:
        return Excerpt(log, b"", 0)
    head, tail = shared_bytes // HEAD_SHARE, shared_bytes - shared_bytes // HEAD_SHARE
    return Excerpt(log[:head], log[len(log) - tail :], len(log) - head - tail)


def pieces_of(data: bytes) -> list[bytes]:
    return [data[start : start + PIECE_BYTES] for start in range(0, len(data), PIECE_BYTES)]


def put_excerpt(records: Records, attempt: Attempt, excerpt: Excerpt) -> None:
    for kind, data in ((PieceKind.HEAD, excerpt.head), (PieceKind.TAIL, excerpt.tail)):
        for number, piece in enumerate(pieces_of(data)):
            left_out = excerpt.left_out if kind is PieceKind.TAIL else 0
            _put(records, attempt, kind, number, LogPiece(piece, records.now_ms, left_out))


def read_excerpt(reading: Reading, attempt: Attempt) -> Excerpt | None:
    """None where nothing of the log is in the store."""
    head, tail = (pieces_after(reading, attempt, kind, -1) for kind in (PieceKind.HEAD, PieceKind.TAIL))
    if not head and not tail:
        return None
    left_out = tail[0][1].at if tail else 0
    return Excerpt(b"".join(one.data for _, one in head), b"".join(one.data for _, one in tail), left_out)


def _put(records: Records, attempt: Attempt, kind: PieceKind, number: int, piece: LogPiece) -> None:
    records.put_at(keys.log_piece_key(keys.key_of(attempt), kind.value, number), piece)


def pieces_after(reading: Reading, attempt: Attempt, kind: PieceKind, number: int) -> list[tuple[int, LogPiece]]:
    """The pieces of a kind beyond this number, in order, each with its number."""
    prefix = keys.within_log(keys.key_of(attempt), kind.value)
    start = None if number < 0 else keys.log_piece_key(keys.key_of(attempt), kind.value, number)
    rows = reading.tx.scan(prefix, start, MOST_WHOLE_BYTES // PIECE_BYTES + 1)
    found = [(int.from_bytes(key[-4:], "big"), reading.get(key, LogPiece)) for key, _ in rows]
    return [(number, piece) for number, piece in found if piece is not None]


# -- requests -----------------------------------------------------------------------------------------------


def request_log(records: Records, attempt: Attempt, host_id: str, *, whole: bool) -> LogRequest | None:
    """Ask the machine that has the log for it; None where too many are asked for already.

    A request to follow is over by itself when it is not made again for a while; what somebody else follows is shared.
    """
    key = _request_key(attempt, whole=whole)
    found = records.get(key, LogRequest)
    if found is not None and found.is_done and attempt.state is AttemptState.RUNNING:
        _drop(records, key, found)  # the command has written more since
        found = None
    if found is None and len(records.tx.scan(keys.LOG_REQUEST, None, MOST_REQUESTS)) >= MOST_REQUESTS:
        return None
    lasts_ms = REQUEST_LASTS_MS if whole else FOLLOW_LASTS_MS
    wanted = found or LogRequest(
        job=attempt.job, nominal_ms=attempt.nominal_ms, task=attempt.task, number=attempt.number, host_id=host_id,
        whole=whole,
    )  # fmt: skip
    wanted = replace(wanted, until_ms=records.now_ms + lasts_ms)
    records.put_at(key, wanted)
    return wanted


def requests(reading: Reading, host_id: str) -> list[LogRequest]:
    """What this machine is asked for."""
    return [
        request
        for request in reading.scan(keys.LOG_REQUEST, LogRequest, None, MOST_REQUESTS)
        if request.host_id == host_id
    ]


def request_of(reading: Reading, attempt: Attempt, *, whole: bool) -> LogRequest | None:
    return reading.get(_request_key(attempt, whole=whole), LogRequest)


def _request_key(attempt: Attempt, *, whole: bool) -> bytes:
    return keys.log_request_key(keys.key_of(attempt), PieceKind.WHOLE if whole else PieceKind.LIVE)


def send(records: Records, attempt: Attempt, request: LogRequest, data: bytes, offset: int, *, is_last: bool) -> None:
    """Add what lies from `offset` on to what was sent for the request; of one that follows the oldest pieces go."""
    kind = PieceKind.WHOLE if request.whole else PieceKind.LIVE
    key = _request_key(attempt, whole=request.whole)
    found = records.get(key, LogRequest)
    if found is None:
        return
    number = found.sent_pieces
    for piece in pieces_of(data):
        _put(records, attempt, kind, number, LogPiece(piece, records.now_ms, offset))
        number, offset = number + 1, offset + len(piece)
        if not request.whole and number > MOST_LIVE_PIECES:
            records.delete(keys.log_piece_key(keys.key_of(attempt), kind.value, number - 1 - MOST_LIVE_PIECES))
    records.put_at(key, replace(found, sent_pieces=number, sent_bytes=offset, is_done=is_last))


def drop_expired(records: Records, most: int = 50) -> int:
    """Remove requests whose time is over, with what was sent for them; how many there were."""
    rows = records.tx.scan(keys.LOG_REQUEST, None, MOST_REQUESTS)
    dropped = 0
    for key, _ in rows:
        request = records.get(key, LogRequest)
        if request is None or request.until_ms > records.now_ms or dropped >= most:
            continue
        _drop(records, key, request)
        dropped += 1
    return dropped


def _drop(records: Records, key: bytes, request: LogRequest) -> None:
    kind = PieceKind.WHOLE if request.whole else PieceKind.LIVE
    attempt = keys.attempt_key(request.job, request.nominal_ms, request.task, request.number)
    for piece, _ in records.tx.scan(keys.within_log(attempt, kind.value), None, _MOST_PIECES):
        records.delete(piece)
    records.delete(key)


def has_expired(reading: Reading, now_ms: int) -> bool:
    return any(
        request.until_ms <= now_ms for request in reading.scan(keys.LOG_REQUEST, LogRequest, None, MOST_REQUESTS)
    )
