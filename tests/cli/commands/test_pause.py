"""pause and resume as they are typed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chronex.cli.commands import pause
from chronex.cli.commands.show import run_show
from chronex.errors import ChronexError
from tests.cli.small_store import Capture, Place, said


def test_pause_and_resume(place: Place, capsys: Capture) -> None:
    assert pause.run_pause("a", "2h", place.path, "json") == 0
    answer = said(capsys)
    assert (answer["job"], answer["paused"]) == ("a", True)
    assert answer["until"] is not None
    assert pause.run_resume("a", place.path, "text") == 0
    assert pause.run_resume("a", place.path, "text") == 0
    assert capsys.readouterr().out == "resumed a\na was not paused\n"
    assert not place.job("a").progress.paused


def test_a_paused_job_shows_when_it_would_run(place: Place, capsys: Capture) -> None:
    assert pause.run_pause("a", None, place.path, "text") == 0
    assert run_show("a", place.path, "text") == 0
    assert "next       paused; would run " in capsys.readouterr().out


def test_many_are_paused_and_resumed_together(place: Place, capsys: Capture) -> None:
    assert pause.run_pause("", None, place.path, "text", every=True) == 0
    assert capsys.readouterr().out.count("until resumed") == 2
    assert all(place.job(name).progress.paused for name in "ab")
    assert pause.run_resume("[b-z]*", place.path, "json") == 0
    assert [one["job"] for one in said(capsys)] == ["b"]
    assert place.job("a").progress.paused
    assert pause.run_resume("", place.path, "text", every=True) == 0
    assert capsys.readouterr().out == "resumed a\n"
    assert pause.run_resume("*", place.path, "text") == 0
    assert capsys.readouterr().out == "none of them was paused\n"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"job": "x*"}, "no job fits 'x*'"),
        ({"job": "", "tag": "etl"}, "no job has the tag 'etl'"),
        ({"job": "a", "every": True}, "--all stands alone"),
        ({"job": ""}, "name a job, a pattern"),
    ],
)
def test_a_choice_that_fits_nothing_changes_nothing(place: Place, chosen: dict[str, Any], said: str) -> None:
    with pytest.raises(ChronexError, match=re.escape(said)):
        pause.run_pause(chosen.pop("job"), None, place.path, "text", **chosen)
    assert not any(place.job(name).progress.paused for name in "ab")
