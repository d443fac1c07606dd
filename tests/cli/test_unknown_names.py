"""Names that no store has: one sentence with a hint and exit 2, and no control character reaches the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chronex.cli.commands import cancel, dlq, pause, replay
from chronex.clock import wall_ms
from chronex.engine import commands
from chronex.engine.commands import Actor
from chronex.errors import ChronexError, StoreError, UnknownIdError, UnknownJobError
from chronex.storage.records import Records
from chronex_store import LmdbStore
from tests.cli.conftest import Chronex
from tests.cli.small_store import Capture, Place, run_trigger, triggered

WHY = replay.HowToReplay("why")
COMMANDS: dict[str, Callable[[str], int]] = {
    "trigger": lambda store: run_trigger("ghost", store, "text"),
    "pause": lambda store: pause.run_pause("ghost", None, store, "text"),
    "resume": lambda store: pause.run_resume("ghost", store, "text"),
    "cancel": lambda store: cancel.run_cancel("occ_00000000", "", wait=False, store=store, form="text"),
    "replay": lambda store: replay.run_replay("occ_00000000", WHY, yes=False, store=store, form="text"),
    "replay --job": lambda store: replay.run_replay(
        replay.PastFilter("ghost", None, None, ("failed",)), WHY, yes=True, store=store, form="text"
    ),
    "dlq list": lambda store: dlq.run_list("ghost", store, "text"),
    "dlq show": lambda store: dlq.run_show("run_00000000", store, "text"),
    "dlq drop": lambda store: dlq.run_drop(dlq.Chosen(["run_00000000"], None, False), "", store, "text"),
    "dlq replay": lambda store: dlq.run_replay(dlq.Chosen(["run_00000000"], None, False), "", "then", store, "text"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_there_is_one_sentence_with_a_hint_and_exit_2(command: str, place: Place) -> None:
    with pytest.raises((UnknownJobError, UnknownIdError)) as refused:
        COMMANDS[command](place.path)
    assert refused.value.exit_code == 2
    assert ";" in str(refused.value)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_store_and_no_store_are_told(command: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        COMMANDS[command](str(tmp_path / "nowhere"))
    assert not (tmp_path / "nowhere").exists()
    LmdbStore.open(tmp_path / "empty").close()
    with pytest.raises(ChronexError):
        COMMANDS[command](str(tmp_path / "empty"))


def test_no_control_character_of_the_data_reaches_the_terminal(place: Place, capsys: Capture) -> None:
    with LmdbStore.open(Path(place.path)) as store:
        evil = Actor("eve\x1b[2J", "cli", "there")
        store.update(lambda tx: commands.pause(Records(tx, wall_ms()), "a", evil))
    identity = triggered(place, capsys, "running")
    assert cancel.run_cancel(identity, "because\x1b]0;pwned\x07", wait=False, store=place.path, form="text") == 0
    assert dlq.run_list(None, place.path, "text") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_typed_at_a_shell(chronex: Chronex, place: Place) -> None:
    done = chronex("trigger", "ab", "--store", place.path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("chronex: no job 'ab'; did you mean a?")
    done = chronex("dlq", "list", "--store", place.path, "--format", "yaml")
    assert done.code == 2
