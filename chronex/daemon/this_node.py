"""This process as a node of a store."""

from __future__ import annotations

import os
import socket
from uuid import uuid4

from chronex.clock import wall_ms
from chronex.model.node import Node
from chronex.run import identity_of
from chronex.version import __version__


def this_node(places: int) -> Node:
    """A new name for every start: what an earlier process left behind belongs to that one."""
    process = identity_of(os.getpid())
    assert process is not None, "this process exists"
    now_ms = wall_ms()
    return Node(
        id=f"node-{uuid4().hex[:12]}",
        process=process,
        host=socket.gethostname(),
        chronex=__version__,
        places=places,
        started_ms=now_ms,
        seen_ms=now_ms,
    )
