"""Chronex's store: LMDB behind the port of `chronex.storage.ports`, and a memory store beside it."""

from __future__ import annotations

from chronex_store.lmdb_store import LmdbStore, Space
from chronex_store.memory import MemoryStore

__all__ = ["LmdbStore", "MemoryStore", "Space"]
