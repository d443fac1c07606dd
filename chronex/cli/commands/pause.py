"""`chronex pause` and `chronex resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from chronex.cli.options import Form, JobName, StorePath, check_format, read_duration
from chronex.cli.output import print_result, time_text, timed, zone_of
from chronex.text.terminal import terminal_safe

if TYPE_CHECKING:
    from chronex.model.job import Job


def pause(
    job: JobName,
    duration: Annotated[str | None, typer.Option("--for", help="Resume by itself.", metavar="DURATION")] = None,
    store: StorePath = None,
    form: Form = "text",
) -> int:
    """Hold a job's schedule: what is due meanwhile is skipped, with your name. What runs goes on.

    Example: chronex pause backup --for 2h
    """
    check_format(form)
    return run_pause(job, duration, store, form)


def resume(job: JobName, store: StorePath = None, form: Form = "text") -> int:
    """End a pause.

    Example: chronex resume backup
    """
    check_format(form)
    return run_resume(job, store, form)


def run_pause(job: str, duration: str | None, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine import commands

    length = read_duration("--for", duration)
    with open_session(store) as session:
        until = None if length is None else session.store.now() + length
        paused = session.change(lambda records: commands.pause(records, job, session.actor, until_ms=until))
        end = f"until {time_text(until, zone_of(paused))}" if until is not None else "until resumed"
        line = f"paused {terminal_safe(paused.shown_name)} {end}; what is due meanwhile is skipped"
        print_result(form, lambda: pause_json(paused), lambda: [line])
        return 0


def run_resume(job: str, store: str | None, form: str) -> int:
    from chronex.cli.store_session import open_session
    from chronex.engine import commands
    from chronex.engine.commands.names import job_named

    with open_session(store) as session:
        before = session.read(lambda reading: job_named(reading, job))
        resumed = session.change(lambda records: commands.resume(records, job, session.actor))
        name = terminal_safe(resumed.shown_name)
        line = f"resumed {name}" if before.progress.paused else f"{name} was not paused"
        print_result(form, lambda: pause_json(resumed), lambda: [line])
        return 0


def pause_json(job: Job) -> dict[str, Any]:
    until = job.progress.paused_until_ms if job.progress.paused else None
    return {
        "job": job.id,
        "paused": job.progress.paused,
        **timed("until", until),
        "by": job.progress.paused_by or None,
    }
