"""The output of one attempt over the whole screen: follow, search, wrap, pager."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from chronex.text.terminal import cell_safe
from chronex_tui.data import OutputRead
from chronex_tui.model.attempt_output import AttemptOutput, find, no_output, read_output, wrapped
from chronex_tui.model.board_lines import key_line
from chronex_tui.model.display import STYLES, count, sign, word
from chronex_tui.model.layout import Line, Span, spread, wrap
from chronex_tui.model.snapshot import Firing
from chronex_tui.theme import Palette
from chronex_tui.widgets import Bar, LineWidget, strip_of

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

_READ_EVERY_S = 0.2
KEYS = (
    ("F", "follow"), ("/", "search"), ("n N", "next, previous"), ("w", "wrap"), ("o", "pager"), ("y", "copy"),
    ("[ ]", "other attempt"), ("esc", "back"), ("q", "back"),
)  # fmt: skip


def open_log(app: ChronexApp) -> None:
    """The newest output of what is selected. It opens at once, also before the run has been read."""
    state = app.state
    name = app.context().job
    if state.screen == "runs":
        firing = state.firing
        is_read = firing is not None and firing.key == state.run
    else:
        firing = state.detail.firing if state.detail is not None else None
        is_read = state.detail is not None and state.detail.row.job.id == name
    app.push_screen(LogScreen(app, name, firing, is_read=is_read))


class LogScreen(Screen[None]):
    """The output of one attempt, with its own keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False),
        Binding("q", "leave", show=False),
        Binding("F", "follow", show=False),
        Binding("w", "wrap", show=False),
        Binding("/", "search", show=False),
        Binding("n", "again(1)", show=False),
        Binding("N", "again(-1)", show=False),
        Binding("o", "pager", show=False),
        Binding("y", "copy", show=False),
        Binding("[", "other(-1)", show=False),
        Binding("]", "other(1)", show=False),
        Binding("down,j", "scroll(1)", show=False),
        Binding("up,k", "scroll(-1)", show=False),
        Binding("pagedown,ctrl+d,space", "page(1)", show=False),
        Binding("pageup,ctrl+u", "page(-1)", show=False),
        Binding("home,g", "end(0)", show=False),
        Binding("end,G", "end(1)", show=False),
    ]

    def __init__(self, app: ChronexApp, job: str, firing: Firing | None, *, is_read: bool) -> None:
        super().__init__(classes="-ascii" if app.state.glyphs.border == "ascii" else "")
        self.dashboard = app
        self.job = job
        self._is_read = is_read  # the run has been looked for
        self.firing = firing if is_read else None
        self.attempt = self.firing.newest_log if self.firing is not None else None
        self.output: AttemptOutput | None = None
        self._found: int | None = None

    def compose(self) -> ComposeResult:
        yield Bar(self._title, self.dashboard.palette, id="log-title")
        yield LogPane(self.dashboard.palette, id="log-body")
        yield Input(id="filter", placeholder="text to find", select_on_focus=False)
        yield Bar(lambda width, _: (key_line(KEYS, width),), self.dashboard.palette, id="keys")

    def on_mount(self) -> None:
        self.query_one(LogPane).focus()
        self._show_story()
        self._read()
        self.set_interval(_READ_EVERY_S, self._read)

    @property
    def pane(self) -> LogPane:
        return self.query_one(LogPane)

    # -- reading ------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Called five times a second while the screen is open; an attempt that is over is read once."""
        before, attempt = self.output, self.attempt
        if attempt is None or (before is not None and before.is_over):
            return
        store_path = self.dashboard.live.source.path
        self.dashboard.live.request(
            "log", lambda reading: read_output(reading, store_path, attempt, before), OutputRead
        )

    def show_firing(self, job: str, firing: Firing | None) -> None:
        """The run has been read; later ones of the same job do not replace what is shown."""
        if self.attempt is None and job == self.job:
            self._is_read, self.firing = True, firing
            self.attempt = firing.newest_log if firing is not None else None
            self._show_story()
            self._read()

    def _show_story(self) -> None:
        """Why there is no output, where there is none."""
        if self.attempt is None:
            self.pane.show_sentence(no_output(self.firing) if self._is_read else "reading …")

    def show_output(self, output: AttemptOutput) -> None:
        is_of_this_attempt = self.attempt is not None and output.attempt.id == self.attempt.id
        if is_of_this_attempt and output is not self.output:
            self.output = output
            if output.lines or output.is_over:
                self.pane.show(output.lines)
            else:
                self.pane.show_sentence(output.problem or "no output yet")
            self.query_one("#log-title", Bar).redraw()

    def _title(self, width: int, height: int) -> Sequence[Line]:
        attempt = self.output.attempt if self.output is not None else self.attempt
        if attempt is None:
            return (((f" {cell_safe(self.job)}", "bold"),),)
        style = STYLES[attempt.state]
        code = "" if attempt.exit_code in (None, 0) else f" exit {attempt.exit_code}"
        left: Line = (
            (f" {cell_safe(attempt.job)}", "bold"),
            (f"  {cell_safe(attempt.task)}, try {attempt.number}  ", ""),
            (f"{sign(attempt.state, self.dashboard.state.glyphs)} {word(attempt.state)}{code}", style),
        )
        lines = len(self.output.lines) if self.output is not None else 0
        facts = [count(lines, "line"), "wrap on" if self.pane.wraps else "wrap off"]
        facts.insert(0, "follow on" if self.pane.follows else "follow off")
        if attempt.log_dropped:
            facts.append(f"{attempt.log_dropped:,} bytes dropped")
        return (spread(left, (("  ".join(facts) + " ", "dim"),), width, self.dashboard.palette.ellipsis),)

    # -- keys ---------------------------------------------------------------------------------------------------

    def action_follow(self) -> None:
        self.pane.follows = not self.pane.follows
        if self.pane.follows:
            self.pane.show(self.pane.lines)
        self.query_one("#log-title", Bar).redraw()

    def _stop_following(self) -> None:
        if self.pane.follows:
            self.pane.follows = False
            self.query_one("#log-title", Bar).redraw()

    def action_wrap(self) -> None:
        self.pane.toggle_wrap()
        self.query_one("#log-title", Bar).redraw()

    def action_scroll(self, by: int) -> None:
        self._stop_following()
        self.pane.scroll_relative(y=by, animate=False, force=True)

    def action_page(self, by: int) -> None:
        self.action_scroll(by * max(self.pane.size.height - 2, 1))

    def action_end(self, to: int) -> None:
        self._stop_following()
        self.pane.scroll_to(y=0 if to == 0 else self.pane.rows, animate=False, force=True)

    def action_search(self) -> None:
        box = self.query_one("#filter", Input)
        box.value = self.pane.search_text
        box.display = True
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.display = False
        self.pane.focus()
        self.pane.search_text, self._found = event.value, None
        self.action_again(1)

    def action_again(self, step: int) -> None:
        """Go to the next or the previous line that has the text."""
        start = self.pane.line_at(self.pane.scroll_offset.y) if self._found is None else self._found + step
        found = find(self.pane.lines, self.pane.search_text, start, step)
        self.pane.refresh()
        if found is None:
            if self.pane.search_text:
                self.dashboard.notify(f"not found: {cell_safe(self.pane.search_text)}", markup=False)
            return
        self._stop_following()
        self._found = found
        self.pane.scroll_to_line(found)

    def action_other(self, step: int) -> None:
        """The attempt before or after this one, of all tasks of the run."""
        if self.firing is None or self.attempt is None:
            return
        shown = self.attempt.id
        attempts = sorted(self.firing.attempts, key=lambda a: (a.created_ms, a.task, a.number))
        index = next((n for n, one in enumerate(attempts) if one.id == shown), 0)
        self.attempt = attempts[max(0, min(index + step, len(attempts) - 1))]
        self.output, self._found = None, None
        self._read()

    def action_copy(self) -> None:
        self.dashboard.copy_to_clipboard("\n".join(cell_safe(line) for line in self.pane.lines))
        self.dashboard.notify("copied the output", timeout=1.5)

    def action_pager(self) -> None:
        """The whole output in $PAGER, without control characters."""
        command = shlex.split(os.environ.get("PAGER", "less"))
        text = "\n".join(cell_safe(line) for line in self.pane.lines) + "\n"
        try:
            with self.dashboard.suspend():
                subprocess.run(command, input=text.encode(), check=False)  # noqa: S603  the user's own pager
            self.dashboard.key_order.drop_waiting()
        except SuspendNotSupported:
            self.dashboard.notify("this terminal cannot be given to a pager", severity="warning")
        except (OSError, ValueError) as problem:
            self.dashboard.notify(f"the pager could not be started: {problem}", severity="warning", markup=False)

    def action_back(self) -> None:
        box = self.query_one("#filter", Input)
        if box.display or self.pane.search_text:
            box.display = False
            self.pane.search_text = ""
            self.pane.focus()
            self.pane.refresh()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        if self.is_active:  # a second key of one burst may arrive after the screen has closed
            self.dismiss(None)


def open_log_screen(app: ChronexApp) -> LogScreen | None:
    """The log screen, if it is open."""
    return app.screen if isinstance(app.screen, LogScreen) else None


class LogPane(LineWidget, can_focus=True):
    """Lines of output, of any number: only visible lines are made safe and drawn."""

    def __init__(self, palette: Palette, *, id: str | None = None, classes: str = "") -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.palette = palette
        self.lines: tuple[str, ...] = ()
        self.wraps = False
        self._is_sentence = False
        self.follows = True
        self.search_text = ""
        self._pieces: list[tuple[int, str]] | None = None

    @property
    def rows(self) -> int:
        return len(self._pieces) if self._pieces is not None else len(self.lines)

    def show(self, lines: tuple[str, ...]) -> None:
        self.lines, self._is_sentence = lines, False
        self._update_size()

    def show_sentence(self, sentence: str) -> None:
        """Shown in place of output, and whole: whoever reads it did not choose how long its lines are."""
        self.lines, self._is_sentence = (sentence,), True
        self._update_size()

    def toggle_wrap(self) -> None:
        top = self.line_at(self.scroll_offset.y)
        self.wraps = not self.wraps
        self._update_size()
        self.scroll_to_line(top)

    def _update_size(self) -> None:
        cells = self.scrollable_content_region.width
        wraps = self.wraps or self._is_sentence
        if self._is_sentence and cells:
            self._pieces = [(0, piece) for piece in wrap(cell_safe(self.lines[0]), cells)]
        else:
            self._pieces = wrapped(self.lines, cells) if self.wraps and cells else None
        longest = cells if wraps else max((len(line) for line in self.lines[-2000:]), default=0) * 2
        self.virtual_size = Size(max(cells, min(longest, 4000)), self.rows)
        if self.follows:
            self.scroll_to(y=max(self.rows - self.scrollable_content_region.height, 0), animate=False, force=True)
        self.refresh()

    def on_resize(self) -> None:
        self._update_size()

    def line_at(self, row: int) -> int:
        """The number of the line that is drawn in this row."""
        if self._pieces is None:
            return row
        return self._pieces[min(row, len(self._pieces) - 1)][0] if self._pieces else 0

    def scroll_to_line(self, line: int) -> None:
        """Scroll so that this line is near the top."""
        row = line
        if self._pieces is not None:
            row = next((number for number, (owner, _) in enumerate(self._pieces) if owner >= line), 0)
        self.scroll_to(y=max(row - 2, 0), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        if row >= self.rows:
            return Strip.blank(width, self.background_style)
        text = self._pieces[row][1] if self._pieces is not None else cell_safe(self.lines[row])
        line = _highlighted(text[self.scroll_offset.x :], self.search_text)
        return strip_of(line, width, self.palette, self.background_style)


def _highlighted(text: str, search_text: str) -> Line:
    """The line with the found text highlighted; lines that Chronex has added are dim."""
    if text.startswith("--- chronex:"):
        return ((text, "dim"),)
    if not search_text:
        return ((text, ""),)
    spans: list[Span] = []
    lower, needle, position = text.lower(), search_text.lower(), 0
    while (found := lower.find(needle, position)) >= 0:
        spans += [(text[position:found], ""), (text[found : found + len(needle)], "found")]
        position = found + len(needle)
    return (*spans, (text[position:], ""))
