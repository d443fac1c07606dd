"""The store on LMDB: what `update` acknowledged is on disk, whatever dies next."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
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
from chronex_store import environment
from chronex_store.ballast import Ballast
from chronex_store.batch import (
    BatchBrokenError,
    fail_written,
    finish,
    has_terminal,
    hold_job_control,
    release_job_control,
    run_batch,
)
from chronex_store.environment import Environment, is_disk_full, open_environment
from chronex_store.faults import translate
from chronex_store.group import GroupCommit, Take, Update, fail_all
from chronex_store.limits import NestingGuard
from chronex_store.migration import migrate_if_older
from chronex_store.places import DATA_FILE
from chronex_store.transaction import LmdbReading
from chronex_store.waiting import Waiting

HOUSEKEEPING_MS = 60_000
# What ordinary updates leave untouched, so that the end of running work can be recorded in a full store.
RESERVE_SHARE = 16
RESERVE_LEAST = 32


@dataclass(frozen=True, slots=True)
class Space:
    """How full the map is. Pages that are free inside the file count as free. `disk_bytes` are left on the disk."""

    map_bytes: int
    used_bytes: int
    file_bytes: int
    disk_bytes: int

    @property
    def ratio(self) -> float:
        return self.used_bytes / self.map_bytes


class LmdbStore:
    """A store in a directory; see `chronex.storage.ports.Store` for the contract."""

    def __init__(self, env: Environment, clock: Clock) -> None:
        self._env: Environment | None = env
        self._lost: Environment | None = None
        self._path = env.path
        self._clock = clock
        self._pid = os.getpid()
        self._gate = threading.Condition(threading.Lock())
        self._views = 0
        self._shut = False
        self._kept_ms = clock.monotonic_ms()
        self._nesting = NestingGuard()
        self._has_terminal = has_terminal()
        self._ballast = Ballast(env.path)
        self._group = GroupCommit(self._commit)
        self._waiting = Waiting(env.path / DATA_FILE, self._counter, clock)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        map_size: int = 0,
        allow_network: bool = False,
        verify: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> LmdbStore:
        """Open the store in the directory `path`, making it when `create`; raises StoreRefusedError.

        `verify` reads every page first (about 3 s for a million records) and raises StoreDamagedError; a
        daemon does so when its predecessor did not end in good order.
        """
        now = clock.wall_ms()
        env = open_environment(
            Path(path), create=create, map_size=map_size, allow_network=allow_network, now_ms=now, verify=verify
        )
        store = cls(migrate_if_older(env, now), clock)
        if create:  # looking leaves no file behind
            store._ballast.lay()
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
        env = self._enter()
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
            self._leave()

    def update(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        self._nesting.refuse_nesting()
        self._refuse_fork()
        return cast("T", self._group.run(Update(fn, essential)))

    async def update_async(self, fn: UpdateFn[T], *, essential: bool = False) -> T:
        self._refuse_fork()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._group.submit(Update(fn, essential, future))
        return await future

    def wait(self, since: int, timeout: float) -> int:
        return self._waiting.wait(since, timeout)

    async def wait_async(self, since: int, timeout: float) -> int:
        return await self._waiting.wait_async(since, timeout)

    def now(self) -> int:
        return self._clock.wall_ms()

    def space(self) -> Space:
        env = self._enter()
        try:
            info, stat = env.lmdb.info(), env.lmdb.stat()
            used = _pages(stat) * stat["psize"]
            disk, file_bytes = os.statvfs(env.path), (info["last_pgno"] + 1) * stat["psize"]
            return Space(info["map_size"], used, file_bytes, disk.f_bavail * disk.f_frsize)
        finally:
            self._leave()

    def environment(self) -> Environment:
        """For doctor and backup, inside the same process only."""
        self._refuse_fork()
        if self._env is None:
            raise StoreClosedError
        return self._env

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        self._nesting.refuse_nesting()
        self._group.close()
        self._waiting.close()
        with self._gate:
            self._shut = True
            self._gate.wait_for(lambda: self._views == 0)
            env, self._env, self._lost = self._env, None, None
            self._shut = False
            self._gate.notify_all()
        if env is not None:
            env.close()

    def _refuse_fork(self) -> None:
        if self._pid != os.getpid():
            raise StoreForkedError

    def _enter(self) -> Environment:
        """Hold the environment open; paired with `_leave`."""
        self._refuse_fork()
        with self._gate:
            while self._shut:
                self._gate.wait()
            env = self._env or self._recover()
            self._views += 1
        self._keep_house(env)
        return env

    def _leave(self) -> None:
        with self._gate:
            self._views -= 1
            if self._shut and self._views == 0:
                self._gate.notify_all()

    def _keep_house(self, env: Environment) -> None:
        # Readers that were killed keep their slot, and the pages they saw, until somebody looks.
        now = self._clock.monotonic_ms()
        if now - self._kept_ms > HOUSEKEEPING_MS:
            self._kept_ms = now
            env.lmdb.reader_check()
            self._ballast.lay()

    def _begin_read(self, env: Environment) -> Any:
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

    def _counter(self) -> tuple[int, bool]:
        """LMDB numbers its commits: the number that a view would see now, and whether it is the newest.

        A commit writes its page first, which wakes those who wait, and shows itself to readers a moment
        later; in between the newest number is not yet a view's.
        """
        env = self._enter()
        try:
            if env.is_replaced():
                raise StoreReplacedError
            newest = env.lmdb.info()["last_txnid"]
            with self._begin_read(env) as txn:
                visible: int = txn.id()
            return visible, visible >= newest
        finally:
            self._leave()

    def _commit(self, take: Take) -> None:
        """Lead one commit: begin first, so that whoever queues up meanwhile comes along."""
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
        env, txn = self._begin_write()
        try:
            try:
                fail_point("update begun")
                batch = take()
                wrote = run_batch(txn, batch, _is_low(env, txn))
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
            self._leave()
        if failure is None:
            finish(batch)
        elif isinstance(failure, lmdb.MapFullError):
            raise BatchBrokenError(translate(failure, "commit"))
        else:
            error = self._explain_failure(env, failure, number)
            if isinstance(error, StoreFullError):
                self._save_essential(batch)
            fail_written(batch, error)

    def _save_essential(self, batch: list[Update]) -> None:
        """The disk is full: give up the room set aside, for those who record the end of running work."""
        essential = [update for update in batch if update.essential and update.error is None]
        if essential and self._ballast.drop():
            for update in essential:
                self._commit_alone(update)

    def _begin_write(self) -> tuple[Environment, Any]:
        """Hold the environment and its writer's lock; one that LMDB gave up is opened again once."""
        for is_last in (False, True):
            env = self._enter()
            try:
                return env, _begin_on_same_file(env)
            except (lmdb.PanicError, lmdb.MapResizedError) as error:
                self._leave()
                if is_last:
                    raise translate(error, "begin") from error
                self._reopen(env)
            except BaseException:
                self._leave()
                raise
        raise AssertionError

    def _explain_failure(self, env: Environment, failure: lmdb.Error, number: int) -> StoreError:
        """Begin again from what is on disk; a full disk is certain only if the commit is not found there."""
        full = is_disk_full(failure, self._path)
        try:
            self._reopen(env)
            landed = self._counter()[0] >= number
        except StoreError:
            landed = True
        if full and not landed:
            return StoreFullError("the disk is full and nothing was written; free some space")
        error = StoreOutcomeUnknownError(
            f"a commit failed half way ({failure}), so its outcome is unknown; re-read before trying again"
        )
        error.__cause__ = failure
        return error

    def _reopen(self, old: Environment) -> None:
        with self._gate:
            self._shut = True
            self._gate.wait_for(lambda: self._views == 0)
            try:
                if self._env is old:
                    self._env, self._lost = None, old
                    self._recover()
            finally:
                self._shut = False
                self._gate.notify_all()

    def _recover(self) -> Environment:
        """With the gate held: the environment that a failed commit cost us, or StoreClosedError."""
        if self._lost is None:
            raise StoreClosedError
        self._env = environment.reopen(self._lost)
        self._lost = None
        return self._env


def _begin_on_same_file(env: Environment) -> Any:
    try:
        txn = env.lmdb.begin(write=True)
    except (lmdb.PanicError, lmdb.MapResizedError):
        raise
    except lmdb.Error as error:
        raise translate(error, "begin") from error
    # Asked with the writer's lock held, because a restore holds it too while it changes the file.
    if env.is_replaced():
        txn.abort()
        raise StoreReplacedError
    return txn


def _try_commit(txn: Any, batch: list[Update]) -> lmdb.Error | None:
    try:
        txn.commit()
    except lmdb.Error as error:
        return error
    except BaseException:
        # Ctrl-C during the sync is raised when it is over: to run the batch again could apply it twice.
        fail_written(batch, StoreOutcomeUnknownError())
        raise
    return None


def _pages(stat: dict[str, int]) -> int:
    return stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]


def _is_low(env: Environment, txn: Any) -> bool:
    stat: dict[str, int] = txn.stat()
    total = env.meta.map_size // stat["psize"]
    return _pages(stat) > total - max(total // RESERVE_SHARE, RESERVE_LEAST)
