"""What the checks need to know of this machine: the jobs, the daemon, the shell, the service manager."""

from __future__ import annotations

import os
from pathlib import Path

from chronex.cli.machine.report import Check, Found, examine
from chronex.cli.service.acts import sentence
from chronex.storage.records import Reading
from chronex_store import LmdbStore

_MOST_JOBS = 1000  # a thousand jobs name few programs that the first thousand do not


def checks_of(store: Path, is_readable: bool) -> list[Check]:
    return examine(_found(store) if is_readable else Found((), None), os.environ, sentence().text)


def _found(store: Path) -> Found:
    with LmdbStore.open(store, create=False) as opened:
        return opened.view(lambda tx: _read(Reading(tx)))


def _read(reading: Reading) -> Found:
    nodes = sorted(reading.nodes(), key=lambda node: node.started_ms)
    return Found(tuple(reading.jobs(limit=_MOST_JOBS)), nodes[-1] if nodes else None)
