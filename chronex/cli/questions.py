"""Questions to the person at the terminal."""

from __future__ import annotations

import sys

from chronex.cli.output import err
from chronex.text.terminal import terminal_safe


def is_answered() -> bool:
    """Whether somebody is there who can answer: a script must say by an option what it means."""
    return sys.stdin.isatty()


def ask(question: str) -> bool:
    """Yes or no; no is the answer of an empty line and of an end of input."""
    err(f"{terminal_safe(question)} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def choose_letter(question: str, letters: str) -> str:
    """One of the letters; the last of them for an empty line, an end of input, or anything else."""
    err(terminal_safe(question))
    answer = sys.stdin.readline().strip().lower()[:1]
    return answer if answer and answer in letters else letters[-1]
