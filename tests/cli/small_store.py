"""A store of two jobs, without a daemon, and commands on it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chronex.cli.commands import trigger
from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.reasons import free_text
from chronex.storage.records import Reading
from chronex_store import LmdbStore

Capture = pytest.CaptureFixture[str]


class Place:
    """A store in a directory, with an engine that runs what it is told to, for as long as a call lasts."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        with LmdbStore.open(path) as store:
            jobs = [
                Job(id=name, schedule="0 0 1 1 *", tasks=(Task(name="main", run=("true",)),)) for name in ("a", "b")
            ]
            apply_jobs(store, jobs, wall_ms())

    def run_due(self, state: str = "success") -> None:
        with LmdbStore.open(Path(self.path)) as store:
            engine = Engine(store, "node-1", 10, Random(1))
            for order in engine.tick(wall_ms(), wall_ms()).orders:
                if isinstance(order, Launch) and state != "running":
                    store.update(engine.ended(order.attempt, AttemptEnd(state, free_text("exit code 3")), wall_ms()))

    def job(self, name: str) -> Job:
        with LmdbStore.open(Path(self.path)) as store:
            found = store.view(lambda tx: Reading(tx).job(name))
        assert found is not None
        return found


def said(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def run_trigger(job: str, store: str, form: str, *params: str, key: str = "", ttl: str | None = None) -> int:
    return trigger.trigger(job, list(params), key, ttl, store=store, form=form)


def triggered(place: Place, capsys: Capture, state: str = "success") -> str:
    assert run_trigger("a", place.path, "json") == 0
    identity: str = said(capsys)["id"]
    place.run_due(state)
    return identity
