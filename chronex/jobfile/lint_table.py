"""The `[lint]` table, and `.chronex-lint.toml` with the same keys: what `chronex lint` leaves out, and where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from chronex.jobfile.entries import Entry, JobFileError, Reader, RefusedError, read_each, read_table
from chronex.jobfile.parsing import open_toml
from chronex.jobfile.values import WordReader, filled_text, texts
from chronex.text.terminal import quoted

CRONS = ("debian", "cronie", "bsd", "busybox", "supercronic", "bcron")
_CODE = re.compile(r"[A-Za-z][0-9]{0,3}")


class LintSettings(NamedTuple):
    """Codes may be shortened from the end: `W11`, `E`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    cron: str | None = None


def _code(entry: Entry) -> str:
    value = filled_text(entry)
    if not _CODE.fullmatch(value):
        entry.refuse(f"{quoted(value)} is no code of a rule", "write W111, or W11 for all that begin so", "J013")
    return value.upper()


def rule_codes(entry: Entry) -> tuple[str, ...]:
    """Codes of rules, or their beginnings."""
    entry.expect_list(entry.assignment('["W132"]'))
    return tuple(read_each(entry, _code))


def ignores_by_file(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Patterns as in .gitignore, each with the codes that do not count in such files."""
    table = entry.expect_table(entry.assignment('{ "legacy/*" = ["W103"] }'))
    return tuple(read_table(entry, dict.fromkeys(table, rule_codes)).items())


LINT: Mapping[str, Reader] = {
    "select": rule_codes,
    "ignore": rule_codes,
    "per_file_ignores": ignores_by_file,
    "exclude": texts,
    "cron": WordReader(CRONS),
}


def read_lint(entry: Entry) -> LintSettings:
    return LintSettings(**read_table(entry, LINT, '[lint]\nignore = ["W132"]'))


def lint_settings(text: str | bytes, path: str, *, is_whole_file: bool) -> LintSettings | None:
    """The settings of `.chronex-lint.toml`, or of the [lint] table of a job file; None where that has none.

    Raises JobFileError with every problem of these settings; what else is wrong with a job file does not matter here.
    """
    root = open_toml(text, path, "UTC")
    if not is_whole_file and (not isinstance(root.value, dict) or "lint" not in root.value):
        return None
    settings = None
    with suppress(RefusedError):
        settings = read_lint(root if is_whole_file else root.child("lint"))
    if root.sheet.problems:
        raise JobFileError(root.sheet.problems)
    return settings
