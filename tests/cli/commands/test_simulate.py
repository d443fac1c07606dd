"""chronex simulate: what will be crowded, skipped or late, from the file and what the store says of its jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chronex.cli.commands.simulate import SimulatedSpan
from chronex.model.occurrence import Occurrence
from chronex.model.reasons import NO_REASON
from chronex.model.states import OccurrenceState
from chronex.views.simulated_chains import Played
from tests.cli.conftest import Chronex
from tests.kit.waits import until

JOBS = """
[scheduler]
timezone = "Europe/Berlin"
max_concurrent_jobs = 3

[jobs.tick]
schedule = "*/5 * * * *"
run = "true"

[jobs.night]
schedule = "30 2 * * *"
run = "true"

[jobs.queued]
schedule = "0 * * * *"
overlap = "queue"
run = "true"
"""
SPAN = ("--from", "2027-03-27T00:00", "--to", "2027-03-30T00:00")


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "chronex.toml"
    path.write_text(JOBS)
    return str(path)


def simulated(chronex: Chronex, file: str, *more: str) -> dict[str, dict[str, dict[str, int]]]:
    done = chronex("simulate", file, *SPAN, "--format", "json", "--store", f"{file}.none", *more)
    assert done.code == 0, done.err
    found: dict[str, dict[str, dict[str, int]]] = json.loads(done.out)
    return found


def test_every_run_of_the_days_around_a_clock_change_is_counted(chronex: Chronex, file: str) -> None:
    jobs = simulated(chronex, file)["jobs"]
    # 71 hours: the 28th of March 2027 has 23 in Berlin.
    assert jobs["tick"]["completed"] == 71 * 12
    assert jobs["queued"]["completed"] == 71
    assert jobs["night"]["completed"] == 3


def test_a_job_that_follows_one_of_elsewhere_is_told_and_not_played(chronex: Chronex, tmp_path: Path) -> None:
    path = tmp_path / "chronex.toml"
    path.write_text(f'{JOBS}[jobs.report]\nafter = "etl"\nrun = "true"\n')
    done = chronex("simulate", str(path), *SPAN)
    assert done.code == 0
    assert "report follows etl, and there is no such job in this file" in done.err


def test_a_run_that_takes_longer_than_its_interval_is_seen(chronex: Chronex, file: str) -> None:
    jobs = simulated(chronex, file, "--duration", "tick=7m", "--duration", "queued=90m")["jobs"]
    assert jobs["tick"]["skipped"] == jobs["tick"]["completed"]
    assert jobs["queued"]["queued"] > 60
    assert jobs["queued"]["longest_wait_ms"] > 3_600_000


def test_without_an_end_no_more_is_played_than_a_person_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    played = [
        Played(Occurrence(job="a", nominal_ms=n, due_ms=n), OccurrenceState.COMPLETED, NO_REASON) for n in range(5)
    ]
    short = SimulatedSpan(played, 99, is_chosen=False, most=3)
    assert (len(list(short)), short.end_ms) == (3, 2)
    assert "--to says how far to go" in capsys.readouterr().err
    whole = SimulatedSpan(played, 99, is_chosen=True, most=3)
    assert (len(list(whole)), whole.end_ms) == (5, 99)
    assert "this takes a while" in capsys.readouterr().err


def test_the_picture_has_a_row_for_each_day_and_a_legend(chronex: Chronex, file: str) -> None:
    done = chronex("simulate", file, *SPAN, "--duration", "tick=7m", "--store", f"{file}.none")
    assert done.code == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines()[3:10]] == [
        "Mon",
        "Tue",
        "Wed",
        "Thu",
        "Fri",
        "Sat",
        "Sun",
    ]
    assert "busiest minute" in done.out
    assert "skipped (an earlier occurrence still runs" in done.out


def test_durations_are_measured_where_the_store_has_some(chronex: Chronex, file: str, tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text('[jobs.nap]\nschedule = "* * * * * *"\nrun = "sleep 0.2"\n')
    store = str(tmp_path / "store")

    def has_run() -> bool:
        assert chronex("run", "--once", "--config", str(real), "--store", store).code == 0
        return bool(json.loads(chronex("history", "--store", store, "--format", "json").out))

    until(has_run, "a run that was due")
    done = chronex(
        "simulate",
        str(real),
        "--store",
        store,
        "--format",
        "json",
        "--to",
        "2099-01-01",
        "--from",
        "2098-12-31T23:59",
    )
    assert 150 <= json.loads(done.out)["durations_ms"]["nap"] <= 60_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--duration", "nobody=5m"), "no job"),
        (("--duration", "tick=soon"), "is not a duration"),
        (("--to", "2020-01-01"), "--to must be later"),
    ],
)
def test_bad_input_is_one_sentence(chronex: Chronex, file: str, arguments: tuple[str, ...], words: str) -> None:
    done = chronex("simulate", file, *arguments)
    assert done.code == 2
    assert words in done.err


def test_a_pause_and_what_is_used_of_max_are_those_of_the_store(chronex: Chronex, tmp_path: Path) -> None:
    """A paused job was played as if it ran, and nothing said that the store has it otherwise."""
    path, store = tmp_path / "chronex.toml", str(tmp_path / "store")
    path.write_text(
        '[scheduler]\ntimezone = "UTC"\n[jobs.held]\nschedule = "0 * * * *"\nrun = "true"\n'
        '[jobs.once]\nschedule = "@once 2027-01-01T00:00:00Z {max:1}"\nrun = "true"\n'
    )
    assert chronex("apply", str(path), "--store", store).code == 0
    assert chronex("pause", "held", "--store", store).code == 0
    done = chronex("simulate", str(path), "--store", store)
    assert done.code == 0, done.err
    assert "of the store: paused held; what runs or waits now is not played" in done.out
    assert "held                     0 run; 672 skipped (paused" in done.out
    afresh = chronex("simulate", str(path), "--store", store, *SPAN)
    assert "of the store: paused held; not played, because --from begins afresh" in afresh.out
    assert "72 runs of 2 jobs; 0 jobs with runs that are skipped" in afresh.out
    shape = json.loads(chronex("simulate", str(path), "--store", store, "--format", "json").out)
    assert shape["of_store"] == {"is_used": True, "paused": ["held"], "max_used": []}


def test_durations_are_asked_of_a_store_that_machines_share(chronex: Chronex, file: str, postgres_url: str) -> None:
    assert chronex("apply", file, "--store", postgres_url).code == 0
    done = chronex("simulate", file, "--store", postgres_url, "--format", "json")
    assert (done.code, json.loads(done.out)["durations_ms"]) == (0, {}), "nothing has run there"


def test_the_critical_path_takes_as_long_as_the_job_is_played_with(chronex: Chronex, tmp_path: Path) -> None:
    """It took the given duration once for each task, and the run once for all of them."""
    tasks = "".join(f'[[jobs.etl.tasks]]\nname = "{name}"\nrun = "true"\n' for name in ("get", "load", "tidy"))
    path = tmp_path / "graph.toml"
    path.write_text(f'[jobs.etl]\nschedule = "0 3 * * *"\n{tasks}')
    found = simulated(chronex, str(path), "--duration", "9m")
    assert found["critical_paths"]["etl"]["total_ms"] == 9 * 60_000
