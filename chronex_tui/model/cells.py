"""Text in terminal cells: made inert, measured, fitted. A line is spans of text, each with the name of a style."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

Span = tuple[str, str]
Line = tuple[Span, ...]

_REPLACED = "\N{REPLACEMENT CHARACTER}"
# Selectors and joiners change how wide their neighbours are drawn, and terminals do not agree how.
_DROPPED = range(0xFE00, 0xFE10)
# Drawn with one width or another, depending on the terminal and its edition of Unicode: flags, skin tones, newer
# symbols, and the inner parts of Korean syllables that are written apart.
_CONTESTED = (
    range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400), range(0x2630, 0x2638), range(0x268A, 0x2690),
    range(0x4DC0, 0x4E00), range(0x1D300, 0x1D377), range(0x3164, 0x3165),
    range(0x1160, 0x1200), range(0xD7B0, 0xD800), range(0xFFA0, 0xFFA1),
)  # fmt: skip
_WIDTHLESS = ("Mn", "Me", "Mc")


def shown(text: str) -> str:
    """The text with every control, direction and joining character made visible or left out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char) for char in text)


def _shown(char: str) -> str:
    if char.isascii():
        return char if char.isprintable() else " " if char == "\t" else _REPLACED
    code = ord(char)
    if code in _DROPPED:
        return ""
    if not char.isprintable() or any(code in contested for contested in _CONTESTED):
        return _REPLACED
    return char


def width(text: str) -> int:
    """Cells of a text that `shown` has passed."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in _WIDTHLESS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def crop(text: str, cells: int, mark: str = "…") -> str:
    """At most so many cells; what was cut is told by the mark."""
    if width(text) <= cells:
        return text
    if cells <= 0:
        return ""
    kept, used, room = [], 0, cells - width(mark)
    for char in text:
        used += _width(char)
        if used > room:
            break
        kept.append(char)
    return "".join(kept) + mark if room >= 0 else mark[:cells]


def fit(text: str, cells: int, mark: str = "…", *, right: bool = False) -> str:
    """Exactly so many cells."""
    cropped = crop(text, cells, mark)
    padding = " " * (cells - width(cropped))
    return padding + cropped if right else cropped + padding


def line_width(line: Line) -> int:
    return sum(width(text) for text, _ in line)


def fit_line(line: Line, cells: int, mark: str = "…") -> Line:
    """A whole line at exactly so many cells; spans keep their styles."""
    left, spans = cells, []
    total = line_width(line)
    for text, style in line:
        if total > cells and width(text) >= left:
            spans.append((crop(text + mark if width(text) == left else text, left, mark), style))
            left -= width(spans[-1][0])
            break
        spans.append((text, style))
        left -= width(text)
    if left > 0:
        spans.append((" " * left, ""))
    return tuple(spans)


def spread(left: Line, right: Line, cells: int, mark: str = "…") -> Line:
    """One part at the left edge and one at the right; the left one gives way."""
    room = cells - line_width(right)
    if room < 1:
        return fit_line(left, cells, mark)
    return (*fit_line(left, room, mark), *right)


def plain(lines: Iterable[Line]) -> str:
    """The text alone."""
    return "\n".join("".join(text for text, _ in line) for line in lines)


def wrap(text: str, cells: int) -> list[str]:
    """Words over lines; a word that is longer than a line is broken."""
    lines, current = [], ""
    for word in text.split(" "):
        rest = word
        while width(rest) > cells > 0:
            if current:
                lines.append(current)
                current = ""
            head = crop(rest, cells, "")
            lines.append(head)
            rest = rest[len(head) :]
        joined = f"{current} {rest}" if current else rest
        if width(joined) <= cells:
            current = joined
        else:
            lines.append(current)
            current = rest
    return [*lines, current]
