"""One rule for times: people read the job's zone with its offset, programs RFC 3339 in UTC and epoch milliseconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
import typer

from chronex.cli import output
from chronex.cli.app import COMMANDS as ALL_COMMANDS
from chronex.cli.app import Declaration
from chronex.cli.commands import dlq, history, list_jobs, pause, report, show, status, why
from chronex.cli.output import hinted, with_store_options
from chronex.clock import wall_ms
from chronex.engine.engine import Engine
from chronex.engine.orders import AttemptEnd, Launch
from chronex.engine.update import apply_jobs
from chronex.model.job import Job, Task
from chronex.model.reasons import free_text
from chronex.timing.zones import load_zone
from chronex_store import LmdbStore

KATHMANDU = load_zone("Asia/Kathmandu")
NOON = 1_798_804_800_000  # 2027-01-01T12:00:00Z


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (NOON, "2027-01-01 17:45+05:45"),
        (NOON + 7_000, "2027-01-01 17:45:07+05:45"),
        (NOON + 7_250, "2027-01-01 17:45:07+05:45"),
        (NOON + 250, "2027-01-01 17:45+05:45"),
    ],
)
def test_people_read_the_wall_clock_of_the_job_and_its_offset(ms: int, text: str) -> None:
    assert output.time_text(ms, KATHMANDU) == text


def test_programs_get_both_forms_and_both_are_missing_together() -> None:
    assert output.timed("due", NOON + 250) == {"due": "2027-01-01T12:00:00.250Z", "due_ms": NOON + 250}
    assert output.timed("due", None) == {"due": None, "due_ms": None}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job of another zone that failed for good a minute ago."""
    place = tmp_path_factory.mktemp("times") / "store"
    now = wall_ms() // 60_000 * 60_000 - 60_000
    with LmdbStore.open(place) as opened:
        job = Job(id="far", schedule="TZ=Asia/Kathmandu * * * * *", tasks=(Task(name="main", run=("false",)),))
        apply_jobs(opened, [job], now - 1)
        engine = Engine(opened, "node", 5)
        (launch,) = engine.tick(now, now).orders
        assert isinstance(launch, Launch)
        opened.update(engine.started(launch.attempt, None, "", now + 1))
        opened.update(
            engine.ended(launch.attempt, AttemptEnd("failed", free_text("exit code 1"), exit_code=1), now + 5)
        )
    return str(place)


COMMANDS: dict[str, Callable[[str, str], int]] = {
    "history": lambda store, form: history.history("far", store=store, form=form),
    "report": lambda store, form: report.run_report("far", store, form),
    "show": lambda store, form: show.run_show("far", store, form),
    "show --versions": lambda store, form: show.run_versions("far", store, form),
    "why": lambda store, form: why.run_why("far", None, store, form),
    "dlq list": lambda store, form: dlq.run_list(None, store, form),
    "pause": lambda store, form: pause.run_pause("far", "2h", store, form),
    "list": lambda store, form: list_jobs.run_list(store, form, ""),
    "status": lambda store, form: status.run_status(store, form, watch=False, check=False),
}
OVERVIEWS = ("list", "status")


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in OVERVIEWS])
def test_each_command_tells_the_zone_of_the_job(command: str, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert COMMANDS[command](store, "text") == 0
    text = capsys.readouterr().out
    assert "+05:45" in text
    assert "Z" not in text.replace("TZ=", "")


@pytest.mark.parametrize("command", OVERVIEWS)
def test_an_overview_names_the_zone_of_its_short_times(
    command: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMANDS[command](store, "text") == 0
    assert f"in {output.shown_zone().name}" in capsys.readouterr().out


def pairs(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Every text of a time in it, with what stands under its name and `_ms`."""
    if isinstance(value, list):
        for one in value:
            yield from pairs(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if isinstance(one, str) and one[4:5] == "-" and one.endswith("Z"):
                yield name, one, value.get(f"{name}_ms")
            yield from pairs(one)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_time_of_the_json_has_a_twin_in_milliseconds(
    command: str, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMANDS[command](store, "json") == 0
    found = list(pairs(json.loads(capsys.readouterr().out)))
    assert found
    for name, text, ms in found:
        assert ms == round(datetime.fromisoformat(text).timestamp() * 1000), name


@pytest.mark.parametrize(("encoding", "has_unicode"), [("utf-8", True), ("ascii", False)])
def test_a_stream_without_an_encoding_is_taken_for_the_standard_output_behind_it(
    monkeypatch: pytest.MonkeyPatch, encoding: str, has_unicode: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace())
    monkeypatch.setattr(sys, "__stdout__", SimpleNamespace(encoding=encoding))
    monkeypatch.setenv("TERM", "xterm")
    assert output.wants_unicode() is has_unicode


# -- commands in messages -----------------------------------------------------------------------------------------

STORE, CONFIG = "--store '/srv/my store'", "--config /srv/jobs.toml"
# A message as it is written, and as somebody with another store and job file reads it.
HINTS: tuple[tuple[str, str], ...] = (
    ("start one with: chronex run", f"start one with: chronex run {CONFIG} {STORE}"),
    ("`chronex apply` makes one", f"`chronex apply {CONFIG} {STORE}` makes one"),
    ("chronex why 'a b'", f"chronex why {STORE} 'a b'"),
    ("chronex notify test x; chronex notify queue", f"chronex notify test {STORE} x; chronex notify queue {STORE}"),
    ("`chronex dlq list` shows them", f"`chronex dlq list {STORE}` shows them"),
    ("chronex history x --format json lists them", f"chronex history {STORE} x --format json lists them"),
    ("back: chronex apply --rollback x VERSION", f"back: chronex apply {CONFIG} {STORE} --rollback x VERSION"),
    ("chronex service install sets it up", f"chronex service install {CONFIG} {STORE} sets it up"),
    ("chronex run --config a.toml --store b", "chronex run --config a.toml --store b"),
    ("chronex run --config a.toml", f"chronex run {STORE} --config a.toml"),
    ("chronex explain '0 3 * * *'", "chronex explain '0 3 * * *'"),
    ("chronex lint shows the rest", "chronex lint shows the rest"),
    ("see chronex list --help", "see chronex list --help"),
    ("chronex: no job 'x'", "chronex: no job 'x'"),
    ("chronex language server", "chronex language server"),
)


@pytest.mark.parametrize(("written", "shown"), HINTS)
def test_a_command_in_a_message_names_the_store_and_the_job_file_that_were_named(written: str, shown: str) -> None:
    assert with_store_options(written, STORE, CONFIG) == shown
    assert with_store_options(written, "", "") == written


@pytest.mark.parametrize(
    ("arguments", "variable", "shown"),
    [
        (("list",), "", "chronex run"),
        (("list", "--store", "st"), "", "chronex run --store {here}/st"),
        (("list", "--store=s t"), "", "chronex run --store '{here}/s t'"),
        (("list",), "st", "chronex run --store {here}/st"),
        (("at", "now", "--", "tool", "--store", "x"), "", "chronex run"),
        (("status", "--store", "postgresql://u:secret@h/db"), "", "chronex run --store postgresql://u@h/db"),
    ],
)
def test_the_store_of_a_message_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], variable: str, shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["chronex", *arguments])
    monkeypatch.delenv("CHRONEX_CONFIG", raising=False)
    monkeypatch.delenv("CHRONEX_STORE", raising=False)
    if variable:
        monkeypatch.setenv("CHRONEX_STORE", variable)
    assert hinted("chronex run") == shown.format(here=tmp_path)


def test_every_command_that_a_message_may_name_is_known_with_or_without_a_store() -> None:
    """A command that is new here, or that gets the option, must be told apart."""
    for name, (load, _) in ALL_COMMANDS.items():
        for command, options in _options_of(name, load()):
            named = with_store_options(f"chronex {command}", "--store s", "") != f"chronex {command}"
            assert named == ("--store" in options), command


def _options_of(name: str, declared: Declaration) -> Iterator[tuple[str, set[str]]]:
    if isinstance(declared, typer.Typer):
        for below in declared.registered_commands:
            assert below.callback is not None
            yield f"{name} {below.name or below.callback.__name__}", _options(below.callback)
    else:
        yield name, _options(declared)


def _options(function: Callable[..., object]) -> set[str]:
    """Those that it declares with `Annotated[…, typer.Option("--name")]`."""
    hints = get_type_hints(function, include_extras=True).values()
    found = (one for hint in hints for one in getattr(hint, "__metadata__", ()))
    return {
        str(word) for one in found for word in (getattr(one, "default", ""), *(getattr(one, "param_decls", ()) or ()))
    }
