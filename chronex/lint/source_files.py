"""The files that the linter reads: which ones there are under a directory, and what kind each one is."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import NamedTuple

from chronex.jobfile.positions import LineIndex

BYTE_ORDER_MARK = "\ufeff"
# What stands for a file's name when expressions are given as arguments.
ARGUMENTS = "<expression>"
KINDS = ("chronex", "crontab", "cron.d", "github", "k8s", "azure", "dependabot", "systemd", "trigger", "python")
_CRONJOB = re.compile(
    r"""^(?:\s*-)?\s*["']?kind["']?\s*:\s*["']?Cron(?:Job(?:List)?|Workflow(?:List)?)["']?\s*(?:#.*)?$""",
    re.MULTILINE,
)
_CRONJOB_IN_FLOW = re.compile(r"""["']kind["']\s*:\s*["']Cron(?:Job|Workflow)(?:List)?["']""")
_PARSE_CALL = re.compile(r"\bchronex\b")
# A whole job file. Tables of jobs alone are not enough: other programs have them, and the files of a job directory
# need the channels and calendars of the file beside them.
_JOB_FILE = tuple(re.compile(rf"^\[{table}", re.MULTILINE) for table in (r"scheduler\]", r"jobs\."))
# A name may have any character in it but a slash, a line feed too.
_CRON_NAME = re.compile(r"crontab|.+\.(?:crontab|cron)", re.DOTALL)
_CRON_EDITED = re.compile(r"crontab\.[A-Za-z0-9]+")  # what `crontab -e` opens in a temporary directory
_TRIGGER_NAME = re.compile(r"(?:.*[._-])?triggers?\.json", re.DOTALL)
_OWN_NAME = re.compile(r"chronex.*\.json", re.DOTALL)
_READ_BY_CRON = re.compile(r"(?!README)[A-Za-z0-9_-]+|[A-Za-z0-9_.-]+\.(?:crontab|cron)")
# Beside the files that cron reads: notes, templates that get another name, what a package manager left.
_NOT_FOR_CRON = re.compile(
    r"README.*|\.placeholder|.+\.(?:j2|erb|epp|tmpl|tpl|template|in|sh|md|txt|dpkg-[a-z]+|ucf-[a-z]+)"
)
# A line of schedule, user and command; what is in a file of cron.d with a name that cron may skip.
_SYSTEM_ENTRY = re.compile(
    r"^[ \t]*(?:@[a-z]+|(?:[0-9*][^\s{]*[ \t]+){4}[^\s{]+)[ \t]+[a-z_][a-z0-9_-]*[ \t]+\S", re.MULTILINE
)
UNSURE_CRON_D = "cron.d by content"
# What a template engine or a shell puts a value in place of, before any scheduler sees the file.
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\$[{(]|@[A-Z_]+@")


@dataclass(frozen=True)
class Document:
    """`text` has no byte order mark; `kind` is None for a file that holds no schedules."""

    path: str
    text: str
    kind: str | None
    has_mark: bool = field(default=False)

    @cached_property
    def lines(self) -> LineIndex:
        return LineIndex(self.text)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both counted from 1."""
        return self.lines.line_and_column(offset)

    def line(self, number: int) -> str:
        start = self.lines.start_of_line(number)
        return self.text[start : self.lines.end_of_line(number)].rstrip("\r")

    def with_text(self, text: str) -> Document:
        return Document(self.path, text, self.kind, self.has_mark)


def is_template(text: str) -> bool:
    """A value that is not written yet: `{{ .Values.schedule }}`, `${SCHEDULE}`, `@HOUR@`."""
    return _TEMPLATE.search(text) is not None


def open_document(path: str, text: str, kind: str | None = None, language: str = "") -> Document:
    """`kind` when the user says it; otherwise by the name, and for YAML and Python by what is in it."""
    has_mark = text.startswith(BYTE_ORDER_MARK)
    plain = text.removeprefix(BYTE_ORDER_MARK)
    return Document(path, plain, kind or kind_of(path, plain, language), has_mark)


def kind_of(path: str, text: str, language: str = "") -> str | None:
    kind = kind_by_name(path, language)
    if kind == "yaml":
        is_cron_job = _CRONJOB.search(text) or ("Cron" in text and _CRONJOB_IN_FLOW.search(text))
        return "k8s" if is_cron_job else None
    if kind == UNSURE_CRON_D:
        return "cron.d" if _SYSTEM_ENTRY.search(text) else None
    if kind == "python":
        return "python" if _PARSE_CALL.search(text) else None
    if kind is None and path.endswith(".toml") and all(table.search(text) for table in _JOB_FILE):
        return "chronex"  # as `import` and `init` write it under whatever name they are told
    return kind


def has_jobs(text: str) -> bool:
    """Whether a TOML text has a table of a job."""
    return _JOB_FILE[-1].search(text) is not None


def kind_by_name(path: str, language: str = "") -> str | None:
    """The kind by the name alone; of `yaml`, `python` and odd names in cron.d the content decides."""
    parts = PurePath(path.replace("\\", "/")).parts
    name = parts[-1] if parts else ""
    folders = parts[:-1]
    if name == "chronex.toml" or name.endswith(".chronex.toml"):
        return "chronex"
    if folders[-1:] == ("cron.d",):
        if _READ_BY_CRON.fullmatch(name):
            return "cron.d"
        return None if _NOT_FOR_CRON.fullmatch(name) else UNSURE_CRON_D
    if name == "crontab" and folders[-1:] == ("etc",):
        return "cron.d"
    if language == "crontab" or _is_crontab(name, folders):
        return "crontab"
    if name.endswith(".timer") or (name.endswith(".conf") and folders and folders[-1].endswith(".timer.d")):
        return "systemd"
    if name.endswith((".yml", ".yaml")):
        if folders[-1:] == (".github",) and name.startswith("dependabot."):
            return "dependabot"
        if name.startswith(("azure-pipelines", ".azure-pipelines")) or ".azure-pipelines" in folders:
            return "azure"
        return "github" if folders[-2:] == (".github", "workflows") else "yaml"
    if name.endswith(".json"):
        return "trigger" if is_trigger_name(name) or _OWN_NAME.fullmatch(name) else None
    return "python" if name.endswith(".py") else None


def is_trigger_name(path: str) -> bool:
    """`trigger.json`, `health.triggers.json`: a name that says what is in the file."""
    return _TRIGGER_NAME.fullmatch(PurePath(path.replace("\\", "/")).name) is not None


def _is_crontab(name: str, folders: tuple[str, ...]) -> bool:
    if _CRON_NAME.fullmatch(name) or folders[-3:-1] == ("spool", "cron") or folders[-2:] == ("etc", "crontabs"):
        return True
    return _CRON_EDITED.fullmatch(name) is not None and folders[-1:] == ("tmp",)


# -- the files under a directory, without those that .gitignore leaves out ------------------------------------

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


def matches_pattern(pattern: str, path: str) -> bool:
    """Does a pattern as in .gitignore name this path, or a directory above it?"""
    rule = _rule(pattern)
    return rule is not None and rule.ignores and rule.pattern.search(path) is not None


def _without_trailing_blanks(line: str) -> str:
    """As git trims: blanks at the end go, but for one that a backslash keeps."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and text != line else text
