"""A store that watches every commit: no record may move where the transition table has no way."""

from __future__ import annotations

from typing import Any

from chronex.clock import Clock
from chronex.model.states import TRANSITIONS, State
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.ports import T, UpdateFn
from chronex_store import MemoryStore

_WATCHED = (keys.OCCURRENCE, keys.RUN, keys.ATTEMPT)
Kind = tuple[type, str]


def _ways() -> dict[Kind, set[Kind]]:
    """Where each state can lead in one commit or more, worked out from the table alone."""
    ways: dict[Kind, set[Kind]] = {}
    for row in TRANSITIONS:
        for source in row.sources:
            ways.setdefault(_kind(source), set()).add(_kind(row.destination))
    for _ in range(len(ways)):
        for targets in ways.values():
            targets.update(*(ways.get(target, set()) for target in tuple(targets)))
    return ways


def _kind(state: State) -> Kind:
    return type(state), state.value


_WAYS = _ways()


class Witness(MemoryStore):
    """`findings` lists every move that the table does not know, and every record that was taken away."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.findings: list[str] = []
        self._states: dict[bytes, State] = {}

    def update(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        watched: dict[bytes, bytes | None] = {}
        result = super().update(lambda tx: fn(_Watched(tx, watched)))
        for key, raw in watched.items():
            self._judge(key, raw)
        return result

    def _judge(self, key: bytes, raw: bytes | None) -> None:
        before = self._states.get(key)
        if raw is None:
            self.findings.append(f"{key!r} was taken away while {before}")
            return
        after: State = decode(key, raw).state  # type: ignore[union-attr]
        if before is not None and after is not before and _kind(after) not in _WAYS.get(_kind(before), set()):
            self.findings.append(f"{key!r} went from {before} to {after}")
        self._states[key] = after


class _Watched:
    """Notes the last value of every watched key that one update writes."""

    __slots__ = ("_tx", "_watched", "get", "scan")

    def __init__(self, tx: Any, watched: dict[bytes, bytes | None]) -> None:
        self._tx, self._watched = tx, watched
        self.get, self.scan = tx.get, tx.scan

    def create(self, key: bytes, value: bytes) -> bool:
        made: bool = self._tx.create(key, value)
        if made and key[:1] in _WATCHED:
            self._watched[key] = value
        return made

    def put(self, key: bytes, value: bytes) -> None:
        self._tx.put(key, value)
        if key[:1] in _WATCHED:
            self._watched[key] = value

    def delete(self, key: bytes) -> bool:
        if key[:1] in _WATCHED:
            self._watched[key] = None
        return bool(self._tx.delete(key))
