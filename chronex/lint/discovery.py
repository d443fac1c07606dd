"""The files under a directory that the linter knows, without those that .gitignore leaves out."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chronex.lint.document import kind_by_name

_NEVER_ENTERED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache"}
_MOST_RULES = 10_000
# pathspec reads a bracket expression up to its first "]", which cuts these classes in half.
_POSIX_CLASSES = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}


class _IgnoreRule(NamedTuple):
    """One line of a .gitignore. The pattern is matched against the path below the directory that holds the file."""

    pattern: re.Pattern[str]
    ignores: bool
    folders_only: bool


class _Level(NamedTuple):
    """The rules of one directory, last line first, and its path below the top of the repository."""

    rules: tuple[_IgnoreRule, ...]
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
        rules = _read_rules(here / ".gitignore")
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
        rules = _read_rules(top.joinpath(*parts[:depth]) / ".gitignore")
        if rules:
            yield _Level(rules, "".join(f"{part}/" for part in parts[:depth]))


def _is_ignored(path: str, levels: Sequence[_Level], *, is_folder: bool) -> bool:
    """The last line that matches decides, and the lines of a deeper .gitignore come later."""
    for level in reversed(levels):
        relative = path.removeprefix(level.prefix)
        for rule in level.rules:
            if (is_folder or not rule.folders_only) and _names(rule.pattern, relative):
                return rule.ignores
    return False


def _names(pattern: re.Pattern[str], path: str) -> bool:
    """Does the pattern name this entry itself?

    A pattern of pathspec also matches all that lies below a directory it names, and marks that with its only group.
    git looks at a directory first and does not enter one that is ignored, so such a match says nothing about `path`.
    """
    match = pattern.search(path)
    return match is not None and match.lastindex is None


def _read_rules(path: Path) -> tuple[_IgnoreRule, ...]:
    """The rules of one file, last line first. As for git, a line ends at a line feed, with or without a return."""
    try:
        lines = path.read_bytes().decode("utf-8-sig", "replace").split("\n")
    except OSError:
        return ()
    rules = [rule for line in lines[:_MOST_RULES] if (rule := _rule(line.removesuffix("\r"))) is not None]
    return tuple(reversed(rules))


def _rule(line: str) -> _IgnoreRule | None:
    """None for a comment, an empty line, and what git or pathspec cannot read.

    The pattern is translated without the slash at its end: with it, `doc/**/` would match `doc` itself, and `*/` only
    the directories at the top. The rules of a file are not one GitIgnoreSpec because that answers only for files:
    after `log/` it lets `!log/x` bring x back, which git does not.
    """
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    text = _without_trailing_blanks(line)
    glob = text.removesuffix("/")
    for name, ranges in _POSIX_CLASSES.items():
        glob = glob.replace(name, ranges)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[a]" is no set in a set here
            pattern = GitIgnoreSpecPattern(glob)
    except (ValueError, re.error):
        return None
    if pattern.regex is None or pattern.include is None:
        return None
    return _IgnoreRule(pattern.regex, pattern.include, folders_only=text.endswith("/"))


def _without_trailing_blanks(line: str) -> str:
    """As git trims: blanks at the end go, but for one that a backslash keeps."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and text != line else text
