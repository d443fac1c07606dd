"""What history leaves behind: logs beyond their own limits, versions that nothing refers to, nodes long gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from chronex.model.records import Attempt
from chronex.model.states import AttemptState
from chronex.storage import keys
from chronex.storage.ports import ReadTransaction, Store, Transaction
from chronex.storage.records import Ledger, Reading

if TYPE_CHECKING:
    from chronex_store.retention import RetentionPolicy

MOST_VERSIONS = 20
MOST_NODES = 50
_PAGE = 200


def forgotten_logs(
    store: Store, job: str, policy: RetentionPolicy, now_ms: int, step: int
) -> Iterator[tuple[str, ...]]:
    """Names of logs over the limits, newest attempts first; their attempts stay and say no more of a log."""
    if policy.log_count is None and policy.log_age_ms is None:
        return
    oldest_ms = 0 if policy.log_age_ms is None else now_ms - policy.log_age_ms
    seen, doomed = 0, []
    for attempt in _attempts(store, job):
        if not attempt.log_path or attempt.state is AttemptState.RUNNING:
            continue
        seen += 1
        is_over = policy.log_count is not None and seen > policy.log_count
        if is_over or (attempt.finished_ms or attempt.created_ms) < oldest_ms:
            doomed.append(attempt)
        if len(doomed) == step:
            yield _forget(store, doomed, now_ms)
            doomed = []
    if doomed:
        yield _forget(store, doomed, now_ms)


def _attempts(store: Store, job: str) -> Iterator[Attempt]:
    """Every attempt of the job, newest first, a short snapshot per page."""
    prefix, after = keys.within_job(keys.ATTEMPT, job), None
    while True:

        def page(tx: ReadTransaction, after: bytes | None = after) -> tuple[list[Attempt], bytes | None]:
            rows = tx.scan(prefix, after, _PAGE, reverse=True)
            reading = Reading(tx)
            found = [one for key, _ in rows if (one := reading.get(key, Attempt)) is not None]
            return found, rows[-1][0] if rows else None

        found, after = store.view(page)
        if after is None:
            return
        yield from found


def _forget(store: Store, doomed: list[Attempt], now_ms: int) -> tuple[str, ...]:
    def write(tx: Transaction) -> tuple[str, ...]:
        ledger = Ledger(tx, now_ms)
        names = []
        for attempt in doomed:
            found = ledger.attempt(attempt.job, attempt.nominal_ms, attempt.task, attempt.number)
            if found is not None and found.log_path and found.state is not AttemptState.RUNNING:
                names.append(found.log_path)
                ledger.put(replace(found, log_path=""))
        return tuple(names)

    return store.update(write, essential=True)


def old_versions(store: Store, job: str, now_ms: int) -> int:
    """Versions that no kept occurrence was decided under, but for the newest ones; how many went."""

    def doomed(tx: ReadTransaction) -> list[bytes]:
        rows = tx.scan(keys.within_job(keys.JOB_VERSION, job), None, 10_000)
        beyond = [key for key, _ in rows][:-MOST_VERSIONS]
        if not beyond:
            return []
        used = {one.version for one in Reading(tx).occurrences(job, limit=1_000_000)}
        return [key for key in beyond if int.from_bytes(key[-4:], "big") not in used][:_PAGE]

    going = store.view(doomed)
    if not going:
        return 0

    def write(tx: Transaction) -> int:
        return sum(tx.delete(key) for key in going)

    return store.update(write, essential=True)


def old_nodes(store: Store, now_ms: int) -> int:
    """Nodes that said goodbye, or were not seen for a day, own nothing, and are not among the newest."""

    def doomed(reading: Reading) -> list[bytes]:
        newest_first = sorted(reading.nodes(), key=lambda node: -node.started_ms)
        owners = {attempt.owner for attempt in reading.active_attempts()}
        return [
            keys.node_key(node.id)
            for node in newest_first[MOST_NODES:]
            if node.id not in owners and (node.stopped_ms is not None or node.seen_ms < now_ms - 86_400_000)
        ][:_PAGE]

    going = store.view(lambda tx: doomed(Reading(tx)))
    if not going:
        return 0
    return store.update(lambda tx: sum(tx.delete(key) for key in going), essential=True)
