"""A word on standard error where what was shown is not the whole story: no scheduler runs, or nobody hears."""

from __future__ import annotations

from chronex.cli.output import err, paint
from chronex.run import is_alive
from chronex.storage.records import Reading
from chronex.text.terminal import terminal_safe
from chronex.views.troubles import Trouble, store_troubles, worst_first

_MOST_TOLD = 3


def troubles_of(reading: Reading, now_ms: int) -> list[Trouble]:
    return worst_first(store_troubles(reading, now_ms, is_alive, has_jobs=bool(reading.jobs(limit=1))))


def tell_troubles(found: list[Trouble]) -> None:
    for one in found[:_MOST_TOLD]:
        err(paint(terminal_safe(f"needs attention: {one.sentence}"), "red" if one.severity == "error" else "yellow"))
    if len(found) > _MOST_TOLD:
        err(f"and {len(found) - _MOST_TOLD} more: chronex status")
