"""The definition of a job in the user's own editor: its file and line, and how each editor takes a line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from chronex.text.terminal import cell_safe
from chronex_tui.model.available_actions import on_store

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

# A job file is at most this long; what is longer is opened at its beginning.
_MOST_BYTES = 1 << 20
# Editors that take `+LINE FILE`. Those that do not would open a second file named +12.
_PLUS = frozenset({"vi", "vim", "nvim", "gvim", "view", "nano", "pico", "emacs", "emacsclient", "kak", "micro", "mg"})
_COLON = frozenset({"hx", "helix", "subl", "zed"})
_GOTO = frozenset({"code", "codium", "cursor"})


class CannotEditError(Exception):
    """A sentence that says why no editor opens."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """VISUAL, EDITOR, else vi, as an argument list whose program is there."""
    name = next((one for one in ("VISUAL", "EDITOR") if environ.get(one, "").strip()), "")
    try:
        command = shlex.split(environ[name]) if name else ["vi"]
    except ValueError:
        raise CannotEditError(f"{name} cannot be read: a quote is not closed") from None
    if not command or shutil.which(command[0], path=environ.get("PATH")) is None:
        missing = cell_safe(command[0]) if command else "nothing"
        hint = f"{name} names it" if name else "EDITOR is not set"
        raise CannotEditError(f"there is no editor {missing} ({hint}); set EDITOR to one that is installed")
    return command


def definition_line(text: str, name: str) -> int | None:
    """Where the job is defined, counted from 1: its table in TOML, else where its name is first a key or a string."""
    word = re.escape(name)
    table = rf"""^[ \t]*\[[ \t]*jobs[ \t]*\.[ \t]*(?:{word}|"{word}"|'{word}')[ \t]*[\].]"""
    inline = rf"""^[ \t]*(?:jobs[ \t]*\.[ \t]*)?(?:{word}|"{word}"|'{word}')[ \t]*[=.]"""
    for pattern in (table, inline, rf'"{word}"'):
        if found := re.search(pattern, text, re.MULTILINE):
            return text.count("\n", 0, found.start()) + 1
    return None


def editor_call(command: list[str], file: Path, line: int) -> list[str]:
    """The argument list that opens the file at the line, in the way of this editor."""
    program = Path(command[0]).name
    if program in _PLUS:
        return [*command, f"+{line}", str(file)]
    if program in _COLON:
        return [*command, f"{file}:{line}"]
    if program in _GOTO:
        return [*command, "--goto", f"{file}:{line}"]
    return [*command, str(file)]


def definition_of(name: str, source: str) -> tuple[Path, int]:
    """The file and the line; CannotEditError where the job has no file, or it is gone."""
    if not source or ("/" not in source and "." not in source):
        raise CannotEditError(f"{name} was not read from a job file, so there is none to edit")
    file = Path(source).absolute()
    try:
        with file.open("rb") as opened:
            text = opened.read(_MOST_BYTES).decode(errors="replace")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CannotEditError(f"{cell_safe(str(file))} cannot be read: {why}") from None
    line = definition_line(text, name)
    if line is None and not Path(source).is_absolute():  # applied from another directory: this is another file
        raise CannotEditError(
            f"{cell_safe(str(file))} does not define {name}; start chronex tui where it was applied"
        )
    return file, line or 1


def edit_definition(app: ChronexApp, name: str, source: str) -> None:
    """Give the terminal to the editor until it ends. Changes take effect when the file is applied."""
    try:
        file, line = definition_of(name, source)
        call = editor_call(editor_command(os.environ), file, line)
        before = _written(file)
        with app.suspend():
            problem = _run(call)
        app.key_order.drop_waiting()
    except CannotEditError as error:
        problem = str(error)
    except SuspendNotSupported:
        problem = "this terminal cannot be given to an editor"
    if problem:
        app.notify(problem, severity="warning", markup=False)
    elif _written(file) == before:
        app.notify("nothing was saved", timeout=3)
    else:
        command = on_store(f"chronex apply {shlex.quote(str(file))}", app.options.store_option)
        app.notify(f"saved; apply it with: {cell_safe(command)}", timeout=10, markup=False)


def _written(file: Path) -> tuple[int, int, int] | None:
    """Changes when the file is written, also where the editor puts another in its place; None where it is gone."""
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _run(call: list[str]) -> str:
    """What went wrong, if anything. It is returned and not raised, because the terminal must be restored first."""
    try:
        code = subprocess.run(call, check=False).returncode  # noqa: S603  the user's own editor
    except (OSError, ValueError) as error:
        return f"the editor could not be started: {error}"
    return f"the editor ended with code {code}" if code else ""
