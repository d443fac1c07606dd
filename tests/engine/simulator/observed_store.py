"""A store that checks every commit: no record may change its state in a way that the transition table does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chronex.clock import Clock
from chronex.model.occurrence import Occurrence
from chronex.model.records import Record
from chronex.model.states import TRANSITIONS, State
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.ports import T, UpdateFn
from chronex.storage.scopes import WHOLE, Scope
from chronex_store import MemoryStore

_OBSERVED_TAGS = (keys.OCCURRENCE, keys.RUN, keys.ATTEMPT)
Kind = tuple[type, str]


def _reachable() -> dict[Kind, set[Kind]]:
    """The states that each state can reach in one commit or more, from the table alone."""
    reachable: dict[Kind, set[Kind]] = {}
    for row in TRANSITIONS:
        for source in row.sources:
            reachable.setdefault(_kind(source), set()).add(_kind(row.destination))
    for _ in range(len(reachable)):
        for targets in reachable.values():
            targets.update(*(reachable.get(target, set()) for target in tuple(targets)))
    return reachable


def _kind(state: State) -> Kind:
    return type(state), state.value


_REACHABLE = _reachable()


class ObservedStore(MemoryStore):
    """`findings` lists every move that the table does not have, and every record that was deleted."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.findings: list[str] = []
        self._states: dict[bytes, State] = {}
        # Called after every commit with the occurrences that it wrote.
        self.watch: Callable[[list[Occurrence]], None] = lambda _written: None

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        written: dict[bytes, bytes | None] = {}
        result = super().update(lambda tx: fn(_ObservedTransaction(tx, written)))
        records = [self._check(key, raw) for key, raw in written.items()]
        self.watch([one for one in records if isinstance(one, Occurrence)])
        return result

    def _check(self, key: bytes, raw: bytes | None) -> Record | None:
        before = self._states.get(key)
        if raw is None:
            self.findings.append(f"{key!r} was deleted while {before}")
            return None
        record = decode(key, raw)
        after: State = record.state  # type: ignore[union-attr]
        if before is not None and after is not before and _kind(after) not in _REACHABLE.get(_kind(before), set()):
            self.findings.append(f"{key!r} went from {before} to {after}")
        self._states[key] = after
        return record


class _ObservedTransaction:
    """Keeps the last value of every record with a state that one update writes."""

    __slots__ = ("_tx", "_written", "expect", "get", "scan")

    def __init__(self, tx: Any, written: dict[bytes, bytes | None]) -> None:
        self._tx, self._written = tx, written
        self.get, self.scan, self.expect = tx.get, tx.scan, tx.expect

    def create(self, key: bytes, value: bytes) -> bool:
        made: bool = self._tx.create(key, value)
        if made and key[:1] in _OBSERVED_TAGS:
            self._written[key] = value
        return made

    def put(self, key: bytes, value: bytes) -> None:
        self._tx.put(key, value)
        if key[:1] in _OBSERVED_TAGS:
            self._written[key] = value

    def delete(self, key: bytes) -> bool:
        if key[:1] in _OBSERVED_TAGS:
            self._written[key] = None
        return bool(self._tx.delete(key))
