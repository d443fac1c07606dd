"""What all acts share: a store that must be there, who asks, whether a daemon is there to do it, and the answer."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from chronex.cli.arguments import UsageError
from chronex.cli.places import store_path
from chronex.cli.terminal import err, inert, out
from chronex.cli.times import Zones
from chronex.engine.commands import Asker
from chronex.model.records import Occurrence
from chronex.storage.records import Ledger, Reading
from chronex.text.durations import parse_duration, suggest_duration
from chronex.timing.zones import Zone
from chronex_store import LmdbStore
from chronex_store.daemon_lock import is_daemon_alive

T = TypeVar("T")


class Desk:
    """An open store and the person in front of it."""

    def __init__(self, path: Path, store: LmdbStore) -> None:
        self.path, self.store = path, store
        self.asker = Asker.of_this_process("cli")

    @property
    def has_daemon(self) -> bool:
        return is_daemon_alive(self.path)

    def act(self, fn: Callable[[Ledger], T], *, essential: bool = False) -> T:
        """One act in one transaction, at the store's time; what ends work is `essential`: it needs no free disk."""
        return self.store.update(lambda tx: fn(Ledger(tx, self.store.now())), essential=essential)

    def look(self, fn: Callable[[Reading], T]) -> T:
        return self.store.view(lambda tx: fn(Reading(tx)))

    def zone_of(self, job: str, version: int | None = None) -> Zone:
        return self.look(lambda reading: Zones(reading).of(job, version))

    def occurrence(self, known: Occurrence) -> Occurrence:
        """As it is by now."""
        return self.look(lambda reading: reading.occurrence(known.job, known.nominal_ms)) or known

    def warn_without_daemon(self, consequence: str) -> None:
        if not self.has_daemon:
            err(inert(f"no daemon runs on this store: {consequence}; start one with: chronex run"))


def at_desk(store: str | None, work: Callable[[Desk], int]) -> int:
    """Acts never make a store: one that is not there is a mistake in its name."""
    path = store_path(store, os.environ)
    with LmdbStore.open(path, create=False) as opened:
        return work(Desk(path, opened))


def duration_of(option: str, text: str | None) -> int | None:
    """Milliseconds of a duration that must be longer than nothing."""
    if text is None:
        return None
    ms = parse_duration(text)
    if ms == 0:
        raise UsageError(f"{option}: {text!r} is no time at all; write 90s, 10m or 2h30m")
    if ms is None:
        meant = suggest_duration(text)
        hint = f"did you mean {meant}?" if meant else "write 90s, 10m or 2h30m"
        raise UsageError(f"{option}: {text!r} is not a duration; {hint}")
    return ms


def parameters_of(pairs: list[str]) -> dict[str, str]:
    """`--param name=value`, each name once."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, joint, value = pair.partition("=")
        if not joint or not name:
            raise UsageError(f"--param: {pair!r} is not name=value")
        if name in found:
            raise UsageError(f"--param: {name!r} is given twice")
        found[name] = value
    return found


def confirmed(question: str, *, is_sure: bool) -> bool:
    """Ask on a terminal; a script must say --yes."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        raise UsageError("nothing was done: say --yes to do this without being asked")
    err(f"{inert(question)} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def show(form: str, value: Any, *lines: str) -> None:
    """The value for programs, or the lines for people."""
    if form == "json":
        out(json.dumps(value, indent=2))
        return
    for line in lines:
        out(inert(line.rstrip()))
