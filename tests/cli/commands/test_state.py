"""chronex state: at once when a person says so; with the attempt's success when a run does."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from chronex.cli.commands import state
from chronex.cli.options import UsageError
from chronex.clock import wall_ms
from chronex.engine.commands import Actor, trigger
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.errors import NotPossibleError, UnknownJobError
from chronex.model.job import Job, Task
from chronex.storage.records import Records
from chronex_store import LmdbStore

Capture = pytest.CaptureFixture[str]
TASKS = (Task(name="main", run=("true",)),)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("CHRONEX_JOB", "CHRONEX_TASK", "CHRONEX_ATTEMPT"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "store"
    with LmdbStore.open(path) as store:
        two = (*TASKS, Task(name="other", run=("true",)))
        jobs = [Job(id="a", schedule="0 0 1 1 *", tasks=TASKS), Job(id="b", schedule="0 0 1 1 *", tasks=two)]
        apply_jobs(store, jobs, wall_ms())
    return str(path)


def value(place: str, capsys: Capture, name: str = "n") -> str | None:
    capsys.readouterr()
    if state.run_get(name, "a", None, place, "json"):
        return None
    found: str = json.loads(capsys.readouterr().out)["value"]
    return found


def test_a_person_sets_reads_lists_and_removes(place: str, capsys: Capture) -> None:
    assert state.run_set("n", "1", "a", None, place) == 0
    assert value(place, capsys) == "1"
    assert state.run_list("a", "main", place, "json") == 0
    assert json.loads(capsys.readouterr().out) == {"n": "1"}
    assert state.run_set("n", None, "a", None, place) == 0
    assert value(place, capsys) is None


@pytest.mark.parametrize(("end", "kept"), [("success", "new"), ("failed", "old"), ("canceled", "old")])
def test_inside_a_run_it_counts_with_the_attempts_success_or_not_at_all(
    place: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch, end: str, kept: str
) -> None:
    state.run_set("n", "old", "a", None, place)
    with LmdbStore.open(Path(place)) as store:
        store.update(lambda tx: trigger(Records(tx, wall_ms()), "a", Actor("ann", "cli", "desk")))
        engine = Engine(store, "node-1", 10, Random(1))
        (launch,) = engine.tick(wall_ms(), wall_ms()).orders
    assert isinstance(launch, Launch)
    for name, text in (("JOB", "a"), ("TASK", "main"), ("ATTEMPT", launch.attempt.id)):
        monkeypatch.setenv(f"CHRONEX_{name}", text)
    assert state.run_set("n", "new", None, None, place) == 0
    assert state.run_get("n", None, None, place, "text") == 0
    assert capsys.readouterr().out == "new\n", "the run sees its own change"
    with LmdbStore.open(Path(place)) as store:
        store.update(engine_of(store).ended(launch.attempt, AttemptEnd(end), wall_ms()))
    with pytest.raises(NotPossibleError, match="is over"):
        state.run_set("n", "late", None, None, place)
    for name in ("JOB", "TASK", "ATTEMPT"):
        monkeypatch.delenv(f"CHRONEX_{name}")
    assert value(place, capsys) == kept


def engine_of(store: LmdbStore) -> Engine:
    return Engine(store, "node-1", 10, Random(1))


def test_what_is_not_clear_is_asked(place: str) -> None:
    with pytest.raises(UsageError, match="say which job"):
        state.run_list(None, None, place, "text")
    with pytest.raises(UsageError, match="say which task: --task with one of main, other"):
        state.run_list("b", None, place, "text")
    with pytest.raises(UsageError, match="did you mean other"):
        state.run_list("b", "othr", place, "text")
    with pytest.raises(UnknownJobError):
        state.run_list("ghost", None, place, "text")
    with pytest.raises(UsageError, match="give a VALUE"):
        state.set_value("n", job="a", store=place)
