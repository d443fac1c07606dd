"""The output of one attempt over the whole screen: follow, search, wrap, pager."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input

from chronex.model.records import Attempt
from chronex_tui.messages import OutputRead
from chronex_tui.model.cells import Line, shown, spread
from chronex_tui.model.glyphs import STYLES, sign, word
from chronex_tui.model.logs import Output, find, read_output
from chronex_tui.model.snapshot import Firing
from chronex_tui.model.status import key_line
from chronex_tui.widgets.logpane import LogPane
from chronex_tui.widgets.panel import Bar

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp

_LOOK_S = 0.2
KEYS = (
    ("F", "follow"), ("/", "search"), ("n N", "next, previous"), ("w", "wrap"), ("o", "pager"), ("y", "copy"),
    ("[ ]", "other attempt"), ("esc", "back"), ("q", "back"),
)  # fmt: skip


def open_log(app: ChronexApp) -> None:
    """The newest output of what is selected."""
    state = app.state
    firing = state.firing if state.screen == "runs" else state.detail.firing if state.detail else None
    attempt = firing.newest_log if firing is not None else None
    if firing is None or attempt is None:
        app.notify("it has not run yet, so there is no output")
        return
    app.push_screen(LogScreen(app, firing, attempt))


class LogScreen(Screen[None]):
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

    def __init__(self, app: ChronexApp, firing: Firing, attempt: Attempt) -> None:
        super().__init__(classes="-ascii" if app.state.glyphs.border == "ascii" else "")
        self.desk, self.firing, self.attempt = app, firing, attempt
        self.output: Output | None = None
        self._found: int | None = None

    def compose(self) -> ComposeResult:
        yield Bar(self._title, self.desk.book, id="log-title")
        yield LogPane(self.desk.book, id="log-body")
        yield Input(id="filter", placeholder="text to look for", select_on_focus=False)
        yield Bar(lambda width, _: (key_line(KEYS, width),), self.desk.book, id="keys")

    def on_mount(self) -> None:
        self.query_one(LogPane).focus()
        self._ask()
        self.set_interval(_LOOK_S, self._ask)

    @property
    def pane(self) -> LogPane:
        return self.query_one(LogPane)

    # -- reading ------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Five times a second while it is open; an attempt that is over is read once."""
        before, attempt = self.output, self.attempt
        if before is not None and before.is_over:
            return
        place = self.desk.live.source.path
        self.desk.live.ask("log", lambda reading: read_output(reading, place, attempt, before), OutputRead)

    def take(self, output: Output) -> None:
        is_ours = output.attempt.id == self.attempt.id
        if is_ours and (self.output is None or output is not self.output):
            self.output = output
            self.pane.show(output.lines or ((output.trouble or "no output yet",) if not output.is_over else ()))
            self.query_one("#log-title", Bar).redraw()

    def _title(self, width: int, height: int) -> Sequence[Line]:
        attempt = self.output.attempt if self.output is not None else self.attempt
        style = STYLES[attempt.state]
        code = "" if attempt.exit_code in (None, 0) else f" exit {attempt.exit_code}"
        left: Line = (
            (f" {shown(attempt.job)}", "bold"),
            (f"  {shown(attempt.task)}, try {attempt.number}  ", ""),
            (f"{sign(attempt.state, self.desk.state.glyphs)} {word(attempt.state)}{code}", style),
        )
        count = len(self.output.lines) if self.output is not None else 0
        facts = [f"{count:,} lines", "wrap on" if self.pane.wraps else "wrap off"]
        facts.insert(0, "follow on" if self.pane.follows else "follow off")
        if attempt.log_dropped:
            facts.append(f"{attempt.log_dropped:,} bytes dropped")
        return (spread(left, (("  ".join(facts) + " ", "dim"),), width, self.desk.book.ellipsis),)

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
        box.value = self.pane.wanted
        box.add_class("-shown")
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.input.remove_class("-shown")
        self.pane.focus()
        self.pane.wanted, self._found = event.value, None
        self.action_again(1)

    def action_again(self, step: int) -> None:
        """To the next place that holds what is looked for."""
        start = self.pane.line_at(self.pane.scroll_offset.y) if self._found is None else self._found + step
        found = find(self.pane.lines, self.pane.wanted, start, step)
        self.pane.refresh()
        if found is None:
            if self.pane.wanted:
                self.desk.notify(f"not found: {shown(self.pane.wanted)}", markup=False)
            return
        self._stop_following()
        self._found = found
        self.pane.see(found)

    def action_other(self, step: int) -> None:
        """The attempt before or after this one, of all tasks of the run."""
        attempts = sorted(self.firing.attempts, key=lambda a: (a.created_ms, a.task, a.number))
        place = next((n for n, one in enumerate(attempts) if one.id == self.attempt.id), 0)
        self.attempt = attempts[max(0, min(place + step, len(attempts) - 1))]
        self.output, self._found = None, None
        self._ask()

    def action_copy(self) -> None:
        self.desk.copy_to_clipboard("\n".join(shown(line) for line in self.pane.lines))
        self.desk.notify("copied the output", timeout=1.5)

    def action_pager(self) -> None:
        """The whole output in $PAGER; what it is given has no control characters."""
        command = shlex.split(os.environ.get("PAGER", "less"))
        text = "\n".join(shown(line) for line in self.pane.lines) + "\n"
        try:
            with self.desk.suspend():
                subprocess.run(command, input=text.encode(), check=False)  # noqa: S603  the user's own pager
        except (OSError, ValueError) as problem:
            self.desk.notify(f"the pager could not be started: {problem}", severity="warning", markup=False)

    def action_back(self) -> None:
        box = self.query_one("#filter", Input)
        if box.has_class("-shown") or self.pane.wanted:
            box.remove_class("-shown")
            self.pane.wanted = ""
            self.pane.focus()
            self.pane.refresh()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        self.dismiss(None)


def shown_log(app: ChronexApp) -> LogScreen | None:
    """The log that is open, if one is."""
    return app.screen if isinstance(app.screen, LogScreen) else None
