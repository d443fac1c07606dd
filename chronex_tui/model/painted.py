"""Lines that the command line painted, as lines of the dashboard: its few colours by their meaning."""

from __future__ import annotations

import re

from chronex_tui.model.cells import Line, Span, shown

_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_STYLES = {"1": "bold", "2": "dim", "31": "failed", "32": "ok", "33": "retry", "34": "key", "36": "running"}


def painted(text: str) -> Line:
    """Only colours are understood; whatever else is in the text is made inert."""
    spans: list[Span] = []
    style, place = "", 0
    for found in _CODE.finditer(text):
        if found.start() > place:
            spans.append((shown(text[place : found.start()]), style))
        codes = found.group(1).split(";")
        style = next((_STYLES[code] for code in codes if code in _STYLES), "")
        place = found.end()
    if place < len(text):
        spans.append((shown(text[place:]), style))
    return tuple(spans)
