"""What is wrong with a job file, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chronex.errors import ChronexError

TITLES = {
    "J001": "the file cannot be read as text",
    "J002": "not valid TOML or JSON",
    "J003": "nested too deeply",
    "J010": "unknown key",
    "J011": "wrong type",
    "J012": "a key is missing",
    "J013": "not one of the possible values",
    "J014": "number out of range",
    "J015": "not a duration, or too long",
    "J016": "unknown time zone",
    "J017": "not a name",
    "J018": "given twice",
    "J019": "not a command",
    "J020": "not for the environment of a task",
    "J021": "the spread is not valid",
    "J022": "not an address",
    "J023": "too large for the store",
    "J024": "keys that do not go together",
    "J025": "not a rule",
    "J101": "a setting that another one overrides",
}


class Problem(NamedTuple):
    """One finding; line and columns count from 1, `end_column` is one past its last character on that line."""

    path: str
    line: int
    column: int
    end_column: int
    message: str
    hint: str
    code: str

    def __str__(self) -> str:
        advice = f"; {self.hint}" if self.hint else ""
        return f"{inert(self.path)}:{self.line}:{self.column}: {self.message}{advice}"

    def to_dict(self) -> dict[str, Any]:
        return self._asdict()


class JobFileError(ChronexError, ValueError):
    """The job file is not valid; nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def inert(text: str) -> str:
    """Text from outside with every character that could steer a terminal written out."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
