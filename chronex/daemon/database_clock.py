"""The clock of a database was set: every node finds it out, and the jobs follow once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chronex.daemon.wakeups import ClockJump
from chronex.engine.clock_steps import follow_shared_clock
from chronex.storage.ports import Store


async def follow_jumps(
    store: Store, jumps: list[ClockJump], node: str, zone: str, tell: Callable[[str, dict[str, Any]], None]
) -> None:
    """Take the jumps off the list, in order; who comes first among the nodes moves the jobs and tells it."""
    while jumps:
        jump = jumps[0]
        followed = await store.update_async(follow_shared_clock(jump.set_by_ms, jump.at_ms, node))
        del jumps[0]
        if followed is not None:
            fields = {"told": jump.describe(zone), "by_ms": jump.by_ms, "slept_ms": jump.slept_ms}
            tell(jump.name, {**fields, "retries": followed.retries, "jobs": followed.jobs})
