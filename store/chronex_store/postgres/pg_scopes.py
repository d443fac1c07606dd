"""What an update has locked, and what it may touch of the store therefore.

Every update holds the store's advisory lock: shared where it locked the jobs that it is about, alone where it is
about everything. So an update that has the store to itself meets nobody, and all others meet only in the rows of a
job, of which one has the lock. Jobs are locked in the order of their names before anything else, and what is due is
locked only where nobody holds it: no two wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chronex.storage import keys
from chronex.storage.scopes import LEFT_BY_OTHERS_MS, WHOLE, DueClaim, Scope, shared_channel, shared_group
from chronex_store.postgres.pg_known_rows import KnownRows, Query, of_jobs
from chronex_store.transaction import end_of_prefix

_OF_A_JOB = frozenset(
    (
        keys.JOB, keys.JOB_PROGRESS, keys.JOB_VERSION, keys.OCCURRENCE, keys.RUN, keys.ATTEMPT, keys.TASK_STATE,
        keys.STAGED_STATE, keys.NOTICE, keys.LOG_PIECE, keys.LOG_REQUEST, keys.FOLLOWING,
    )
)  # fmt: skip
_INDEXES = frozenset(bytes([tag]) for tag in keys.INDEXES)
_SHARED_ALONE = frozenset((keys.GROUP, keys.CHANNEL, keys.CHANNEL_NOTICE))
_SHARED = _SHARED_ALONE | {keys.HOLDING, keys.LINE}
_LINES_OF_NO_GROUP = ("*pool", "*conditions")
# Beyond so many jobs that were missing from its scope an update gets the store to itself.
_MOST_ADDED = 50
# What is due of jobs that are gone is looked for among the first.
_FIRST_READ = 20

_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtext(current_schema()), 1)"
_LOCK_ALONE = "SELECT pg_advisory_xact_lock(hashtext(current_schema()), 1)"
_LOCK_NODE = "SELECT node FROM node WHERE node = %s FOR UPDATE"
_LOCK_JOBS = "SELECT job FROM job_progress WHERE job = ANY(%s) ORDER BY job FOR UPDATE"
_POOL = (
    "WITH pool AS MATERIALIZED (SELECT %(slots)s::int - count(*)::int AS free "
    "FROM occurrence WHERE state = 'running' AND owner = %(node)s) "
)
# A cancel is due where its occurrence runs; it is that node's to carry out, and would only be held up by others.
_CLAIM_DUE = (
    _POOL + "SELECT p.job, (SELECT free FROM pool) FROM index_entry e JOIN job_progress p ON p.job = e.open_job "
    "CROSS JOIN LATERAL (SELECT CASE WHEN substr(e.key, 10, 1) = 'O' THEN (SELECT CASE WHEN o.state = 'running' "
    "THEN o.owner END FROM occurrence o WHERE o.key = substr(e.key, 10)) END AS owner) AS canceled "
    "WHERE e.key >= %(from)b AND e.key < %(until)b AND (canceled.owner = %(node)s OR canceled.owner IS NULL "
    "AND %(begins)s AND ((SELECT free FROM pool) > 0 OR e.key < %(late)b)) ORDER BY e.key "
    "LIMIT (SELECT CASE WHEN free > 0 THEN least(free, %(most)s) ELSE %(most)s END FROM pool) + %(beyond)s "
    "FOR UPDATE OF p SKIP LOCKED"
)
_CLAIM_QUEUES = (
    _POOL + "SELECT p.job FROM index_entry e JOIN job_progress p ON p.job = e.open_job "
    "WHERE e.key > %(from)b AND e.key < %(until)b AND %(begins)s AND (SELECT free FROM pool) > 0 AND ("
    "(SELECT 1 FROM occurrence o WHERE o.job = e.open_job AND o.state = 'running' LIMIT 1) IS NULL OR "
    "EXISTS (SELECT FROM job j WHERE j.job = e.open_job AND j.definition ->> 'overlap' = 'allow')) ORDER BY e.key "
    "LIMIT (SELECT greatest(least(free, %(most)s), 0) FROM pool) FOR UPDATE OF p SKIP LOCKED"
)
_OF_NO_JOB = (
    "SELECT 1 FROM (SELECT open_job FROM index_entry WHERE key >= %b AND key < %b ORDER BY key LIMIT %s) e "
    "WHERE NOT EXISTS (SELECT FROM job_progress p WHERE p.job = e.open_job) LIMIT 1"
)
_ELSEWHERE = "SELECT key FROM index_entry WHERE key >= %b AND key < %b AND open_job <> ALL(%s) ORDER BY key LIMIT 1"
_RUNNING = "SELECT count(*) FROM occurrence WHERE state = 'running' AND owner = %s"


class OutOfScopeError(BaseException):
    """An update needs what it has not locked. No decision may catch it: it is run again, with more locked."""


def union(scopes: Iterable[Scope]) -> Scope:
    """The scope of updates that share a commit; of those that claim what is due there is one at a time."""
    jobs: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    due: DueClaim | None = None
    node = ""
    for scope in scopes:
        if scope.is_whole or (due and scope.due and due != scope.due) or (node and scope.node not in ("", node)):
            return WHOLE
        jobs, due, node = jobs | scope.jobs, due or scope.due, node or scope.node
        shared |= scope.shared
    return Scope(jobs, due, node, shared=shared)


class HeldScope:
    """What an update has locked. Everything, until it is told otherwise."""

    def __init__(self, scope: Scope = WHOLE) -> None:
        self.scope = scope
        self.is_whole = scope.is_whole
        self.names = sorted(scope.jobs)
        self._held: frozenset[bytes] = frozenset()
        self._node = keys.node_key(scope.node) if scope.node else b""
        self.is_left = False  # an update has asked for more
        self.missing: set[str] = set()  # the jobs that it asked for, where that is all that it lacked
        self.missing_shared: set[str] = set()
        self.needs_whole = False
        self.shared: frozenset[str] = frozenset()  # groups and channels that are held
        self._holding: set[bytes] = set()  # occurrences that have places in groups that are held
        self.has_claimed_most = False
        self.next_elsewhere_ms: int | None = None
        self._update_held()

    def _update_held(self) -> None:
        self._held = frozenset(name.encode("latin-1") for name in self.names)

    def add(self, names: Iterable[str]) -> None:
        self.names = sorted({*self.names, *names})
        self._update_held()

    def wider(self, scope: Scope) -> Scope:
        """The scope with which an update that asked for more is run again; and from now on the next one is judged."""
        missing, shared, needs_whole = self.missing, self.missing_shared, self.needs_whole
        self.is_left, self.missing, self.missing_shared, self.needs_whole = False, set(), set(), False
        is_more = not (missing <= scope.jobs and shared <= scope.shared)
        if needs_whole or not is_more or len(scope.jobs) + len(missing) > _MOST_ADDED:
            return WHOLE
        return scope.with_more(missing, shared)

    def holds_shared(self, name: str) -> bool:
        return self.is_whole or name in self.shared

    def may_read(self, occurrences: Iterable[bytes]) -> None:
        """They have places in a group that is held. What they hold there changes with that group alone."""
        self._holding.update(occurrences)

    # -- what may be touched ---------------------------------------------------------------------------------------

    def check_read(self, key: bytes) -> None:
        if self.is_whole or key[:1] == keys.NODE or key in (keys.JOURNAL_HEAD, keys.QUARANTINE):
            return
        if (name := shared_in(key)) is not None:
            self._check_shared(name)
        elif key not in self._holding:
            self._check_job(key)

    def check_scan(self, prefix: bytes) -> None:
        """What is due and what is queued is answered for the jobs that are held.

        Definitions are changed by who has the store to itself alone, so all others may look for them.
        """
        if self.is_whole or prefix[:1] in (keys.DUE, keys.NODE, keys.JOB) or prefix == keys.QUARANTINE:
            return
        # Who stands in line tells who comes first, and no more than that: whoever takes a place reads its group.
        if prefix == keys.QUEUED + keys.OCCURRENCE or prefix[:1] == keys.LINE:
            return
        if (name := shared_in(prefix)) is not None:
            self._check_shared(name)
        else:
            self._check_job(prefix)

    def check_write(self, key: bytes, *, is_appended: bool) -> None:
        if self.is_whole or key in (self._node, keys.JOURNAL_HEAD) or is_appended:
            return
        if (name := shared_in(key)) is not None:
            self._check_shared(name)
        if key[:1] in _SHARED_ALONE:
            return
        if key[:1] == keys.JOB:
            self._refuse([])
        self._check_job(key)
        if key[:1] == keys.FOLLOWING:  # whoever holds the parent reads who follows it, so both must be held here
            self._check_job(keys.record_of(key))

    def check_jobs(self, names: Iterable[str]) -> None:
        if self.is_whole:
            return
        missing = [name for name in names if name.encode("latin-1") not in self._held]
        if missing:
            self._refuse(missing)

    def _check_job(self, key: bytes) -> None:
        name = job_in(key)
        if name in self._held:
            return
        self._refuse([] if name is None else [name.decode("latin-1")])

    def _check_shared(self, name: str) -> None:
        if name not in self.shared:
            self._refuse([], [name])

    def _refuse(self, missing: list[str], shared: Iterable[str] = ()) -> None:
        self.is_left = True
        self.missing_shared.update(shared)
        self.needs_whole = self.needs_whole or not (missing or self.missing_shared)
        self.missing.update(missing)
        raise OutOfScopeError


def shared_in(key: bytes) -> str | None:
    """The group or channel by whose lock a row is read and written; None where that is its job's.

    The lines of those who wait for a slot or for conditions have no group: nothing is taken from them that another
    could take too.
    """
    tag, (name, separator, _) = key[:1], key[1:].partition(b"\0")
    if not separator or tag not in _SHARED:
        return None
    text = name.decode("latin-1")
    if tag in (keys.CHANNEL, keys.CHANNEL_NOTICE):
        return shared_channel(text)
    return None if tag == keys.LINE and text in _LINES_OF_NO_GROUP else shared_group(text)


def job_in(key: bytes) -> bytes | None:
    """The job to which a row belongs, by its key or by the beginning of it; None where it belongs to none.

    The entry of a record that follows a job belongs to that job, by whose lock it is found.
    """
    if key[:1] == keys.QUARANTINE:
        key = key[1:]
    if key[:1] in _INDEXES and key[:1] != keys.FOLLOWING:
        key = keys.record_of(key)
    end = key.find(b"\0")
    return key[1:end] if end > 0 and key[:1] in _OF_A_JOB else None


# -- the questions that lock --------------------------------------------------------------------------------------


def locking(scope: Scope) -> list[Query]:
    """The first statements of an update, after BEGIN: those that wait for others."""
    if scope.is_whole:
        return [(_LOCK_ALONE, ())]
    queries: list[Query] = [(_LOCK_SHARED, ())]
    if scope.node:
        queries.append((_LOCK_NODE, (scope.node,)))
    if scope.jobs:
        queries.append((_LOCK_JOBS, (sorted(scope.jobs),)))
    return queries


def locks_all(scope: Scope, answers: list[list[tuple[Any, ...]]]) -> bool:
    """Whether every row that was to be locked is there: one that is not cannot be held."""
    wanted = ([1] if scope.node else []) + ([len(scope.jobs)] if scope.jobs else [])
    return scope.is_whole or [len(rows) for rows in answers[1:]] == wanted


def claiming(due: DueClaim) -> tuple[Query, ...]:
    """The statements that lock what is due, and queues that can be served; they wait for nobody."""
    pool = {"slots": due.slots, "node": due.node, "most": due.most, "begins": due.begins}
    span = {"from": keys.DUE, "until": keys.timed(keys.DUE, due.until_ms + 1, b"")}
    late = keys.timed(keys.DUE, due.until_ms - LEFT_BY_OTHERS_MS, b"")
    queue = keys.QUEUED + keys.OCCURRENCE
    start = queue + due.served_last.encode("ascii") + b"\0" + b"\xff" * 9
    end = end_of_prefix(queue)
    assert end is not None
    return (
        (_OF_NO_JOB, (span["from"], span["until"], _FIRST_READ)),
        (_OF_NO_JOB, (queue, end, _FIRST_READ)),
        (_CLAIM_DUE, {**pool, **span, "late": late, "beyond": due.beyond}),
        (_CLAIM_QUEUES, {**pool, "from": start, "until": end}),
        (_CLAIM_QUEUES, {**pool, "from": queue, "until": start}),
    )


def claimed(due: DueClaim, held: HeldScope, answers: list[list[tuple[Any, ...]]]) -> bool:
    """Note what was locked; False where something is due of a job that is gone, which nobody can lock."""
    *orphans, found, later, earlier = answers
    if any(orphans):
        return False
    held.add({row[0] for row in (*found, *later, *earlier)})
    if found:
        free = found[0][1]
        held.has_claimed_most = len(found) >= (min(free, due.most) if free > 0 else due.most) + due.beyond
    return True


def reading_held(held: HeldScope) -> tuple[Query, ...]:
    """The questions for all that a decision about the held jobs reads."""
    queries: list[Query] = [*of_jobs(held.names)] if held.names else []
    if held.scope.due is not None:
        queries.append((_RUNNING, (held.scope.due.node,)))
        queries.append((_ELSEWHERE, (keys.DUE, end_of_prefix(keys.DUE), held.names)))
    return tuple(queries)


def learn_held(known: KnownRows, held: HeldScope, answers: list[list[tuple[Any, ...]]]) -> None:
    if held.scope.due is not None:
        *answers, running, next_elsewhere = answers
        known.running[held.scope.due.node] = int(running[0][0])
        held.next_elsewhere_ms = keys.instant_of(next_elsewhere[0][0]) if next_elsewhere else None
    if held.names:
        known.learn_jobs(held.names, answers)
    known.hold_only_known()


def counting(node: str) -> Query:
    return _RUNNING, (node,)
