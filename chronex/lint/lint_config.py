"""Settings of the linter that lie beside the files: `.chronex-lint.toml`, or `[lint]` in a chronex.toml.

The nearest one above a file holds for it, and no other; the search ends at the top of the repository.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chronex.jobfile.entries import JobFileError
from chronex.jobfile.lint_table import LintSettings, lint_settings
from chronex.lint.findings import Assumptions, LintFinding
from chronex.lint.linter import Analysis, lint_document
from chronex.lint.rules import is_named
from chronex.lint.source_files import Document, matches_pattern

CONFIG_NAME = ".chronex-lint.toml"
JOB_FILE_NAME = "chronex.toml"
_MOST_BYTES = 1 << 20


class LintConfig(NamedTuple):
    """Settings, and the directory from which their patterns count; None where no file was found."""

    settings: LintSettings = LintSettings()
    path: Path | None = None

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """The codes of all patterns that name this file."""
        if not (below := self._below(path)):
            return ()
        own = (codes for pattern, codes in self.settings.per_file_ignores if matches_pattern(pattern, below))
        return tuple(code for codes in own for code in codes)

    def choice_for(self, path: str) -> RuleChoice:
        """What counts in this file, where the command line says nothing else."""
        return RuleChoice(self.settings.select, (*self.settings.ignore, *self.ignored_in(path)))

    def excludes(self, path: str) -> bool:
        below = self._below(path)
        return bool(below) and any(matches_pattern(pattern, below) for pattern in self.settings.exclude)

    def _below(self, path: str) -> str:
        """The path from the directory of the settings on; empty for what lies elsewhere, or is no file."""
        if self.path is None or path.startswith("<"):
            return ""
        try:
            return Path(path).absolute().relative_to(self.path.parent.absolute()).as_posix()
        except ValueError:
            return ""


class RuleChoice(NamedTuple):
    """Which findings count. `select` and `ignore` are codes or their beginnings; an empty `select` is all."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def keeps(self, finding: LintFinding) -> bool:
        if self.select and not is_named(finding.code, self.select):
            return False
        return not (self.ignore and is_named(finding.code, self.ignore))


def config_above(path: str) -> LintConfig:
    """The settings for a file, or for a directory; raises JobFileError where they are not valid."""
    start = Path("." if path.startswith("<") else path).absolute()
    folder = start if start.is_dir() else start.parent
    for place in (folder, *folder.parents):
        for name in (CONFIG_NAME, JOB_FILE_NAME):
            if (settings := _settings_at(place / name)) is not None:
                return LintConfig(settings, place / name)
        if (place / ".git").exists():
            break
    return LintConfig()


def _settings_at(path: Path) -> LintSettings | None:
    try:
        found = path.stat()
        return _read(path, found.st_mtime_ns, found.st_size)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int, size: int) -> LintSettings | None:
    """Read again when the file has changed, so that an editor's server needs no restart."""
    if size > _MOST_BYTES:
        return None
    data = path.read_bytes()
    is_own = path.name == CONFIG_NAME
    if not is_own and b"lint" not in data:
        return None
    try:
        return lint_settings(data, str(path), is_whole_file=is_own)
    except JobFileError as error:
        if is_own or all(problem.code not in ("J001", "J002", "J003") for problem in error.problems):
            raise InvalidLintConfigError(error) from None
        return None  # no TOML at all: the linter says so when it comes to that file


class InvalidLintConfigError(Exception):
    """The settings have problems, which are told before anything is linted."""

    def __init__(self, error: JobFileError) -> None:
        self.problems = error.problems
        super().__init__(str(error))


def lint_configured(document: Document, assume: Assumptions, config: LintConfig) -> Analysis:
    """The analysis of a file with what its settings leave of the findings, for editors."""
    if config.excludes(document.path):
        return Analysis(document, [], [])
    analysis = lint_document(document, with_config(assume, config))
    choice = config.choice_for(document.path)
    return analysis._replace(findings=[found for found in analysis.findings if choice.keeps(found)])


def with_config(assume: Assumptions, config: LintConfig) -> Assumptions:
    """Which cron reads crontabs is said on the command line, else in the settings, else guessed."""
    from chronex.lint.cron_programs import CRON_PROGRAMS

    if assume.cron is not None or config.settings.cron is None:
        return assume
    return assume._replace(cron=CRON_PROGRAMS[config.settings.cron])
