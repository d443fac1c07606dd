"""`e`: the definition of the selected job in the user's editor."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from chronex.storage.records import Records
from chronex_store import LmdbStore
from chronex_tui.app import ChronexApp, StartOptions
from chronex_tui.editing import CannotEditError, definition_line, definition_of, editor_call, editor_command
from tests.tui.driving import app_on, driven
from tests.tui.examples import NOW

TOML = """\
[scheduler]
timezone = "UTC"

[jobs.vacuum-old]
schedule = "0 1 * * *"

[jobs.vacuum]
schedule = "0 3 * * *"
run = "vacuumdb --all"
"""


def defined_in(example_store: Path, source: str) -> None:
    """The job vacuum says that it comes from there."""
    with LmdbStore.open(example_store, create=False) as store:

        def write(tx: object) -> None:
            records = Records(tx, NOW)  # type: ignore[arg-type]
            found = records.job("vacuum")
            assert found is not None
            records.put(replace(found, source=source))

        store.update(write)


def editor_in(place: Path, name: str = "vi", code: int = 0) -> Path:
    """A program that writes down how it was called."""
    script = place / name
    script.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib, sys\n"
        f"pathlib.Path({str(place / 'called')!r}).write_text(json.dumps(sys.argv[1:]))\nsys.exit({code})\n"
    )
    script.chmod(0o700)
    return script


def lending(app: ChronexApp, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal that can be lent: the headless one cannot."""
    lent: list[str] = []

    @contextmanager
    def suspend() -> Iterator[None]:
        lent.append("lent")
        yield
        lent.append("back")

    monkeypatch.setattr(app, "suspend", suspend)
    return lent


def notes(app: ChronexApp) -> str:
    return " | ".join(str(note.message) for note in app._notifications)


async def test_e_opens_the_editor_at_the_line_of_the_job(
    example_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a file; touch x.toml"
    file.write_text(TOML)
    defined_in(example_store, str(file))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{editor_in(tmp_path)}' -u NONE")
    app = app_on(example_store, StartOptions(job="vacuum"))
    lent = lending(app, monkeypatch)
    async with driven(app) as driver:
        await driver.press("e")
        assert "nothing was saved" in notes(app)
    assert json.loads((tmp_path / "called").read_text()) == ["-u", "NONE", "+7", str(file)]
    assert lent == ["lent", "back"]


async def test_a_file_that_the_editor_has_saved_is_to_be_applied_and_the_command_is_told(
    example_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chronex.toml"
    file.write_text(TOML)
    defined_in(example_store, str(file))
    editor = editor_in(tmp_path)
    editor.write_text(f"#!/bin/sh\necho '# seen' >> '{file}'\n")
    monkeypatch.setenv("VISUAL", str(editor))
    app = app_on(example_store, StartOptions(job="vacuum"))
    lending(app, monkeypatch)
    async with driven(app) as driver:
        await driver.press("e")
        assert f"saved; apply it with: chronex apply {file}" in notes(app)


async def test_the_terminal_is_taken_back_where_the_editor_cannot_start(
    example_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chronex.toml"
    file.write_text(TOML)
    defined_in(example_store, str(file))
    broken = tmp_path / "vi"
    broken.write_text("#!/nowhere/interpreter\n")
    broken.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(broken))
    app = app_on(example_store, StartOptions(job="vacuum"))
    lent = lending(app, monkeypatch)
    async with driven(app) as driver:
        await driver.press("e")
        assert "the editor could not be started" in notes(app)
    assert lent == ["lent", "back"]


async def test_an_editor_that_fails_is_reported(
    example_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chronex.toml"
    file.write_text(TOML)
    defined_in(example_store, str(file))
    monkeypatch.setenv("VISUAL", str(editor_in(tmp_path, code=3)))
    app = app_on(example_store, StartOptions(job="vacuum"))
    lending(app, monkeypatch)
    async with driven(app) as driver:
        await driver.press("e")
        assert "the editor ended with code 3" in notes(app)


@pytest.mark.parametrize(
    ("source", "editor", "sentence"),
    [
        ("", "vi", "vacuum was not read from a job file, so there is none to edit"),
        ("/nowhere/chronex.toml", "vi", "/nowhere/chronex.toml cannot be read: no such file or directory"),
        ("FILE", "no-such-editor", "there is no editor no-such-editor (EDITOR names it)"),
        ("FILE", "'vi", "EDITOR cannot be read: a quote is not closed"),
        ("FILE", "true", "this terminal cannot be given to an editor"),
    ],
)
async def test_where_no_editor_opens_a_sentence_says_why(
    example_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, editor: str, sentence: str
) -> None:
    file = tmp_path / "chronex.toml"
    file.write_text(TOML)
    defined_in(example_store, str(file) if source == "FILE" else source)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)
    app = app_on(example_store, StartOptions(job="vacuum"))
    async with driven(app) as driver:
        await driver.press("e")
        assert sentence in notes(app)


def test_visual_comes_before_editor_and_vi_is_the_last_resort(tmp_path: Path) -> None:
    for name in ("vi", "nano", "hx"):
        editor_in(tmp_path, name)
    path = {"PATH": str(tmp_path)}
    assert editor_command({"VISUAL": "hx", "EDITOR": "nano -w", **path}) == ["hx"]
    assert editor_command({"VISUAL": " ", "EDITOR": "nano -w", **path}) == ["nano", "-w"]
    assert editor_command(path) == ["vi"]
    with pytest.raises(CannotEditError, match=r"there is no editor vi \(EDITOR is not set\); set EDITOR"):
        editor_command({"PATH": "/nowhere"})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TOML, 7),
        ('[jobs."vacuum"]\n', 1),
        ("\n  [ jobs . 'vacuum' ]\n", 2),
        ("[jobs]\n\nvacuum = { schedule = '@daily', run = 'true' }\n", 3),
        ("[jobs]\nvacuum.schedule = '@daily'\n", 2),
        ('[\n  {"id": "vacuum"}\n]\n', 2),
        ("# another job file\n\n", None),
    ],
)
def test_the_line_of_a_definition(text: str, line: int | None) -> None:
    assert definition_line(text, "vacuum") == line


@pytest.mark.parametrize(
    ("command", "call"),
    [
        (["/usr/bin/nvim", "-R"], ["/usr/bin/nvim", "-R", "+7", "/srv/c.toml"]),
        (["hx"], ["hx", "/srv/c.toml:7"]),
        (["code", "--wait"], ["code", "--wait", "--goto", "/srv/c.toml:7"]),
        (["some-other-editor"], ["some-other-editor", "/srv/c.toml"]),
    ],
)
def test_each_editor_gets_the_line_in_its_own_way(command: list[str], call: list[str]) -> None:
    assert editor_call(command, Path("/srv/c.toml"), 7) == call


def test_a_job_of_a_program_has_no_file() -> None:
    with pytest.raises(CannotEditError, match="was not read from a job file"):
        definition_of("vacuum", "declarative")


def test_a_file_of_the_same_name_in_another_directory_is_not_mistaken_for_the_job_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chronex.toml").write_text("[jobs.other]\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CannotEditError, match="does not define vacuum; start chronex tui where it was applied"):
        definition_of("vacuum", "chronex.toml")
    assert definition_of("other", "chronex.toml") == (tmp_path / "chronex.toml", 1)
    assert definition_of("vacuum", str(tmp_path / "chronex.toml")) == (tmp_path / "chronex.toml", 1)
