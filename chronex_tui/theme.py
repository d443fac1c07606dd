"""Colours and layout: five themes, and the style sheet for every size.

A style is a name in the models; a theme maps each name to a Rich style. State never depends on colour alone: every
state has a sign and a word as well, so `mono` leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.theme import Theme

COLOURED_THEMES = ("dark", "light", "colorblind")
THEMES = (*COLOURED_THEMES, "ansi", "mono")

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
# The colours of Okabe and Ito, which are distinct with every common colour vision.
_COLORBLIND = {
    **_DARK, "bg": "#0c0f12", "ok": "#2fc39a", "running": "#56b4e9", "retry": "#e69f00", "failed": "#ff7a29",
    "clock": "#e08fc0", "key": "#f0e442", "focus": "#56b4e9",
}  # fmt: skip
COLOURS: dict[str, Mapping[str, object]] = {"dark": _DARK, "light": _LIGHT, "colorblind": _COLORBLIND}


class Palette:
    """The styles of one theme by their names."""

    def __init__(self, name: str, ellipsis: str = "…") -> None:
        self.name, self.ellipsis, self.is_ascii = name, ellipsis, ellipsis.isascii()
        self.styles = _mono() if name == "mono" else _ansi() if name == "ansi" else _coloured(COLOURS[name])
        self.blank = Style()
        self._combined: dict[tuple[Style, str, str], Style] = {}

    def switch_to(self, name: str) -> None:
        """Change the theme in place, because every widget holds this palette."""
        self.name = name
        self.styles = Palette(name).styles
        self._combined.clear()

    def style(self, name: str) -> Style:
        return self.styles.get(name, self.blank)

    def style_on(self, background: Style, name: str, over: str = "") -> Style:
        """A style on a background, under the style of a selected row; combined once and kept for all cells."""
        key = (background, name, over)
        found = self._combined.get(key)
        if found is None:
            # In reverse video a coloured word would become a coloured block, so the selected row has one style.
            inner = self.blank if over and self.style(over).reverse else self.style(name)
            found = self._combined[key] = background + inner + (self.style(over) if over else self.blank)
        return found


def _coloured(colours: Mapping[str, object]) -> dict[str, Style]:
    colour = {name: str(value) for name, value in colours.items() if isinstance(value, str)}
    heat = colours["heat"]
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
        "pending": Style(color=colour["key"], italic=True),
        "now": Style(color=colour["focus"]),
        "day": Style(color=colour["day"]),
        "cursor": Style(color=colour["bg"], bgcolor=colour["focus"], bold=True),
        "found": Style(color=colour["bg"], bgcolor=colour["retry"]),
        "select": Style(bgcolor=colour["select"]),
        # Text of its own: without a colour it would have the terminal's, light grey on light blue in many.
        "chosen": Style(color=colour["fg"], bgcolor=colour["select"]),
        "select-idle": Style(bgcolor=colour["select_idle"]),
        "bar": Style(color=colour["bg"], bgcolor=colour["retry"]),
    }


def _ansi() -> dict[str, Style]:
    """The sixteen colours of the terminal, on its own background."""
    named = {"ok": "green", "running": "cyan", "retry": "yellow", "failed": "red", "clock": "magenta", "key": "cyan",
             "now": "cyan", "pending": "cyan"}  # fmt: skip
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
        "chosen": Style(reverse=True),
        "select-idle": Style(bold=True),
        "bar": Style(reverse=True),
    }


def _mono() -> dict[str, Style]:
    """No colour at all: bold and reverse are what is left."""
    bold, reverse = Style(bold=True), Style(reverse=True)
    names = ("failed", "retry", "running", "head", "title", "marked", "bold", "key", "clock")
    return dict.fromkeys(names, bold) | dict.fromkeys(
        ("tab-here", "cursor", "found", "select", "chosen", "bar"), reverse
    )


def textual_theme(name: str) -> Theme:
    """The theme of Textual for borders, inputs and the command palette."""
    if name == "ansi":
        return _ansi_theme()
    colours = COLOURS.get(name, _DARK)
    colour = {key: str(value) for key, value in colours.items() if isinstance(value, str)}
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
    """Only the terminal's own colours, on its own background."""
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


# The layout at each size. It is kept as text, so that a single-file build needs no data files.
CSS = """
Screen { layout: vertical; background: $background; color: $foreground; overflow: hidden; }
.framed { border: round $line; border-title-color: $foreground; border-subtitle-color: $quiet;
          background: $background; border-title-style: none; padding: 0 1; scrollbar-size-vertical: 1;
          overflow-x: hidden; }
Table.framed { padding: 0; }
.framed:focus { border: round $line-focus; border-title-style: bold; }
.-ascii .framed { border: ascii $line; scrollbar-size-vertical: 0; }
.-ascii .framed:focus { border: ascii $line-focus; }
Container { background: $background; }
#top { height: 2; }
#notice { height: 1; display: none; }
#command, #keys { height: 1; }
#body { height: 1fr; }
.view { height: 1fr; width: 1fr; display: none; }
#filter { display: none; height: 1; border: none; padding: 0 1; background: $panel; }

#jobs-upper { height: 1fr; layout: vertical; }
#jobs-left { height: 1fr; width: 1fr; }
#jobs, #empty { height: 1fr; }
#jobs-side { height: 8; width: 1fr; }
#detail { height: 1fr; }
#side-heatmap, #side-clock, #side-timeline, #side-log, #runs-log { display: none; }
#runs-side { height: 9; }
.-tiny #jobs-side, .-tiny #runs-side, .-tiny #heat-cell, .-tiny #command { display: none; }
.-tiny #top { height: 1; }
.-tiny .framed { border: none; }
.-tiny .framed:focus { border: none; }
.-bare #jobs-side { display: none; }

.-medium #jobs-upper, .-large #jobs-upper { layout: horizontal; }
.-medium #jobs-left { width: 56%; }
.-medium #jobs-side { width: 44%; height: 1fr; }
.-medium #side-timeline { display: block; height: 8; }
.-medium #side-log { display: block; height: 8; }
.-large #jobs-left { width: 52%; }
.-large #jobs-side { width: 48%; height: 1fr; }
.-large #side-heatmap { display: block; height: 13; }
.-large #side-clock { display: block; height: 9; }
.-large #side-timeline { display: block; height: 10; }
.-large #side-log { display: block; height: 9; }
.-medium .-bare #jobs-left, .-large .-bare #jobs-left { width: 100%; }
.-medium .-bare #side-timeline, .-medium .-bare #side-log, .-large .-bare #side-timeline, .-large .-bare #side-log,
.-large .-bare #side-heatmap { display: none; }

#view-runs { layout: vertical; }
#runs-left { height: 1fr; width: 1fr; }
#runs, #no-runs { height: 1fr; }
.-medium #view-runs, .-large #view-runs { layout: horizontal; }
.-medium #runs-left, .-large #runs-left { width: 58%; }
.-medium #runs-side, .-large #runs-side { width: 42%; height: 1fr; }
.-medium #runs-log, .-large #runs-log { display: block; height: 40%; }
#firing { height: 1fr; }
#view-graph { layout: horizontal; }
#graph-left { height: 1fr; width: 30%; }
#graph-jobs, #no-graph-jobs { height: 1fr; }
#graph { height: 1fr; width: 1fr; }
.-tiny #graph-left { width: 40%; }
#view-nodes, #view-groups { layout: vertical; }
#nodes-left, #groups-left { height: 1fr; width: 1fr; }
#nodes, #no-nodes, #groups, #no-groups { height: 1fr; }
#node, #group { height: 10; }
.-tiny #node, .-tiny #group { display: none; }
.-medium #view-nodes, .-large #view-nodes, .-medium #view-groups, .-large #view-groups { layout: horizontal; }
.-medium #nodes-left, .-large #nodes-left, .-medium #groups-left, .-large #groups-left { width: 58%; }
.-medium #node, .-large #node, .-medium #group, .-large #group { width: 42%; height: 1fr; }
#lanes, #no-lanes, #clock { height: 1fr; }
#heat { height: 14; }
#heat-cell { height: 1fr; }
.-zoomed { height: 1fr; width: 1fr; }

Dialog { align: center middle; background: $background 70%; }
#dialog { width: 76; max-width: 96%; height: auto; max-height: 92%; border: round $line-focus;
          background: $background; border-title-color: $foreground; border-title-style: bold;
          border-subtitle-color: $quiet; padding: 0 1; }
.-ascii #dialog { border: ascii $line-focus; }
#dialog.-wide { width: 110; height: 92%; }
#dialog Panel { height: auto; max-height: 100%; }
#dialog.-wide Panel { height: 1fr; }
#dialog Input { border: none; height: 1; padding: 0; background: $panel; }
#log-title { height: 1; }
#log-body { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; overflow-x: hidden; background: $background; }
Toast { background: $panel; color: $foreground; padding: 0 1; margin: 0 1 1 0; }
Input > .input--cursor { text-style: reverse; }
"""
