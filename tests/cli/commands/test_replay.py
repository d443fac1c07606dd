"""replay as it is typed: one occurrence, or a range that is shown first."""

from __future__ import annotations

from pathlib import Path

import pytest

from chronex.cli.commands import replay
from chronex.cli.commands.history import run_history
from chronex.cli.options import UsageError
from chronex.clock import wall_ms
from chronex.engine.update import apply_jobs
from chronex.errors import NotPossibleError
from chronex.model.job import Job, Task
from chronex.views.past_runs import HistoryQuery
from chronex_store import LmdbStore
from tests.cli.small_store import Capture, Place, said, triggered


def test_replay_of_one_needs_a_reason_and_links_to_it(place: Place, capsys: Capture) -> None:
    identity = triggered(place, capsys, "failed")
    with pytest.raises(UsageError, match="--reason is required"):
        replay.run_replay(identity, replay.HowToReplay(" "), yes=False, store=place.path, form="text")
    assert replay.run_replay(identity, replay.HowToReplay("fixed"), yes=False, store=place.path, form="json") == 0
    (answer,) = said(capsys)
    assert (answer["replay_of"], answer["state"]) == (identity, "pending")


def test_replay_by_range_shows_the_list_first_and_needs_a_yes(place: Place, capsys: Capture) -> None:
    for _ in range(2):
        triggered(place, capsys, "failed")
    chosen = replay.PastFilter("a", None, None, ("failed",))
    with pytest.raises(UsageError, match="say --yes"):
        replay.run_replay(chosen, replay.HowToReplay("fixed"), yes=False, store=place.path, form="text")
    assert "2 to replay, the oldest first" in capsys.readouterr().out
    assert replay.run_replay(chosen, replay.HowToReplay("fixed", "now"), yes=True, store=place.path, form="json") == 0
    assert len(said(capsys)) == 2
    nothing = replay.PastFilter("a", "2020-01-01", "2020-01-02", ("missed",))
    assert (
        replay.run_replay(nothing, replay.HowToReplay("fixed", "now"), yes=True, store=place.path, form="text") == 1
    )
    assert "nothing to replay" in capsys.readouterr().out


def test_a_state_that_is_no_end_is_refused() -> None:
    assert replay.states_of([]) == ("failed",)
    assert replay.states_of(["missed,skipped", "failed"]) == ("missed", "skipped", "failed")
    with pytest.raises(UsageError, match="--state: 'running' is none of"):
        replay.states_of(["running"])


def test_a_replay_is_told_as_one_in_the_history(place: Place, capsys: Capture) -> None:
    identity = triggered(place, capsys, "failed")
    how = replay.HowToReplay("the disk was full", tasks=("main",))
    assert replay.run_replay(identity, how, yes=False, store=place.path, form="json") == 0
    (answer,) = said(capsys)
    query = HistoryQuery("a", 20, frozenset(), None)
    assert run_history(query, place.path, "json") == 0
    again, original = said(capsys)
    assert (again["id"], again["replay_of"], again["asked_for"]) == (answer["id"], identity, "the disk was full")
    assert (again["only"], again["manual"], again["scheduled"]) == (["main"], True, original["scheduled"])
    assert (original["replay_of"], original["asked_for"], original["only"]) == (None, None, [])
    assert run_history(query, place.path, "text") == 0
    line = capsys.readouterr().out.splitlines()[0]
    assert f"(replay of {identity[:12]} only main by " in line
    assert line.endswith(": the disk was full)")


def test_a_task_that_the_version_does_not_have_is_named(place: Place, capsys: Capture) -> None:
    identity = triggered(place, capsys, "failed")
    how = replay.HowToReplay("fixed", tasks=("dmup",))
    with pytest.raises(NotPossibleError, match="version 1 of a has no task 'dmup'; it has main"):
        replay.run_replay(identity, how, yes=False, store=place.path, form="json")


def test_the_children_that_a_replay_offers_are_those_that_it_would_run(place: Place, capsys: Capture) -> None:
    """One with a schedule of its own waits at its instants, and no replay runs it."""
    identity = triggered(place, capsys, "failed")
    tasks = (Task(name="main", run=("true",)),)
    jobs = [
        Job(id="a", schedule="0 0 1 1 *", tasks=tasks),
        Job(id="mail", schedule="", after=("a",), tasks=tasks),
        Job(id="monthly", schedule="0 6 1 * *", after=("a",), tasks=tasks),
    ]
    with LmdbStore.open(Path(place.path)) as store:
        apply_jobs(store, jobs, wall_ms())
    assert replay.run_replay(identity, replay.HowToReplay("fixed"), yes=False, store=place.path, form="text") == 0
    assert "mail would follow it: replay --with-children runs that too" in capsys.readouterr().out
