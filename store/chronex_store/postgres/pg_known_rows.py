"""What a transaction has read in bulk, so that a decision about a hundred jobs asks as often as one about one.

Known are the open records of some jobs: definition, progress, occurrences that have not ended with all their runs and
attempts, the index entries of these; and which occurrence is the newest, because beyond that one there is nothing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

from chronex.storage import keys
from chronex.storage.ports import Row

# Index entries of open records carry their job; those of ended ones, of which there are ever more, do not.
OPEN_INDEXES = keys.DUE + keys.ACTIVE + keys.QUEUED + keys.PARKED + keys.IN_LINE
_OPEN = "('pending', 'queued', 'running')"
# A statement and its parameters, by place or by name.
Query = tuple[str, "tuple[Any, ...] | dict[str, Any]"]


class OrderedRows:
    """Rows by key, with the keys in order; None stands for a row that is not there, or is removed."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes | None] = {}
        self._order: list[bytes] = []

    def put(self, key: bytes, value: bytes | None) -> None:
        if key not in self.rows:
            insort(self._order, key)
        self.rows[key] = value

    def forget(self, key: bytes) -> None:
        """As if it had never been written here."""
        if self.rows.pop(key, b"") is not None or key in self._order:
            index = bisect_left(self._order, key)
            if index < len(self._order) and self._order[index] == key:
                del self._order[index]

    def within(self, low: bytes, high: bytes | None) -> list[bytes]:
        begin = bisect_left(self._order, low)
        end = len(self._order) if high is None else bisect_left(self._order, high)
        return self._order[begin:end]


# Rows whose keys are this tag, then the name of a job: who follows it, and what its attempts have staged.
_BY_PREFIX = (
    "SELECT x.key, x.value FROM unnest(%s::text[]) AS j CROSS JOIN LATERAL (SELECT key, value FROM {table} "
    "WHERE key >= '{tag}'::bytea || convert_to(j, 'LATIN1') || '\\x00'::bytea "
    "AND key < '{tag}'::bytea || convert_to(j, 'LATIN1') || '\\x01'::bytea) AS x"
)


def of_jobs(names: list[str]) -> tuple[Query, ...]:
    """The questions for everything that a decision about these jobs may read."""
    jobs = (names,)
    of_open = (
        "JOIN occurrence o ON o.job = x.job AND o.nominal_ms = x.nominal_ms "
        f"WHERE o.job = ANY(%s) AND o.state IN {_OPEN}"
    )
    return (
        ("SELECT key, value FROM job WHERE job = ANY(%s)", jobs),
        ("SELECT key, value FROM job_progress WHERE job = ANY(%s)", jobs),
        (f"SELECT key, value FROM occurrence WHERE job = ANY(%s) AND state IN {_OPEN}", jobs),
        (f"SELECT x.key, x.value FROM run x {of_open}", jobs),
        (f"SELECT x.key, x.value FROM attempt x {of_open}", jobs),
        ("SELECT key, value FROM index_entry WHERE open_job = ANY(%s)", jobs),
        (_BY_PREFIX.format(tag="F", table="index_entry"), jobs),
        (_BY_PREFIX.format(tag="T", table="other"), jobs),
        (
            "SELECT (SELECT o.key FROM occurrence o WHERE o.job = j ORDER BY o.nominal_ms DESC LIMIT 1) "
            "FROM unnest(%s::text[]) AS j",
            jobs,
        ),
    )


# What nearly every decision asks for: the nodes, and whether a damaged record was ever put aside; and, once groups
# are held, whether anybody stands in line. Where there are many, they are asked for when they are needed.
_MOST_NODES, _MOST_ASIDE, _MOST_IN_LINE = 500, 10, 10
FIRST_QUERIES: tuple[Query, ...] = (
    ("SELECT key, value FROM node LIMIT %s", (_MOST_NODES + 1,)),
    ("SELECT key, value FROM other WHERE key >= 'Q' AND key < 'R' LIMIT %s", (_MOST_ASIDE + 1,)),
)
LINES_QUERY: Query = (
    "SELECT key, value FROM index_entry WHERE key >= 'l' AND key < 'm' ORDER BY key LIMIT %s",
    (_MOST_IN_LINE + 1,),
)


class KnownRows:
    """Rows that were read, and of which prefixes all are known."""

    def __init__(self) -> None:
        self.rows = OrderedRows()
        self.newest: dict[str, bytes] = {}  # by job: the key of its newest occurrence, empty where it has none
        self._complete: set[bytes] = set()
        self.running: dict[str, int] = {}  # by node: how many occurrences it runs
        self.counts: dict[bytes, int] = {}  # by prefix: how many rows there are

    def hold_only_known(self) -> None:
        """An update decides on the jobs that it has locked, and all of their open records are known."""
        self._complete |= {keys.DUE, keys.QUEUED}

    def learn_jobs(self, names: list[str], answers: list[list[tuple[Any, ...]]]) -> None:
        *found, newest = answers
        for name, (key,) in zip(names, newest, strict=True):
            self.newest[name] = key or b""
            for kind in (keys.JOB, keys.JOB_PROGRESS):
                self.rows.put(keys.within_job(kind, name), None)
            self._complete |= {keys.within_job(tag, name) for tag in (keys.FOLLOWING, keys.STAGED_STATE)}
            for index in (keys.ACTIVE, keys.QUEUED, keys.IN_LINE):
                for kind in (keys.OCCURRENCE, keys.RUN, keys.ATTEMPT):
                    self._complete.add(keys.within_job(index + kind, name))
            self._complete.add(keys.within_job(keys.PARKED + keys.OCCURRENCE, name))
            self._complete.add(keys.following(name))
        for rows in found:
            for key, value in rows:
                self.rows.put(key, value)
        for key, _ in found[2]:
            self._complete.add(keys.RUN + key[1:])
            self._complete.add(keys.ATTEMPT + key[1:])

    def learn_first(self, *answers: list[tuple[Any, ...]]) -> None:
        """The answers to `FIRST_QUERIES`."""
        prefixes = ((keys.NODE, _MOST_NODES), (keys.QUARANTINE, _MOST_ASIDE))
        for (prefix, most), rows in zip(prefixes, answers, strict=True):
            self._learn_some(prefix, most, rows)

    def learn_lines(self, rows: list[tuple[Any, ...]]) -> None:
        """The answer to `LINES_QUERY`."""
        self._learn_some(keys.LINE, _MOST_IN_LINE, rows)

    def learn_whole(self, prefix: bytes, rows: list[tuple[Any, ...]]) -> None:
        """All rows with this prefix."""
        self._learn_some(prefix, len(rows), rows)

    def _learn_some(self, prefix: bytes, most: int, rows: list[tuple[Any, ...]]) -> None:
        if len(rows) <= most:
            self._complete.add(prefix)
        for key, value in rows:
            self.rows.put(key, value)

    def is_there(self, key: bytes) -> bool:
        """Whether the row was found."""
        return self.rows.rows.get(key) is not None

    def is_known(self, key: bytes) -> bool:
        return key in self.rows.rows or self.is_complete(key) or self._is_beyond_newest(key)

    def is_complete(self, prefix: bytes) -> bool:
        """Whether every row that begins with `prefix` is known."""
        if not self._complete:
            return False
        return prefix[:1] in self._complete or _scope_of(prefix) in self._complete or self._is_beyond_newest(prefix)

    def range(self, low: bytes, high: bytes | None, limit: int, *, reverse: bool) -> list[Row]:
        found = [(key, value) for key in self.rows.within(low, high) if (value := self.rows.rows[key]) is not None]
        return (found[::-1] if reverse else found)[:limit]

    def _is_beyond_newest(self, key: bytes) -> bool:
        """An occurrence later than the newest one of its job does not exist, and nothing below it."""
        if key[:1] not in (keys.OCCURRENCE, keys.RUN, keys.ATTEMPT):
            return False
        name, separator, rest = key[1:].partition(b"\0")
        newest = self.newest.get(name.decode("latin-1")) if separator and len(rest) >= 8 else None
        return newest is not None and keys.OCCURRENCE + key[1 : len(name) + 10] > newest


def _scope_of(prefix: bytes) -> bytes:
    """The prefix that could be complete and would contain this one."""
    end = prefix.find(b"\0")
    if end < 0:
        return prefix
    return prefix[: end + 9] if prefix[:1] in (keys.RUN, keys.ATTEMPT) else prefix[: end + 1]
