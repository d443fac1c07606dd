"""A whole store into another place: from a directory into a database, and back.

The copy grows beside its place and takes it in one step at the end. So one that was interrupted is no store, and
nobody can take it for one.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from chronex.errors import StoreError, StoreInUseError, StoreRefusedError
from chronex.storage import keys
from chronex.storage.ports import Row, Transaction
from chronex.storage.records import Reading, pages
from chronex_store.opening import (
    OpenedStore,
    StoreLocation,
    check_client,
    open_location,
    open_postgres,
    shown_location,
)
from chronex_store.postgres.pg_address import PostgresAddress

_PAGE = 500
_SUFFIX = "_copying"


@dataclass(frozen=True)
class CopyReport:
    """How many rows went where."""

    source: str
    target: str
    rows: int


def copy_store(source: StoreLocation, target: StoreLocation) -> CopyReport:
    """Copy everything. Nothing may run in the source, and nothing may be in the target's place."""
    if isinstance(source, Path) and not source.is_dir():
        raise StoreRefusedError(f"no store at {source}: nothing can be copied; is the name right?")
    _refuse_taken(target)
    with open_location(source, create=False) as store:
        _refuse_running(store, source)
        unfinished = _beside(target)
        with open_location(unfinished) as made:
            rows = _copy_rows(store, made)
    _take_place(unfinished, target)
    return CopyReport(shown_location(source), shown_location(target), rows)


def _beside(target: StoreLocation) -> StoreLocation:
    if isinstance(target, Path):
        beside = target.with_name(target.name + _SUFFIX)
        shutil.rmtree(beside, ignore_errors=True)  # of a copy that was interrupted
        return beside
    from chronex_store.postgres.pg_schema import drop

    unfinished = replace(target, schema=target.schema + _SUFFIX)
    drop(unfinished)
    return unfinished


def _take_place(unfinished: StoreLocation, target: StoreLocation) -> None:
    if isinstance(unfinished, Path):
        assert isinstance(target, Path), "it is beside the target"
        os.rename(unfinished, target)
        return
    from chronex_store.postgres.pg_schema import rename

    assert isinstance(target, PostgresAddress), "it is beside the target"
    rename(unfinished, target)


def _refuse_taken(target: StoreLocation) -> None:
    if isinstance(target, Path):
        if target.exists():
            raise StoreRefusedError(f"{target} is there already; name a place where nothing is")
        return
    check_client(target)
    try:
        open_postgres(target, create=False).close()
    except StoreRefusedError:
        return  # no store is there, or no such database: making the copy will tell
    raise StoreRefusedError(f"{target.shown} has a store already; name another schema with ?schema=NAME")


def _refuse_running(store: OpenedStore, source: StoreLocation) -> None:
    """A command that runs is held by the keeper of its own store: it must have ended."""
    from chronex_store.daemon_lock import is_daemon_alive

    if isinstance(source, Path) and is_daemon_alive(source):
        command = f"chronex stop --drain --store {quote(str(source.absolute()))}"
        raise StoreInUseError(f"a daemon works on {source}; stop it first: {command}")
    running = store.view(lambda tx: len(Reading(tx).active_attempts()))
    if running:
        many = "1 command" if running == 1 else f"{running} commands"
        raise StoreError(f"{many} of {shown_location(source)} may run still: no end is recorded; "
                         "start a daemon there until they have ended")  # fmt: skip


def _copy_rows(source: OpenedStore, target: OpenedStore) -> int:
    """In pages. The source is read in one snapshot; the head of the journal is set last."""
    copied = 0

    def put_all(rows: list[Row]) -> int:
        kept = [(key, value) for key, value in rows if key != keys.STORE_META]

        def write(tx: Transaction) -> None:
            for key, value in kept:
                tx.put(key, value)

        target.update(write)
        return len(kept)

    def read(tx: object) -> None:
        nonlocal copied
        for rows in pages(tx, b"", _PAGE):  # type: ignore[arg-type]
            copied += put_all(rows)
        head = tx.get(keys.JOURNAL_HEAD)  # type: ignore[attr-defined]
        if head is not None:
            put_all([(keys.JOURNAL_HEAD, head)])

    source.view(read)
    return copied
