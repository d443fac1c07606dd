"""The views of time: the timeline, the clock changes and the density. They are loaded when one is first opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from chronex_tui.model.clock_days import POLICIES, ClockDay, change_lines, no_change_line, signs_of_clock, title_line
from chronex_tui.model.density import WEEK, busiest_lines, heatmap_lines, hour_lines, legend_line
from chronex_tui.model.display import count, stamp
from chronex_tui.model.lanes import LanesTable, signs_of_lanes, zoom_text
from chronex_tui.model.layout import Line, legend, wrap_line
from chronex_tui.state import State
from chronex_tui.theme import Palette
from chronex_tui.views import View
from chronex_tui.widgets import Panel, Table, TextPanel


class TimelineView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "timeline")

    def compose(self) -> ComposeResult:
        yield Table(self.palette, id="lanes", classes="framed", title="Timeline")
        yield TextPanel(self._empty, self.palette, id="no-lanes", classes="framed", title="Timeline")

    @property
    def main(self) -> Table | Panel:
        table = self.query_one("#lanes", Table)
        return table if table.display else self.query_one("#no-lanes", Panel)

    def restore_selection(self) -> None:
        if any(lane.job == self.state.job for lane in self.state.lanes):
            self.query_one("#lanes", Table).cursor = self.state.job

    def update_all(self) -> None:
        table, empty = self.query_one("#lanes", Table), self.query_one("#no-lanes", Panel)
        state = self.state
        has_lanes = bool(state.lanes)
        self.show_either(table, empty, has_rows=has_lanes)
        span = zoom_text(state.window)
        more = f", without {count(state.lanes_left_out, 'job')} that run later" if state.lanes_left_out else ""
        table.border_title = empty.border_title = f"Timeline  {span} before and after {self._middle()}{more}"
        signs = signs_of_lanes(state.glyphs, state.lanes, is_watched=state.display.is_watched)
        table.border_subtitle = legend(signs, table.size.width - 6)
        if has_lanes:
            table.show(LanesTable(state.lanes, state.window, state.display))
        else:
            empty.redraw()

    def tick(self) -> None:
        self.update_all()

    def _middle(self) -> str:
        if self.state.follows_now:
            return "now"
        return stamp(self.state.window.middle_ms, self.state.now_ms, self.state.display.board_zone)

    def _empty(self, width: int, height: int) -> Sequence[Line]:
        return [
            (),
            (("Nothing ran and nothing is planned in the shown time.", ""),),
            (),
            (("-", "key"), (" shows more time   ", "dim"), ("0", "key"), (" returns to now", "dim")),
        ]


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
        # The panel is as wide as the screen; its own size is not known before the first frame.
        panel.border_subtitle = legend(signs_of_clock(self.state.glyphs), self.app.size.width - 6)
        panel.redraw()

    def on_resize(self) -> None:
        self.update_all()

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
        label = max([6, *(len(one.job.id) for day in self.state.clock_days for one in day.jobs)])
        per_day = max(3, height - 5) if len(self.state.clock_days) < 2 else max(4, height // 2 - 4)
        for number, day in enumerate(self.state.clock_days):
            self._first_lines.append(len(lines))
            lines += [*self._day(number, day, width, per_day, label), ()]
        if not self.state.clock_days and not self.state.unchanging_zones:
            lines += wrap_line((("No jobs, so no zone is in use. Z chooses one to show.", "dim"),), width)
        lines += [no_change_line(zone) for zone in self.state.unchanging_zones]
        return lines

    def _day(self, number: int, day: ClockDay, width: int, per_day: int, label: int) -> list[Line]:
        chosen = number == self.state.clock_index
        mark = self.state.glyphs.mark if chosen else " "
        title = ((f"{mark} ", "key"), *title_line(day, self.state.display, width - 2))
        return [*wrap_line(title, width), *change_lines(day, self.state.display, width, per_day, label)]


class HeatPanel(Panel):
    """The heat map, with a cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "step(0, -1)", show=False),
        Binding("right,l", "step(0, 1)", show=False),
        Binding("up,k", "step(-1, 0)", show=False),
        Binding("down,j", "step(1, 0)", show=False),
    ]

    def action_step(self, days: int, hours: int) -> None:
        view = self.screen.query_one(DensityView)
        view.step(days, hours)


class DensityView(View):
    def __init__(self, state: State, palette: Palette) -> None:
        super().__init__(state, palette, "density")

    def compose(self) -> ComposeResult:
        yield HeatPanel(self._map, self.palette, id="heat", classes="framed", title="Density")
        yield TextPanel(self._cell, self.palette, id="heat-cell", classes="framed", title="In this hour")

    @property
    def main(self) -> Table | Panel:
        return self.query_one("#heat", Panel)

    def step(self, days: int, hours: int) -> None:
        day, hour = self.state.cursor
        self.state.cursor = (max(0, min(day + days, WEEK - 1)), max(0, min(hour + hours, 23)))
        self.update_all()

    def update_all(self) -> None:
        week = "the past seven days" if self.state.heatmap_is_past else "the coming seven days"
        zone = self.state.display.board_zone.name
        what = "minutes of run time" if self.state.heatmap_is_time else "starts"
        self.query_one("#heat", Panel).border_title = f"Density  {what} in each hour of {week}, {zone}"
        super().update_all()

    def tick(self) -> None:
        """Nothing here counts down."""

    def selection_changed(self) -> None:
        """Nothing here follows the selected job."""

    def _map(self, width: int, height: int) -> Sequence[Line]:
        heatmap = self.state.heatmap
        if heatmap is None:
            return ((("counting", "dim"),),)
        display = self.state.display
        return [
            *heatmap_lines(heatmap, display, self.state.cursor, width),
            (),
            *wrap_line(legend_line(heatmap, display), width),
            *busiest_lines(heatmap, display, width),
        ]

    def _cell(self, width: int, height: int) -> Sequence[Line]:
        if self.state.heatmap is None:
            return ()
        return hour_lines(self.state.heatmap, self.state.cursor, self.state.display)
