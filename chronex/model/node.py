"""One scheduler process working on the store."""

from __future__ import annotations

from msgspec import Struct

from chronex.model.attempt import ProcessIdentity


class Node(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """Written when the process begins to work on the store, and while it lives."""

    id: str
    # The process itself, so that others on this machine can tell whether it lives.
    process: ProcessIdentity
    host: str = ""
    epoch: int = 0
    # The version of the program.
    chronex: str = ""
    # So many occurrences it runs at once; 0 where that is not known.
    places: int = 0
    started_ms: int = 0
    # When it last said that it lives.
    seen_ms: int = 0
    # When it left in good order; None while it works, and for one that died.
    stopped_ms: int | None = None
