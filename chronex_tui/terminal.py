"""What the terminal can show. Loads nothing, because `chronex run` asks before it knows whether to paint."""

from __future__ import annotations

import locale
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chronex_tui.model.glyphs import Glyphs


def is_terminal(environ: Mapping[str, str]) -> bool:
    """Can a full-screen program run here?"""
    return sys.stdin.isatty() and sys.stdout.isatty() and environ.get("TERM", "") not in ("", "dumb")


def choose_glyphs(environ: Mapping[str, str], *, ascii_only: bool) -> Glyphs:
    """Signs beyond ASCII need a terminal and a locale that know them; the Linux console knows few."""
    from chronex_tui.model.glyphs import ASCII, UNICODE

    encoding = locale.getpreferredencoding(False).lower().replace("-", "")
    if ascii_only or environ.get("TERM", "").startswith("linux") or encoding != "utf8":
        return ASCII
    return UNICODE


def choose_theme(wanted: str | None, environ: Mapping[str, str]) -> str:
    """What was asked for; else none under NO_COLOR, and the terminal's own colours where it has only sixteen."""
    if wanted:
        return wanted
    if environ.get("NO_COLOR"):
        return "mono"
    term = environ.get("TERM", "")
    rich_in_colour = environ.get("COLORTERM") in ("truecolor", "24bit") or "256" in term or "direct" in term
    if term and not rich_in_colour and term.startswith(("linux", "vt", "ansi", "xterm", "screen", "rxvt")):
        return "ansi"
    return "dark"
