"""The output of one attempt over the whole screen: follow, search, wrap, pager."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chronex_tui.app import ChronexApp


def open_log(app: ChronexApp) -> None:
    app.notify("no output")
