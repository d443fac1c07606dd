"""The store on PostgreSQL: see `chronex.storage.ports.Store` for the contract, specs/machines.md for what it adds."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
from psycopg.pq import TransactionStatus

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import (
    StoreAwayError,
    StoreBusyError,
    StoreError,
    StoreForkedError,
    StoreOutcomeUnknownError,
    StoreRefusedError,
    StoreWentBackError,
)
from chronex.failpoints import fail_point
from chronex.storage import keys
from chronex.storage.ports import LostCommits, T, UpdateFn, ViewFn
from chronex.storage.scopes import JOURNAL_ONLY, WHOLE, Scope
from chronex_store.commits import GroupCommit, Take, Update, fail_written, finish
from chronex_store.postgres import pg_redo, pg_schema
from chronex_store.postgres.pg_address import PostgresAddress, read_address
from chronex_store.postgres.pg_changes import HINT, ChangeWatch, Hints
from chronex_store.postgres.pg_connections import Connection, Connections, DatabaseClock, is_away, translate_pg
from chronex_store.postgres.pg_frozen import end_frozen
from chronex_store.postgres.pg_known_rows import (
    FIRST_QUERIES,
    LINES_QUERY,
    KnownRows,
    OrderedRows,
    Query,
    of_jobs,
)  # fmt: skip
from chronex_store.postgres.pg_layout import LAYOUT
from chronex_store.postgres.pg_migration import layout_of, refuse_unknown_layout
from chronex_store.postgres.pg_redo import RecentCommits, WentBack, redo
from chronex_store.postgres.pg_scopes import (
    HeldScope,
    claimed,
    claiming,
    learn_held,
    locking,
    locks_all,
    reading_held,
    union,
)  # fmt: skip
from chronex_store.postgres.pg_shared import learn_groups, learn_shared, locking_shared, reading_groups
from chronex_store.postgres.pg_signs import SignsOfLife
from chronex_store.postgres.pg_transaction import Ask, PostgresReading, PostgresTransaction, Statement, flush
from chronex_store.transaction import NestingGuard

# An update looks up some rows among many. With a table's statistics missing or old the planner would read it all.
_PLANNING = {"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off"}
# Elsewhere a reason or a name with another letter could not be recorded, when it is too late to refuse it.
_HOLDS_ANY_TEXT = ("UTF8", "SQL_ASCII")
# As the locks need it, whatever the user has for a default.
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LONGEST_WAIT_MS = 10_000
_ASK_AGAIN_S = 0.2


class MarkIsOlderError(Exception):
    """The mark of the last commit is not that which was acknowledged: the database went back."""

    def __init__(self, token: UUID | None) -> None:
        super().__init__()
        self.token = token


class CommitUnknownError(Exception):
    """The connection broke while the commit was under way."""


class PostgresStore:
    """A store in a schema of a database, shared by any number of machines."""

    def __init__(self, connections: Connections, clock: Clock) -> None:
        self.address = connections.address
        self._connections = connections
        self._recent = RecentCommits()
        self._unknown: UUID | None = None  # the mark of a commit of which nobody could say whether it landed
        # Called, on some thread, when the database went back and what it lost was done once more.
        self.on_went_back: Callable[[LostCommits], None] = lambda found: None
        self._clock = DatabaseClock(clock)
        self._pid = os.getpid()
        self._nesting = NestingGuard()
        self._writer: Connection | None = None
        self._writer_name = f"client-{uuid4()}"
        self._has_marked = False
        # How long a commit whose reply was lost is asked for; a daemon has more patience than a command.
        self.longest_wait_ms = _LONGEST_WAIT_MS
        self._hints = Hints(clock)
        self.run_again = 0  # how many updates needed more than their scope
        self.round_trips = 0  # of all views and updates, each a wait for the network
        self._group = GroupCommit(self._commit)
        sweep = pg_redo.MarkSweep(self.address.schema, self._writer_name, clock)
        # Who only looks changes nothing, not even this.
        self._changes = ChangeWatch(
            connections,
            self._writer_name,
            self._hints,
            lambda connection: self._has_marked and sweep.work(connection),
            self._own_backend,
        )

    @classmethod
    def open(
        cls, address: PostgresAddress | str, *, create: bool = True, clock: Clock = SYSTEM_CLOCK
    ) -> PostgresStore:
        """Open the store at `address`, making its tables when `create`; StoreRefusedError, StoreAwayError."""
        found = read_address(address) if isinstance(address, str) else address
        store = cls(Connections(found, clock), clock)
        with store._connections.reader() as connection:
            try:
                prepare(connection, found, create=create)
                store._learn_time(connection)
            except psycopg.Error as error:
                raise translate_pg(error, found) from None
        return store

    def __enter__(self) -> PostgresStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the port -------------------------------------------------------------------------------------------------

    def view(self, fn: ViewFn[T]) -> T:
        self._refuse_fork()
        with self._nesting.enter():
            for is_last in (False, True):
                try:
                    return self._view(fn)
                except StoreAwayError:
                    if is_last:
                        raise
                    self._connections.drop_idle()  # the server was restarted since: a new connection may be had
        raise AssertionError

    async def view_async(self, fn: ViewFn[T]) -> T:
        return await asyncio.to_thread(self.view, fn)

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        self._nesting.refuse_nesting()
        self._refuse_fork()
        return cast("T", self._group.run(Update(fn, use_reserve, scope=scope)))

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        self._refuse_fork()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._group.submit(Update(fn, use_reserve, future, scope))
        return await future

    def wait(self, since: int, timeout: float) -> int:
        self._refuse_fork()
        return self._changes.wait(since, timeout)

    async def wait_async(self, since: int, timeout: float) -> int:
        self._refuse_fork()
        return await self._changes.wait_async(since, timeout)

    def now(self) -> int:
        return self._clock.wall_ms()

    def clock(self) -> Clock:
        """The clock for all decisions about this store."""
        return self._clock

    @property
    def clock_uncertainty_ms(self) -> float:
        return self._clock.uncertainty_ms

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler stands before the server."""
        return self._connections.is_pooled

    @contextlib.contextmanager
    def reading_connection(self) -> Iterator[Connection]:
        """A connection for questions to the server itself."""
        with self._connections.reader() as connection:
            try:
                yield connection
            except psycopg.Error as error:
                raise translate_pg(error, self.address) from None

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        self._nesting.refuse_nesting()
        self._group.close()
        self._changes.close()
        self._connections.close()
        if self._writer is not None and self._has_marked:
            with contextlib.suppress(psycopg.Error):  # a node sweeps up what is left
                pg_redo.leave(self._writer, self.address.schema, self._writer_name, self._recent.last)
        self._drop_writer()

    # -- views ----------------------------------------------------------------------------------------------------

    def _refuse_fork(self) -> None:
        if self._pid != os.getpid():
            raise StoreForkedError

    def _view(self, fn: ViewFn[T]) -> T:
        with self._connections.reader() as connection:
            tx = PostgresReading(self._beginning(connection))
            try:
                result = fn(tx)
            finally:
                tx.end()
            if connection.info.transaction_status is not TransactionStatus.IDLE:  # it has asked for something
                self.round_trips += 1
                with contextlib.suppress(psycopg.Error):  # it has been read; the connection is looked at next time
                    connection.execute("COMMIT")
            return result

    def _beginning(self, connection: Connection) -> Ask:
        """The transaction of a view begins with its first question, in one round trip."""
        ask = self._asking(connection)
        begin: list[Query] = [("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", ()), *self._connections.settings()]

        def ask_first(*queries: Query) -> list[list[tuple[Any, ...]]]:
            answers = ask(*begin, *queries)[len(begin) :]
            begin.clear()
            return answers

        return ask_first

    def _asking(self, connection: Connection) -> Ask:
        def ask(*queries: Query) -> list[list[tuple[Any, ...]]]:
            self.round_trips += 1
            try:
                if len(queries) == 1:
                    query, parameters = queries[0]
                    return [connection.execute(query, parameters, binary=True).fetchall()]
                with connection.pipeline():
                    cursors = [connection.execute(query, parameters, binary=True) for query, parameters in queries]
                return [cursor.fetchall() if cursor.description else [] for cursor in cursors]
            except psycopg.Error as error:
                raise translate_pg(error, self.address) from None

        return ask

    def _learn_time(self, connection: Connection) -> None:
        asked = self._clock.boottime_ms()
        row = connection.execute(f"SELECT {pg_redo.TIME}").fetchone()
        assert row is not None
        self._clock.learn(row[0], asked, self._clock.boottime_ms())

    # -- one commit, called by the leader of the group ------------------------------------------------------------

    def _commit(self, take: Take) -> None:
        self._nesting.inside = True
        try:
            batch = take()
            while waiting := [update for update in batch if not update.done]:
                # Those that need the store to themselves come by themselves, or they would hold up the others.
                scoped = [update for update in waiting if not update.scope.is_whole]
                self._commit_or_again(scoped or waiting, take)
        finally:
            self._nesting.inside = False

    def _commit_or_again(self, batch: list[Update], take: Take) -> None:
        """Once more where nothing has landed: the connection broke before, or who stood in the way is gone."""
        for is_last in (False, True):
            try:
                self._commit_once(batch)
                return
            except StoreAwayError as error:
                self._drop_writer()
                if is_last:
                    fail_written(take(), error)
            except StoreBusyError as error:
                self._drop_writer()
                if is_last or not self._end_frozen():
                    fail_written(batch, error)
                    return
            except StoreError as error:
                self._drop_writer()
                fail_written(batch, error)
                return

    def _end_frozen(self) -> bool:
        """Whether somebody who stood still held what was waited for, and does not any more."""
        with contextlib.suppress(StoreError), self.reading_connection() as connection:
            return end_frozen(connection, self.address.schema)
        return False

    def _commit_once(self, batch: list[Update]) -> None:
        try:
            self._commit_scope(batch, union(update.scope for update in batch))
        except MarkIsOlderError as found:
            self._redo_lost(found.token)

    def _redo_lost(self, token: UUID | None) -> None:
        """Commits of ours that were acknowledged are gone: they are done once more before anything else is."""
        recent, lost = self._recent, self._recent.lost_after(token)
        if lost is None:
            raise StoreWentBackError(
                f"{self.address.shown} went back to a time before what was committed, for longer than is known here"
            )
        found: list[WentBack] = []
        update = Update(lambda tx: found.append(redo(tx, lost, self.now(), self._writer_name)), use_reserve=True)
        self._recent = RecentCommits(token)
        try:
            self._commit_scope([update], WHOLE)
            if update.error is not None:
                raise update.error
        except BaseException:
            self._recent = recent
            raise
        self.on_went_back(found[-1])

    def _commit_scope(self, batch: list[Update], scope: Scope) -> None:
        known, held = KnownRows(), HeldScope(scope)
        token = uuid4()
        connection = self._begin(scope, known, held, token)
        if connection is None:
            for update in batch:
                update.scope = WHOLE
            return
        writes = OrderedRows()
        with self._deciding(connection, scope) as ask:
            decided = [update for update in batch if _run_one(update, ask, writes, known, held)]
            statements = list(flush(writes))
        self.run_again += len(batch) - len(decided)
        fail_point("shared update written")
        if not writes.rows:
            self._end(connection)
            finish(decided)
            return
        try:
            self._send(connection, statements, token, is_word=_is_word(writes))
        except CommitUnknownError:
            if not self._has_landed(token):
                raise StoreAwayError(f"{self.address.shown} went away during a commit, which did not land") from None
        self._recent.note(token, self._clock.boottime_ms(), writes, known, is_whole=scope.is_whole)
        fail_point("shared update committed")
        finish(decided)
        if not _is_word(writes):
            self._changes.moved()

    def _begin(self, scope: Scope, known: KnownRows, held: HeldScope, token: UUID) -> Connection | None:
        """The writer's connection, in a transaction that holds what is named; None where that cannot be held."""
        if self._writer is None or self._writer.closed:
            self._writer = self._connections.connect(_PLANNING)
        connection = self._writer
        ask = self._asking(connection)
        asked = self._clock.boottime_ms()
        settings = self._connections.settings(_PLANNING)
        locks: list[Query] = [(_BEGIN, ()), *settings, *locking(scope)]
        claims = () if scope.due is None else claiming(scope.due)
        # What is held is known beforehand, or by what was claimed.
        held_queries = () if scope.due else _of_held(held)
        mark = pg_redo.time_and_mark(self.address.schema, self._writer_name, token)
        answers = ask(*locks, mark, *claims, *FIRST_QUERIES, *held_queries)
        locked, answers = answers[1 + len(settings) : len(locks)], answers[len(locks) :]
        server_ms, marked, _ = answers[0][0]
        is_set = self._clock.learn(server_ms, asked, self._clock.boottime_ms())
        if is_set and scope != JOURNAL_ONLY:
            self._end(connection)
            raise StoreBusyError(
                f"the clock of {self.address.shown} was set meanwhile; nothing was written, try again"
            )
        if not self._is_own_mark(marked):
            self._end(connection)
            raise MarkIsOlderError(marked)
        claimed_rows, answers = answers[1 : 1 + len(claims)], answers[1 + len(claims) :]
        if not locks_all(scope, locked) or (scope.due and not claimed(scope.due, held, claimed_rows)):
            self._end(connection)
            return None
        known.learn_first(*answers[: len(FIRST_QUERIES)])
        answers = answers[len(FIRST_QUERIES) :]
        if scope.due:
            held_queries = _of_held(held)
            answers = ask(*held_queries)
        _learn(ask, known, held, answers)
        return connection

    def _is_own_mark(self, token: UUID | None) -> bool:
        """Whether the mark is that of the last commit of this process, as far as it can know."""
        if token is not None and token == self._unknown:
            self._recent = RecentCommits(token)  # it had landed after all
        if token is None and self._recent.is_silent_since(self._clock.boottime_ms() - pg_redo.MAY_BE_SWEPT_MS):
            self._recent = RecentCommits()
        return token == self._recent.last

    def _end(self, connection: Connection) -> None:
        self.round_trips += 1
        try:
            connection.execute("ROLLBACK")
        except psycopg.Error:
            self._drop_writer()

    @contextlib.contextmanager
    def _deciding(self, connection: Connection, scope: Scope) -> Iterator[Ask]:
        """How a decision asks. One that has the store to itself may be about everything, and take long."""
        ask = self._asking(connection)
        if not scope.is_whole:
            yield ask
            return
        signs = SignsOfLife(connection, ask)
        with signs.during():
            yield signs.ask

    def _send(self, connection: Connection, statements: list[Statement], token: UUID, *, is_word: bool) -> None:
        """All writes and the commit in one pipeline. Leaving the block waits for the answers, of any size.

        Not so behind a pooler: psycopg ends a pipeline with a request to flush. Where it comes after the answer to
        the commit, it is a new transaction for the pooler, which keeps a connection for it that nobody else has then.
        """
        is_pooled = self.is_pooled
        mark = {"writer": self._writer_name, "token": token, "n": int(not is_word)}
        commit, is_committing = connection.cursor(), False
        self.round_trips += 1
        try:
            with connection.pipeline():
                connection.execute(pg_redo.MARK, mark)
                for query, parameters in statements:
                    connection.execute(query, parameters)
                is_committing = not is_pooled
                if is_committing:
                    self._send_commit(commit, is_word=is_word)
            if not is_committing:
                is_committing = True
                self._send_commit(commit, is_word=is_word)
        except psycopg.Error as error:
            self._drop_writer()
            if commit.statusmessage != "COMMIT":  # else only the word to the others was not taken
                is_unknown = is_committing and is_away(error)
                raise CommitUnknownError if is_unknown else translate_pg(error, self.address) from None
        self._has_marked = True

    def _send_commit(self, commit: psycopg.Cursor[tuple[Any, ...]], *, is_word: bool) -> None:
        commit.execute("COMMIT")
        if not is_word and self._hints.may_notify():
            commit.connection.execute(HINT)

    def _has_landed(self, token: UUID) -> bool:
        """Did the commit of this token take effect? Asked until the database answers, or our patience is over."""
        give_up_ms = self._clock.boottime_ms() + self.longest_wait_ms
        while True:
            try:
                return self._ask_whether_landed(token)
            except (psycopg.Error, StoreError):
                self._drop_writer()
                if self._clock.boottime_ms() >= give_up_ms:
                    self._unknown = token
                    raise StoreOutcomeUnknownError(
                        f"{self.address.shown} went away during a commit, so its outcome is unknown; look again later"
                    ) from None
            time.sleep(_ASK_AGAIN_S)

    def _ask_whether_landed(self, token: UUID) -> bool:
        connection = self._writer = self._connections.connect(_PLANNING)
        return pg_redo.has_landed(connection, self.address.schema, self._writer_name, token)

    def _own_backend(self) -> int | None:
        """The process of the server that works for our writer, by which it names who has sent a word."""
        writer = self._writer
        return None if writer is None or writer.closed else writer.info.backend_pid

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _of_held(held: HeldScope) -> tuple[Query, ...]:
    """The questions for what is held: its groups are locked first, and what changes with them is read afterwards."""
    return (*locking_shared(held), LINES_QUERY, *reading_held(held))


def _learn(ask: Ask, known: KnownRows, held: HeldScope, answers: list[list[tuple[Any, ...]]]) -> None:
    """The answers to `_of_held`; where groups are among it, they are asked for, with the first in their lines."""
    count = len(locking_shared(held))
    groups = learn_shared(held, answers[:count])
    known.learn_lines(answers[count])
    if held.is_whole:
        return
    learn_held(known, held, answers[count + 1 :])
    if groups and (heads := learn_groups(known, held, groups, ask(*reading_groups(groups)))):
        known.learn_jobs(heads, ask(*of_jobs(heads)))


def _run_one(update: Update, ask: Ask, writes: OrderedRows, known: KnownRows, held: HeldScope) -> bool:
    """False where the update needs more than is held: it has left nothing, and is run again with more."""
    tx = PostgresTransaction(ask, writes, known, held)
    try:
        update.result = update.fn(tx)
        update.error = None
    except (KeyboardInterrupt, StoreAwayError):
        raise
    except BaseException as error:
        update.error = error
    finally:
        tx.end()
    if held.is_left:
        update.scope = held.wider(update.scope)
        update.error = None
    elif update.error is None:
        return True
    tx.roll_back()
    return update.error is not None


def _is_word(writes: OrderedRows) -> bool:
    """Whether a node has only said that it lives, which is nothing to wake the others for."""
    return len(writes.rows) == 1 and all(key[:1] == keys.NODE for key in writes.rows)


# -- the tables ---------------------------------------------------------------------------------------------------


def prepare(connection: Connection, address: PostgresAddress, *, create: bool) -> None:
    """Look whether the store is there and of a layout that is known here; make it where asked to."""
    number = layout_of(connection, address)
    if number is None and create:
        _create(connection, address)
        number = LAYOUT
    if number is None:
        raise StoreRefusedError(
            f"there is no store at {address.shown} yet; `chronex apply` or `chronex run` makes it"
        )
    refuse_unknown_layout(number, address)


def _create(connection: Connection, address: PostgresAddress) -> None:
    """One transaction, and one maker at a time; who comes second finds it made."""
    encoding = connection.info.parameter_status("server_encoding") or "UTF8"
    if encoding not in _HOLDS_ANY_TEXT:
        raise StoreRefusedError(
            f"{address.shown} has the encoding {encoding}, which cannot hold every text; "
            "make another database with: createdb -E UTF8 -T template0 NAME"
        )
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s), 0)", (address.schema,))
        found = connection.execute(
            "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'layout'", (address.schema,)
        ).fetchone()
        if found is None:
            for statement in pg_schema.statements(address.schema):
                connection.execute(statement)
