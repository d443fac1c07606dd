"""What reaches the terminal: colour only where it is wanted, and no control character from data."""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


def wants_colour() -> bool:
    """NO_COLOR, pipes and dumb terminals get plain text."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def wants_unicode() -> bool:
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower()
    return encoding.replace("-", "") == "utf8" and os.environ.get("TERM") != "dumb"


def paint(text: str, *styles: str) -> str:
    if not styles or not wants_colour():
        return text
    return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"


def inert(text: str) -> str:
    """Every character that is not printable becomes one visible mark, so that columns stay in place."""
    return "".join(
        char if char.isprintable() else " " if char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def width(text: str) -> int:
    """Terminal columns: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in inert(text)
    )


def out(text: str = "") -> None:
    _write(sys.stdout, text)


def err(text: str) -> None:
    """What cannot be said, because the disk is full or the reader has gone, changes nothing of what was done."""
    try:
        _write(sys.stderr, text)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stderr.fileno())
        os.close(nowhere)


def _write(stream: TextIO, text: str) -> None:
    """A terminal that cannot show a character gets a question mark for it."""
    encoding = stream.encoding or "ascii"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
