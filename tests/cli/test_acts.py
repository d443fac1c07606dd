"""trigger, pause, resume, cancel, replay and dlq as they are typed: what is said, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chronex.cli import acts, dead_letters, replays
from chronex.cli.acting import duration_of
from chronex.cli.arguments import UsageError
from chronex.clock import wall_ms
from chronex.engine.commands import Asker, pause
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.errors import ChronexError, NotPossibleError, StoreError, UnknownIdError, UnknownJobError
from chronex.model.reasons import free_text
from chronex.model.records import Job, Task
from chronex.storage.records import Ledger, Reading
from chronex_store import LmdbStore
from tests.cli.conftest import Chronex

Capture = pytest.CaptureFixture[str]
Said = Callable[[], Any]


class Place:
    """A store in a directory, with an engine that runs what it is told to, for as long as a call lasts."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        with LmdbStore.open(path) as store:
            jobs = [
                Job(id=name, schedule="0 0 1 1 *", tasks=(Task(name="main", run=("true",)),)) for name in ("a", "b")
            ]
            apply_jobs(store, jobs, wall_ms())

    def run_due(self, state: str = "success") -> None:
        with LmdbStore.open(Path(self.path)) as store:
            engine = Engine(store, "node-1", 10, Random(1))
            for order in engine.tick(wall_ms(), wall_ms()).orders:
                if isinstance(order, Launch) and state != "running":
                    store.update(engine.ended(order.attempt, AttemptEnd(state, free_text("exit code 3")), wall_ms()))

    def job(self, name: str) -> Job:
        with LmdbStore.open(Path(self.path)) as store:
            found = store.view(lambda tx: Reading(tx).job(name))
        assert found is not None
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "store")


def said(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def triggered(place: Place, capsys: Capture, state: str = "success") -> str:
    assert acts.run_trigger("a", [], "", None, False, place.path, "json") == 0
    identity: str = said(capsys)["id"]
    place.run_due(state)
    return identity


def test_a_trigger_says_that_no_daemon_runs(place: Place, capsys: Capture) -> None:
    assert acts.run_trigger("a", ["x=1", "y="], "", None, False, place.path, "text") == 0
    spoken = capsys.readouterr()
    assert spoken.out.startswith("waiting    a  occ_")
    assert "no daemon runs on this store: it starts with the next one; start one with: chronex run" in spoken.err


def test_waiting_without_a_daemon_is_a_failure_not_a_hang(place: Place, capsys: Capture) -> None:
    assert acts.run_trigger("a", [], "", None, True, place.path, "json") == 1
    answer = said(capsys)
    assert (answer["state"], answer["daemon"]) == ("pending", False)


def test_asking_again_with_the_same_key_is_safe(place: Place, capsys: Capture) -> None:
    for state in ("pending", "skipped"):
        assert acts.run_trigger("a", [], "key", "1h", False, place.path, "json") == 0
        assert said(capsys)["state"] == state


def test_overlap_is_told_and_exits_1(place: Place, capsys: Capture) -> None:
    running = triggered(place, capsys, "running")
    assert acts.run_trigger("a", [], "", None, False, place.path, "text") == 1
    assert f"an earlier occurrence still runs: {running}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("params", "key", "ttl", "says"),
    [
        (["nonsense"], "", None, "is not name=value"),
        (["a=1", "a=2"], "", None, "given twice"),
        ([], "k", "soon", "is not a duration"),
        ([], "k", "30min", "did you mean 30m?"),
        ([], "k", "0s", "is no time at all"),
        ([], "", "1h", "--ttl needs --idempotency-key"),
    ],
)
def test_bad_usage_of_trigger(place: Place, params: list[str], key: str, ttl: str | None, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        acts.run_trigger("a", params, key, ttl, False, place.path, "text")
    assert says in str(refused.value)


def test_pause_and_resume(place: Place, capsys: Capture) -> None:
    assert acts.run_pause("a", "2h", place.path, "json") == 0
    answer = said(capsys)
    assert (answer["job"], answer["paused"]) == ("a", True)
    assert answer["until"] is not None
    assert acts.run_resume("a", place.path, "text") == 0
    assert acts.run_resume("a", place.path, "text") == 0
    assert capsys.readouterr().out == "resumed a\na was not paused\n"
    assert not place.job("a").paused


def test_cancel_what_waits_what_runs_and_what_has_ended(place: Place, capsys: Capture) -> None:
    identity = triggered(place, capsys, "running")
    assert acts.run_cancel(identity[:14], "", False, place.path, "text") == 0
    spoken = capsys.readouterr()
    assert spoken.out.startswith("stopping   a  occ_")
    assert "the next one stops it" in spoken.err
    ended = triggered_other(place, capsys)
    with pytest.raises(NotPossibleError, match="has ended already: completed"):
        acts.run_cancel(ended, "", False, place.path, "text")


def triggered_other(place: Place, capsys: Capture) -> str:
    assert acts.run_trigger("b", [], "", None, False, place.path, "json") == 0
    identity: str = said(capsys)["id"]
    place.run_due()
    return identity


# -- replay ----------------------------------------------------------------------------------------------


def test_replay_of_one_needs_a_reason_and_links_to_it(place: Place, capsys: Capture) -> None:
    identity = triggered(place, capsys, "failed")
    with pytest.raises(UsageError, match="say why"):
        replays.run_replay(identity, None, " ", "then", False, place.path, "text")
    assert replays.run_replay(identity, None, "fixed", "then", False, place.path, "json") == 0
    (answer,) = said(capsys)
    assert (answer["replay_of"], answer["state"]) == (identity, "pending")


def test_replay_by_range_shows_the_list_first_and_needs_a_yes(place: Place, capsys: Capture) -> None:
    for _ in range(2):
        triggered(place, capsys, "failed")
    chosen = replays.Filter("a", None, None, ("failed",))
    with pytest.raises(UsageError, match="say --yes"):
        replays.run_replay(None, chosen, "fixed", "then", False, place.path, "text")
    assert "2 to replay, the oldest first" in capsys.readouterr().out
    assert replays.run_replay(None, chosen, "fixed", "now", True, place.path, "json") == 0
    assert len(said(capsys)) == 2
    nothing = replays.Filter("a", "2020-01-01", "2020-01-02", ("missed",))
    assert replays.run_replay(None, nothing, "fixed", "now", True, place.path, "text") == 1
    assert "nothing to replay" in capsys.readouterr().out


def test_a_state_that_is_no_end_is_refused() -> None:
    assert replays.states_of([]) == ("failed",)
    assert replays.states_of(["missed,skipped", "failed"]) == ("missed", "skipped", "failed")
    with pytest.raises(UsageError, match="--state: 'running' is none of"):
        replays.states_of(["running"])


# -- dead letters ----------------------------------------------------------------------------------------


def test_the_life_of_a_dead_letter(place: Place, capsys: Capture) -> None:
    triggered(place, capsys, "failed")
    assert dead_letters.run_list(None, place.path, "json") == 0
    (row,) = said(capsys)
    assert (row["job"], row["task"], row["attempts"], row["reason"]) == ("a", "main", 1, "exit code 3")
    assert dead_letters.run_show(row["id"][:12], place.path, "json") == 0
    letter = said(capsys)
    assert letter["version"] == 1
    assert [one["state"] for one in letter["tries"]] == ["failed"]
    assert dead_letters.run_replay([row["id"]], None, "", "then", False, place.path, "json") == 0
    assert said(capsys)[0]["replay_of"] == letter["occurrence"]
    assert dead_letters.run_list("a", place.path, "text") == 0
    assert capsys.readouterr().out == "no dead letters\n"


def test_dropping_all_asks_first(place: Place, capsys: Capture) -> None:
    triggered(place, capsys, "failed")
    with pytest.raises(UsageError, match="say --yes"):
        dead_letters.run_drop([], "a", "", False, place.path, "text")
    assert dead_letters.run_drop([], "a", "", True, place.path, "text") == 0
    assert "dropped    a/main" in capsys.readouterr().out
    with pytest.raises(UsageError, match="say which"):
        dead_letters.check_named([], None, False)


# -- what is not there -----------------------------------------------------------------------------------

ACTS: dict[str, Callable[[str], int]] = {
    "trigger": lambda store: acts.run_trigger("ghost", [], "", None, False, store, "text"),
    "pause": lambda store: acts.run_pause("ghost", None, store, "text"),
    "resume": lambda store: acts.run_resume("ghost", store, "text"),
    "cancel": lambda store: acts.run_cancel("occ_00000000", "", False, store, "text"),
    "replay": lambda store: replays.run_replay("occ_00000000", None, "why", "then", False, store, "text"),
    "replay --job": lambda store: replays.run_replay(
        None, replays.Filter("ghost", None, None, ("failed",)), "why", "then", True, store, "text"
    ),
    "dlq list": lambda store: dead_letters.run_list("ghost", store, "text"),
    "dlq show": lambda store: dead_letters.run_show("run_00000000", store, "text"),
    "dlq drop": lambda store: dead_letters.run_drop(["run_00000000"], None, "", False, store, "text"),
    "dlq replay": lambda store: dead_letters.run_replay(["run_00000000"], None, "", "then", False, store, "text"),
}


@pytest.mark.parametrize("act", ACTS)
def test_what_is_not_there_is_one_sentence_with_a_hint_and_exit_2(act: str, place: Place) -> None:
    with pytest.raises((UnknownJobError, UnknownIdError)) as refused:
        ACTS[act](place.path)
    assert refused.value.exit_code == 2
    assert ";" in str(refused.value)


@pytest.mark.parametrize("act", ACTS)
def test_an_empty_store_and_no_store_are_told(act: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        ACTS[act](str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()
    LmdbStore.open(tmp_path / "empty").close()
    with pytest.raises(ChronexError):
        ACTS[act](str(tmp_path / "empty"))


def test_no_control_character_of_the_data_reaches_the_terminal(place: Place, capsys: Capture) -> None:
    with LmdbStore.open(Path(place.path)) as store:
        evil = Asker("eve\x1b[2J", "cli", "there")
        store.update(lambda tx: pause(Ledger(tx, wall_ms()), "a", evil))
    identity = triggered(place, capsys, "running")
    assert acts.run_cancel(identity, "because\x1b]0;pwned\x07", False, place.path, "text") == 0
    assert dead_letters.run_list(None, place.path, "text") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_typed_at_a_shell(chronex: Chronex, place: Place) -> None:
    done = chronex("trigger", "ab", "--store", place.path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("chronex: no job 'ab'; did you mean a?")
    done = chronex("dlq", "list", "--store", place.path, "--format", "yaml")
    assert done.code == 2


@pytest.mark.parametrize(("text", "why"), [("0s", "is no time at all"), ("2 hours", "is not a duration")])
def test_a_duration_must_be_one_and_longer_than_nothing(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        duration_of("--for", text)
