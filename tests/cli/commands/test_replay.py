"""replay as it is typed: one occurrence, or a range that is shown first."""

from __future__ import annotations

import pytest

from chronex.cli.commands import replay
from chronex.cli.commands.history import run_history
from chronex.cli.options import UsageError
from chronex.errors import NotPossibleError
from chronex.views.past_runs import HistoryQuery
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
