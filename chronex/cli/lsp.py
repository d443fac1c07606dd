"""lsp: hand the clock and the zone to the language server, and serve."""

from __future__ import annotations

import sys
from collections.abc import Callable

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.lint import assumptions
from chronex.cli.terminal import out
from chronex.clock import wall_ms


def run_lsp(tz: str | None, now: str | None, *, check: bool) -> int:
    try:
        from chronex.lsp.server import FEATURES, ServerInputs, build
    except ImportError:
        raise UsageError("the language server needs pygls; install chronex[lsp]") from None
    choice = choose_zone(tz)
    clock: Callable[[], int] = wall_ms
    if now is not None:
        fixed = read_instant(now, choice.zone, "--now")
        clock = lambda: fixed  # noqa: E731
    assume = assumptions(choice.zone.name, choice.source, clock())
    server = build(ServerInputs(clock, assume))
    if check:
        out(f"chronex language server, over standard input and output; zone {choice.zone.name} ({choice.source})")
        for name, what in FEATURES.items():
            out(f"  {name:<17} {what}")
        return 0
    if sys.stdin.isatty():
        raise UsageError("an editor starts this; chronex lsp --check shows what it can do")
    server.start_io()
    return 0
