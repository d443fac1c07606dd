"""Bring a store of an older format to the current one: a snapshot first, then every step in one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import nullcontext

import lmdb
from msgspec.structs import replace

from chronex.errors import StoreError, StoreFormatError
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex.storage.old_formats import move_due_jobs, reasons_to_codes, spell_out_retries, split_jobs
from chronex.storage.ports import Row, Transaction
from chronex.storage.records import pages
from chronex_store import lmdb_environment
from chronex_store.daemon_lock import DaemonLock, acquire_daemon_lock
from chronex_store.lmdb_environment import LmdbEnvironment, write_snapshot
from chronex_store.transaction import LmdbTransaction, translate

MigrationStep = Callable[[Transaction], None]
# What one record of the old format becomes: the same row where nothing changes, other rows, or none.
Conversion = Callable[[bytes, bytes], list[Row]]

# Applied to every record one after the other, each to the rows that the one before it gave.
TO_FORMAT_2: tuple[Conversion, ...] = (reasons_to_codes, split_jobs)
TO_FORMAT_3: tuple[Conversion, ...] = (spell_out_retries,)


def convert_records(tx: Transaction, conversions: tuple[Conversion, ...]) -> None:
    """Rewrite the records that the conversions change; index entries, meta records and damaged bytes stay.

    A conversion that gives a new key must pass a record of that key through, because the walk may come to it.
    """
    for page in pages(tx, b""):
        for key, raw in page:
            if key[:1] in keys.INDEXES + keys.META + keys.QUARANTINE:
                continue
            rows = [(key, raw)]
            for convert in conversions:
                rows = [new for row in rows for new in convert(*row)]
            for new_key, new_raw in rows:
                if (new_key, new_raw) != (key, raw):
                    tx.put(new_key, new_raw)
            if all(new_key != key for new_key, _ in rows):
                tx.delete(key)


# The step at key N brings a store from format N to N + 1.
def _to_format_2(tx: Transaction) -> None:
    convert_records(tx, TO_FORMAT_2)
    move_due_jobs(tx)


def _to_format_3(tx: Transaction) -> None:
    convert_records(tx, TO_FORMAT_3)


STEPS: dict[int, MigrationStep] = {1: _to_format_2, 2: _to_format_3}


def migrate_store(env: LmdbEnvironment, now_ms: int, held: DaemonLock | None = None) -> LmdbEnvironment:
    """The environment in the current format; the old state stays in `before-format-N-….backup` beside it.

    `held` is the daemon's lock, where the caller has it already: no process can take it a second time.
    """
    try:
        with nullcontext() if held is not None else acquire_daemon_lock(env.path):
            write_snapshot(env, env.path / f"before-format-{env.meta.format + 1}-{now_ms}.backup")
            return _migrate(env)
    except BaseException:
        env.close()
        raise


def refuse_older(env: LmdbEnvironment) -> None:
    """Close the environment and raise StoreFormatError where it would have to be migrated first."""
    if env.meta.format < lmdb_environment.FORMAT:
        env.close()
        raise StoreFormatError(
            f"the store {env.path} has format {env.meta.format}, and this command changes nothing; "
            f"`chronex run` or `chronex apply` brings it to format {lmdb_environment.FORMAT} once, after a backup"
        )


def _migrate(env: LmdbEnvironment) -> LmdbEnvironment:
    formats = tuple(range(env.meta.format, lmdb_environment.FORMAT))
    missing = [number for number in formats if number not in STEPS]
    if missing:
        raise StoreError(f"no way leads from format {missing[0]} to the next; use an older Chronex first")
    meta = replace(env.meta, format=lmdb_environment.FORMAT, migrated_from=(*env.meta.migrated_from, *formats))
    try:
        with env.lmdb.begin(write=True) as txn:
            tx = LmdbTransaction(txn)
            for number in formats:
                STEPS[number](tx)
            tx.put(keys.STORE_META, encode(keys.STORE_META, meta))
    except lmdb.Error as error:
        raise translate(error, "migration") from error
    return dataclasses.replace(env, meta=meta)
