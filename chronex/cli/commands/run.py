"""`chronex run`: the job file, the store, and the daemon between them."""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from chronex.cli.options import Config, StorePath, UsageError, choose, is_named, job_file_path, store_location
from chronex.text.durations import parse_duration

if TYPE_CHECKING:
    from chronex.daemon.headless import Foreground


def run(
    config: Config = None,
    store: StorePath = None,
    headless: Annotated[
        bool, typer.Option("--headless", help="Show no dashboard; where there is no terminal none is shown.")
    ] = False,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Run what is due now and what follows from it, wait, and stop; exit 1 when a run did not succeed.",
        ),
    ] = False,
    duration: Annotated[str | None, typer.Option("--for", help="Stop after this long.", metavar="DURATION")] = None,
    log_format: Annotated[str, typer.Option(help="text or json.", metavar="FORMAT")] = "text",
) -> int:
    """Apply the job file and run its jobs until stopped, with the dashboard. Exit 75: another daemon has the store.

    Example: chronex run --headless --for 1s
    """
    from chronex.daemon.first_process import leave_first_process

    choose("--log-format", log_format, ("text", "json"))
    leave_first_process()
    if not headless and not once and duration is None:
        from chronex.cli.commands.tui import can_show_dashboard, run_with_dashboard

        if can_show_dashboard():
            return run_with_dashboard(config, store)
    return run_daemon(config, store, once=once, duration=duration, log_format=log_format)


def run_daemon(
    config: str | None,
    store: str | None,
    *,
    once: bool,
    duration: str | None,
    log_format: str,
    foreground: Foreground | None = None,
) -> int:
    """Apply the job file where there is one, and run until stopped; StoreInUseError where another daemon runs."""
    from chronex.daemon.early_hangup import EarlyHangup

    hangup = EarlyHangup()
    if foreground is None and not once:
        hangup.hold()
    from chronex.cli.job_file import load_or_report, load_to_run, refuse_what_needs_root
    from chronex.daemon.headless import run_headless
    from chronex.daemon.log_handlers import FORMATTERS, log_event, log_to
    from chronex.daemon.reload import JobFileSource
    from chronex.jobfile import SchedulerSettings
    from chronex.timing.zones import host_zone

    seconds = _seconds(duration)
    path = job_file_path(config)
    has_file = is_named(config) or path.exists()
    found = load_or_report(config) if has_file else None
    if found is None and has_file:
        return 2
    if found is not None:
        refuse_what_needs_root(found)
    settings = found.settings if found is not None else SchedulerSettings(timezone=host_zone().zone.name)
    jobs = found.jobs if found is not None else None
    file = JobFileSource(path.absolute(), lambda: load_to_run(path), hangup) if found is not None else None
    # The screen belongs to the dashboard where there is one; the journal has every event.
    stream = sys.stderr if foreground is None else None
    with log_to(stream, FORMATTERS[log_format](), os.environ):
        if found is None:
            fields = {"looked_for": str(path), "so": "the jobs that the store has are run"}
            log_event(logging.getLogger(__name__), "no job file", fields)
        groups = found.groups if found is not None else None
        return run_headless(
            store_location(store), jobs, settings, once=once, seconds=seconds, file=file, foreground=foreground,
            groups=groups,
        )  # fmt: skip


def _seconds(duration: str | None) -> float | None:
    if duration is None:
        return None
    ms = parse_duration(duration)
    if ms is None:
        raise UsageError(f"--for: {duration!r} is not a duration; write 90s or 10m")
    return ms / 1000
