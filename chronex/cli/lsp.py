"""lsp: hand the clock, the zone and the job file's rules to the language server, and serve."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.lint import assumptions
from chronex.cli.terminal import out
from chronex.engine.clock import wall_ms


def run_lsp(tz: str | None, now: str | None, *, check: bool) -> int:
    try:
        from chronex.lsp.server import FEATURES, Surroundings, build
    except ImportError:
        raise UsageError("the language server needs pygls; install chronex[lsp]") from None
    choice = choose_zone(tz)
    clock: Callable[[], int] = wall_ms
    if now is not None:
        fixed = read_instant(now, choice.zone, "--now")
        clock = lambda: fixed  # noqa: E731
    assume = assumptions(choice.zone.name, choice.source, clock())
    server = build(Surroundings(clock, assume, job_file_keys()))
    if check:
        out(f"chronex language server, over standard input and output; zone {choice.zone.name} ({choice.source})")
        for name, what in FEATURES.items():
            out(f"  {name:<17} {what}")
        return 0
    if sys.stdin.isatty():
        raise UsageError("an editor starts this; chronex lsp --check shows what it can do")
    server.start_io()
    return 0


def job_file_keys() -> dict[str, Sequence[str]]:
    from chronex.engine.jobfile.jobs import DEFAULTS, JOB, TASK
    from chronex.engine.jobfile.reader import TOP_LEVEL
    from chronex.engine.jobfile.settings import SCHEDULER

    return {
        "top": tuple(TOP_LEVEL),
        "scheduler": tuple(SCHEDULER),
        "defaults": tuple(DEFAULTS),
        "job": tuple(JOB),
        "task": tuple(TASK),
    }
