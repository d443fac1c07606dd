"""Bare expressions, one a line: given as arguments, or on standard input where # opens a comment."""

from __future__ import annotations

from chronex.lint.assumptions import Assumptions
from chronex.lint.document import ARGUMENTS, Document
from chronex.lint.findings import Found, Place
from chronex.lint.hosts import CHRONEX, POSIX


def find_expressions(document: Document, assume: Assumptions, *, is_posix: bool) -> Found:
    host = POSIX if is_posix else CHRONEX
    found, start = Found([], []), 0
    for line in document.text.split("\n"):
        text = line.rstrip("\r")
        is_comment = text.lstrip().startswith("#") and document.path != ARGUMENTS
        if (text.strip() and not is_comment) or document.path == ARGUMENTS:
            found.places.append(Place(text, start, start + len(text), start, host, assume.zone, text.strip()[:60]))
        start += len(line) + 1
    return found
