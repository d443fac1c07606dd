"""A word on standard error where what was shown is not the whole story: no scheduler runs, or nobody hears."""

from __future__ import annotations

from chronex.cli.output import err, paint
from chronex.run import boot_id, is_alive
from chronex.storage.records import Reading
from chronex.text.terminal import terminal_safe
from chronex.views.nodes import Watch, watch_of
from chronex.views.troubles import Trouble, store_troubles, worst_first

_MOST_TOLD = 3


def troubles_of(reading: Reading, now_ms: int) -> list[Trouble]:
    return worst_first(store_troubles(reading, now_ms, is_alive, has_jobs=bool(reading.jobs(limit=1))))


def store_watch(reading: Reading, now_ms: int) -> Watch:
    """Who looks after the store, as seen from this machine."""
    return watch_of(reading, now_ms, is_alive, boot_id())


def tell_troubles(found: list[Trouble]) -> None:
    for one in found[:_MOST_TOLD]:
        err(paint(terminal_safe(f"needs attention: {one.sentence}"), "red" if one.severity == "error" else "yellow"))
    if len(found) > _MOST_TOLD:
        err(f"and {len(found) - _MOST_TOLD} more: chronex status")
