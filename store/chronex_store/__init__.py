"""Chronex's store: the port of `chronex.storage.ports` on LMDB, and in memory for tests."""

from __future__ import annotations

from chronex_store.lmdb_environment import Space
from chronex_store.lmdb_store import LmdbStore
from chronex_store.memory_store import MemoryStore

__all__ = ["LmdbStore", "MemoryStore", "Space"]
