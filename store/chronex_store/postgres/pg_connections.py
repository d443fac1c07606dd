"""Connections to the database of a store, and what its errors mean for who asked."""

from __future__ import annotations

import logging
import math
import os
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import psycopg
from psycopg import errors as pg
from psycopg.abc import PQGen

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import (
    StoreAwayError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreRefusedError,
    StoreRightError,
)
from chronex_store.postgres import pg_arrays
from chronex_store.postgres.pg_address import PostgresAddress

# The clock of the database: one for all machines, whatever their own clocks say.

_KEPT = 10


class _Sample(NamedTuple):
    offset_ms: float
    round_trip_ms: float


class DatabaseClock:
    """Wall time by the server, counted on between questions by this machine's boot time, which nobody can set."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._samples: deque[_Sample] = deque(maxlen=_KEPT)
        self._offset_ms = 0.0
        self.uncertainty_ms = 0.0

    def learn(self, server_ms: float, asked_ms: int, answered_ms: int) -> bool:
        """The server said `server_ms` between these two readings of the boot time. True where it was set since."""
        is_set, before_ms = False, self._offset_ms
        sample = _Sample(server_ms - (asked_ms + answered_ms) / 2, answered_ms - asked_ms)
        with self._lock:
            self._samples.append(sample)
            best = min(self._samples, key=lambda one: one.round_trip_ms)
            if abs(best.offset_ms - sample.offset_ms) > (best.round_trip_ms + sample.round_trip_ms) / 2 + _DRIFT_MS:
                self._samples.clear()  # the server's clock was set: what was known before is of no use
                self._samples.append(sample)
                best = sample
                is_set = abs(sample.offset_ms - before_ms) > sample.round_trip_ms / 2 + _SET_MS
            self._offset_ms, self.uncertainty_ms = best.offset_ms, best.round_trip_ms / 2
        return is_set

    def wall_ms(self) -> int:
        return round(self._offset_ms + self._clock.boottime_ms())

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()

    def boottime_ms(self) -> int:
        return self._clock.boottime_ms()


# Two clocks drift apart by this much between samples at the utmost; more is a clock that was set.
_DRIFT_MS = 50.0
# From here on everybody follows a clock that was set, and what was decided by the old time is not taken.
_SET_MS = 2_000


# When to ask again for a connection that was not had: later and later, and each process at another moment.
#
# A database that comes back after a failover is met by every node at once. Each has several that ask (a tick, its
# word, its sleepers, ends that wait), so they share one pause: who asks before it is over is answered without the
# network.

SHORTEST_MS, LONGEST_MS = 100, 5_000
# A connection that broke is asked for a second time within one call: that call waits so long and fails no sooner.
WAITED_FOR_MS = 200


def pause_after(failures: int, chance: Random) -> int:
    """Milliseconds until the next try, where so many failed before: doubled each time, by chance at least half."""
    most = min(SHORTEST_MS << min(failures, 16), LONGEST_MS)
    return round(chance.uniform(most / 2, most))


class Reconnects:
    """The pause of one process, for whoever of it asks."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK, chance: Random | None = None) -> None:
        self._clock = clock
        self._chance = chance or Random()  # noqa: S311  it spreads load, it guards nothing
        self._lock = threading.Lock()
        self._failures = 0
        self._not_before_ms = 0
        self._said = ""

    def check(self) -> None:
        """Wait for the end of a short pause; StoreAwayError, in the words of the last try, in a longer one."""
        with self._lock:
            left_ms, said = self._not_before_ms - self._clock.monotonic_ms() if self._failures else 0, self._said
        if left_ms > WAITED_FOR_MS:
            raise StoreAwayError(said)
        if left_ms > 0:
            time.sleep(left_ms / 1000)

    def failed(self, error: StoreAwayError) -> None:
        """Several that failed at once count as one."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            self._said = str(error)
            if now_ms >= self._not_before_ms:
                self._not_before_ms = now_ms + pause_after(self._failures, self._chance)
                self._failures += 1

    def made(self) -> None:
        with self._lock:
            self._failures = self._not_before_ms = 0


# What goes wrong is told by our own errors; its log would say it a second time, in other words.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)

# A server, or a proxy before it, that stands still while its kernel answers for it: no keepalive finds that out, and
# no limit of the server's own holds. The first is longer than the longest statement may take. Where one connection
# has waited for so long, the others of its process wait less, or a daemon that leaves would wait for each in turn.
LONGEST_SILENCE_S = 35.0
FURTHER_SILENCE_S = 5.0
W = TypeVar("W")


class SilentServerError(psycopg.OperationalError):
    """The connection lives, and no byte of an answer comes."""


class Hearing:
    """Of one server, by one process: whether the last that is known of it is that it said nothing."""

    is_silent = False


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """One that waits for no answer for longer than `longest_silence_s`; then it is closed."""

    longest_silence_s = LONGEST_SILENCE_S
    hearing = Hearing()

    def wait(self, gen: PQGen[W], *arguments: Any, **options: Any) -> W:
        try:
            return super().wait(self._within_silence(gen), *arguments, **options)
        except SilentServerError:
            self.hearing.is_silent = True
            self.pgconn.finish()  # nothing else may wait for it once more
            raise

    def _within_silence(self, work: PQGen[W]) -> PQGen[W]:
        """`work`, which is told from time to time that nothing has come; SilentServerError where that goes on."""
        answered_ms = SYSTEM_CLOCK.monotonic_ms()
        try:
            wanted = next(work)
            while True:
                ready = yield wanted
                if ready:
                    answered_ms = SYSTEM_CLOCK.monotonic_ms()
                    self.hearing.is_silent = False
                elif (silent_s := (SYSTEM_CLOCK.monotonic_ms() - answered_ms) / 1000) > self._most_silence_s():
                    raise SilentServerError(f"no answer for {silent_s:.0f} s")
                wanted = work.send(ready)
        except StopIteration as done:
            result: W = done.value
            return result

    def _most_silence_s(self) -> float:
        return min(self.longest_silence_s, FURTHER_SILENCE_S if self.hearing.is_silent else math.inf)


OLDEST_SERVER = 130_000
# What this session alone has set: who does not find it there speaks with a pooler.
_OWN_SETTING = "chronex.session"
_IDLE_READERS = 2
# A statement of ours takes milliseconds; these bounds are for a server or a network that hangs.
LONGEST_IDLE = "5s"  # a node that stands still must not hold the others up
_SESSION = {
    "lock_timeout": "8s",
    "statement_timeout": "30s",
    "idle_in_transaction_session_timeout": LONGEST_IDLE,
    "jit": "off",
    "client_min_messages": "warning",
    "timezone": "UTC",
    "standard_conforming_strings": "on",
}
_CONNECT: dict[str, Any] = {
    "connect_timeout": 3,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8_000,
    "target_session_attrs": "read-write",
    "application_name": "chronex",
    "client_encoding": "utf8",
}
_AWAY = (
    pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow, pg.DatabaseDropped, pg.IdleSessionTimeout,
    pg.IdleInTransactionSessionTimeout, pg.ReadOnlySqlTransaction, pg.TooManyConnections,
)  # fmt: skip
# Somebody removed the tables, or is about to restore them.
_GONE = (pg.UndefinedTable, pg.InvalidSchemaName, pg.InvalidColumnReference)
# What a server says to someone whom it does not let in, and what libpq says of files: asking again is of no use.
_REFUSALS = (
    (re.compile(r"certificate authentication failed"),
     "the server takes this certificate for no such user; name the user for whom it was made, "
     "or the server's pg_ident.conf maps its name to this one"),
    (re.compile(r"requires a valid client certificate"),
     "the server asks for a certificate of this machine; name it and its key in the address with sslcert=/…/me.crt "
     "and sslkey=/…/me.key, or put them into ~/.postgresql as postgresql.crt and postgresql.key"),
    (re.compile(r"alert (unknown ca|bad certificate|(unsupported )?certificate\b|decrypt error)"),
     "the server does not trust the certificate of this machine: its time or who signed it is wrong; renew it, or "
     "name another with sslcert=/…/me.crt and sslkey=/…/me.key"),
    (re.compile(r"private key file|could not (read|open) certificate file"),
     "the certificate of this machine or its key cannot be used; both must belong together, the key be readable by "
     "its owner alone, and sslpassword open it where it is encrypted"),
    (re.compile(r"password authentication failed|no password supplied|SCRAM|authentication failed"),
     "the database refuses the password; put the right one into the address, PGPASSWORD or ~/.pgpass"),
    (re.compile(r'database "[^"]*" does not exist'),
     "there is no such database on the server; make it with: createdb NAME"),
    (re.compile(r'role "[^"]*" does not exist'), "the server does not know this user; make it with: createuser NAME"),
    (re.compile(r"unsupported startup parameter"),
     "the connection pooler refuses our settings; add `ignore_startup_parameters = options` to its configuration"),
    (re.compile(r"definition of service"),
     "no service file has it; write it into ~/.pg_service.conf, or name its file in PGSERVICEFILE"),
    (re.compile(r"no pg_hba\.conf entry|pg_hba\.conf rejects|not permitted to log in|permission denied for database"),
     "the server does not let this user in from here; its pg_hba.conf and GRANT CONNECT decide that"),
    (re.compile(r"root certificate file"),
     "no file says whom to trust; name that of the server's authority in the address with sslrootcert=/…/ca.crt, "
     "or take those of this machine with sslrootcert=system"),
    (re.compile(r"certificate verify failed|server certificate for .* does not match"),
     "the certificate of the server is not to be trusted: its name, its time or who signed it is wrong; renew it, or "
     "name the file of its authority with sslrootcert=/…/ca.crt"),
    # Not meant is a server that goes away while it greets: "SSL SYSCALL error", "SSL connection has been closed".
    (re.compile(r'invalid (connection option|port|integer|"?\w+"? value)|certificate|SSL(?! SYSCALL| connection)'),
     "the connection could not be made as the address asks for it; put that right in the address"),
)  # fmt: skip


# What may be another time: a failover is under way, or somebody leaves.
_NOT_NOW = (
    (re.compile(r"session is read-only|cannot execute .* in a read-only transaction|read-only transaction"),
     "only a standby answers, which takes no writes; if no failover is under way, name the primary in the address, "
     "or reset default_transaction_read_only of the user"),
    (re.compile(r"too many connections|remaining connection slots|too many clients|no more connections allowed"),
     "the server has no connection left; each daemon needs four: raise max_connections, or end what holds them"),
    (re.compile(r"the database system is (starting up|shutting down|in recovery mode)"),
     "the server is not ready yet"),
)  # fmt: skip


_ANYTHING = re.compile("")
_NO_SUCH_HOST = re.compile(r"could not translate host name|failed to resolve host|Name or service not known")


def describe_connect(error: psycopg.Error, address: PostgresAddress) -> StoreError:
    """Why no connection could be made: refused for good, or only not now."""
    said = address.without_secrets(" ".join(str(error).split()))
    for pattern, words in _NOT_NOW:
        if pattern.search(said):
            return StoreAwayError(f"{address.shown}: {words} ({_sentence(said, pattern)})")
    for pattern, words in _REFUSALS:
        if pattern.search(said):
            return StoreRefusedError(f"{address.shown}: {words} ({_sentence(said, pattern)})")
    question = "is its name right?" if _NO_SUCH_HOST.search(said) else "is the server running?"
    return StoreAwayError(f"{address.shown} does not answer ({_sentence(said, _ANYTHING)}); {question}")


def _sentence(said: str, pattern: re.Pattern[str]) -> str:
    """libpq tells of each address and way that it tried; the last one that is meant is enough."""
    tried = [one for one in said.split("connection to server") if pattern.search(one)]
    last = (tried[-1] if tried else said).rsplit("failed: ", 1)[-1]
    for advice in ("Is the server running", "Either provide the file"):
        last = last.partition(advice)[0]
    return last.strip().removeprefix("connection is bad:").strip().removeprefix("FATAL:").strip()[:200]


def translate_pg(error: psycopg.Error, address: PostgresAddress) -> StoreError:
    """The typed error for what the database said to a statement: nothing was written."""
    if isinstance(error, pg.DiskFull | pg.OutOfMemory | pg.ConfigurationLimitExceeded):
        return StoreFullError(f"the server of {address.shown} has no space left and nothing was written; free some")
    if isinstance(error, pg.LockNotAvailable | pg.QueryCanceled | pg.DeadlockDetected):
        return StoreBusyError(f"others held what was needed in {address.shown} for too long; nothing was written")
    if isinstance(error, pg.InsufficientPrivilege):
        said = error.diag.message_primary or ""
        hint = (
            "its owner may say: GRANT CREATE ON DATABASE …, or apply the jobs once as himself, which makes the store"
            if said.startswith("permission denied for database")
            else "its owner grants it; `chronex store roles` prints the SQL for that"
        )
        return StoreRightError(f"the user of {address.shown} lacks a right ({said}); {hint}")
    if isinstance(error, _GONE):
        said = error.diag.message_primary or ""
        return StoreAwayError(
            f"the tables of {address.shown} are gone ({said}); restore them from a backup, or make new ones with: "
            "chronex apply"
        )
    if is_away(error):
        said = address.without_secrets(error.diag.message_primary or " ".join(str(error).split())[:200])
        return StoreAwayError(f"{address.shown} does not answer any more ({said})")
    return StoreError(f"the database failed: {error.diag.message_primary or error}")


def _unasked(address: PostgresAddress) -> dict[str, str]:
    """An encrypted key without its password is refused; OpenSSL would ask for it at the terminal, each time."""
    has_service = "service" in address.parameters or "PGSERVICE" in os.environ  # which may have it
    return {} if has_service else {"sslpassword": "none was given"}


def is_away(error: psycopg.Error) -> bool:
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return isinstance(error, _AWAY) or state.startswith("08")


class Connections:
    """Makes connections of one address, and keeps a few for readers."""

    def __init__(self, address: PostgresAddress, clock: Clock = SYSTEM_CLOCK) -> None:
        self.address = address
        self._reconnects = Reconnects(clock)
        self._hearing = Hearing()
        # Behind a pooler no setting of a session is ours to keep: each transaction brings its own.
        self.is_pooled = False
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._is_closed = False
        self._was_let_in = False

    def connect(self, further: Mapping[str, str] | None = None) -> Connection:
        """A new connection in autocommit, so that BEGIN and COMMIT are ours to send; StoreError where none is had."""
        self._reconnects.check()
        try:
            made = self._connect(further)
        except StoreAwayError as error:
            self._reconnects.failed(error)
            raise
        except StoreRefusedError as error:
            if not self._was_let_in:
                raise
            # A password that is being changed, a database that is restored, a certificate that ran out: who worked
            # with it before waits until that is mended, in the same words.
            away = StoreAwayError(str(error))
            self._reconnects.failed(away)
            raise away from None
        self._reconnects.made()
        self._was_let_in = True
        return made

    def _connect(self, further: Mapping[str, str] | None) -> Connection:
        settings = {**_SESSION, **(further or {}), "search_path": self.address.schema, _OWN_SETTING: uuid4().hex}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        try:
            given = {**_CONNECT, **_unasked(self.address), **self.address.parameters, "options": options}
            made = Connection.connect(autocommit=True, **given)
        except psycopg.Error as error:
            raise describe_connect(error, self.address) from None
        except UnicodeError:
            raise StoreRefusedError(f"{self.address.shown}: the address is not plain text") from None
        made.hearing = self._hearing
        pg_arrays.teach(made)
        if made.info.server_version < OLDEST_SERVER:
            major, oldest = made.info.server_version // 10_000, OLDEST_SERVER // 10_000
            made.close()
            raise StoreRefusedError(f"{self.address.shown} runs PostgreSQL {major}; Chronex needs {oldest} or newer")
        try:
            found = made.execute(f"SELECT current_setting('{_OWN_SETTING}', true)").fetchone()
        except psycopg.Error as error:
            raise translate_pg(error, self.address) from None
        if found != (settings[_OWN_SETTING],):
            self.is_pooled = True
            made.prepare_threshold = None  # a prepared statement would be on another connection of the pooler
        return made

    def settings(self, further: Mapping[str, str] | None = None) -> list[tuple[str, tuple[str, ...]]]:
        """What a transaction begins with behind a pooler; nothing elsewhere, where the session has it."""
        if not self.is_pooled:
            return []
        wanted = {**_SESSION, **(further or {}), "search_path": self.address.schema}
        calls = ", ".join("set_config(%s, %s, true)" for _ in wanted)
        return [(f"SELECT {calls}", tuple(part for pair in wanted.items() for part in pair))]

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """A connection for one view; it is kept for the next one unless it broke."""
        connection = self._take()
        try:
            yield connection
        except BaseException:
            connection.close()  # whatever it was in the middle of is over
            raise
        self._give_back(connection)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def drop_idle(self) -> None:
        """The server went away: none of these is of use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> Connection:
        with self._lock:
            if self._is_closed:
                raise StoreClosedError
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
        return self.connect()

    def _give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._is_closed and len(self._idle) < _IDLE_READERS:
                self._idle.append(connection)
                return
        connection.close()
