"""cancel as it is typed."""

from __future__ import annotations

import pytest

from chronex.cli.commands import cancel
from chronex.errors import NotPossibleError, UnknownJobError
from tests.cli.small_store import Capture, Place, run_trigger, said, triggered


def test_cancel_what_waits_what_runs_and_what_has_ended(place: Place, capsys: Capture) -> None:
    identity = triggered(place, capsys, "running")
    assert cancel.run_cancel(identity[:14], "", wait=False, store=place.path, form="text") == 0
    spoken = capsys.readouterr()
    assert spoken.out.startswith("stopping   a  occ_")
    assert "the next one stops it" in spoken.err
    ended = triggered_other(place, capsys)
    with pytest.raises(NotPossibleError, match="has ended already: completed"):
        cancel.run_cancel(ended, "", wait=False, store=place.path, form="text")


def triggered_other(place: Place, capsys: Capture) -> str:
    assert run_trigger("b", place.path, "json") == 0
    identity: str = said(capsys)["id"]
    place.run_due()
    return identity


def test_a_job_is_canceled_with_all_that_is_open_of_it(place: Place, capsys: Capture) -> None:
    running = triggered(place, capsys, "running")
    assert cancel.run_cancel("a", "", wait=False, store=place.path, form="json") == 0
    assert [(one["id"], one["stopping"]) for one in said(capsys)] == [(running, True)]
    with pytest.raises(NotPossibleError, match="nothing of b runs or waits; chronex pause b holds its schedule"):
        cancel.run_cancel("b", "", wait=False, store=place.path, form="text")
    with pytest.raises(UnknownJobError, match="no job 'nightly'"):
        cancel.run_cancel("nightly", "", wait=False, store=place.path, form="text")


def test_what_was_triggered_and_waits_for_a_scheduler_is_open_too(place: Place, capsys: Capture) -> None:
    assert run_trigger("b", place.path, "json") == 0
    waiting = said(capsys)["id"]
    assert cancel.run_cancel("b", "", wait=False, store=place.path, form="json") == 0
    assert [(one["id"], one["stopping"]) for one in said(capsys)] == [(waiting, False)]
    place.run_due()
    with pytest.raises(NotPossibleError, match="has ended already: canceled"):
        cancel.run_cancel(waiting, "", wait=False, store=place.path, form="text")
