"""A database that went back: after a failover to a standby that lagged, or a restore, acknowledged commits are gone.

Each writer has its last commit in a row of its own, so the first update after that finds an older one there. What
this process committed lately is kept in memory, by rows, with what was there before: commits that were lost are done
once more, in one transaction that has the store to itself, before anything else is decided here. A job of which
another node has decided meanwhile is left as that node has it, and what runs of it here is to be ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from chronex.model.event import Event
from chronex.storage import keys
from chronex.storage.codec import decode
from chronex.storage.journal import append
from chronex.storage.ports import Transaction
from chronex_store.postgres.pg_known_rows import KnownRows, OrderedRows
from chronex_store.postgres.pg_scopes import job_in
from chronex_store.postgres.pg_transaction import is_appended

KEPT_MS = 300_000
_MOST_BYTES = 16 << 20
# By these rows of a job everybody who decides about it is seen.
_DECIDING = frozenset((keys.JOB, keys.JOB_PROGRESS, keys.OCCURRENCE, keys.RUN, keys.ATTEMPT))

_Rows = Mapping[bytes, bytes | None]


@dataclass(frozen=True)
class WentBack:
    """How many commits of this process were lost, how many jobs have them again, and which others have decided on."""

    commits: int
    again: int
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class _Commit:
    token: UUID
    at_ms: int
    rows: _Rows
    before: _Rows
    is_redoable: bool
    size: int


@dataclass
class RecentCommits:
    """What this process committed in the last minutes, the oldest first; `base` is the mark before the first."""

    base: UUID | None = None
    _commits: deque[_Commit] = field(default_factory=deque)
    _bytes: int = 0

    @property
    def last(self) -> UUID | None:
        return self._commits[-1].token if self._commits else self.base

    def is_silent_since(self, ms: int) -> bool:
        """Whether the last commit was made before that, by the boot time."""
        return bool(self._commits) and self._commits[-1].at_ms < ms

    def note(self, token: UUID, at_ms: int, writes: OrderedRows, known: KnownRows, *, is_whole: bool) -> None:
        rows = dict(writes.rows)
        before = {key: known.rows.rows.get(key) for key in rows if key[:1] in _DECIDING and known.is_known(key)}
        size = sum(len(key) + len(value or b"") for key, value in rows.items())
        self._commits.append(_Commit(token, at_ms, rows, before, not is_whole, size))
        self._bytes += size
        while len(self._commits) > 1 and (self._bytes > _MOST_BYTES or self._commits[0].at_ms < at_ms - KEPT_MS):
            oldest = self._commits.popleft()
            self.base, self._bytes = oldest.token, self._bytes - oldest.size

    def lost_after(self, token: UUID | None) -> list[_Commit] | None:
        """The commits that followed the one with this mark; None where they are not known, or cannot be redone."""
        if token == self.base:
            lost = list(self._commits)
        else:
            places = [place for place, one in enumerate(self._commits) if one.token == token]
            if not places:
                return None
            lost = list(self._commits)[places[0] + 1 :]
        return lost if all(one.is_redoable for one in lost) else None


def redo(tx: Transaction, lost: Iterable[_Commit], now_ms: int, writer: str) -> WentBack:
    """Write again what was lost, of each job of which nobody has decided since; and tell it."""
    lost = list(lost)
    rows: dict[bytes, bytes | None] = {}
    before: dict[bytes, bytes | None] = {}
    for commit in lost:
        for key, value in commit.before.items():
            before.setdefault(key, value)
        rows |= {key: value for key, value in commit.rows.items() if not is_appended(key)}
    rows.pop(keys.JOURNAL_HEAD, None)
    conflicts = _conflicts(tx, rows, before)
    for key, value in rows.items():
        if job_in(key) in conflicts or (key[:1] == keys.NODE and tx.get(key) is not None):
            continue  # others may have given this node up, and its next heartbeat tells it so
        if value is None:
            tx.delete(key)
        else:
            tx.put(key, value)
    jobs = {job for key in rows if (job := job_in(key)) is not None}
    found = WentBack(len(lost), len(jobs - conflicts), tuple(sorted(job.decode("latin-1") for job in conflicts)))
    append(tx, *_told_again(lost, conflicts), _event(found, now_ms, writer))
    return found


def _conflicts(tx: Transaction, rows: _Rows, before: _Rows) -> set[bytes]:
    """Jobs whose rows are not what they were before the first commit that was lost, or of which that is not known."""
    tx.expect({job.decode("latin-1") for key in rows if (job := job_in(key)) is not None})
    found: set[bytes] = set()
    for key in rows:
        job = job_in(key)
        if job is None or key[:1] not in _DECIDING or job in found:
            continue
        if key not in before or tx.get(key) != before[key]:
            found.add(job)
    return found


def _told_again(lost: Iterable[_Commit], conflicts: set[bytes]) -> list[Event]:
    """The events that were lost with their jobs, in their order."""
    found: list[Event] = []
    for commit in lost:
        for key in sorted(key for key in commit.rows if is_appended(key)):
            event = _decoded(key, commit.rows[key])
            if event is not None and event.job.encode("latin-1") not in conflicts:
                found.append(event)
    return found


def _decoded(key: bytes, raw: bytes | None) -> Event | None:
    event = None if raw is None else decode(key, raw)
    return event if isinstance(event, Event) else None


def _event(found: WentBack, now_ms: int, writer: str) -> Event:
    data = {"writer": writer, "commits": found.commits, "jobs": found.again, "conflicts": list(found.conflicts)}
    return Event(name="StoreWentBack", at_ms=now_ms, data=data)
