"""A node that stands still while it sends: a stopped process, a frozen machine.

The server is asked to end a transaction whose client is idle. It counts from the end of a round to the next word of
the client, and the client library ends each pipeline with one more word, which ends that count and does nothing else;
where some statements of a round have come and its end has not, it does not count at all. Either way it would wait
without any limit, with all locks held. So those who wait for these locks look for such a client, and end its session:
the server takes back what it had begun, and who wakes from standing still finds its connection closed.
"""

from __future__ import annotations

import contextlib

import psycopg

from chronex_store.postgres.pg_connections import LONGEST_IDLE, Connection

# Only sessions of the same user may be ended by it, which is what all nodes have. Everybody who decides holds the
# store's lock, and nobody else does.
_WAITED_FOR = (
    "FROM pg_stat_activity AS a WHERE a.pid <> pg_backend_pid() "
    "AND a.datname = current_database() AND a.state <> 'idle' AND a.wait_event_type = 'Client' "
    "AND EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND l.granted "
    "AND l.locktype = 'advisory' AND l.objsubid = 2 AND l.objid = 1 "
    "AND l.classid = (hashtext(%s)::bigint & 4294967295)::oid) "
)
_END_FROZEN = (
    f"SELECT pg_terminate_backend(a.pid) {_WAITED_FOR}"
    "AND greatest(a.query_start, a.state_change) < clock_timestamp() - %s::interval"
)
_HOLDS = f"SELECT EXISTS (SELECT {_WAITED_FOR} AND a.application_name = %s)"


def end_frozen(connection: Connection, schema: str) -> bool:
    """End the sessions that hold the store and whose clients say nothing in the middle of a transaction; any?"""
    with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
        found = connection.execute(_END_FROZEN, (schema, LONGEST_IDLE)).fetchall()
        return any(is_ended for (is_ended,) in found)
    return False


def holds_store(connection: Connection, schema: str, program: str) -> bool:
    """Whether a session of this application name holds the store, and the server waits for its client's next word."""
    row = connection.execute(_HOLDS, (schema, program)).fetchone()
    return row is not None and bool(row[0])
