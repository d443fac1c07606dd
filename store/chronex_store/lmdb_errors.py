"""LMDB's errors as errors of the store, with a sentence for the user."""

from __future__ import annotations

import errno

import lmdb

from chronex.errors import (
    ForeignStoreError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreLibraryError,
    StoreOutcomeUnknownError,
    StoreReplacedError,
)

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.BadValsizeError)
MAP_FULL = "the store's map is full and nothing was written; keep less history, or grow it with the daemon stopped"


def is_no_space(error: lmdb.Error) -> bool:
    return error.code in _NO_SPACE


def translate(error: lmdb.Error, during: str) -> StoreError:
    """The typed error for what LMDB reported outside a commit: nothing was written."""
    if isinstance(error, lmdb.MapFullError | lmdb.TxnFullError):
        return StoreFullError(MAP_FULL)
    if is_no_space(error):
        return StoreFullError("the disk is full and nothing was written; free some space")
    if isinstance(error, _DAMAGE):
        return StoreDamagedError(
            f"the store's file is damaged ({during}: {error}); run `chronex doctor`, then `chronex restore`"
        )
    if isinstance(error, lmdb.VersionMismatchError):
        return StoreLibraryError("another version of LMDB has the store open; use one Chronex for all")
    if isinstance(error, lmdb.MapResizedError):
        return StoreReplacedError("the store's map was grown while it was open; open it again")
    if isinstance(error, lmdb.PanicError):
        return StoreOutcomeUnknownError()
    return StoreError(f"the store failed in {during}: {error}")


def translate_open(error: lmdb.Error, path: str) -> StoreError:
    if isinstance(error, lmdb.InvalidError):
        return ForeignStoreError(
            f"{path} holds no Chronex store, or a damaged one; restore a backup or choose another directory"
        )
    return translate(error, "open")
