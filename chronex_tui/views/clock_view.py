"""Clock: the next clock changes of every zone in use, and what they do to each job."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from chronex_tui.model.clock_days import POLICIES, ClockDay, change_lines, no_change_line, title_line
from chronex_tui.model.layout import Line
from chronex_tui.model.time_text import count
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views.view import View
from chronex_tui.widgets.panel import Panel
from chronex_tui.widgets.table import Table


class ClockView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "clock")
        self._first_lines: list[int] = []

    def compose(self) -> ComposeResult:
        yield Panel(self._draw, self.palette, id="clock", classes="framed", title="Clock changes")

    @property
    def main(self) -> Table | Panel:
        return self.query_one("#clock", Panel)

    def update_all(self) -> None:
        panel = self.query_one("#clock", Panel)
        zone = f" of {self.state.clock_zone}" if self.state.clock_zone else " of every zone in use"
        policy = POLICIES[self.state.policy]
        what_if = "" if policy is None else f"   what if: gap {policy.gap}, overlap {policy.overlap}"
        panel.border_title = f"Clock changes{zone}{what_if}"
        panel.redraw()

    def selection_changed(self) -> None:
        """Nothing here follows the selected job."""

    def scroll_to_selected(self) -> None:
        self.update_all()
        if self.state.clock_index < len(self._first_lines):
            panel = self.query_one("#clock", Panel)
            panel.scroll_to(y=max(self._first_lines[self.state.clock_index] - 1, 0), animate=False, force=True)

    def _draw(self, width: int, height: int) -> Sequence[Line]:
        lines: list[Line] = []
        self._first_lines = []
        display = self.state.display
        label = max([6, *(len(one.job.id) for day in self.state.clock_days for one in day.jobs)])
        per_day = max(3, height - 5) if len(self.state.clock_days) < 2 else max(4, height // 2 - 4)
        for number, day in enumerate(self.state.clock_days):
            self._first_lines.append(len(lines))
            lines += [*self._day(number, day, width, per_day, label), ()]
        if not self.state.clock_days and not self.state.unchanging_zones:
            lines.append((("No jobs, so no zone is in use. Z chooses one to look at.", "dim"),))
        lines += [no_change_line(zone) for zone in self.state.unchanging_zones]
        if self.state.clock_days:
            g = display.glyphs
            passes = f"{g.second} second pass of an hour lived twice"
            signs = (
                f"{g.runs} runs   {g.gap} does not exist   {passes}   {g.unsure} wanted here   {g.unused} not used"
            )
            lines += [(), ((signs, "dim"),)]
        return lines

    def _day(self, number: int, day: ClockDay, width: int, per_day: int, label: int) -> list[Line]:
        chosen = number == self.state.clock_index
        mark = self.state.glyphs.mark if chosen else " "
        touched = f"{count(day.touched, 'job')} touched" if day.touched else "no job touched"
        title = (
            (f"{mark} ", "key"),
            *title_line(day, self.state.display),
            (f"  {touched}", "clock" if day.touched else "dim"),
        )
        return [title, *change_lines(day, self.state.display, width, per_day, label)]
