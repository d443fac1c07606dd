"""A daemon that was off for ten years: its catch-up is bounded, what it skips is recorded, and it is soon up to date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from chronex.clock import wall_ms
from chronex.engine.plan import MOST_CATCH_UP, MOST_LISTED
from chronex.model.states import OccurrenceState
from chronex.storage.ports import Transaction
from chronex.storage.records import Reading, Records
from chronex_store import LmdbStore
from tests.daemon.machine import Machine
from tests.kit.waits import until

TEN_YEARS = 10 * 366 * 86_400_000
JOBS = """
[jobs.all]
schedule = "* * * * * *"
recovery = "execute_all"
run = ["true"]

[jobs.bounded]
schedule = "* * * * * *"
recovery = { strategy = "bounded", max_count = 1000000 }
run = ["true"]

[jobs.last]
schedule = "* * * * * *"
run = ["true"]

[jobs.neighbour]
schedule = "* * * * * *"
run = ["true"]
"""
KEPT = {"all": MOST_CATCH_UP, "bounded": MOST_CATCH_UP, "last": MOST_LISTED}


@pytest.fixture
def returned(machine: Machine) -> Machine:
    """Four jobs, three of which were last planned ten years ago; then a daemon until it is up to date."""
    machine.write(JOBS)
    assert machine.chronex("apply").returncode == 0

    def forget_ten_years(tx: Transaction) -> None:
        records = Records(tx, wall_ms())
        for name in KEPT:
            job = records.job(name)
            assert job is not None
            past = (job.progress.cursor_ms or 0) - TEN_YEARS
            records.put(
                replace(job, updated_ms=past).progressed(cursor_ms=past, next_ms=past + 1000, created_ms=past)
            )

    with LmdbStore.open(machine.directory / "store") as store:
        store.update(forget_ten_years)
    daemon = machine.start(quiet=True)
    until(lambda: has_caught_up(machine), "a daemon that is up to date")
    assert daemon.stopped() == 0
    return machine


def has_caught_up(machine: Machine) -> bool:
    """What is owed is listed, and the neighbour, which owes nothing, runs as ever."""
    with LmdbStore.open(machine.directory / "store", create=False) as store:
        found = {
            name: store.view(lambda tx, name=name: Reading(tx).occurrences(name, limit=100_000))  # type: ignore[misc]
            for name in (*KEPT, "neighbour")
        }
    listed = all(sum(one.recovery for one in found[name]) >= kept for name, kept in KEPT.items())
    return listed and any(one.state is OccurrenceState.COMPLETED for one in found["neighbour"])


def asked(machine: Machine, *arguments: str) -> Any:
    done = machine.chronex(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_is_owed_is_bounded_and_what_was_passed_over_is_told(returned: Machine, tmp_path: Path) -> None:
    for name, kept in KEPT.items():
        rows = asked(returned, "history", name, "-n", "100000")
        caught_up = [row for row in rows if row["recovery"]]
        assert len(caught_up) == kept
        older = caught_up[-1]["older"]
        assert older["is_more"]

        (why,) = asked(returned, "why", name, older["from"])["answers"]
        assert why["cause"] == ("too_many" if name != "last" else "superseded")
        assert "more than 10000 occurrences" in json.dumps(why)
    text = returned.chronex("history", "all", "-n", "100000").stdout
    assert text.count("more than 10000 occurrences until ") == 1
    assert any(row["state"] == "completed" for row in asked(returned, "history", "neighbour"))
    assert (tmp_path / "store" / "data.mdb").stat().st_blocks * 512 < 16 << 20
