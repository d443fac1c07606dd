"""pause and resume as they are typed."""

from __future__ import annotations

from chronex.cli.commands import pause
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
