"""Colours: a dark, a light and a colour-blind safe theme, one of the terminal's own colours, and none at all.

A style is a name in the models; here each name becomes a look. State never rests on colour: every state has a
sign and a word as well, so `mono` leaves out nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.theme import Theme

NAMES = ("dark", "light", "colorblind", "ansi", "mono")

_DARK = {
    "bg": "#10141a", "fg": "#d3dae3", "dim": "#7f8a97", "line": "#2f3945", "focus": "#5b9dd9", "select": "#1d3854",
    "select_idle": "#1a222c", "ok": "#5fb36b", "running": "#5cb8f0", "retry": "#e3a63b", "failed": "#f2736b",
    "paused": "#8d97a5", "clock": "#c79bf2", "key": "#9ecbff", "day": "#3d4b5a",
    "heat": ("#10141a", "#4a5a6b", "#4f7d9b", "#4f9fc9", "#63bdf0", "#a9dcff"),
}  # fmt: skip
_LIGHT = {
    "bg": "#fcfcfb", "fg": "#1f2630", "dim": "#667080", "line": "#cfd5dc", "focus": "#1f6fbf", "select": "#cfe3f7",
    "select_idle": "#eceff2", "ok": "#1c7a37", "running": "#0b62b8", "retry": "#965c00", "failed": "#c1272d",
    "paused": "#667080", "clock": "#7a3fc0", "key": "#1f6fbf", "day": "#b9c3cd",
    "heat": ("#fcfcfb", "#b3c0cc", "#86abc9", "#4f8fc4", "#1f6fb5", "#0a4a86"),
}  # fmt: skip
# The colours of Okabe and Ito, told apart with every common colour vision.
_COLORBLIND = {
    **_DARK, "bg": "#0c0f12", "ok": "#2fc39a", "running": "#56b4e9", "retry": "#e69f00", "failed": "#ff7a29",
    "clock": "#e08fc0", "key": "#f0e442", "focus": "#56b4e9",
}  # fmt: skip
PALETTES: dict[str, Mapping[str, object]] = {"dark": _DARK, "light": _LIGHT, "colorblind": _COLORBLIND}


class Book:
    """Style names to styles, for one theme."""

    def __init__(self, name: str, ellipsis: str = "…") -> None:
        self.name, self.ellipsis, self.is_ascii = name, ellipsis, ellipsis.isascii()
        self.styles = _mono() if name == "mono" else _ansi() if name == "ansi" else _coloured(PALETTES[name])
        self.blank = Style()
        self._worn: dict[tuple[Style, str, str], Style] = {}

    def become(self, name: str) -> None:
        """Another theme for everyone who holds this book."""
        self.name, self.styles = name, Book(name).styles
        self._worn.clear()

    def style(self, name: str) -> Style:
        return self.styles.get(name, self.blank)

    def on(self, ground: Style, name: str, over: str = "") -> Style:
        """A style on its ground, under that of a selected row; put together once, for every cell that wears it."""
        key = (ground, name, over)
        found = self._worn.get(key)
        if found is None:
            # Reversed, a coloured word would become a coloured patch: there the selected row has one look.
            inner = self.blank if over and self.style(over).reverse else self.style(name)
            found = self._worn[key] = ground + inner + (self.style(over) if over else self.blank)
        return found


def _coloured(palette: Mapping[str, object]) -> dict[str, Style]:
    colour = {name: str(value) for name, value in palette.items() if isinstance(value, str)}
    heat = palette["heat"]
    assert isinstance(heat, tuple)
    styles = {
        name: Style(color=colour[name]) for name in ("dim", "ok", "running", "retry", "failed", "paused", "clock")
    }
    styles |= {f"heat{level}": Style(color=str(value)) for level, value in enumerate(heat)}
    return styles | {
        "": Style(color=colour["fg"]),
        "bold": Style(color=colour["fg"], bold=True),
        "label": Style(color=colour["dim"]),
        "head": Style(color=colour["dim"]),
        "title": Style(color=colour["focus"], bold=True),
        "tab": Style(color=colour["dim"]),
        "tab-here": Style(color=colour["fg"], bgcolor=colour["select"], bold=True),
        "key": Style(color=colour["key"]),
        "marked": Style(color=colour["key"], bold=True),
        "asked": Style(color=colour["key"], italic=True),
        "now": Style(color=colour["focus"]),
        "day": Style(color=colour["day"]),
        "cursor": Style(color=colour["bg"], bgcolor=colour["focus"], bold=True),
        "found": Style(color=colour["bg"], bgcolor=colour["retry"]),
        "select": Style(bgcolor=colour["select"]),
        "select-idle": Style(bgcolor=colour["select_idle"]),
        "bar": Style(color=colour["bg"], bgcolor=colour["retry"]),
    }


def _ansi() -> dict[str, Style]:
    """The sixteen colours of the terminal, on its own background."""
    named = {"ok": "green", "running": "cyan", "retry": "yellow", "failed": "red", "clock": "magenta", "key": "cyan",
             "now": "cyan", "asked": "cyan"}  # fmt: skip
    styles = {name: Style(color=colour) for name, colour in named.items()}
    styles |= {"heat1": Style(), "heat2": Style(), "heat3": Style(color="cyan"), "heat4": Style(color="cyan"),
               "heat5": Style(color="cyan", bold=True)}  # fmt: skip
    return styles | {
        "failed": Style(color="red", bold=True),
        "bold": Style(bold=True),
        "head": Style(bold=True),
        "title": Style(bold=True),
        "tab-here": Style(reverse=True),
        "marked": Style(bold=True),
        "cursor": Style(reverse=True),
        "found": Style(reverse=True),
        "select": Style(reverse=True),
        "select-idle": Style(bold=True),
        "bar": Style(reverse=True),
    }


def _mono() -> dict[str, Style]:
    """No colour at all: bold and reverse are what is left."""
    bold, reverse = Style(bold=True), Style(reverse=True)
    names = ("failed", "retry", "running", "head", "title", "marked", "bold", "key", "clock")
    return dict.fromkeys(names, bold) | dict.fromkeys(("tab-here", "cursor", "found", "select", "bar"), reverse)


def textual_theme(name: str) -> Theme:
    """The same for borders, inputs and the palette."""
    if name == "ansi":
        return _ansi_theme()
    palette = PALETTES.get(name, _DARK)
    colour = {key: str(value) for key, value in palette.items() if isinstance(value, str)}
    return Theme(
        name=f"chronex-{name}",
        primary=colour["focus"],
        secondary=colour["running"],
        warning=colour["retry"],
        error=colour["failed"],
        success=colour["ok"],
        accent=colour["key"],
        foreground=colour["fg"],
        background=colour["bg"],
        surface=colour["bg"],
        panel=colour["select_idle"],
        dark=name != "light",
        variables={
            "line": colour["line"],
            "line-focus": colour["focus"],
            "quiet": colour["dim"],
            "border": colour["line"],
            "border-blurred": colour["line"],
            "input-selection-background": f"{colour['focus']} 35%",
            "scrollbar": colour["line"],
            "scrollbar-background": colour["bg"],
            "scrollbar-hover": colour["focus"],
            "scrollbar-active": colour["focus"],
            "scrollbar-corner-color": colour["bg"],
        },
    )


def _ansi_theme() -> Theme:
    """Only the terminal's own colours, on its own background, whatever that is."""
    own = "ansi_default"
    return Theme(
        name="chronex-ansi",
        ansi=True,
        primary="ansi_cyan",
        secondary="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        accent="ansi_cyan",
        foreground=own,
        background=own,
        surface=own,
        panel=own,
        boost=own,
        variables={
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "block-cursor-foreground": "ansi_black",
            "block-cursor-background": "ansi_white",
            "input-cursor-background": "ansi_white",
            "input-cursor-foreground": "ansi_black",
            "line": "ansi_bright_black",
            "line-focus": "ansi_cyan",
            "quiet": own,
            "border": "ansi_bright_black",
            "border-blurred": "ansi_bright_black",
            "input-selection-background": "ansi_cyan",
            "scrollbar": "ansi_bright_black",
            "scrollbar-background": own,
            "scrollbar-hover": "ansi_cyan",
            "scrollbar-active": "ansi_cyan",
            "scrollbar-corner-color": own,
        },
    )
