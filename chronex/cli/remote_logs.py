"""Logs that lie on another machine of a shared store: what of them is in the store, and asking for more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from chronex.cli.options import UsageError
from chronex.clock import SYSTEM_CLOCK
from chronex.engine import shared_logs
from chronex.engine.shared_logs import PieceKind
from chronex.model.occurrence import Attempt
from chronex.model.records import LogPiece, LogRequest, Node
from chronex.model.states import AttemptState
from chronex.storage.records import Reading, Records
from chronex.text.sizes import rough_size
from chronex_store.opening import OpenedStore

_POLL_S = 0.5
# A node looks once a second; one that says nothing for so long is not there, or is of an older version.
ANSWER_WITHIN_MS = 15_000
_ASK_AGAIN_MS = 10_000
_TOO_MANY = "too many logs are asked for already; try again in a while"


class RemoteLog(NamedTuple):
    """An attempt whose log lies elsewhere, and the node that ran it."""

    attempt: Attempt
    node: Node

    @property
    def name(self) -> str:
        return self.node.name or self.node.host or self.node.id


def excerpt_text(store: OpenedStore, remote: RemoteLog) -> bytes | None:
    """What the store has of the log, with a line for what it leaves out; None where it has nothing of it."""
    found = store.view(lambda tx: shared_logs.read_excerpt(Reading(tx), remote.attempt))
    if found is None:
        return None
    if not found.left_out:
        return found.head + found.tail
    return found.head + _seam(found.left_out, remote) + found.tail


def _seam(left_out: int, remote: RemoteLog) -> bytes:
    more = f"chronex logs --whole {remote.attempt.id} fetches all"
    return (
        f"\n--- chronex: {rough_size(left_out)} left out; the whole log lies on {remote.name}; {more} ---\n".encode()
    )


def whole_log(store: OpenedStore, remote: RemoteLog) -> bytes:
    """All of the log, fetched from its machine; UsageError where that does not answer."""
    asked_ms = SYSTEM_CLOCK.monotonic_ms()
    request = _ask_for(store, remote, whole=True)
    while not request.is_done:
        found = store.view(lambda tx: shared_logs.request_of(Reading(tx), remote.attempt, whole=True))
        if found is not None and found.sent_pieces > request.sent_pieces:
            asked_ms = SYSTEM_CLOCK.monotonic_ms()
        request = found or request
        if not request.is_done and SYSTEM_CLOCK.monotonic_ms() - asked_ms > ANSWER_WITHIN_MS:
            raise UsageError(_no_answer(remote))
        if not request.is_done:
            store.wait(store.wait(-1, 0), _POLL_S)
    pieces = store.view(lambda tx: shared_logs.pieces_after(Reading(tx), remote.attempt, PieceKind.WHOLE, -1))
    return b"".join(piece.data for _, piece in pieces)


def followed(store: OpenedStore, remote: RemoteLog) -> Iterator[bytes]:
    """What the command writes, as its machine sends it, until it has ended."""
    answered_ms = asked_again_ms = SYSTEM_CLOCK.monotonic_ms()
    _ask_for(store, remote, whole=False)
    number, reached = -1, 0
    while True:
        now = SYSTEM_CLOCK.monotonic_ms()
        if now - asked_again_ms > _ASK_AGAIN_MS:
            asked_again_ms = now
            _ask_for(store, remote, whole=False)
        request, attempt, pieces = store.view(lambda tx: _state(Reading(tx), remote.attempt, number))  # noqa: B023
        if pieces:
            number, answered_ms = pieces[-1][0], now
        for _, piece in pieces:
            if piece.at > reached:
                yield f"\n--- chronex: {rough_size(piece.at - reached)} passed by unseen ---\n".encode()
            reached = piece.at + len(piece.data)
            yield piece.data
        is_over = attempt is None or attempt.state is not AttemptState.RUNNING
        if request is not None and request.is_done and is_over:
            return
        if now - answered_ms > ANSWER_WITHIN_MS and is_over:
            raise UsageError(_no_answer(remote))
        store.wait(store.wait(-1, 0), _POLL_S)


def _state(
    reading: Reading, attempt: Attempt, number: int
) -> tuple[LogRequest | None, Attempt | None, list[tuple[int, LogPiece]]]:
    found = reading.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
    pieces = shared_logs.pieces_after(reading, attempt, PieceKind.LIVE, number)
    return shared_logs.request_of(reading, attempt, whole=False), found, pieces


def _ask_for(store: OpenedStore, remote: RemoteLog, *, whole: bool) -> LogRequest:
    now_ms = store.now()
    made = store.update(
        lambda tx: shared_logs.request_log(Records(tx, now_ms), remote.attempt, remote.node.host_id, whole=whole)
    )
    if made is None:
        raise UsageError(_TOO_MANY)
    return made


def _no_answer(remote: RemoteLog) -> str:
    there = f"its log lies there: chronex logs {remote.attempt.id}"
    return f"{remote.name} does not answer, as if no node worked there now; {there}"
