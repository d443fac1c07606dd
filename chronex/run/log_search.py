"""Searches the output of many attempts: exact bytes or an expression, line by line, in bounded memory.

A log is read in pieces of whole lines. The pieces of one that is over its limit are joined by a mark that Chronex
wrote; what still runs is put in order first, so that a line is searched as it was printed.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from chronex.errors import LogDirectoryError
from chronex.run.attempt_log import LogDirectory, in_order

_PIECE = 1 << 20
# A line without an end is cut into such pieces; what lies across a cut is found in neither.
LONGEST_LINE = 1 << 20


class LogQuery(NamedTuple):
    """`pattern` matches bytes of one line; `plain` is what every match contains, as a quick test of a whole log."""

    pattern: re.Pattern[bytes]
    plain: bytes = b""


class FoundLine(NamedTuple):
    """`is_match` is False for the lines around a match; `number` counts from 1."""

    number: int
    text: bytes
    is_match: bool


def query_of(text: str, *, is_regex: bool, ignores_case: bool) -> LogQuery:
    """Raises re.error for an expression that cannot be read. Letters of every language know their other case."""
    source = text if is_regex else re.escape(text)
    flags = re.IGNORECASE if ignores_case else 0
    if ignores_case and not text.isascii():
        source = _case_folded(text) if not is_regex else source
        flags = 0 if not is_regex else flags
    plain = text.encode() if not is_regex and not ignores_case else b""
    return LogQuery(re.compile(source.encode(), flags), plain)


def _case_folded(text: str) -> str:
    """Bytes know no case beyond ASCII, so each letter stands beside its other forms."""
    parts = []
    for letter in text:
        forms = sorted({letter, letter.lower(), letter.upper(), letter.casefold()})
        parts.append("(?:" + "|".join(re.escape(form) for form in forms) + ")")
    return "".join(parts)


def has_match(data: bytes, query: LogQuery) -> bool:
    if query.plain:
        return query.plain in data
    return any(query.pattern.search(line) for line in data.split(b"\n"))


def matching_lines(pieces: Iterable[bytes], query: LogQuery, context: int = 0) -> Iterator[FoundLine]:
    """The lines that match, with so many before and after each of them, each line once."""
    before: deque[FoundLine] = deque(maxlen=context or None)
    left = 0
    for number, line in enumerate(_lines(pieces), 1):
        if query.pattern.search(line):
            if context:
                yield from before
                before.clear()
            yield FoundLine(number, line, is_match=True)
            left = context
        elif left:
            left -= 1
            yield FoundLine(number, line, is_match=False)
        elif context:
            before.append(FoundLine(number, line, is_match=False))


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    held = b""
    for piece in pieces:
        whole = held + piece
        *lines, held = whole.split(b"\n")
        yield from (line.removesuffix(b"\r") for line in lines)
        while len(held) > LONGEST_LINE:
            yield held[:LONGEST_LINE]
            held = held[LONGEST_LINE:]
    if held:
        yield held


def pieces_of(directory: LogDirectory, name: str, limit: int, *, is_over: bool) -> Iterator[bytes]:
    """A log that is over is read as it goes; one that is still written is put in order first."""
    with os.fdopen(directory.open(name), "rb", buffering=0) as file:
        if not is_over:
            yield in_order(file.read(), limit)
            return
        while piece := file.read(_PIECE):
            yield piece


def names_with_matches(directory: LogDirectory, names: Iterable[str], query: LogQuery) -> Iterator[str]:
    """Those logs in which a line matches, as they lie; what cannot be opened is left out.

    This is what a search of many logs costs, so it does no more than open, read and look.
    """
    found = _quick_test(query)
    for name in names:
        try:
            descriptor = directory.open(name)
        except LogDirectoryError:
            continue
        try:
            if found(descriptor):
                yield name
        finally:
            os.close(descriptor)


def _quick_test(query: LogQuery) -> Callable[[int], bool]:
    plain, read = query.plain, os.read

    def small_first(descriptor: int) -> bool:
        data = read(descriptor, _PIECE)
        if len(data) < _PIECE:
            return plain in data if plain else has_match(data, query)
        return _in_large(descriptor, data, query)

    return small_first


def _in_large(descriptor: int, data: bytes, query: LogQuery) -> bool:
    """A match may lie across two reads: the last line of one is looked at with the next."""
    while data:
        if has_match(data, query):
            return True
        held = data[data.rfind(b"\n") + 1 :][-LONGEST_LINE:]
        more = os.read(descriptor, _PIECE)
        if not more:
            return False
        data = held + more
    return False
