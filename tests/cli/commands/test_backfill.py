"""backfill as it is typed."""

from __future__ import annotations

import json
from random import Random

import pytest

from chronex.cli.commands.backfill import BackfillRequest, run_backfill
from chronex.cli.options import UsageError
from chronex.cli.store_session import StoreSession
from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex_store import LmdbStore
from tests.cli.small_store import Capture, Place

YEARS = BackfillRequest("a", "2020-01-01T00:00Z", "2025-01-01T00:00Z")


def test_a_dry_run_lists_and_changes_nothing(place: Place, capsys: Capture) -> None:
    assert run_backfill(YEARS, place.path, "text", dry_run=True) == 0
    said = capsys.readouterr().out
    assert said.count("would run") == 5
    assert "5 to run, 0 left out" in said
    assert run_backfill(YEARS, place.path, "json", dry_run=True) == 0
    assert [one["scheduled"][:4] for one in json.loads(capsys.readouterr().out)["planned"]] == [
        str(y) for y in range(2020, 2025)
    ]
    nothing = YEARS._replace(until=YEARS.since)
    assert run_backfill(nothing, place.path, "text", dry_run=False) == 0
    assert "0 to run" in capsys.readouterr().out
    with pytest.raises(UsageError, match="--to is before --from"):
        run_backfill(YEARS._replace(since=YEARS.until, until=YEARS.since), place.path, "text", dry_run=True)


def test_without_a_daemon_nothing_is_asked_for(place: Place, capsys: Capture) -> None:
    assert run_backfill(YEARS, place.path, "text", dry_run=False) == 1
    assert "no daemon runs" in capsys.readouterr().err
    assert run_backfill(YEARS, place.path, "text", dry_run=True) == 0
    assert "5 to run" in capsys.readouterr().out


@pytest.mark.parametrize(("at_once", "until", "is_told"), [(1, "2025", False), (3, "2025", True), (3, "2021", False)])
def test_several_at_once_of_a_job_that_never_runs_beside_itself_are_told_to_come_one_by_one(
    place: Place, capsys: Capture, at_once: int, until: str, is_told: bool
) -> None:
    asked = YEARS._replace(at_once=at_once, until=f"{until}-01-01T00:00Z")
    assert run_backfill(asked, place.path, "text", dry_run=True) == 0
    assert ("a never runs beside itself (overlap = 'skip')" in capsys.readouterr().err) is is_told


@pytest.mark.parametrize("at_once", [1, 3])
def test_all_are_run_in_order_and_the_second_time_there_is_nothing_left(
    place: Place, capsys: Capture, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """An engine in this process stands for the daemon: it runs what is due whenever the command waits."""
    wait = LmdbStore.wait

    def run_due(self: LmdbStore, seen: int, timeout: float) -> int:
        engine = Engine(self, "node-1", 10, Random(1))
        orders = list(engine.tick(wall_ms(), wall_ms()).orders) if timeout else []
        while orders:
            order = orders.pop(0)
            if isinstance(order, Launch):
                orders += self.update(engine.ended(order.attempt, AttemptEnd("success"), wall_ms()))
        return wait(self, seen, 0)

    monkeypatch.setattr(StoreSession, "has_daemon", property(lambda self: True))
    monkeypatch.setattr(LmdbStore, "wait", run_due)
    asked = YEARS._replace(at_once=at_once, newest_first=True)
    assert run_backfill(asked, place.path, "json", dry_run=False) == 0
    ended = json.loads(capsys.readouterr().out)["ended"]
    assert [one["scheduled"][:4] for one in ended] == [str(year) for year in range(2024, 2019, -1)]
    assert {one["state"] for one in ended} == {"completed"}
    assert run_backfill(asked, place.path, "text", dry_run=False) == 0
    assert "0 to run, 5 left out" in capsys.readouterr().out
