"""`chronex verify` as a user runs it: text, JSON, exit codes, --since, --job, --watch, own properties."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chronex.cli.commands import verify as command
from chronex.engine.update import apply_jobs
from chronex.model.event import Event
from chronex.model.job import Job, Task
from chronex.model.reasons import free_text
from chronex.storage import journal
from chronex.verify import Verifier, follow
from chronex_store import LmdbStore, MemoryStore
from tests.cli.conftest import Chronex
from tests.verify.traces import at_ms, mutated, trace
from tests.verify.valid_traces import NORMAL


def store_at(path: Path, events: list[Event]) -> Path:
    with LmdbStore.open(path) as store:
        apply_jobs(store, [Job(id="a", schedule="*/10 * * * *", tasks=(Task(name="main"),))], at_ms("10:00:30"))
        store.update(lambda tx: journal.append(tx, *events[1:]))
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return store_at(tmp_path / "store", trace(NORMAL))


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return store_at(tmp_path / "store", mutated(NORMAL, "repeat 5"))


def test_a_good_journal_exits_0_and_says_what_was_checked(chronex: Chronex, good: Path) -> None:
    done = chronex("verify", "--store", str(good))
    assert done.code == 0, done.err
    assert "14 events, 1 to 14, 2027-01-04T10:00:30Z to 2027-01-04T10:21:06Z" in done.out
    assert re.search(r"^S1 +holds +no two runs of a task at once \(3 checked\)$", done.out, re.MULTILINE)
    assert "P1" in done.out
    assert "2 of 2 within 60 s" in done.out


def test_a_violation_exits_1_with_the_events_that_matter(chronex: Chronex, bad: Path) -> None:
    done = chronex("verify", "--store", str(bad))
    assert done.code == 1
    told = done.out[done.out.index("S1 breaks at event 6") :].splitlines()[:3]
    assert told[0] == "S1 breaks at event 6: a run started while it was in flight"
    assert [" ".join(line.split()) for line in told[1:]] == [
        f"{number} 2027-01-04T10:10:00Z TaskRunStarted a of 2027-01-04T10:10:00Z, main attempt 1 on n1"
        for number in (5, 6)
    ]


def test_json_has_the_documented_shape(chronex: Chronex, bad: Path) -> None:
    done = chronex("verify", "--store", str(bad), "--format", "json")
    assert done.code == 1
    told = json.loads(done.out)
    assert set(told) == {"verdict", "journal", "properties", "lags"}
    assert told["verdict"] == "violated"
    assert set(told["journal"]) == {"events", "first", "last", "from", "from_ms", "to", "to_ms", "complete", "gaps"}
    keys = {"property", "title", "verdict", "checked", "violations", "findings", "open_count", "open"}
    assert all(set(entry) == keys for entry in told["properties"])
    (broken,) = (entry for entry in told["properties"] if entry["property"] == "S1")
    assert set(broken["findings"][0]) == {"event", "message", "evidence"}
    assert broken["findings"][0]["evidence"][0]["data"] == {"node": "n1"}
    assert {lag["name"]: lag["count"] for lag in told["lags"]} == {"P1": 2, "P2": 0}


def test_since_and_job(chronex: Chronex, bad: Path) -> None:
    assert chronex("verify", "--store", str(bad), "--since", "2027-01-04T10:15:00Z").code == 0
    assert chronex("verify", "--store", str(bad), "--job", "a").code == 1
    nobody = chronex("verify", "--store", str(bad), "--job", "nobody")
    assert (nobody.code, nobody.out) == (2, "")
    assert f"no job 'nobody'; chronex list --store {bad} shows them" in nobody.err
    assert chronex("verify", "--store", str(bad), "--since", "someday").code == 2


def test_own_properties_of_the_job_file(chronex: Chronex, good: Path, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text('[[verify.property]]\nname = "no-retries"\nrule = "never TaskRetryStarted(a)"\n')
    done = chronex("verify", "--store", str(good), "--config", str(file))
    assert done.code == 1
    assert "no-retries breaks at event 12: this must never happen" in done.out
    file.write_text('[[verify.property]]\nname = "x"\nrule = "never TaskRetryStart"\n')
    wrong = chronex("verify", "--store", str(good), "--config", str(file))
    assert wrong.code == 2
    assert "own.toml:3:15: expected an event" in wrong.err


def test_an_empty_and_a_missing_store(chronex: Chronex, tmp_path: Path) -> None:
    LmdbStore.open(tmp_path / "empty").close()
    done = chronex("verify", "--store", str(tmp_path / "empty"))
    assert done.code == 0
    assert "the journal is empty" in done.out
    missing = chronex("verify", "--store", str(tmp_path / "none"))
    assert missing.code == 2
    assert "no store at" in missing.err


def test_watching_tells_each_new_violation_once(capsys: pytest.CaptureFixture[str]) -> None:
    events = mutated(NORMAL, "repeat 5")
    store, verifier = MemoryStore(), Verifier()
    store.update(lambda tx: journal.append(tx, *events[:5]))
    follow(store, verifier)
    store.update(lambda tx: journal.append(tx, *events[5:]))
    report = command._watch(store, verifier, Verifier().report(), "text", rounds=3)
    told = capsys.readouterr().out
    assert told.count("S1 breaks at event 6") == 1
    assert report.violated()[0].property == "S1"


def test_watching_in_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    events = mutated(NORMAL, "repeat 5")
    store, verifier = MemoryStore(), Verifier()
    store.update(lambda tx: journal.append(tx, *events))
    command._watch(store, verifier, Verifier().report(), "json", rounds=1)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(entry["property"], entry["event"]) for entry in told] == [("S1", 6)]


def test_nothing_of_the_journal_steers_the_terminal(chronex: Chronex, tmp_path: Path) -> None:
    events = trace(NORMAL)
    hostile = Event(
        name="TaskRunCompleted", at_ms=0, job="a", nominal_ms=1, task="\x1b[2J", attempt=1, reason=free_text("\x07")
    )
    done = chronex("verify", "--store", str(store_at(tmp_path / "store", [*events, hostile])))
    assert done.code == 1
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
