"""A rule of the linter as data."""

from __future__ import annotations

from typing import NamedTuple

from chronex.lint.document import ARGUMENTS


class Example(NamedTuple):
    """A file with a name by which it is recognised, or an expression alone."""

    text: str
    path: str = ARGUMENTS

    @property
    def kind(self) -> str | None:
        return "expressions" if self.path == ARGUMENTS else None


class Rule(NamedTuple):
    """`bad` is None where no short text can show it."""

    code: str
    title: str
    severity: str
    text: str
    bad: Example | None
    good: Example | None
