"""`chronex lsp`: the language server for editors, over standard input and output."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from chronex.cli.options import UsageError, ZoneName, choose, choose_zone, read_instant
from chronex.cli.output import out


def lsp(
    tz: ZoneName = None,
    now: Annotated[
        str | None, typer.Option(help="Pretend that it is this ISO 8601 time.", metavar="TIME", hidden=True)
    ] = None,
    cron: Annotated[
        str | None,
        typer.Option(help="debian, cronie, bsd, busybox, supercronic or bcron reads the crontabs.", metavar="CRON"),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Show what the server can do, and exit.")] = False,
) -> int:
    """Serve editors over standard input and output: the findings of lint, hover, hints, completion and fixes.

    Example: chronex lsp --check
    """
    return run_lsp(tz, now, cron, check=check)


def run_lsp(tz: str | None, now: str | None, cron: str | None, *, check: bool) -> int:
    from chronex.clock import wall_ms
    from chronex.lint.cron_programs import CRON_PROGRAMS, program_of_machine
    from chronex.lint.findings import assumptions

    try:
        from chronex.lsp.server import FEATURES, ServerInputs, build
    except ImportError:
        raise UsageError("the language server needs pygls; install chronex[lsp]") from None
    choice = choose_zone(tz)
    clock: Callable[[], int] = wall_ms
    if now is not None:
        fixed = read_instant(now, choice.zone, "--now")
        clock = lambda: fixed  # noqa: E731
    if cron is not None:
        choose("--cron", cron, tuple(CRON_PROGRAMS))
    program = CRON_PROGRAMS[cron] if cron else None
    assume = assumptions(choice.zone.name, choice.source, clock(), program, program_of_machine())
    server = build(ServerInputs(clock, assume))
    if check:
        out(f"chronex language server, over standard input and output; zone {choice.zone.name} ({choice.source})")
        for name, what in FEATURES.items():
            out(f"  {name:<17} {what}")
        return 0
    if sys.stdin.isatty():
        raise UsageError("an editor starts this; chronex lsp --check shows what it can do")
    # A thread of the server reads standard input; a Ctrl-C that only raised would wait for the editor's next word.
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    server.start_io()
    return 0
