"""The files under a directory that the linter knows, without those that .gitignore leaves out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chronex.lint.document import kind_by_name

_NEVER_ENTERED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
_MOST_RULES = 10_000


class Rule(NamedTuple):
    """One line of a .gitignore: matched against the path below the directory that holds it."""

    pattern: re.Pattern[str]
    is_negative: bool
    folders_only: bool


class _Level(NamedTuple):
    """The rules of one directory, and its path below the top of the repository."""

    rules: tuple[Rule, ...]
    prefix: str


def find_files(start: Path) -> Iterator[Path]:
    """In the order of their names, each directory's files before its subdirectories."""
    top = _top_of_repository(start)
    below = start.absolute().relative_to(top).as_posix() + "/"
    below = "" if below == "./" else below
    yield from _walk(start, below, list(_levels_above(top, below)))


def _walk(folder: Path, below: str, levels: list[_Level]) -> Iterator[Path]:
    stack: list[tuple[Path, str, Sequence[_Level]]] = [(folder, below, levels)]
    while stack:
        here, path, outer = stack.pop()
        rules = read_rules(here / ".gitignore")
        known = [*outer, _Level(rules, path)] if rules else outer
        files, folders = _entries(here)
        for name in files:
            if kind_by_name(str(here / name)) and not _is_ignored(path + name, known, is_folder=False):
                yield here / name
        for name in reversed(folders):
            if name not in _NEVER_ENTERED and not _is_ignored(path + name, known, is_folder=True):
                stack.append((here / name, f"{path}{name}/", known))


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def _top_of_repository(start: Path) -> Path:
    absolute = start.absolute()
    return next((folder for folder in (absolute, *absolute.parents) if (folder / ".git").exists()), absolute)


def _levels_above(top: Path, below: str) -> Iterator[_Level]:
    """The .gitignore files from the top of the repository down to the directory above the start."""
    parts = below.split("/")[:-1]
    for depth in range(len(parts)):
        rules = read_rules(top.joinpath(*parts[:depth]) / ".gitignore")
        if rules:
            yield _Level(rules, "".join(f"{part}/" for part in parts[:depth]))


def _is_ignored(path: str, levels: Sequence[_Level], *, is_folder: bool) -> bool:
    """The last rule that matches decides, and deeper files come later."""
    ignored = False
    for level in levels:
        relative = path[len(level.prefix) :] if path.startswith(level.prefix) else path
        for rule in level.rules:
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(relative):
                ignored = not rule.is_negative
    return ignored


def read_rules(path: Path) -> tuple[Rule, ...]:
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    return tuple(rule for line in lines[:_MOST_RULES] if (rule := _rule(line)) is not None)


def _rule(line: str) -> Rule | None:
    text = line.rstrip(" ") if not line.endswith("\\ ") else line
    if not text or text.startswith("#"):
        return None
    is_negative = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\") if is_negative or text.startswith(("\\#", "\\!")) else text
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    is_anchored = "/" in text
    expression = _translated(text.removeprefix("/"))
    try:
        pattern = re.compile(expression if is_anchored else f"(?:.*/)?{expression}")
    except re.error:
        return None
    return Rule(pattern, is_negative, folders_only)


_PIECES = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?\]?[^\]]*\]|\\.|.", re.DOTALL)


def _translated(glob: str) -> str:
    return "".join(_piece(match[0]) for match in _PIECES.finditer(glob))


def _piece(text: str) -> str:
    fixed = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if text in fixed:
        return fixed[text]
    if text[0] == "[" and text[-1] == "]" and len(text) > 2:
        inner = text[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(text[1:] if text[0] == "\\" and len(text) > 1 else text)
