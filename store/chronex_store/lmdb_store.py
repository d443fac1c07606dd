"""The store on LMDB: what `update` acknowledged survives the end of the process, of the machine and of the power."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import lmdb

from chronex.clock import SYSTEM_CLOCK, Clock
from chronex.errors import (
    StoreClosedError,
    StoreError,
    StoreForkedError,
    StoreFullError,
    StoreOutcomeUnknownError,
    StoreReplacedError,
)
from chronex.failpoints import fail_point
from chronex.storage.ports import T, UpdateFn, ViewFn
from chronex.storage.scopes import WHOLE, Scope
from chronex_store import lmdb_environment
from chronex_store.commits import (
    BatchBrokenError,
    CommitWatch,
    GroupCommit,
    Take,
    Update,
    fail_all,
    fail_written,
    finish,
    has_terminal,
    hold_job_control,
    release_job_control,
    run_batch,
)
from chronex_store.daemon_lock import DaemonLock
from chronex_store.directory_checks import DATA_FILE
from chronex_store.lmdb_environment import (
    LmdbEnvironment,
    ReserveFile,
    Space,
    is_disk_full,
    is_map_low,
    measure_space,
    open_environment,
)
from chronex_store.migration import migrate_store, refuse_older
from chronex_store.transaction import LmdbReading, NestingGuard, translate

MAINTENANCE_MS = 60_000


class LmdbStore:
    """A store in a directory; see `chronex.storage.ports.Store` for the contract."""

    def __init__(self, env: LmdbEnvironment, clock: Clock) -> None:
        self._env: LmdbEnvironment | None = env
        self._lost_env: LmdbEnvironment | None = None  # the one that a failed commit made unusable
        self._path = env.path
        self._clock = clock
        self._pid = os.getpid()
        # A view or a commit holds the environment; closing and reopening wait until there is no holder.
        self._env_lock = threading.Condition(threading.Lock())
        self._env_holders = 0
        self._env_closing = False
        self._maintained_ms = clock.monotonic_ms()
        self._nesting = NestingGuard()
        self._has_terminal = has_terminal()
        self._reserve = ReserveFile(env.path)
        self._group = GroupCommit(self._commit)
        self._commits = CommitWatch(env.path / DATA_FILE, self._commit_number, clock)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        migrate: bool | None = None,
        map_size: int = 0,
        allow_network: bool = False,
        verify: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        held: DaemonLock | None = None,
    ) -> LmdbStore:
        """Open the store in the directory `path`, making it when `create`; raises StoreRefusedError.

        A store of an older format is migrated after a backup where `migrate`, which follows `create` when it is not
        given; otherwise it is refused and stays as it is, because a command that only reads must write nothing.

        `verify` reads every page first (about 3 s for a million records) and raises StoreDamagedError; a
        daemon asks for it when its predecessor did not end in good order. `held` is the daemon's lock of a daemon,
        which a migration needs and could not take a second time.
        """
        now = clock.wall_ms()
        env = open_environment(
            Path(path), create=create, map_size=map_size, allow_network=allow_network, now_ms=now, verify=verify
        )
        if env.meta.format != lmdb_environment.FORMAT:
            if create if migrate is None else migrate:
                env = migrate_store(env, now, held)
            else:
                refuse_older(env)
        store = cls(env, clock)
        if create:  # opening a store to read it must leave no file behind
            store._reserve.create()
        return store

    def __enter__(self) -> LmdbStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def path(self) -> Path:
        return self._path

    def view(self, fn: ViewFn[T]) -> T:
        self._nesting.refuse_nesting()
        env = self._hold_env()
        self._nesting.inside = True
        try:
            with self._begin_read(env) as txn:
                tx = LmdbReading(txn)
                try:
                    return fn(tx)
                finally:
                    tx.end()
        finally:
            self._nesting.inside = False
            self._release_env()

    async def view_async(self, fn: ViewFn[T]) -> T:
        return self.view(fn)  # the map is in memory: another thread would cost more than the reading

    def update(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        self._nesting.refuse_nesting()
        self._refuse_fork()
        return cast("T", self._group.run(Update(fn, use_reserve)))

    async def update_async(self, fn: UpdateFn[T], *, use_reserve: bool = False, scope: Scope = WHOLE) -> T:
        self._refuse_fork()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._group.submit(Update(fn, use_reserve, future))
        return await future

    def wait(self, since: int, timeout: float) -> int:
        return self._commits.wait(since, timeout)

    async def wait_async(self, since: int, timeout: float) -> int:
        return await self._commits.wait_async(since, timeout)

    def now(self) -> int:
        return self._clock.wall_ms()

    def clock(self) -> Clock:
        return self._clock

    def space(self) -> Space:
        env = self._hold_env()
        try:
            return measure_space(env)
        finally:
            self._release_env()

    def environment(self) -> LmdbEnvironment:
        """The open environment, for doctor and backup inside the same process."""
        self._refuse_fork()
        if self._env is None:
            raise StoreClosedError
        return self._env

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        self._nesting.refuse_nesting()
        self._group.close()
        self._commits.close()
        with self._env_lock:
            self._env_closing = True
            self._env_lock.wait_for(lambda: self._env_holders == 0)
            env = self._env
            self._env = None
            self._lost_env = None
            self._env_closing = False
            self._env_lock.notify_all()
        if env is not None:
            env.close()

    # -- holding the environment ----------------------------------------------------------------------------------

    def _refuse_fork(self) -> None:
        if self._pid != os.getpid():
            raise StoreForkedError

    def _hold_env(self) -> LmdbEnvironment:
        """Hold the environment open; paired with `_release_env`."""
        self._refuse_fork()
        with self._env_lock:
            while self._env_closing:
                self._env_lock.wait()
            env = self._env or self._recover()
            self._env_holders += 1
        self._maintain(env)
        return env

    def _release_env(self) -> None:
        with self._env_lock:
            self._env_holders -= 1
            if self._env_closing and self._env_holders == 0:
                self._env_lock.notify_all()

    def _maintain(self, env: LmdbEnvironment) -> None:
        """Once a minute: clear the slots of killed readers, which keep old pages, and create the reserve file."""
        now = self._clock.monotonic_ms()
        if now - self._maintained_ms > MAINTENANCE_MS:
            self._maintained_ms = now
            env.lmdb.reader_check()
            self._reserve.create()

    def _begin_read(self, env: LmdbEnvironment) -> Any:
        try:
            return env.lmdb.begin()
        except lmdb.ReadersFullError:
            env.lmdb.reader_check()
        except lmdb.Error as error:
            raise translate(error, "begin") from error
        try:
            return env.lmdb.begin()
        except lmdb.Error as error:
            raise translate(error, "begin") from error

    def _commit_number(self) -> tuple[int, bool]:
        """The number of the commit that a view would see now, and whether it is the newest. LMDB numbers its commits.

        A commit writes its meta page first, which wakes the sleepers, and becomes visible to readers a moment
        later. In between the newest number is not yet the one that a view sees.
        """
        env = self._hold_env()
        try:
            if env.is_replaced():
                raise StoreReplacedError
            newest = env.lmdb.info()["last_txnid"]
            with self._begin_read(env) as txn:
                visible: int = txn.id()
            return visible, visible >= newest
        finally:
            self._release_env()

    # -- one commit, called by the leader of the group ------------------------------------------------------------

    def _commit(self, take: Take) -> None:
        """Commit one batch. It is taken after the transaction has begun, so that updates queued meanwhile join it."""
        held = self._has_terminal and hold_job_control()
        self._nesting.inside = True
        try:
            self._commit_once(take)
        except BatchBrokenError as broken:
            self._commit_one_by_one(take(), broken.error)
        except StoreError as error:
            fail_all(take(), error)
        finally:
            self._nesting.inside = False
            if held:
                release_job_control()

    def _commit_one_by_one(self, batch: list[Update], error: StoreError) -> None:
        """After `error` broke the batch: commit each update alone, so that only those that cannot succeed fail."""
        if len(batch) == 1:
            fail_all(batch, error)
        for update in batch:
            if not update.done:
                self._commit_alone(update)

    def _commit_alone(self, update: Update) -> None:
        try:
            self._commit_once(lambda: [update])
        except BatchBrokenError as broken:
            fail_all([update], broken.error)
        except StoreError as error:
            fail_all([update], error)

    def _commit_once(self, take: Take) -> None:
        """Run the batch on one LMDB transaction and commit it; nothing is committed when no update wrote."""
        env, txn = self._begin_write()
        try:
            try:
                fail_point("update begun")
                batch = take()
                wrote = run_batch(txn, batch, is_map_low(env, txn))
                fail_point("update written")
            except BaseException:
                txn.abort()
                raise
            if not wrote:
                txn.abort()
                finish(batch)
                return
            number = txn.id()
            failure = _try_commit(txn, batch)
            fail_point("update committed")
        finally:
            self._release_env()
        if failure is None:
            finish(batch)
        elif isinstance(failure, lmdb.MapFullError):
            raise BatchBrokenError(translate(failure, "commit"))
        else:
            error = self._explain_failure(env, failure, number)
            if isinstance(error, StoreFullError):
                self._commit_with_reserve(batch)
            fail_written(batch, error)

    def _commit_with_reserve(self, batch: list[Update]) -> None:
        """The disk is full: release the reserve file for the updates that record the end of running work."""
        entitled = [update for update in batch if update.use_reserve and update.error is None]
        if entitled and self._reserve.release():
            for update in entitled:
                self._commit_alone(update)

    def _begin_write(self) -> tuple[LmdbEnvironment, Any]:
        """Hold the environment and its writer lock. An environment that LMDB cannot use any more is reopened once."""
        for is_last in (False, True):
            env = self._hold_env()
            try:
                return env, _begin_on_same_file(env)
            except (lmdb.PanicError, lmdb.MapResizedError) as error:
                self._release_env()
                if is_last:
                    raise translate(error, "begin") from error
                self._reopen(env)
            except BaseException:
                self._release_env()
                raise
        raise AssertionError

    # -- after a failed commit ------------------------------------------------------------------------------------

    def _explain_failure(self, env: LmdbEnvironment, failure: lmdb.Error, number: int) -> StoreError:
        """The error for a failed commit. A full disk is certain only when the reopened store lacks the commit."""
        is_full = is_disk_full(failure, self._path)
        try:
            self._reopen(env)
            is_committed = self._commit_number()[0] >= number
        except StoreError:
            is_committed = True
        if is_full and not is_committed:
            return StoreFullError("the disk is full and nothing was written; free some space")
        error = StoreOutcomeUnknownError(
            f"a commit failed half way ({failure}), so its outcome is unknown; re-read before trying again"
        )
        error.__cause__ = failure
        return error

    def _reopen(self, old: LmdbEnvironment) -> None:
        """Wait until no thread holds the environment, then open it again, unless another thread has."""
        with self._env_lock:
            self._env_closing = True
            self._env_lock.wait_for(lambda: self._env_holders == 0)
            try:
                if self._env is old:
                    self._env = None
                    self._lost_env = old
                    self._recover()
            finally:
                self._env_closing = False
                self._env_lock.notify_all()

    def _recover(self) -> LmdbEnvironment:
        """With the lock held: open the environment again that a failed commit lost; StoreClosedError without one."""
        if self._lost_env is None:
            raise StoreClosedError
        self._env = lmdb_environment.reopen(self._lost_env)
        self._lost_env = None
        return self._env


def _begin_on_same_file(env: LmdbEnvironment) -> Any:
    """A write transaction; StoreReplacedError when a restore has replaced the file meanwhile."""
    try:
        txn = env.lmdb.begin(write=True)
    except (lmdb.PanicError, lmdb.MapResizedError):
        raise
    except lmdb.Error as error:
        raise translate(error, "begin") from error
    # Asked with the writer lock held, because a restore holds it too while it replaces the file.
    if env.is_replaced():
        txn.abort()
        raise StoreReplacedError
    return txn


def _try_commit(txn: Any, batch: list[Update]) -> lmdb.Error | None:
    """Commit; returns the error of LMDB, if any."""
    try:
        txn.commit()
    except lmdb.Error as error:
        return error
    except BaseException:
        # Ctrl-C during the sync is raised when it is over: to run the batch again could apply it twice.
        fail_written(batch, StoreOutcomeUnknownError())
        raise
    return None
