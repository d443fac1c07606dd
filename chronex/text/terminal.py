r"""Text from outside, made safe for a terminal, and its width there.

A job's name, a log line or a schedule may hold escape sequences, direction marks or line breaks. Whatever is shown
goes through one of these functions first:

| function        | an unprintable character becomes | for                                                     |
|-----------------|----------------------------------|---------------------------------------------------------|
| `terminal_safe` | one mark, U+FFFD                 | lines of commands: columns stay in place                |
| `cell_safe`     | one mark, or nothing             | the dashboard: every terminal draws it equally wide     |
| `escaped`       | its number, `\u001b`             | messages about the text itself: it can be found again   |
| `quoted`        | its number, `\u001b`             | the same in quotes, cut to 40 characters                |
"""

from __future__ import annotations

_MARK = "\N{REPLACEMENT CHARACTER}"
_LONGEST_QUOTE = 40
# Variation selectors change how wide the character before them is drawn, and terminals do not agree how.
_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
# Drawn with one width or another, depending on the terminal and its edition of Unicode: flags, skin tones, newer
# symbols, and the inner parts of Korean syllables that are written apart.
_CONTESTED = (
    range(0x1F1E6, 0x1F200), range(0x1F3FB, 0x1F400), range(0x2630, 0x2638), range(0x268A, 0x2690),
    range(0x4DC0, 0x4E00), range(0x1D300, 0x1D377), range(0x3164, 0x3165),
    range(0x1160, 0x1200), range(0xD7B0, 0xD800), range(0xFFA0, 0xFFA1),
)  # fmt: skip


def terminal_safe(text: str) -> str:
    """Each unprintable character as one visible mark, a tab as a space, so that columns stay in place."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char == "\t" else _MARK for char in text)


def cell_safe(text: str) -> str:
    """As `terminal_safe`; and without the characters that terminals draw with different widths."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_cell_safe(char) for char in text)


def _cell_safe(char: str) -> str:
    if char.isascii():
        return char if char.isprintable() else " " if char == "\t" else _MARK
    code = ord(char)
    if code in _VARIATION_SELECTORS:
        return ""
    if not char.isprintable() or any(code in contested for contested in _CONTESTED):
        return _MARK
    return char


def escaped(text: str) -> str:
    r"""Each unprintable character by its number: an escape character is `\u001b`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def quoted(text: str) -> str:
    """A value as it stands in a message: `'MONDAI'`, escaped, at most 40 characters of it."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    return f"'{escaped(shown)}'"


def cell_width(text: str) -> int:
    """Columns of a text that was made safe: a wide character takes two, a combining one none.

    The widths are those of rich, which also lays out the dashboard; it is loaded when the first text needs it.
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def utf8_sentence(error: UnicodeEncodeError) -> str:
    """The system hands over names and arguments of any bytes; records and units hold text."""
    around = error.object[max(error.start - 20, 0) : error.end + 10]
    return f"{quoted(around)}: these are no letters of UTF-8, and Chronex keeps text only; choose another name"
