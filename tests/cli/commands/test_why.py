"""`chronex why` on a real store: the answer in text and JSON, and one sentence where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Chronex
from tests.kit.waits import until

JOBS = """
[jobs.quick]
schedule = "* * * * * *"
run = "exit 3"

[jobs.yearly]
schedule = "TZ=Europe/Berlin 30 2 1 1 *"
run = ["true"]
"""


@pytest.fixture(scope="module")
def store(chronex: Chronex, tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all: asking changes nothing."""
    tmp_path = tmp_path_factory.mktemp("why")
    (tmp_path / "chronex.toml").write_text(JOBS)
    store = str(tmp_path / "store")

    def has_run() -> bool:
        done = chronex("run", "--once", "--config", str(tmp_path / "chronex.toml"), "--store", store)
        assert done.code in (0, 1), done.err
        return bool(json.loads(chronex("history", "quick", "--store", store, "--format", "json").out))

    until(has_run, "a run that was due")
    return store


def test_a_run_that_failed_is_explained(chronex: Chronex, store: str) -> None:
    last = json.loads(
        chronex("history", "quick", "-n", "1", "--state", "failed", "--store", store, "--format", "json").out
    )
    row = (last if isinstance(last, list) else last["occurrences"])[0]
    done = chronex("why", "quick", row["id"], "--store", store, "--format", "json")
    [answer] = json.loads(done.out)["answers"]
    assert answer["cause"] == "failed"
    assert answer["occurrence"] == row["id"]
    assert set(answer) == {
        "job", "instant", "instant_ms", "timezone", "occurrence", "cause", "summary", "names", "links",
        "previous", "previous_ms", "next", "next_ms",
    }  # fmt: skip
    assert all(set(link) == {"fact", "at", "at_ms", "source"} for link in answer["links"])
    text = chronex("why", "quick", row["id"], "--store", store).out
    assert "'* * * * * *' matches this time (version 1)" in text


def test_a_time_before_now_is_no_option(chronex: Chronex, store: str) -> None:
    done = chronex("why", "yearly", "-2h", "--store", store)
    assert done.code == 0, done.err
    assert "not yet applied" in done.out
    assert "nearest by schedule: before" in done.out


def test_without_a_time_both_sides_of_now(chronex: Chronex, store: str) -> None:
    answers = json.loads(chronex("why", "quick", "--store", store, "--format", "json").out)["answers"]
    assert answers[0]["cause"] == "failed"
    assert answers[-1]["cause"] == "will_run"
    # Of the times since that run, while no scheduler was there, the newest is told: none where no second has passed.
    assert len(answers) in (2, 3)
    instants = [answer["instant_ms"] for answer in answers]
    assert instants == sorted(set(instants))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("yaerly",), "no job 'yaerly'; did you mean yearly?"),
        (("zzz",), "no job 'zzz'; `chronex list --store "),
        (("yearly", "soon"), "'soon' is not a time; write"),
        (("yearly", "occ_1"), "has no occurrence 'occ_1'"),
        (("\x1b[2J",), "cannot name a job"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_and_a_hint(
    chronex: Chronex, store: str, arguments: tuple[str, ...], sentence: str
) -> None:
    done = chronex("why", *arguments, "--store", store)
    assert done.code == 2
    assert sentence in done.err
    assert "\x1b" not in done.err
    assert done.err.count("\n") == 1


def test_an_empty_store_and_none_at_all(chronex: Chronex, tmp_path: Path) -> None:
    done = chronex("why", "j", "--store", str(tmp_path / "nowhere"))
    assert done.code in (1, 2)
    assert done.err.count("\n") == 1
    (tmp_path / "empty.toml").write_text("")
    chronex("apply", str(tmp_path / "empty.toml"), "--store", str(tmp_path / "store"))
    done = chronex("why", "j", "--store", str(tmp_path / "store"))
    assert (done.code, "chronex apply" in done.err) == (2, True)
