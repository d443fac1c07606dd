"""What is wrong with a job file, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chronex.errors import ChronexError
from chronex.expr.diagnostics import with_hint


class Problem(NamedTuple):
    """One finding; line and columns count from 1, `end_column` is one past its last character on that line."""

    path: str
    line: int
    column: int
    end_column: int
    message: str
    hint: str
    code: str
    fix: str | None = None  # what to write in place of the marked text, where that is known

    @property
    def text(self) -> str:
        """The message and its hint as one line."""
        return with_hint(self.message, self.hint)

    def __str__(self) -> str:
        return f"{inert(self.path)}:{self.line}:{self.column}: {self.text}"

    def to_dict(self) -> dict[str, Any]:
        names = ("path", "line", "column", "end_column", "message", "hint", "code")
        return {name: getattr(self, name) for name in names}


class JobFileError(ChronexError, ValueError):
    """The job file is not valid; nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def inert(text: str) -> str:
    """Text from outside with every character that could steer a terminal written out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
