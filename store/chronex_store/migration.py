"""From one format to the next: a backup, then everything in one transaction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import lmdb
from msgspec.structs import replace

from chronex.errors import StoreError
from chronex.storage import keys
from chronex.storage.codec import encode
from chronex.storage.migrate_reasons import reasons_to_codes
from chronex.storage.ports import Row, Transaction
from chronex.storage.records import pages
from chronex_store import environment
from chronex_store.copying import write_backup
from chronex_store.daemon_lock import acquire_daemon_lock
from chronex_store.environment import Environment
from chronex_store.faults import translate
from chronex_store.transaction import LmdbTransaction

Step = Callable[[Transaction], None]
# What one record of the old format becomes: the same row where nothing changes, other rows, or none.
Conversion = Callable[[bytes, bytes], list[Row]]

# Applied to every record one after the other, each to the rows that the one before it gave.
TO_FORMAT_2: tuple[Conversion, ...] = (reasons_to_codes,)


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


# From the format that is the key to the next one.
STEPS: dict[int, Step] = {1: lambda tx: convert_records(tx, TO_FORMAT_2)}


def migrate_if_older(env: Environment, now_ms: int) -> Environment:
    """The environment in the current format; the old state stays in `before-format-N-….backup` beside it."""
    if env.meta.format == environment.FORMAT:
        return env
    try:
        with acquire_daemon_lock(env.path):
            old = env.meta.format
            write_backup(env, env.path / f"before-format-{old + 1}-{now_ms}.backup")
            return _migrate(env)
    except BaseException:
        env.close()
        raise


def _migrate(env: Environment) -> Environment:
    formats = tuple(range(env.meta.format, environment.FORMAT))
    missing = [number for number in formats if number not in STEPS]
    if missing:
        raise StoreError(f"no way leads from format {missing[0]} to the next; use an older Chronex first")
    meta = replace(env.meta, format=environment.FORMAT, migrated_from=(*env.meta.migrated_from, *formats))
    try:
        with env.lmdb.begin(write=True) as txn:
            tx = LmdbTransaction(txn)
            for number in formats:
                STEPS[number](tx)
            tx.put(keys.STORE_META, encode(keys.STORE_META, meta))
    except lmdb.Error as error:
        raise translate(error, "migration") from error
    return dataclasses.replace(env, meta=meta)
