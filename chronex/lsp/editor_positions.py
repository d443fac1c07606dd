"""Offsets of the text as positions of the protocol, which counts in code units: an emoji is two of UTF-16."""

from __future__ import annotations

from collections.abc import Callable

from chronex.jobfile.positions import LineIndex

UTF8, UTF16, UTF32 = "utf-8", "utf-16", "utf-32"
_UNITS: dict[str, Callable[[str], int]] = {
    UTF8: lambda text: len(text.encode("utf-8", "surrogatepass")),
    UTF16: lambda text: len(text) + sum(char > "\uffff" for char in text),
    UTF32: len,
}


class Positions:
    """Both ways, for one text in one encoding. Any position is answered, also one that lies outside."""

    def __init__(self, text: str, encoding: str = UTF16) -> None:
        self.text, self.lines = text, LineIndex(text)
        self._units = _UNITS.get(encoding, _UNITS[UTF16])

    def of(self, offset: int) -> tuple[int, int]:
        """Line and character, both counted from 0."""
        offset = max(0, min(offset, len(self.text)))
        line, column = self.lines.line_and_column(offset)
        return line - 1, self._units(self.text[offset - column + 1 : offset])

    def offset(self, line: int, character: int) -> int:
        if line < 0:
            return 0
        if line >= self.lines.count:
            return len(self.text)
        start, end = self.lines.start_of_line(line + 1), self.lines.end_of_line(line + 1)
        at, units = start, 0
        while at < end and units < character:
            units += self._units(self.text[at])
            at += 1
        return at
