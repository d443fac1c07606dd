"""The widgets by themselves: what they draw is as wide as the place that it is shown in."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from chronex_tui.model.layout import Line
from chronex_tui.theme import Palette
from chronex_tui.widgets import Panel


@pytest.mark.parametrize("theme", ["dark", "light", "colorblind"])
def test_a_highlighted_answer_has_a_text_colour_of_its_own(theme: str) -> None:
    """The terminal's own may be light grey, and the highlight light blue."""
    style = Palette(theme).style("chosen")
    assert style.color is not None
    assert style.bgcolor is not None
    assert style.color != style.bgcolor


async def test_a_panel_whose_scroll_bar_comes_is_drawn_for_what_is_left() -> None:
    """A sentence was wrapped for the whole width, and its end cut off below the bar."""
    count = 1
    widths: list[int] = []

    def draw(width: int, height: int) -> list[Line]:
        widths.append(width)
        return [(("x" * width, ""),) for _ in range(count)]

    class OnePanel(App[None]):
        def compose(self) -> ComposeResult:
            yield Panel(draw, Palette("dark"))

    app = OnePanel()
    async with app.run_test(size=(30, 5)) as pilot:
        panel = app.query_one(Panel)
        count = 50
        panel.redraw()
        await pilot.pause()
        assert panel.scrollable_content_region.width < 30, "the bar is there"
        panel.on_resize = lambda: None  # type: ignore[method-assign]
        panel._lines, panel._drawn_width = draw(30, 5), 30  # as before the bar came
        assert len(panel.render_line(0).text) == panel.scrollable_content_region.width
        assert widths[-1] == panel.scrollable_content_region.width
