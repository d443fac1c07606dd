"""dlq list, show, replay and drop as they are typed."""

from __future__ import annotations

import pytest

from chronex.cli.commands import dlq
from chronex.cli.options import UsageError
from tests.cli.small_store import Capture, Place, said, triggered


def test_the_life_of_a_dead_letter(place: Place, capsys: Capture) -> None:
    triggered(place, capsys, "failed")
    assert dlq.run_list(None, place.path, "json") == 0
    (row,) = said(capsys)
    assert (row["job"], row["task"], row["attempts"], row["reason"]) == ("a", "main", 1, "exit code 3")
    assert dlq.run_show(row["id"][:12], place.path, "json") == 0
    letter = said(capsys)
    assert letter["version"] == 1
    assert [one["state"] for one in letter["tries"]] == ["failed"]
    assert dlq.run_replay(dlq.Chosen([row["id"]], None, False), "", "then", place.path, "json") == 0
    assert said(capsys)[0]["replay_of"] == letter["occurrence"]
    assert dlq.run_list("a", place.path, "text") == 0
    assert capsys.readouterr().out == "no dead letters\n"


def test_dropping_all_asks_first(place: Place, capsys: Capture) -> None:
    triggered(place, capsys, "failed")
    with pytest.raises(UsageError, match="say --yes"):
        dlq.run_drop(dlq.Chosen([], "a", False), "", place.path, "text")
    assert dlq.run_drop(dlq.Chosen([], "a", True), "", place.path, "text") == 0
    assert "dropped    a/main" in capsys.readouterr().out
    with pytest.raises(UsageError, match="say which"):
        dlq.check_chosen([], None, False)
