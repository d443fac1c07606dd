"""Lines of output, of any number: only those in sight are made inert and drawn."""

from __future__ import annotations

from textual.geometry import Size
from textual.strip import Strip

from chronex_tui.model.cells import Line, Span, shown
from chronex_tui.model.logs import wrapped
from chronex_tui.themes import Book
from chronex_tui.widgets.panel import Grounded, strip_of


class LogPane(Grounded, can_focus=True):
    def __init__(self, book: Book, *, id: str | None = None, classes: str = "") -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.book = book
        self.lines: tuple[str, ...] = ()
        self.wraps = False
        self.follows = True
        self.wanted = ""
        self._pieces: list[tuple[int, str]] | None = None

    @property
    def rows(self) -> int:
        return len(self._pieces) if self._pieces is not None else len(self.lines)

    def show(self, lines: tuple[str, ...]) -> None:
        self.lines = lines
        self._lay_out()

    def toggle_wrap(self) -> None:
        top = self.line_at(self.scroll_offset.y)
        self.wraps = not self.wraps
        self._lay_out()
        self.see(top)

    def _lay_out(self) -> None:
        cells = self.scrollable_content_region.width
        self._pieces = wrapped(self.lines, cells) if self.wraps and cells else None
        longest = cells if self.wraps else max((len(line) for line in self.lines[-2000:]), default=0) * 2
        self.virtual_size = Size(max(cells, min(longest, 4000)), self.rows)
        if self.follows:
            self.scroll_to(y=max(self.rows - self.scrollable_content_region.height, 0), animate=False, force=True)
        self.refresh()

    def on_resize(self) -> None:
        self._lay_out()

    def line_at(self, row: int) -> int:
        """The number of the line that is drawn in this row."""
        if self._pieces is None:
            return row
        return self._pieces[min(row, len(self._pieces) - 1)][0] if self._pieces else 0

    def see(self, line: int) -> None:
        """Scroll so that this line is near the top."""
        row = line
        if self._pieces is not None:
            row = next((number for number, (owner, _) in enumerate(self._pieces) if owner >= line), 0)
        self.scroll_to(y=max(row - 2, 0), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        if row >= self.rows:
            return Strip.blank(width, self.ground)
        text = self._pieces[row][1] if self._pieces is not None else shown(self.lines[row])
        line = _marked(text[self.scroll_offset.x :], self.wanted)
        return strip_of(line, width, self.book, self.ground)


def _marked(text: str, wanted: str) -> Line:
    """The line, with what is looked for made plain to see; marks of our own are dim."""
    if text.startswith("--- chronex:"):
        return ((text, "dim"),)
    if not wanted:
        return ((text, ""),)
    spans: list[Span] = []
    low, needle, place = text.lower(), wanted.lower(), 0
    while (found := low.find(needle, place)) >= 0:
        spans += [(text[place:found], ""), (text[found : found + len(needle)], "found")]
        place = found + len(needle)
    return (*spans, (text[place:], ""))
