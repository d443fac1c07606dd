"""The widgets that draw the lines of a pure model: panels, bars and tables of any length."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import ClassVar, Protocol

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from chronex_tui.model.layout import Line, fit_line, wrap_lines
from chronex_tui.theme import Palette

# Signs of keys, and those of `chronex explain`, which are the same as it has without Unicode.
_PLAIN = str.maketrans(
    {"←": "<", "→": ">", "↑": "^", "↓": "v", "…": "~", "·": ".", "░": "x", "┄": "-", "┅": "=", "●": "*"}
)
Draw = Callable[[int, int], Sequence[Line]]


def strip_of(line: Line, cells: int, palette: Palette, background: Style, over: str = "") -> Strip:
    """A line of exactly so many cells. Text from data becomes segments as it is, so none of it is read as markup."""
    if palette.is_ascii:
        line = tuple((_in_ascii(text), style) for text, style in line)
    fitted = fit_line(line, cells, palette.ellipsis)
    return Strip([Segment(text, palette.style_on(background, style, over)) for text, style in fitted if text], cells)


def _in_ascii(text: str) -> str:
    return text if text.isascii() else text.translate(_PLAIN).encode("ascii", "replace").decode()


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

    class LineClicked(Message):
        """Which line was clicked, counted from the first, and at which of its cells."""

        def __init__(self, panel: Panel, number: int, line: Line, cell: int) -> None:
            super().__init__()
            self.panel, self.number, self.line, self.cell = panel, number, line, cell

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
        self._drawn_width = 0
        self._given_title = ""
        if title:
            self.entitle(title)

    def entitle(self, title: str) -> None:
        """Name it on its frame; Textual would paint it for the title that it has, too."""
        if title != self._given_title:
            self._given_title = self.border_title = title

    def redraw(self) -> None:
        """Painted only where its lines are others: on a busy store painting was two thirds of the work."""
        before, self._lines = self._lines, None
        self._measure()
        if before is None or self._lines != before:
            self.refresh()

    def on_resize(self) -> None:
        self._lines = None
        self._measure()

    def notify_style_update(self) -> None:
        """The same lines in other colours are painted anew."""
        self._lines = None
        super().notify_style_update()

    def on_click(self, event: Click) -> None:
        number = event.y - self.gutter.top + self.scroll_offset.y
        if self._lines is not None and 0 <= number < len(self._lines):
            self.post_message(self.LineClicked(self, number, self._lines[number], event.x - self.gutter.left))

    def _measure(self) -> None:
        width, height = self.scrollable_content_region.size
        if not width or not height:
            return
        self._lines, self._drawn_width = self.lines_for(width, height), width
        size = Size(width, len(self._lines))
        if self.virtual_size != size:
            self.virtual_size = size

    def lines_for(self, width: int, height: int) -> Sequence[Line]:
        return self._draw(width, height)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        # A scroll bar that came with the last drawing has taken some of its width, and no event tells of that.
        if self._lines is None or self._drawn_width != width:
            self._measure()
        lines = self._lines or ()
        index = y + self.scroll_offset.y
        if index >= len(lines):
            return Strip.blank(width, self.background_style)
        return strip_of(lines[index], width, self.palette, self.background_style)


class TextPanel(Panel):
    """Shows sentences; one that is wider than the panel goes on in the next line."""

    def lines_for(self, width: int, height: int) -> Sequence[Line]:
        return wrap_lines(super().lines_for(width, height), width)


class Bar(Panel, can_focus=False):
    """Lines without a frame that never scroll: the top, the command line, the keys."""

    DEFAULT_CSS = "Bar { overflow: hidden; }"

    def redraw(self) -> None:
        """Its size is fixed, so its lines wait for the next frame: one key may redraw the bars several times."""
        self._lines = None
        self.refresh()


class TableModel(Protocol):
    """What a table shows."""

    def __len__(self) -> int: ...

    def identity(self, index: int) -> Hashable: ...

    def index_of(self, identity: object) -> int | None: ...

    def head(self, cells: int, mark: str = "") -> Line: ...

    def line(self, index: int, cells: int, ellipsis: str) -> Line: ...


class Table(LineWidget, can_focus=True):
    """A heading that stays, and rows below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
        Binding("pagedown,ctrl+d", "page(1)", show=False),
        Binding("home,g", "jump(0)", show=False),
        Binding("end,G", "jump(-1)", show=False),
    ]

    class CursorMoved(Message):
        """The cursor is on another row."""

        def __init__(self, table: Table, identity: Hashable | None) -> None:
            super().__init__()
            self.table, self.identity = table, identity

    class RowOpened(Message):
        """The row under the cursor was clicked again."""

        def __init__(self, table: Table) -> None:
            super().__init__()
            self.table = table

    def __init__(self, palette: Palette, *, id: str | None = None, classes: str = "", title: str = "") -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.palette = palette
        self.model: TableModel | None = None
        self.cursor: Hashable | None = None
        self.index = 0
        self.sort_mark = ""
        if title:
            self.border_title = title

    # -- what it shows --------------------------------------------------------------------------------------

    def show(self, model: TableModel) -> None:
        """Show another state of the same list; the cursor stays with its row, wherever that is now."""
        self.model = model
        moved = False
        if len(model):  # while a filter is typed the list may be empty; the cursor is kept
            self.index = self._find(self.cursor)
            found = model.identity(self.index)
            moved, self.cursor = found != self.cursor, found
        size = Size(self.scrollable_content_region.width, len(model) + 1)
        if self.virtual_size != size:
            self.virtual_size = size
        self._scroll_to_cursor()
        self.refresh()
        if moved:
            self._report_cursor()

    def _report_cursor(self) -> None:
        """To the app, whoever has moved the cursor: a message goes up no further than to its sender."""
        self.post_message(self.CursorMoved(self, self.cursor).set_sender(self))

    def _find(self, identity: Hashable | None) -> int:
        """The index of a row: searched near the old one first. The old index where the row is gone."""
        model = self.model
        if model is None or not len(model):
            return 0
        last = len(model) - 1
        here = min(self.index, last)
        if identity is None:
            return 0
        for distance in range(50):
            for index in (here - distance, here + distance):
                if 0 <= index <= last and model.identity(index) == identity:
                    return index
        found = model.index_of(identity)
        return here if found is None else found

    # -- moving -------------------------------------------------------------------------------------------------

    def move_to(self, index: int) -> None:
        if self.model is None or not len(self.model):
            return
        self.index = max(0, min(index, len(self.model) - 1))
        self.cursor = self.model.identity(self.index)
        self._scroll_to_cursor()
        self.refresh()
        self._report_cursor()

    def action_move(self, by: int) -> None:
        self.move_to(self.index + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.index + by * max(self.scrollable_content_region.height - 2, 1))

    def action_jump(self, to: int) -> None:
        self.move_to(0 if to == 0 else len(self.model or ()) - 1)

    def on_click(self, event: Click) -> None:
        row = event.y - self.gutter.top - 1 + self.scroll_offset.y
        if event.y <= self.gutter.top or self.model is None or row >= len(self.model):
            return
        if row == self.index and event.chain > 1:
            self.post_message(self.RowOpened(self))
        self.move_to(row)

    def _scroll_to_cursor(self) -> None:
        """Scroll as little as possible to show the row under the cursor."""
        height = self.scrollable_content_region.height - 1
        if height <= 0:
            return
        top = self.scroll_offset.y
        wanted = min(max(top, self.index - height + 1), self.index)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, force=True)

    def on_resize(self) -> None:
        if self.model is not None:
            self.virtual_size = Size(self.scrollable_content_region.width, len(self.model) + 1)
            self._scroll_to_cursor()

    # -- drawing ------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        model = self.model
        index = y - 1 + self.scroll_offset.y
        if model is None or index >= len(model):
            return Strip.blank(width, self.background_style)
        if y == 0:
            return strip_of(
                ((" ", ""), *model.head(width - 2, self.sort_mark)), width, self.palette, self.background_style
            )
        line = model.line(index, width - 2, self.palette.ellipsis)
        over = "" if index != self.index else "select" if self.has_focus else "select-idle"
        return strip_of(((" ", ""), *line), width, self.palette, self.background_style, over)

    def watch_has_focus(self, value: bool) -> None:
        super().watch_has_focus(value)
        self.refresh()
