"""lsp: hand the clock, the zone and the job file's rules to the language server, and serve."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from chronex.cli.arguments import UsageError, choose_zone, read_instant
from chronex.cli.lint import assumptions
from chronex.cli.terminal import out
from chronex.clock import wall_ms


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
    """The keys of each table of a job file, by the name under which it is written."""
    from chronex.jobfile.jobs import DEFAULTS, JOB, TASK
    from chronex.jobfile.keymap import KEYS, TUI
    from chronex.jobfile.policies import DST, RECOVERY, RETRY
    from chronex.jobfile.properties import PROPERTY
    from chronex.jobfile.reader import TOP_LEVEL
    from chronex.jobfile.settings import HISTORY, LOGS, SCHEDULER
    from chronex.jobfile.spreads import SPREAD

    tables = {
        "top": TOP_LEVEL, "scheduler": SCHEDULER, "defaults": DEFAULTS, "job": JOB, "tasks": TASK, "retry": RETRY,
        "recovery": RECOVERY, "dst": DST, "spread": SPREAD, "history": HISTORY, "logs": LOGS, "property": PROPERTY,
        "tui": TUI, "keys": KEYS,
    }  # fmt: skip
    return {name: tuple(keys) for name, keys in tables.items()}
