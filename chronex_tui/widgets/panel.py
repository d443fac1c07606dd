"""A frame with lines in it, drawn by a function of a pure model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from chronex_tui.model.layout import Line, fit_line
from chronex_tui.theme import Palette

_ARROWS = str.maketrans({"←": "<", "→": ">", "↑": "^", "↓": "v", "…": "~"})
Draw = Callable[[int, int], Sequence[Line]]


def strip_of(line: Line, cells: int, palette: Palette, background: Style, over: str = "") -> Strip:
    """A line of exactly so many cells. Text from data becomes segments as it is, so none of it is read as markup."""
    if palette.is_ascii:
        line = tuple((_in_ascii(text), style) for text, style in line)
    fitted = fit_line(line, cells, palette.ellipsis)
    return Strip([Segment(text, palette.style_on(background, style, over)) for text, style in fitted if text], cells)


def _in_ascii(text: str) -> str:
    return text if text.isascii() else text.translate(_ARROWS).encode("ascii", "replace").decode()


class LineWidget(ScrollView):
    """A widget that draws its own lines on the background that the style sheet gives it."""

    _background_style: Style | None = None

    @property
    def background_style(self) -> Style:
        """Kept until the style sheet changes, because every line needs it."""
        if self._background_style is None:
            self._background_style = Style(bgcolor=self.rich_style.bgcolor)
        return self._background_style

    def notify_style_update(self) -> None:
        self._background_style = None
        super().notify_style_update()


class Panel(LineWidget, can_focus=True):
    """Scrolls over what `draw(width, height)` returned; draws again when `redraw` is called or its size changes."""

    def __init__(
        self,
        draw: Draw,
        palette: Palette,
        *,
        id: str | None = None,  # noqa: A002
        classes: str = "",
        title: str = "",
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._draw, self.palette = draw, palette
        self._lines: Sequence[Line] | None = None
        if title:
            self.border_title = title

    def redraw(self) -> None:
        self._lines = None
        self._measure()
        self.refresh()

    def on_resize(self) -> None:
        self._lines = None
        self._measure()

    def _measure(self) -> None:
        width, height = self.scrollable_content_region.size
        if not width or not height:
            return
        self._lines = self._draw(width, height)
        size = Size(width, len(self._lines))
        if self.virtual_size != size:
            self.virtual_size = size

    def render_line(self, y: int) -> Strip:
        if self._lines is None:
            self._measure()
        lines = self._lines or ()
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if index >= len(lines):
            return Strip.blank(width, self.background_style)
        return strip_of(lines[index], width, self.palette, self.background_style)


class Bar(Panel, can_focus=False):
    """Lines without a frame that never scroll: the top, the command line, the keys."""

    DEFAULT_CSS = "Bar { overflow: hidden; }"
